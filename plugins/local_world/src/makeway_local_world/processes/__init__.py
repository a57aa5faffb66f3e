"""The world of this machine's processes, from the engine's actions down to what keepers are asked for.

=========== =======================================================================
module      what it owns
=========== =======================================================================
world       what the engine sees: actions in, events out
settings    keys of ``[world.settings]``
orders      actions in their order, behind those that they rest on
hand, case  the thread that owns the lines to keepers; one incarnation
finding     what an earlier daemon left
verbs       what keepers are asked for, and what they answer
news        what the hand tells the world
nursing     the daemon's end of the nursery
rundir      who is alive, who ended, who never started (local-world 1.2)
leftovers   what is left of a job whose keeper was killed (local-world 3)
ends        how an incarnation ended
site        this machine, these settings: what all starts share
request     what a keeper is told at a start
environment the environment of a job
memory      acts before the kernel runs out of memory (local-world 4)
machine     cores, memory, cgroups of this machine (local-world 4)
gpus        GPUs, and strangers on them (local-world 4)
=========== =======================================================================
"""

"""Programs that are saved when they have to leave, and go on where they were: ``makeway checkpointable``.

=========  ================================================================================
module     what it owns
=========  ================================================================================
command    the options
wrapper    the process in the batch script: signals, times, what is said, the exit status
warden     the first process of the program's namespace: starts, saves and brings back
criu       finding criu, and its command lines
cuda       GPUs: finding cuda-checkpoint, and its calls around criu's
images     the directory: owner, lock, seal, and what an image needs of a machine
outputs    files that go back to the length that they had
obstacles  what cannot be saved, seen beforehand
slurm      the requeue
measuring  seconds that a checkpoint takes here
linux      calls that Python has no word for
=========  ================================================================================
"""

from __future__ import annotations

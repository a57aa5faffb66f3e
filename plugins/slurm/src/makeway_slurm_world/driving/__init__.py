"""Decide over some nodes of a running Slurm, with a way back.

============= ========================================================================
module        what it owns
============= ========================================================================
settings      ``[world.settings]``
orders        the commands that change something, word by word
notebook      what must outlive a crash: open starts, what was stopped, what was changed
lease         the reservation that keeps all others from starting, for a minute at a time
eyes          what Slurm shows, looked at as cheaply as possible
desk          actions of the engine, performed step by step
world         ``world/slurm``: what makeway asks for, and what it is told
preconditions what a site must be like before anything is done
handback      everything as it was before
============= ========================================================================
"""

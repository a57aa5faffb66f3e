"""Run real processes on one machine, under any policy (``world/local``).

This module imports nothing: the keepers of jobs start from here, and must stay small.

============ ========================================================================
module       what it owns
============ ========================================================================
plugin       what makeway finds: the world, its settings
submission   what to run for a job and as whom
processes    the world itself, from the engine's actions to what keepers are asked for
keeping      the processes that hold jobs; nothing but the standard library (spec 1-3)
============ ========================================================================
"""

"""Run real processes on one machine, under any policy (``world/local``).

This module imports nothing: the keepers of jobs start from here, and must stay small.

============ ========================================================================
module       what it owns
============ ========================================================================
plugin       what makeway finds: the world, its settings
submission   what to run for a job, and as which user
processes    the world itself, from the engine's actions to what keepers are asked for
daemon       the process that decides, writes down and answers; imports aiohttp
commands     what people type
places       where state and socket are
requests     what people submit
default      the configuration of a machine that is not configured
terminals    jobs in the foreground, and who sits at their terminals
doctor       what the machine can and cannot do
units        systemd units
keeping      the processes that hold jobs; nothing but the standard library (local-world 1 to 3)
============ ========================================================================
"""

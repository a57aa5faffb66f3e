"""The commands that talk to a daemon: ``makeway up``, ``submit``, ``queue`` and so on.

None of them imports aiohttp, or anything of the daemon but where it lives. But for `up`, each is over before click or
the engine would be imported, and so none imports at its top what takes long.

============ ========================================================================
module       what it owns
============ ========================================================================
table        which module has which command
words        what a command line may say
running      one command, from what was typed to the exit status
client       the socket: requests, streams, exit statuses
look, face   what click knows better: help, completion, the list of commands
options      what several commands share: ``--json``, jobs, times, completion
up           up: the beginning of a daemon; the only one that imports an engine
down         down
submit       submit, again, and victims
foreground   run, attach
scripts      scripts with ``#SBATCH`` lines
queue        queue
why          why
verbs        what changes jobs, from cancel to update; drain, undrain
output       logs, wait
history      history
assistant    mcp, whose tools are ``makeway_local_world.assistant``
monitor      monitor, whose screen is ``makeway_local_world.screen``
stats        stats
reserve      reserve
site         reload, doctor, web
============ ========================================================================
"""

"""The commands that talk to a daemon: ``makeway up``, ``submit``, ``queue`` and so on.

None of them imports aiohttp, or anything of the daemon but where it lives.

============ ========================================================================
module       what it owns
============ ========================================================================
client       the socket: requests, streams, exit statuses
options      what several commands share: ``--json``, jobs, times, completion
up           up, down: the daemon's life
submit       submit, and whom
scripts      scripts with ``#SBATCH`` lines
queue        queue
why          why
verbs        what changes jobs, from cancel to update; drain, undrain
output       logs, wait
history      history
site         reload, doctor, web
============ ========================================================================
"""

"""The daemon: one process per state directory that decides, writes down, and answers over a unix socket.

============ ========================================================================
module       what it owns
============ ========================================================================
main         the life of the process: lock, threads, signals, the way down
holding      one daemon per state directory
desk         the engine's thread: calls from other threads run there, between two steps
intake       submissions: ids, keys, what is stored before the engine hears of a job
waiting      conditions on other jobs (afterok and the like)
people       who may do what
views        jobs, as they are shown
past         what the journal says of jobs that have ended, and of what happened
foresight    copies of the engine that run on: why, when, whom
reserve      a full disk: room kept to record ends
app          the routes; aiohttp is imported here and below
============ ========================================================================
"""

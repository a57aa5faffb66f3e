"""The daemon: one process per state directory that decides, writes down, and answers over a unix socket.

============ ========================================================================
module       what it owns
============ ========================================================================
main         the life of the process: lock, threads, signals, the way down
holding      one daemon per state directory
backup       a copy of the journal as it was at the start
desk         the engine's thread: calls from other threads run there, between two steps
intake       submissions: ids, keys, what is stored before the engine hears of a job
waiting      conditions on other jobs (afterok and the like)
people       who may do what
views        jobs, as they are shown
past         what the journal says of jobs that have ended, and of what happened
verbs        what people ask for, as commands of the engine
foresight    copies of the engine that run on
why          why, when and what it displaces, in sentences
outlook      what these sentences are made of
wards        nodes that people have drained
reserve      a full disk: room kept to record ends
bookings     the calendar: who has booked what for when
service      what the routes come to
app          the routes; aiohttp is imported here and below
stream       what happens, as server-sent events
front        the thread of the socket; connections that say nothing
web          the page for browsers, behind token and cookie
describing   the routes as OpenAPI
============ ========================================================================
"""

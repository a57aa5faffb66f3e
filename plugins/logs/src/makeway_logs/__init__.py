"""Replay logs of real machines.

===========  ===============================================================
module       what it owns
===========  ===============================================================
swf          the Standard Workload Format
metacentrum  the columns that MetaCentrum's traces append to it
warm         replays that begin with the jobs that ran when the log begins
===========  ===============================================================
"""

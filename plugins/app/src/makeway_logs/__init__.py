"""Replay logs of real machines.

===========  ===============================================================
module       what it owns
===========  ===============================================================
swf          the Standard Workload Format
pbs          accounting of OpenPBS, PBS Professional and Torque
lsf          LSF's lsb.acct
rows         what these two have in common
metacentrum  the columns that MetaCentrum's traces append to it
warm         replays that begin with the jobs that ran when the log begins
===========  ===============================================================
"""

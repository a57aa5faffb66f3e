"""Replay logs of real machines.

=======  ===================================================================
module   what it owns
=======  ===================================================================
swf      the Standard Workload Format, with MetaCentrum's columns
warm     replays that begin with the jobs that ran when the log begins
=======  ===================================================================
"""

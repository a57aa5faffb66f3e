"""Run jobs as time goes on: the loop of worlds whose clock runs, and the journal that survives a crash.

==============  ===================================================================
module          what it owns
==============  ===================================================================
drive           the loop: wait, decide, write down, perform
agenda          jobs and commands that are due at known instants
differences     what a survey of the world tells that the books do not
journal         each step in a file, before anything of it is performed
job_rows        the rows of jobs in it: where each stands, how it ended
journal_file    the file: how it is opened, and what is wrong with it
journal_schema  its tables, and those of earlier versions
compaction      what of it is dropped, and when
contents        what it holds, for people
command         ``makeway journal``
recovery        where a run stood, after a crash or a restart
reload          another configuration, while jobs run
reader          a journal as the workload of a replay
replaying       a replay in such a world
==============  ===================================================================
"""

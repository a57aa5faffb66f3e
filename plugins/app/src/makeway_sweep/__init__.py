"""Replay one workload under many configurations: ``makeway sweep``.

========  ===================================================================
module    what it owns
========  ===================================================================
command   the command line
plan      the product of all values, and the identity of each run
work      one run, on all cores or on a Dask cluster
store     results on disk, one file each, so that a sweep can go on
summary   what each key does, and the pareto front
tables    the same in the terminal and as CSV
page      the same for a browser
========  ===================================================================
"""

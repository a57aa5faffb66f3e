"""Write records in the formats of other tools: ``makeway export``.

========  ===================================================
module    format
========  ===================================================
rows      tables of a record: jobs, intervals, waits and so on
files     these tables as CSV and as Parquet
sacct     what ``sacct -P`` prints
evalys    the CSV of Batsim, which Evalys reads
perfetto  Chrome's trace events, which Perfetto opens
========  ===================================================
"""

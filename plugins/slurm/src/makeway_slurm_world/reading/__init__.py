"""Turn what Slurm's commands print into makeway's model.

============ ========================================================================
module       what it reads
============ ========================================================================
records      lines of ``Key=Value``, whatever people typed into them
conf         configuration, partitions and nodes, through the reader of slurm.conf
jobs         one job: its request, its state, what it holds
look         all of it at once, as a configuration and a state
============ ========================================================================
"""

"""Say how Slurm behaves, for the policies that decide as it does: rules by release, preemption, memory.

`makeway_slurm_rules.vendor` tells makeway of it. The readers, checks and tables of Slurm are of `makeway_slurm`.
"""

"""Know Slurm: read its files, check configurations by its rules, replay its recordings, take turns as it does.

`makeway_slurm.dialect` is the plugin that reads files, and `makeway_slurm.vendor` says how Slurm behaves. Policies that
decide as it does build on `makeway_slurm.preemption` and `makeway_slurm.memory`.
"""

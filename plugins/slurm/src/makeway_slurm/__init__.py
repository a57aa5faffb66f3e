"""Know Slurm: read its files, check configurations by its rules, replay its recordings, take turns as it does.

`makeway_slurm.dialect` is the plugin that reads files. How Slurm behaves stands in `makeway_slurm_rules`, on which
policies that decide as it does build.
"""

"""Read Slurm's files, check configurations by its rules, and take turns as it does."""

"""The command ``makeway slurm`` and those below it."""

"""Run Slurm's commands; whether one only asks or changes something is a matter of its type."""

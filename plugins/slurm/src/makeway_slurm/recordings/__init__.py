"""Hold replays against recordings of a real Slurm."""

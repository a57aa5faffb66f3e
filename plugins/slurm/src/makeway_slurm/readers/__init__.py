"""Read the files of Slurm: slurm.conf, what sacctmgr and sacct print, the options of sbatch."""

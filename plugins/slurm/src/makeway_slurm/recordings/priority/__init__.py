"""Play recordings about priorities and limits, and hold them against what Slurm did.

Their scenarios set the database up with literal sacctmgr commands, and their recordings hold what sprio and sshare
printed beside the changes of each job.
"""

"""What Slurm's database says of accounts and users, and what they have used: shares, limits, usage.

Priorities (`makeway_slurm.multifactor`) and limits (`makeway_slurm.limits`) read the same tree and the same book.
"""

"""What of a shell is handed to the jobs that are submitted in it: known to commands, the daemon and keepers."""

from __future__ import annotations

RESOURCES = ("AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK")
"""Resource limits that are handed over, as sbatch does."""

"""Hand over Slurm's files, as the plugin ``reader/slurm``."""

from __future__ import annotations

from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway_slurm.readers.conf import SlurmConfReader
from makeway_slurm.readers.sacct import SacctReader
from makeway_slurm.readers.sacctmgr import read_accounting


@hookimpl
def makeway_dialect() -> Dialect:
    """Read slurm.conf, and what sacct and sacctmgr print."""
    return Dialect(configs=[SlurmConfReader()], workloads=[SacctReader()], accounting=read_accounting)

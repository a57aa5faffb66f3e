"""Hand over Slurm's files, as the plugin ``dialect/slurm``."""

from __future__ import annotations

from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway_slurm.readers.conf import SlurmConfReader
from makeway_slurm.readers.sacct import SacctReader
from makeway_slurm.readers.sacctmgr import read_accounting
from makeway_slurm.recordings.priority.reader import RecordingReader
from makeway_slurm.recordings.reader import ScenarioReader

DIALECT = Dialect(
    configs=(SlurmConfReader(),),
    workloads=(SacctReader(),),
    accounting=read_accounting,
    recordings=(ScenarioReader(), RecordingReader()),
)


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over Slurm's files: slurm.conf, sacct, sacctmgr, recorded scenarios."""
    return DIALECT

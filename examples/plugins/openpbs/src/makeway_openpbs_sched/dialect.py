"""Hand over the files of OpenPBS, as the plugin ``reader/openpbs``."""

from __future__ import annotations

from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway_openpbs_sched.reader import SchedConfigReader


@hookimpl
def makeway_dialect() -> Dialect:
    """Read sched_config, and what lies beside it."""
    return Dialect(configs=[SchedConfigReader()])

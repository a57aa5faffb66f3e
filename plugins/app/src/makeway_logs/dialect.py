"""Hand over the Standard Workload Format and accounting of PBS and LSF, as the plugin ``reader/swf``."""

from __future__ import annotations

from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway_logs.lsf import LsbAcctReader
from makeway_logs.pbs import PbsReader
from makeway_logs.swf import SwfReader

DIALECT = Dialect(workloads=(SwfReader(), PbsReader(), LsbAcctReader()))


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over the readers."""
    return DIALECT

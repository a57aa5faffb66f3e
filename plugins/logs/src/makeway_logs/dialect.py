"""Hand over the Standard Workload Format, as the plugin ``dialect/swf``."""

from __future__ import annotations

from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway_logs.swf import SwfReader

DIALECT = Dialect(workloads=(SwfReader(),))


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over the reader of SWF."""
    return DIALECT

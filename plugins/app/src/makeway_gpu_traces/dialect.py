"""Hand over traces of GPU clusters and their machines, as the plugin ``reader/gpu_traces``."""

from __future__ import annotations

from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway_gpu_traces.alibaba import OPENB, SPOT
from makeway_gpu_traces.helios import ACME, HELIOS
from makeway_gpu_traces.nodes import HELIOS_QUOTAS, OPENB_NODES, PHILLY_NODES, SPOT_NODES
from makeway_gpu_traces.philly import EXTRACT, PhillyJson
from makeway_gpu_traces.trace import TraceReader

DIALECT = Dialect(
    configs=(OPENB_NODES, SPOT_NODES, PHILLY_NODES, HELIOS_QUOTAS),
    workloads=(
        TraceReader(EXTRACT),
        TraceReader(HELIOS),
        TraceReader(ACME),
        TraceReader(OPENB),
        TraceReader(SPOT),
        PhillyJson(),
    ),
)


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over the readers."""
    return DIALECT

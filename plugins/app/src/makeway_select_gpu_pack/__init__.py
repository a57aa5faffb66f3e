"""Pack jobs, and gangs of GPUs above all, on as few nodes as possible: best fit by free GPUs.

A plain packer: it knows nothing of sockets, weights and rows, and no jobs share a core or a GPU.

========== ===============================================================
module     what it owns
========== ===============================================================
rooms      what is free on each node
wish       what a job asks for
packing    which nodes are taken, and what of each
selector   the answers to the engine
========== ===============================================================
"""

from __future__ import annotations

from makeway.hookspecs import hookimpl
from makeway.licences import LicenceLimits
from makeway.model import ClusterView, Limits, Selector
from makeway_select_gpu_pack.selector import PackSelector


@hookimpl
def makeway_selector(view: ClusterView) -> Selector:
    """Build the packer."""
    return PackSelector(view)


@hookimpl
def makeway_limits() -> Limits:
    """Keep out jobs whose licences are not there (slurm-preemption 1.11)."""
    return LicenceLimits()

"""Pack jobs, and gangs of GPUs above all, on as few nodes as possible: best fit by free GPUs.

A plain packer: it knows nothing of sockets, weights and rows, and nobody shares a core or a GPU.

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

from collections.abc import Mapping, Sequence

from makeway import licences
from makeway.hookspecs import about, by_request, hookimpl
from makeway.model import Blocked, ClusterView, Job, Selector
from makeway_select_gpu_pack.selector import PackSelector


@hookimpl
def makeway_selector(view: ClusterView) -> Selector:
    """Build the packer."""
    return PackSelector(view)


@hookimpl
@about(licences.wants)
@by_request(licences.by_request)
def makeway_admit(jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Blocked]:
    """Keep out jobs whose licences are not there."""
    return licences.admit(jobs, view)

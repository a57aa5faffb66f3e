"""Leave a host alone for a while after it was given a job (JOB_ACCEPT_INTERVAL, lsf 9.3).

So many turns of MBD_SLEEP_TIME after a job was dispatched to a host, another may be; the queue of the other job says
how many, else the cluster. A job that was only resumed was not dispatched. One that has ended is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, Seconds
from makeway_lsf_queue.site import Site

WAITS = "PEND_HOST_ACCPT_ONE"
_TINY = 1e-6


def closed(site: Site, job: Job, view: ClusterView) -> NodeBits:
    """Return the hosts that were given a job too short a time ago to be given `job`."""
    bits: NodeBits = 0
    if not site.paces:
        return bits
    for _, nodes in _fresh(site, job, view):
        bits |= nodes
    return bits


def opens_at(site: Site, job: Job, view: ClusterView) -> Seconds | None:
    """Return when the first of those hosts may be given `job`; None: none is closed."""
    return min((at for at, _ in _fresh(site, job, view)), default=None)


def _fresh(site: Site, job: Job, view: ClusterView) -> Iterator[tuple[Seconds, NodeBits]]:
    """Yield until when hosts are closed."""
    own = site.queue_of(job).accept_interval
    wait = (site.accept_interval if own is None else own) * site.turn
    if not wait:
        return
    for other in {each.id: each for each in (*view.active, *view.made_way)}.values():
        if other.started_at is not None and view.now < other.started_at + wait - _TINY:
            yield other.started_at + wait, other.nodes

"""Put a price on each candidate: the work that would be lost, or disturbed, in exact integers.

Work is the running time since the last checkpoint times the CPUs held, in CPU-microseconds: sums
of integers do not depend on the order in which they are added. A job that is suspended loses
nothing, but the same figure says how much is disturbed, so that the youngest and smallest goes.
The lower bits hold a tie-break that adds up too: between choices of equally many jobs and equal
work, the one with the larger sum of job indices is cheaper, so that jobs that were submitted last
go first.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import ClusterView, Job, Seconds

_TICKS = 1_000_000
_TIE_BITS = 64


def prices(jobs: Sequence[Job], view: ClusterView, now: Seconds) -> list[int]:
    """Return the price of each of `jobs`; ties count only between choices of equally many jobs."""
    newest = max((job.index for job in jobs), default=0)
    return [(work(job, view, now) << _TIE_BITS) + newest - job.index for job in jobs]


def work(job: Job, view: ClusterView, now: Seconds) -> int:
    """Return the CPU-microseconds at stake; of a heterogeneous job, those of all its components."""
    if job.spec.het_id is not None:
        return sum(_own_work(part, view, now) for part in view.components(job))
    return _own_work(job, view, now)


def _own_work(job: Job, view: ClusterView, now: Seconds) -> int:
    at_stake = job.ran_until(now) - job.checkpointed
    return round(at_stake * _TICKS) * cpus_held(job, view) if at_stake > 0 else 0


def cpus_held(job: Job, view: ClusterView) -> int:
    """Return how many CPUs `job` holds."""
    allocation = job.allocation
    if allocation is None:
        return 0
    if allocation.cpus is not None:
        return sum(allocation.cpus)
    nodes = view.cluster.nodes
    return sum([nodes[index].cpus for index in allocation.node_indices])

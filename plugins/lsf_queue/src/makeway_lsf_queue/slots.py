"""Count slots on hosts: who uses them, and whether a suspended job could go on (lsf 5, 6.3).

LSF hands out numbers of slots, not particular cores: a suspended job goes on as soon as its hosts have so
many slots free, whichever these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import Allocation, ClusterView, Job, JobState
from makeway_lsf_queue.jobs import slots_on

_RUNNING = JobState.RUNNING


class Used:
    """Slots of running jobs, by host; looked up once per host."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.nodes = view.cluster.nodes
        self.cores = [node.cores for node in self.nodes]
        """By host."""
        self._running: dict[int, int] = {}
        self._stale: NodeBits = 0
        """Hosts to be looked at again."""

    def running(self, index: int, without: Iterable[Job] = ()) -> int:
        """Return the slots of running jobs on a host, those of `without` left out."""
        if without and (gone := set(map(id, without))):
            return self._count(index, gone)
        known, bit = self._running.get(index), 1 << index
        if known is None or self._stale & bit:
            self._stale &= ~bit
            known = self._running[index] = self._count(index, set())
        return known

    def _count(self, index: int, gone: set[int]) -> int:
        return sum(
            held_on(job, index, self.nodes[index].cpus)
            for job in self._view.jobs_on(index)
            if job.state is _RUNNING and id(job) not in gone
        )

    def memory(self, index: int, without: Iterable[Job] = ()) -> int:
        """Return the memory that running jobs reserved on a host."""
        gone = set(map(id, without))
        return sum(
            memory_on(job, index)
            for job in self._view.jobs_on(index)
            if job.state is _RUNNING and id(job) not in gone
        )

    def forget_on(self, hosts: NodeBits) -> None:
        """Look again on some hosts: a job came, went, was stopped or continued."""
        self._stale |= hosts


def held_on(job: Job, index: int, whole: int) -> int:
    """Return the slots that an active job holds on one host of `whole` slots."""
    allocation = job.allocation
    if allocation is None:
        return 0
    if allocation.cpus is None:
        return whole
    return allocation.cpus[allocation.node_indices.index(index)]


def memory_on(job: Job, index: int) -> int:
    """Return the memory that an active job reserved on one host."""
    allocation = job.allocation
    if allocation is None or allocation.memory_mb is None:
        return 0
    return allocation.memory_mb[allocation.node_indices.index(index)]


def could_resume(job: Job, used: Used, without: Iterable[Job] = ()) -> bool:
    """Whether the hosts of a suspended job have its slots, and its memory, free."""
    gone = list(without)
    for index, count in slots_on(job, used.nodes):
        node = used.nodes[index]
        if used.running(index, gone) + count > node.cpus:
            return False
        memory = memory_on(job, index)
        if memory and used.memory(index, gone) + memory > node.usable_memory_mb:
            return False
    return True


def covered(job: Job, view: ClusterView, by: Callable[[Job], bool]) -> bool:
    """Whether jobs that `by` approves of hold as many slots as `job` on each of its hosts (12 no. 3)."""
    nodes = view.cluster.nodes
    for index, count in slots_on(job, nodes):
        whole = nodes[index].cpus
        over = sum(held_on(other, index, whole) for other in view.jobs_on(index) if by(other))
        if over < count:
            return False
    return True


Trades = tuple[tuple[Job, Allocation], ...]


def rearranged(job: Job, view: ClusterView) -> tuple[Allocation | None, Trades]:
    """Find cores that no job runs on for a suspended job, on the hosts that it is on.

    :returns: what it holds then (None: it may stay where it is), and which suspended jobs of its queue
        change places with it.
    """
    held = job.allocation
    if held is None or held.cores is None:
        return None, ()
    mine = list(held.cores)
    others: dict[str, tuple[Job, Allocation]] = {}
    for at, index in enumerate(held.node_indices):
        running, stopped = _neighbours(job, index, view)
        kept = mine[at] & ~running
        given_up = mine[at] & running
        free = bitmap.full(view.cluster.nodes[index].cores) & ~running & ~kept
        claimed = 0
        for other in stopped:
            claimed |= _cores_on(other, index, others)
        taken = bitmap.first_n(free & ~claimed, given_up.bit_count())
        taken |= bitmap.first_n(free & claimed, given_up.bit_count() - taken.bit_count())
        mine[at] = kept | taken
        for other in stopped:
            lost = _cores_on(other, index, others) & taken
            if lost:
                swapped = bitmap.first_n(given_up, lost.bit_count())
                given_up &= ~swapped
                others[other.id] = (other, _with_cores(other, index, lost, swapped, others))
    if tuple(mine) == held.cores:
        return None, ()
    return attrs.evolve(held, cores=tuple(mine)), tuple(others.values())


def _neighbours(job: Job, index: int, view: ClusterView) -> tuple[CoreBits, list[Job]]:
    """Return the cores that others run on, and the suspended jobs of the same queue, on one host."""
    running, stopped = 0, []
    for other in view.jobs_on(index):
        if other is job:
            continue
        if other.state is _RUNNING:
            running |= _cores_on(other, index, {})
        elif other.partition is job.partition:
            stopped.append(other)
    return running, stopped


def _with_cores(
    job: Job, index: int, lost: CoreBits, won: CoreBits, changed: Mapping[str, tuple[Job, Allocation]]
) -> Allocation:
    held = changed[job.id][1] if job.id in changed else job.allocation
    assert held is not None
    assert held.cores is not None
    cores = list(held.cores)
    at = held.node_indices.index(index)
    cores[at] = cores[at] & ~lost | won
    return attrs.evolve(held, cores=tuple(cores))


def _cores_on(job: Job, index: int, changed: Mapping[str, tuple[Job, Allocation]]) -> CoreBits:
    held = changed[job.id][1] if job.id in changed else job.allocation
    if held is None:
        return 0
    return -1 if held.cores is None else held.cores[held.node_indices.index(index)]

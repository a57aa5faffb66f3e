"""Count slots on hosts: who uses them, and whether a suspended job could go on (spec lsf 5, 6.3).

LSF hands out numbers of slots, not particular cores: a suspended job goes on as soon as its hosts have so
many slots free, whichever these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from makeway import bitmap
from makeway.model import Allocation, ClusterView, Job, JobState
from makeway_lsf_queue.jobs import slots_on


class Used:
    """Slots of running jobs, by host; looked up once per host."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.nodes = view.cluster.nodes
        self._running: dict[int, int] = {}

    def running(self, index: int, without: Iterable[Job] = ()) -> int:
        """Return the slots of running jobs on a host, those of `without` left out."""
        gone = set(map(id, without))
        if gone:
            return self._count(index, gone)
        if index not in self._running:
            self._running[index] = self._count(index, gone)
        return self._running[index]

    def _count(self, index: int, gone: set[int]) -> int:
        return sum(
            held_on(job, index, self.nodes[index].cpus)
            for job in self._view.jobs_on(index)
            if job.state is JobState.RUNNING and id(job) not in gone
        )

    def memory(self, index: int, without: Iterable[Job] = ()) -> int:
        """Return the memory that running jobs reserved on a host."""
        gone = set(map(id, without))
        return sum(
            memory_on(job, index)
            for job in self._view.jobs_on(index)
            if job.state is JobState.RUNNING and id(job) not in gone
        )

    def forget(self) -> None:
        """Look again: somebody was stopped or continued."""
        self._running.clear()


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


def rearranged(job: Job, view: ClusterView) -> Allocation | None:
    """Return what a suspended job holds on cores that nobody runs on; None: it may stay where it is."""
    held = job.allocation
    if held is None or held.cores is None:
        return None
    moved = []
    for at, index in enumerate(held.node_indices):
        taken = 0
        for other in view.jobs_on(index):
            if other is not job and other.state is JobState.RUNNING:
                taken |= _cores_on(other, index)
        wanted = held.cores[at].bit_count()
        kept = held.cores[at] & ~taken
        free = bitmap.full(view.cluster.nodes[index].cores) & ~taken & ~kept
        moved.append(kept | bitmap.first_n(free, wanted - kept.bit_count()))
    if tuple(moved) == held.cores:
        return None
    return attrs.evolve(held, cores=tuple(moved))


def _cores_on(job: Job, index: int) -> int:
    allocation = job.allocation
    if allocation is None:
        return 0
    if allocation.cores is None:
        return -1
    return allocation.cores[allocation.node_indices.index(index)]

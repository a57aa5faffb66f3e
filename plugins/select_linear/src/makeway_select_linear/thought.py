"""Simulate the removal of jobs from the books (slurm-preemption 5.1.3 no. 1)."""

from __future__ import annotations

from makeway.bitmap import NodeBits
from makeway.model import Job, PreemptMode, SuspendedBy
from makeway_select_linear.asked import Asked


class Thought:
    """The books as if some jobs were gone."""

    def __init__(self, attempt: Asked) -> None:
        selector = attempt.selector
        self._selector = selector
        self._job = attempt.job
        self._request = attempt.request
        self._most = attempt.most
        self._frees_memory = attempt.view.rule("linear_suspend_frees_memory")
        self.static = selector._static(attempt.job, attempt.nodes, attempt.request)
        books = selector.books
        self._running = books.running.copy()
        self._exclusive = books.exclusive.copy()
        self._memory: dict[int, int] = {}
        self._gres: dict[str, dict[int, int]] = {}

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Take a job out: wholly, or its running count alone (slurm-preemption 5.1.3 no. 1)."""
        allocation = job.allocation
        if allocation is None or job.suspended_by is SuspendedBy.ADMIN:
            return  # one suspended by a person cannot be removed (slurm-preemption 10.1 no. 13)
        books = self._selector.books
        if books.counts_job(job):
            self._running.remove(allocation.nodes)
            if not allocation.shared:
                self._exclusive.remove(allocation.nodes)
        if books.track_memory and allocation.memory_mb is not None:
            for index, amount in zip(allocation.node_indices, allocation.memory_mb, strict=True):
                held = self._memory.get(index, books.memory[index])
                if mode.frees_all:
                    self._memory[index] = max(0, held - amount)
                elif self._frees_memory:
                    self._memory[index] = max(0, held - self._selector.cluster.nodes[index].memory_mb)
        if mode.frees_all:
            for name, amounts in allocation.gres.items():
                freed = self._gres.setdefault(name, {})
                for index, amount in zip(allocation.node_indices, amounts, strict=True):
                    freed[index] = freed.get(index, 0) + amount

    def usable(self) -> NodeBits:
        """Return the nodes usable without the jobs taken out."""
        nodes = self.static & ~self._exclusive.over[0] & ~self._running.above(self._most)
        if self._selector.books.track_memory:
            nodes = self._selector.memory_free(self._request, nodes, self._memory)
        if self._job.spec.gres:
            nodes = self._selector.gres_free(self._job, nodes, self._gres)
        return nodes

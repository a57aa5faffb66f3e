"""Keep count of free cores and memory per node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import Allocation, Cluster, Job, JobState
from makeway.state import states_of


@attrs.frozen
class Keeps:
    """What a suspended job goes on holding."""

    cores: bool = False
    memory: bool = True


class Books:
    """What is free on each node."""

    def __init__(self, cluster: Cluster, keeps: Callable[[Job], Keeps]) -> None:
        self.cores = [max(1, node.cores if node.cores <= node.cpus else node.cpus) for node in cluster.nodes]
        self.threads = [
            max(1, node.cpus // cores) for node, cores in zip(cluster.nodes, self.cores, strict=True)
        ]
        self.busy: list[CoreBits] = [0] * len(self.cores)
        """Cores of running jobs."""
        self.used = [0] * len(self.cores)
        """How many that are."""
        self.parked: list[CoreBits] = [0] * len(self.cores)
        """Cores of suspended jobs; free, but used last."""
        self.memory = [0] * len(self.cores)
        self.jobs = [0] * len(self.cores)
        """Running jobs per node."""
        self.capacity = [node.usable_memory_mb if node.memory_mb > 1 else 1 << 60 for node in cluster.nodes]
        """A node whose memory is not described has enough."""
        self.version = 0
        self._keeps = keeps
        most = max(self.cores, default=1)
        self._at_least: list[NodeBits] = [0] * (most + 2)
        for index, cores in enumerate(self.cores):
            for level in range(cores + 1):
                self._at_least[level] |= 1 << index

    def free(self, index: int) -> int:
        """Return the free cores of a node."""
        return self.cores[index] - self.used[index]

    def with_cores(self, cores: int) -> NodeBits:
        """Return the nodes with at least so many free cores."""
        return self._at_least[cores] if cores < len(self._at_least) else 0

    def room(self, nodes: NodeBits, cores: int, most: int | None) -> int:
        """Return how many pieces of so many free cores `nodes` have, not more than `most` on a node."""
        found, level, pieces = 0, cores, 0
        while level < len(self._at_least) and (most is None or pieces < most):
            having = (self._at_least[level] & nodes).bit_count()
            if not having:
                break
            found += having
            level += cores
            pieces += 1
        return found

    # ----------------------------------------------------------------------------- notices
    def add(self, job: Job) -> None:
        """Charge a job that started."""
        self._hold(job, 1)
        self._charge(job, 1)

    def remove(self, job: Job) -> None:
        """Take back what a job holds."""
        if job.state is JobState.SUSPENDED:
            kept = self._keeps(job)
            if kept.cores:
                self._hold(job, -1)
            else:
                self._park(job, 0)
            if kept.memory:
                self._charge(job, -1)
        else:
            self._hold(job, -1)
            self._charge(job, -1)
        self.version += 1

    def suspend(self, job: Job) -> None:
        """A job was stopped: its cores are free, its memory is not, unless the site says otherwise."""
        kept = self._keeps(job)
        self.version += 1
        if not kept.cores:
            self._hold(job, -1)
            self._park(job, 1)
        if not kept.memory:
            self._charge(job, -1)

    def resume(self, job: Job) -> None:
        """A job goes on."""
        kept = self._keeps(job)
        self.version += 1
        if not kept.cores:
            self._park(job, 0)
            self._hold(job, 1)
        if not kept.memory:
            self._charge(job, 1)

    def _hold(self, job: Job, sign: int) -> None:
        held = job.allocation
        assert held is not None
        self.version += 1
        for at, index in enumerate(held.node_indices):
            before = self.free(index)
            bits = cores_of(held, at, self.cores[index])
            self.busy[index] = self.busy[index] | bits if sign > 0 else self.busy[index] & ~bits
            self.used[index] = self.busy[index].bit_count()
            self.jobs[index] += sign
            after = self.free(index)
            for level in range(after + 1, before + 1):
                self._at_least[level] &= ~(1 << index)
            for level in range(before + 1, after + 1):
                self._at_least[level] |= 1 << index

    def _park(self, job: Job, sign: int) -> None:
        held = job.allocation
        assert held is not None
        for at, index in enumerate(held.node_indices):
            bits = cores_of(held, at, self.cores[index])
            self.parked[index] = self.parked[index] | bits if sign else self.parked[index] & ~bits

    def _charge(self, job: Job, sign: int) -> None:
        held = job.allocation
        if held is None or held.memory_mb is None:
            return
        for index, amount in zip(held.node_indices, held.memory_mb, strict=True):
            self.memory[index] += sign * amount

    # ----------------------------------------------------------------------------- adoption
    def save(self, active: Sequence[Job], fresh: Books) -> dict[str, Any]:
        """Return what follows from the order of events and not from who is there; empty: nothing does.

        :param active: all running and suspended jobs.
        :param fresh: books without any job; changed.
        """
        fresh.restore(active, None)
        if (fresh.busy, fresh.parked, fresh.memory) == (self.busy, self.parked, self.memory):
            return {}
        return {
            "jobs": states_of(active),
            "nodes": {
                str(index): [hex(self.busy[index]), hex(self.parked[index]), self.memory[index]]
                for index in range(len(self.cores))
                if self.busy[index] or self.parked[index] or self.memory[index]
            },
        }

    def restore(self, active: Sequence[Job], memory: Mapping[str, Any] | None) -> None:
        """Charge jobs that are there already.

        :param memory: counts only if all jobs are as they were when it was handed over.
        """
        for job in active:
            self.add(job)
        stopped = [job for job in active if job.state is JobState.SUSPENDED]
        for job in sorted(stopped, key=lambda job: job.suspended_at or 0.0):
            self.suspend(job)
        if not memory or memory["jobs"] != states_of(active):
            return
        nodes = memory["nodes"]
        for index in range(len(self.cores)):
            busy, parked, held = nodes.get(str(index), ("0", "0", 0))
            self.busy[index], self.parked[index], self.memory[index] = int(busy, 16), int(parked, 16), held
            self.used[index] = self.busy[index].bit_count()
            self._sort_in(index)

    def _sort_in(self, index: int) -> None:
        """Let a node be among those with at least so many free cores as it has."""
        bit, free = 1 << index, self.free(index)
        for level in range(len(self._at_least)):
            self._at_least[level] = (
                self._at_least[level] | bit if level <= free else self._at_least[level] & ~bit
            )


def cores_of(held: Allocation, at: int, size: int) -> CoreBits:
    """Return the cores that an allocation holds on its node number `at`."""
    return held.cores[at] if held.cores is not None else bitmap.full(size)

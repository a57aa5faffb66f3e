"""Keep the selector's books: how many jobs are on each node, and their memory (slurm-gang-and-select 4.2.1).

A gang-suspended job still counts as running; one suspended by a person counts in the total only, and its nodes seem
to have all their memory (4.2.6, a defect that real Slurm has). At the resume all their memory is charged, and what was
too much stays charged after the job (rule linear_resume_charges_all_memory). One that shares its nodes and is resumed
by a person is forgotten: it counts nowhere any more (rule linear_forgets_resumed_sharers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.levels import Levels
from makeway.model import Allocation, Cluster, Job, JobState, SuspendedBy
from makeway.state import states_of

_ADMIN = SuspendedBy.ADMIN


class Books:
    """Counts per node."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        track_memory: bool,
        forgets_resumed: bool = False,
        overcharges_resumed: bool = False,
    ) -> None:
        """Be ready for the first job.

        :param forgets_resumed: whether sharing jobs that a person resumed count nowhere.
        :param overcharges_resumed: whether all memory of their nodes is charged for jobs that a person resumed.
        """
        self.running = Levels()
        self.stopped = Levels()
        """Jobs suspended by a person: they count in the total only."""
        self.exclusive = Levels()
        self.forgets_resumed = forgets_resumed
        self.overcharges_resumed = overcharges_resumed
        self.forgotten: set[str] = set()
        """Ids of sharing jobs that a person resumed: they run, and count nowhere."""
        self.track_memory = track_memory
        self.memory = [0] * len(cluster.nodes) if track_memory else []
        self.has_gres = any(node.gres for node in cluster.nodes)
        self.gres: dict[str, list[int]] = {}
        self._charges = track_memory or self.has_gres
        self._capacity = [node.memory_mb for node in cluster.nodes]
        self._size = len(cluster.nodes)
        self._given_up: dict[str, dict[int, int]] = {}
        """Memory that jobs suspended by a person gave up, by job and node."""
        self.version = 0
        self.used_memory: NodeBits = 0
        """Nodes on which any memory is charged."""

    def add(self, job: Job) -> None:
        """Charge a job that started."""
        allocation = job.allocation
        assert allocation is not None
        self.version += 1
        nodes, running = allocation.nodes, self.running
        if allocation.shared:
            running.add(nodes)
        elif running.over[0] & nodes:
            running.add(nodes)
            self.exclusive.add(nodes)
        else:
            running.over[0] |= nodes
            self.exclusive.over[0] |= nodes
        if self._charges:
            self._charge(job, 1)

    def remove(self, job: Job) -> None:
        """Take back what a job holds."""
        allocation = job.allocation
        assert allocation is not None
        self.version += 1
        if job.suspended_by is _ADMIN:
            self.stopped.remove(allocation.nodes)
        elif self.forgotten:
            self._stop_counting(job, allocation)
        elif allocation.shared or len(self.running.over) > 1:
            self.running.remove(allocation.nodes)
            if not allocation.shared:
                self.exclusive.remove(allocation.nodes)
        else:
            self.running.over[0] ^= allocation.nodes
            self.exclusive.over[0] ^= allocation.nodes
        if self._given_up:
            for index, amount in self._given_up.pop(job.id, {}).items():
                self.memory[index] += amount
        if self._charges:
            self._charge(job, -1)

    def suspend(self, job: Job) -> None:
        """A job was stopped: only a person's suspension changes the books (4.2.7).

        Its node is free for others then, and seems to have all its memory, whatever else is there (4.2.6).
        """
        if job.suspended_by is not _ADMIN or job.allocation is None:
            return
        self.version += 1
        self._stop_counting(job, job.allocation)
        self.stopped.add(job.allocation.nodes)
        if self.track_memory:
            held = {index: self.memory[index] for index in job.allocation.node_indices}
            given_up = {index: min(held[index], self._capacity[index]) for index in held}
            for index, amount in given_up.items():
                self._set_memory(index, held[index] - amount)
            if not self.overcharges_resumed:
                self._given_up[job.id] = given_up

    def resume(self, job: Job) -> None:
        """A job continues."""
        if job.suspended_by is not _ADMIN or job.allocation is None:
            return
        self.version += 1
        self.stopped.remove(job.allocation.nodes)
        if job.allocation.shared and self.forgets_resumed:
            self.forgotten.add(job.id)
        else:
            self.running.add(job.allocation.nodes)
            if not job.allocation.shared:
                self.exclusive.add(job.allocation.nodes)
        if self.overcharges_resumed and self.track_memory:
            for index in job.allocation.node_indices:
                self._set_memory(index, self.memory[index] + self._capacity[index])
        for index, amount in self._given_up.pop(job.id, {}).items():
            self._set_memory(index, self.memory[index] + amount)

    def counts_job(self, job: Job) -> bool:
        """Whether a job counts among those that run on its nodes."""
        return job.suspended_by is not _ADMIN and job.id not in self.forgotten

    def _stop_counting(self, job: Job, allocation: Allocation) -> None:
        if job.id in self.forgotten:
            self.forgotten.remove(job.id)
            return
        self.running.remove(allocation.nodes)
        if not allocation.shared:
            self.exclusive.remove(allocation.nodes)

    def _charge(self, job: Job, sign: int) -> None:
        allocation = job.allocation
        assert allocation is not None
        if self.track_memory and allocation.memory_mb is not None:
            for index, amount in zip(allocation.node_indices, allocation.memory_mb, strict=True):
                self._set_memory(index, max(0, self.memory[index] + sign * amount))
        if not allocation.gres:
            return
        for name, amounts in allocation.gres.items():
            used = self.gres.setdefault(name, [0] * self._size)
            for index, amount in zip(allocation.node_indices, amounts, strict=True):
                used[index] += sign * amount

    def _set_memory(self, index: int, held: int) -> None:
        self.memory[index] = held
        bit = 1 << index
        self.used_memory = self.used_memory | bit if held else self.used_memory & ~bit

    # ----------------------------------------------------------------------------- adoption
    def save(self, active: Sequence[Job], fresh: Books) -> dict[str, Any]:
        """Return what follows from the order of events and not from what is there; empty: nothing does.

        :param active: all running and suspended jobs.
        :param fresh: books without any job; changed.
        """
        if not self.track_memory and not self.forgotten:
            return {}
        fresh.restore(active, None)
        told: dict[str, Any] = {"forgotten": sorted(self.forgotten)} if self.forgotten else {}
        if fresh.memory != self.memory or fresh._given_up != self._given_up:
            told |= self._memory_told()
        return {"jobs": states_of(active), **told} if told else {}

    def _memory_told(self) -> dict[str, Any]:
        return {
            "memory": {str(index): held for index, held in enumerate(self.memory) if held},
            "given_up": {
                job_id: {str(index): amount for index, amount in given_up.items()}
                for job_id, given_up in self._given_up.items()
            },
        }

    def restore(self, active: Sequence[Job], memory: Mapping[str, Any] | None) -> None:
        """Charge jobs that are there already.

        :param memory: counts only if all jobs are as they were when it was handed over.
        """
        for job in active:
            self.add(job)
        stopped = [job for job in active if job.state is JobState.SUSPENDED and job.suspended_by is _ADMIN]
        for job in sorted(stopped, key=lambda job: job.suspended_at or 0.0):
            self.suspend(job)
        if not memory or memory["jobs"] != states_of(active):
            return
        for job in active:
            if job.id in memory.get("forgotten", ()):
                self._forget(job)
        if "memory" in memory:
            self.memory = [0] * self._size
            for index, held in memory["memory"].items():
                self.memory[int(index)] = held
            self._given_up = {
                job_id: {int(index): amount for index, amount in given_up.items()}
                for job_id, given_up in memory["given_up"].items()
            }
            self.used_memory = bitmap.of([index for index, held in enumerate(self.memory) if held])

    def _forget(self, job: Job) -> None:
        if job.allocation is not None and job.id not in self.forgotten:
            self._stop_counting(job, job.allocation)
            self.forgotten.add(job.id)

    def above(self, count: int) -> NodeBits:
        """Return the nodes with more than `count` jobs in all, running or suspended by whatever."""
        stopped = self.stopped
        crowded = self.running.above(count) | stopped.above(count)
        for some in range(1, min(count + 1, len(stopped.over) + 1)):  # so many suspended, the others running
            crowded |= stopped.above(some - 1) & self.running.above(count - some)
        return crowded

    def counts(self) -> tuple[list[int], list[int]]:
        """Return per node how many jobs run there, and how many of them do not share."""
        return _listed(self.running, self._size), _listed(self.exclusive, self._size)


def _listed(levels: Levels, size: int) -> list[int]:
    counts = [0] * size
    for over in levels.over:
        for index in bitmap.indices(over):
            counts[index] += 1
    return counts

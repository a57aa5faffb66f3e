"""Know what is free on each vnode, from what jobs hold (sections 1.9, 5.1, 5.3).

A running job holds all of its allocation. A suspended one has given back what
``restrict_res_to_release_on_suspend`` lists, or everything where that is not set; what it kept stays charged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import Allocation, Cluster, Job, JobState, Node


class Room:
    """Free amounts per vnode; resources are ``ncpus``, ``mem`` and whatever else vnodes have."""

    def __init__(self, cluster: Cluster, released: Collection[str], active: Iterable[Job] = ()) -> None:
        """Charge all of `active`.

        :param released: what a suspended job gives back; empty: everything.
        """
        self._cluster = cluster
        self._released = released
        self._free: dict[int, dict[str, float]] = {}
        self._taken: dict[int, CoreBits] = {}
        self._running: dict[int, int] = {}
        self._alone: dict[int, int] = {}
        self._licences: dict[str, float] = dict(cluster.licenses)
        for job in active:
            self.charge(job)

    def copy(self) -> Room:
        """Return an independent copy."""
        twin = Room(self._cluster, self._released)
        twin._free = {index: dict(free) for index, free in self._free.items()}
        twin._taken, twin._running, twin._alone = dict(self._taken), dict(self._running), dict(self._alone)
        twin._licences = dict(self._licences)
        return twin

    # ------------------------------------------------------------------------------ changes
    def charge(self, job: Job, *, times: int = 1) -> None:
        """Charge what an active job holds; with ``times=-1`` give it back."""
        if job.allocation is None:
            return
        if job.state is JobState.SUSPENDED:
            self.keep(job.allocation, times)
        else:
            self.hold(job.allocation, times)

    def hold(self, held: Allocation, times: int = 1) -> None:
        """Charge all of an allocation."""
        for index, name, amount in amounts(held, self._cluster):
            self._on(index)[name] = self._on(index).get(name, 0.0) - times * amount
        for at, index in enumerate(held.node_indices):
            cores = (
                held.cores[at] if held.cores is not None else bitmap.full(self._cluster.nodes[index].cores)
            )
            self._taken[index] = self._taken.get(index, 0) ^ cores
            self._running[index] = self._running.get(index, 0) + times
            if not held.shared:
                self._alone[index] = self._alone.get(index, 0) + times
        for name, count in held.licenses.items():
            self._licences[name] = self._licences.get(name, 0.0) - times * count

    def keep(self, held: Allocation, times: int = 1) -> None:
        """Charge what is left of an allocation while its job is suspended."""
        if not self._released:
            return
        for index, name, amount in amounts(held, self._cluster):
            if name not in self._released:
                self._on(index)[name] = self._on(index).get(name, 0.0) - times * amount
        for name, count in held.licenses.items():
            if name not in self._released:
                self._licences[name] = self._licences.get(name, 0.0) - times * count

    def stop(self, job: Job, *, wholly: bool) -> None:
        """Let an active job make way: give back all that it holds, or what a suspension gives back."""
        self.charge(job, times=-1)
        if not wholly and job.allocation is not None:
            self.keep(job.allocation)

    def _on(self, index: int) -> dict[str, float]:
        if index not in self._free:
            self._free[index] = capacity(self._cluster.nodes[index])
        return self._free[index]

    # ------------------------------------------------------------------------------ questions
    def free(self, index: int) -> Mapping[str, float]:
        """Return what is free on a vnode."""
        return self._on(index)

    def licences(self, name: str) -> float:
        """Return how much of a resource of the server is free."""
        return self._licences.get(name, 0.0)

    def runs(self, index: int) -> bool:
        """Whether any job runs on a vnode."""
        return self._running.get(index, 0) > 0

    def exclusive(self, index: int) -> bool:
        """Whether a job that runs there has the vnode for itself."""
        return self._alone.get(index, 0) > 0

    def cores(self, index: int, count: int) -> CoreBits:
        """Return so many cores of a vnode that no running job has, lowest first."""
        left = bitmap.full(self._cluster.nodes[index].cores) & ~self._taken.get(index, 0)
        return bitmap.of(bitmap.indices(left)[:count])

    def could_resume(self, job: Job, usable: NodeBits) -> bool:
        """Whether a suspended job fits on its own vnodes, with its own amounts (section 5.1)."""
        held = job.allocation
        if held is None or held.nodes & ~usable:
            return False
        self.charge(job, times=-1)
        fits = self.fits(held)
        self.charge(job)
        return fits

    def fits(self, held: Allocation) -> bool:
        """Whether an allocation fits where it was."""
        for index in held.node_indices:
            if self.exclusive(index) or (not held.shared and self.runs(index)):
                return False
        if any(
            self._on(index).get(name, 0.0) < amount for index, name, amount in amounts(held, self._cluster)
        ):
            return False
        return all(self.licences(name) >= count for name, count in held.licenses.items())

    def resumed(self, job: Job) -> Allocation | None:
        """Return what a suspended job holds when it goes on: as much as before, on cores that are free now."""
        held = job.allocation
        if held is None or held.cores is None:
            return held
        cores = tuple(
            self.cores(index, mine.bit_count())
            for index, mine in zip(held.node_indices, held.cores, strict=True)
        )
        return Allocation(
            nodes=held.nodes,
            node_indices=held.node_indices,
            cpus=held.cpus,
            cores=cores,
            memory_mb=held.memory_mb,
            gres=held.gres,
            licenses=held.licenses,
            shared=held.shared,
            marks=held.marks,
        )


def capacity(node: Node) -> dict[str, float]:
    """Return all that a vnode has."""
    return {"ncpus": node.cpus, "mem": node.usable_memory_mb, **node.gres}


def amounts(held: Allocation, cluster: Cluster) -> Iterator[tuple[int, str, float]]:
    """Yield vnode, resource and amount of an allocation."""
    for at, index in enumerate(held.node_indices):
        yield index, "ncpus", held.cpus[at] if held.cpus is not None else cluster.nodes[index].cpus
        if held.memory_mb is not None:
            yield index, "mem", held.memory_mb[at]
        for name, each in held.gres.items():
            yield index, name, each[at]

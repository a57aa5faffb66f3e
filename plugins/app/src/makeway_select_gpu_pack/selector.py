"""Answer for select/gpu_pack: notices, attempts, forecasts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.features import alternatives
from makeway.model import (
    Blocked,
    ClusterView,
    Cover,
    Forecast,
    Job,
    Placement,
    PreemptMode,
)
from makeway_select_gpu_pack.packing import pack
from makeway_select_gpu_pack.rooms import Rooms
from makeway_select_gpu_pack.shelves import Shelves
from makeway_select_gpu_pack.wish import Wish, unknown_request, wish_of

NAME = "select/gpu_pack"


class PackAttempt:
    """One job against the books. See `makeway.model.Attempt`."""

    def __init__(
        self, job: Job, nodes: NodeBits, view: ClusterView, wish: Wish, rooms: Rooms, shelves: Shelves
    ) -> None:
        self.job = job
        self._nodes = nodes
        self._view = view
        self._wish = wish
        self._first = self._rooms = rooms
        self._shelves = shelves

    def probe(self) -> Placement | Blocked:
        """Place the job as if the removed jobs were gone; say what is short if it cannot be."""
        job, view = self.job, self._view
        choices = alternatives(job.spec.features, view.cluster)
        for number, choice in enumerate(choices):
            found = pack(self._wish, choice.among(self._nodes), self._rooms, self._shelves, view.cluster)
            if found is not None:
                taken = licences.taken_by(job, view.licenses_free)
                return Placement(
                    allocation=attrs.evolve(found, licenses=taken), why="packed", alternative=number
                )
        return Blocked(wanted=self._wish.min_nodes, available=self._nodes.bit_count())

    def remove(self, job: Job, mode: PreemptMode) -> None:
        """Continue as if `job` were gone; one that is suspended keeps all that it holds."""
        if not mode.frees_all:
            return
        if self._rooms is self._first:
            self._rooms = self._first.copy()
        parts = self._view.components(job) if self._view.heterogeneous else (job,)
        for part in parts:
            if part.allocation is not None:
                self._rooms.remove(part.allocation)

    def fresh(self) -> PackAttempt:
        """Return an attempt for the same job with nothing removed."""
        return PackAttempt(self.job, self._nodes, self._view, self._wish, self._first, self._shelves)

    def cover(self, jobs: Sequence[Job], modes: Sequence[PreemptMode]) -> Cover | None:
        """Offer no description."""
        del jobs, modes
        return None


class PackSelector:
    """The selector of one run. See `makeway.model.Selector`."""

    def __init__(self, view: ClusterView) -> None:
        self._rooms = Rooms(view.cluster)
        self._shelves = Shelves(self._rooms)
        self._empty = Rooms(view.cluster)
        """The cluster with no job on it."""
        self._empty_shelves = Shelves(self._empty)

    def placed(self, job: Job) -> None:
        """Charge a job that started."""
        if job.allocation is not None:
            self._rooms.add(job.allocation)

    def released(self, job: Job) -> None:
        """Give back what a job held."""
        if job.allocation is not None:
            self._rooms.remove(job.allocation)

    def suspended(self, job: Job) -> None:
        """Ignore it: the job keeps what it holds."""

    def resumed(self, job: Job) -> None:
        """Ignore it: the job kept what it held."""

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Return those of `jobs` that ask for no more nodes than there are, and for no more than is free in all."""
        count, answers = nodes.bit_count(), dict[Hashable, bool]()
        kept = []
        for job in jobs:
            spec = job.spec
            key = job.size, spec.cpus, tuple(spec.gres.items()), tuple(spec.gres_total.items())
            if key not in answers:
                answers[key] = job.size <= count and self._is_free(job)
            if answers[key]:
                kept.append(job)
        return kept

    def _is_free(self, job: Job) -> bool:
        """Whether all nodes together have what a job asks for."""
        spec, free = job.spec, self._rooms.free_gres
        return (
            spec.cpus <= self._rooms.free_cpus
            and all(free[name] >= count * job.size for name, count in spec.gres.items())
            and all(free[name] >= count for name, count in spec.gres_total.items())
        )

    def equivalence_key(self, job: Job) -> Hashable:
        """Return what is wished of each node and in all, and which nodes do."""
        spec, wish = job.spec, wish_of(job)
        total = tuple(spec.gres_total.items())
        return wish.key, wish.min_nodes, wish.max_nodes, job.excluded, spec.features, spec.cpus, total

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> PackAttempt:
        """Begin an attempt to place `job` on `nodes`."""
        return PackAttempt(job, nodes, view, wish_of(job), self._rooms, self._shelves)

    def forecast(
        self, job: Job, nodes: NodeBits, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]]
    ) -> Forecast | None:
        """Say when `job` could start on `nodes`: now, now without `removable`, or when jobs end as they are due."""
        attempt = self.attempt(job, nodes, view)
        for preempts in (False, True):
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=view.now, nodes=found.allocation.nodes, preempts=preempts)
            for other, mode in removable:
                attempt.remove(other, mode)
        attempt = attempt.fresh()
        for at, _, other in view.releases():
            attempt.remove(other, PreemptMode.CANCEL)
            found = attempt.probe()
            if isinstance(found, Placement):
                return Forecast(at=max(at, view.now), nodes=found.allocation.nodes)
        return None

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run even on the empty cluster with all nodes in service; None: it could."""
        detail = unknown_request(job, view.cluster, NAME)
        wish, nodes = wish_of(job), job.partition.nodes
        if not detail:
            attempt = PackAttempt(job, nodes, view, wish, self._empty, self._empty_shelves)
            if isinstance(attempt.probe(), Placement):
                return None
            wanted = f"nodes wanted: {job.size}, CPUs: {job.spec.cpus}"
            counted = {**job.spec.gres_total, **job.spec.gres}
            more = "".join(f", {name}: {count}" for name, count in counted.items())
            detail = f"{wanted}{more}; partition {job.partition.name} has not enough that do"
        return Blocked(reason="BadConstraints", detail=detail, never=True)

"""Answer for select/cons_tres: notices, a glance at many jobs, attempts, forecasts (slurm-gang-and-select 4.3)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

from makeway.bitmap import NodeBits
from makeway.model import (
    Allocation,
    Candidates,
    ClusterView,
    Forecast,
    Job,
    PreemptMode,
    StartsBy,
)
from makeway_select_cons_tres import adoption
from makeway_select_cons_tres.assign import memory_of
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.beside import Beside
from makeway_select_cons_tres.fitting import Fitting
from makeway_select_cons_tres.forecast import forecast
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.known import Known
from makeway_select_cons_tres.remaining import RemainingBooks
from makeway_select_cons_tres.request import MARKS

_MOST_KINDS_OF_PREEMPTORS = 32


class ConsSelector(Known):
    """The selector of one run. See `makeway.model.Selector`."""

    ignores_time_limits = True

    def __init__(self, view: ClusterView) -> None:
        super().__init__(view)
        self._beside = Beside(self.books, self.mode)
        self._screened: dict[Kind, bool] = {}
        self._screened_at = (-1, 0)
        """Version of the books, and nodes, that `_screened` is about."""
        self._staying: dict[Hashable, RemainingBooks] = {}
        """What stays when a kind of preemptors displaces all that it may."""

    # ----------------------------------------------------------------------------- notices
    def placed(self, job: Job) -> None:
        """Charge a job that started."""
        self.kind_of.pop(job.id, None)
        self.books.add(job)

    def released(self, job: Job) -> None:
        """Take back what a job held."""
        self.books.remove(job)
        for staying in self._staying.values():
            if job.id in staying.there:
                staying.released(job)

    def suspended(self, job: Job) -> None:
        """Take note of a suspension: only a person's frees anything."""
        self.books.suspend(job)
        self._staying.clear()

    def resumed(self, job: Job) -> None:
        """Take note that a job continues."""
        self.books.resume(job)
        self._staying.clear()

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return which job is in which row, and what else follows from the order of events."""
        return adoption.to_plain(self.books, self._view.active)

    def recast(self, job: Job, allocation: Allocation, view: ClusterView) -> Allocation:
        """Add the mark, the number of CPUs and the memory that the request stands for."""
        del view
        request = self.request(job)
        cpus = allocation.cpus or self._cpus_of(allocation)
        memory = allocation.memory_mb
        if memory is None and self.layout.track_memory:
            memory = memory_of(request, allocation.node_indices, cpus, self.books)
        mark = MARKS[request.mark, request.sharing]
        return attrs.evolve(allocation, cpus=cpus, memory_mb=memory, shared=request.shares, marks=mark)

    def _cpus_of(self, allocation: Allocation) -> tuple[int, ...]:
        nodes = self.cluster.nodes
        if allocation.cores is None:
            return tuple(nodes[index].cpus for index in allocation.node_indices)
        return tuple(
            min(nodes[index].cpus, cores.bit_count() * self.layout.shape(index).threads)
            for index, cores in zip(allocation.node_indices, allocation.cores, strict=True)
        )

    def restore(self, active: Sequence[Job], memory: Mapping[str, Any] | None, view: ClusterView) -> None:
        """Fill the books."""
        del view
        adoption.fill(self.books, active, memory)

    # ------------------------------------------------------------------------------ asking
    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Drop jobs that no cores can serve: idle ones and, with gang, those over which it may lay them."""
        books = self.books
        if books.touched:
            books.sync()
        if self._screened_at != (books.version, nodes):
            self._screened_at = (books.version, nodes)
            self._screened.clear()
        screened, kinds, reach = self._screened, self.kind_of, self.idle.reach(nodes)
        kept = []
        for job in jobs:
            if (known := kinds.get(job.id)) is None:
                kind = self.kind(job)
            else:
                spec, partition, kind = known
                if spec is not job.spec or partition is not job.partition:
                    kind = self.kind(job)
            able = screened.get(kind)
            if able is None:
                wish = kind.screen_wish
                if wish is None:
                    able = self._might_start(kind, job, nodes)
                elif (
                    wish.spans
                    and wish.partition in reach
                    and wish.memory + reach[wish.partition][wish.cores] > 0
                ):
                    able = False
                else:
                    able = self.idle.any(wish, nodes)
                screened[kind] = able
            if able:
                kept.append(job)
        return kept

    def equivalence_key(self, job: Job) -> Hashable:
        """Return the kind of `job`."""
        return self.kind(job)

    def screen_without(
        self,
        jobs: Sequence[Job],
        nodes: NodeBits,
        candidates: Candidates,
        kind: Hashable,
        view: ClusterView,
    ) -> Sequence[Job]:
        """Drop jobs that cores cannot serve which are idle once all candidates are gone, of those as above."""
        if not (self._simple(view) and _all_free_all(candidates.modes)):
            return jobs
        staying = self._stay(kind)
        staying.follow(view.active, set(map(id, candidates.jobs)))
        able: dict[Kind, bool] = {}
        kept = []
        for job in jobs:
            its = self.kind(job)
            if its not in able:
                able[its] = its.looks_at_used or staying.has_room(its, nodes)
            if able[its]:
                kept.append(job)
        return kept

    def _stay(self, kind: Hashable) -> RemainingBooks:
        staying = self._staying.get(kind)
        if staying is None:
            if len(self._staying) >= _MOST_KINDS_OF_PREEMPTORS:
                self._staying.clear()
            staying = self._staying[kind] = RemainingBooks(self.layout)
        return staying

    def _simple(self, view: ClusterView) -> bool:
        """Whether idle cores are all that there is for a job, each of which one other holds at most."""
        return not (
            self.mode.gang or self.layout.several_rows or self.books.any_overlaid or view.heterogeneous
        )

    def _might_start(self, kind: Kind, job: Job, nodes: NodeBits) -> bool:
        if not self.mode.gang:
            return self._has_room(kind, nodes, self.fitting)
        # What could never run is told so when it is tried, wherever it stands in the queue.
        return self._beside.has_room(kind, nodes) or self.possible(job, self._view) is not None

    def _has_room(self, kind: Kind, nodes: NodeBits, fitting: Fitting) -> bool:
        if kind.looks_at_used:
            return True
        return (nodes & fitting.nodes(kind)).bit_count() >= kind.request.min_nodes

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> ConsAttempt:
        """Begin an attempt."""
        return ConsAttempt(self, job, nodes, view)

    def forecast_key(self, job: Job, view: ClusterView) -> Hashable | None:
        """Return the kind of `job`, where forecasts count in batches; None: it takes more to say."""
        return self.kind(job) if view.rule("forecast_in_batches") else None

    def starts_by(
        self, job: Job, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]] = ()
    ) -> StartsBy:
        """Return what says whether CPUs and nodes are enough for such jobs by an instant."""
        kind = self.kind(job)
        enough = self.enough(kind, view, removable)
        if len(kind.choices) == 1:
            among = kind.choices[0].among
            return lambda nodes, instant: enough.by(among(nodes), instant)
        return lambda nodes, instant: any(enough.by(each.among(nodes), instant) for each in kind.choices)

    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start (4.3.11)."""
        planning = view.rule("forecast_beside_running")
        return forecast(ConsAttempt(self, job, nodes, view, planning=planning), removable)


def _all_free_all(modes: Sequence[PreemptMode]) -> bool:
    if modes and modes.count(modes[0]) == len(modes):  # mostly so, and quickly seen
        return modes[0].frees_all
    return all(mode.frees_all for mode in modes)

"""Say when a job could start by counting what nodes have left as jobs end, without books for each instant.

That is enough for jobs that want idle cores and an amount of memory of each node, and nothing else, where each core
has one holder at most. `makeway_select_cons_tres.forecast` comes to the same with an attempt, and answers for all
others; `tests/test_ahead.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import ClusterView, Forecast, Job, Seconds
from makeway_select_cons_tres.assign import Found, Ground, assign
from makeway_select_cons_tres.choose import Pool, choose
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.known import Known
from makeway_select_cons_tres.lasting import Lasting, Release
from makeway_select_cons_tres.one_node import on_node
from makeway_select_cons_tres.request import ONE_ROW
from makeway_select_cons_tres.steps import IDLE

_MOST_NODES = 4096
"""On larger clusters counting for all nodes costs more than it saves."""


@attrs.frozen
class Told:
    """What counting comes to."""

    forecast: Forecast | None
    """None: the job can never start."""


class Ahead:
    """Counts ahead against the books of one run."""

    def __init__(self, known: Known, view: ClusterView) -> None:
        self._known = known
        self._beside_running = view.rule("forecast_beside_running")
        self._applies = (
            not (view.rule("forecast_in_batches") or known.mode.gang or known.layout.several_rows)
            and known.layout.size <= _MOST_NODES
        )
        self._several: dict[Kind, bool] = {}
        """Whether jobs of a kind that may want several nodes are counted for."""
        self._view = view
        self._asked: tuple[Kind | None, NodeBits] = (None, 0)
        """About whom and which nodes was asked last."""
        self.lasting: Lasting | None = None
        """What was said then, as long as it holds; None: it is to be worked out, if it is asked."""

    def forecast(self, job: Job, nodes: NodeBits, view: ClusterView) -> Told | None:
        """Say when `job` could start on `nodes`; None: it takes more to say."""
        known, books = self._known, self._known.books
        if not self._applies:
            return None
        kind = known.kind(job)
        alone = kind.place_wish is not None
        if not alone:
            several = self._several.get(kind)
            if several is None:
                several = self._several[kind] = self._is_counted(kind)
            if not several:
                return None
        books.sync()
        if books.any_overlaid or books.reserved_nodes:
            return None
        asked, self._asked = self._asked, (kind, nodes)
        again = asked == self._asked and view is self._view
        if again and self.lasting is not None and self.lasting.holds(view):
            return Told(self.lasting.forecast)
        self.lasting = None
        on = self._on_one if alone else self._on_several
        return Told(on(kind, nodes, view, again=again))

    # ------------------------------------------------------------------------------- notices
    def placed(self, job: Job) -> None:
        """Take note of a start while a forecast holds."""
        if self.lasting is not None and not self.lasting.placed(job, self._known.books):
            self.lasting = None

    def released(self, job: Job) -> None:
        """Take note of an end while a forecast holds."""
        if self.lasting is not None and not self.lasting.released(job, self._known.books):
            self.lasting = None

    def _is_counted(self, kind: Kind) -> bool:
        """Whether each of several nodes serves that has CPUs and memory enough, whatever else is there."""
        request = kind.request
        return (
            request.max_nodes != 1
            and request.mark == ONE_ROW
            and (request.shares or self._known.mode.preempts or self._beside_running)
            and kind.key.partition is None
            and len(kind.choices) == 1
            and not (kind.choices[0].counts or kind.looks_at_used or request.whole or request.required)
            and not (request.wants_gres or request.gres_per_socket or request.gres_per_task)
            and request.memory_per_cpu is None
            and request.memory_per_node != 0
        )

    # ------------------------------------------------------------------------------ one node
    def _on_one(self, kind: Kind, nodes: NodeBits, view: ClusterView, *, again: bool) -> Forecast | None:
        """Follow each node by itself until one of them serves.

        :param again: whether the same was asked before, and may well be asked once more.
        """
        known, wish = self._known, kind.place_wish
        books, layout = known.books, known.layout
        assert wish is not None
        nodes = kind.choices[0].among(nodes)
        now = known.idle.first(wish, nodes)
        if now >= 0:
            found = on_node(kind, now, books)
            if found is not None:
                return Forecast(at=view.now, nodes=found.nodes)
        nodes &= kind.able
        (free, left), sizes = known.idle.counts(), layout.core_count
        cores, least = wish.cores, wish.memory
        at = math.inf
        serving: list[int] = []
        for end, _, job in view.releases():
            if end > at:
                break
            held = job.allocation
            if held is None or not held.nodes & nodes:
                continue
            had, memory = held.cores, held.memory_mb
            for place, index in enumerate(held.node_indices):
                free[index] += sizes[index] if had is None else had[place].bit_count()
                if memory is not None:
                    left[index] += memory[place]
                if free[index] >= cores and left[index] >= least and nodes >> index & 1:
                    serving.append(index)
                    at = end
        if not serving:
            return None
        first = serving[0] if len(serving) == 1 else min(serving, key=lambda i: (layout.weight[i], i))
        told = Forecast(at=max(at, view.now), nodes=1 << first)
        if again and now < 0:
            last = at, math.inf
            gone = _up_to(last, view.releases())
            self.lasting = Lasting(told, nodes, True, gone, last, free, left, cores, least)
        return told

    # -------------------------------------------------------------------------- several nodes
    def _on_several(self, kind: Kind, nodes: NodeBits, view: ClusterView, *, again: bool) -> Forecast | None:
        """Follow all nodes, and choose among those that serve whenever they may be enough.

        :param again: as above.
        """
        state = _Nodes(self._known, kind, nodes & kind.choices[0].nodes)
        first = not state.are_enough()
        found = None if first else state.place()
        if found is not None:
            return Forecast(at=view.now, nodes=found.nodes)
        for end, index, job in view.releases():
            if state.release(job) and state.are_enough():
                found = state.place()
                if found is not None:
                    told = Forecast(at=max(end, view.now), nodes=found.nodes)
                    if again and first:
                        last: tuple[Seconds, float] = (end, index)
                        gone = _up_to(last, view.releases())
                        self.lasting = Lasting(
                            told, nodes, False, gone, last, *state.counts(), *state.needs()
                        )
                    return told
                first = False
        return None


def _up_to(last: tuple[Seconds, float], releases: Sequence[Release]) -> list[Release]:
    """Return those whose deadline and index are no later than `last`."""
    return list(releases[: bisect.bisect_right(releases, last, key=_deadline_and_index)])


def _deadline_and_index(release: Release) -> tuple[Seconds, int]:
    return release[:2]


class _Nodes:
    """The nodes of a job, as others leave them."""

    def __init__(self, known: Known, kind: Kind, nodes: NodeBits) -> None:
        books = known.books
        self._known = known
        self._kind = kind
        self._nodes = nodes & kind.able
        self._serving = serving = nodes & known.fitting.nodes(kind)
        self._cpus = values = books.table(kind.key).values.copy()
        """CPUs that the job could have, of those that serve."""
        self._count = serving.bit_count()
        self._sum = sum([values[index] for index in bitmap.indices(serving)])
        self._busy = books.busy_nodes
        self._free: dict[int, CoreBits] = {}
        self._left: dict[int, int] = {}
        """Idle cores and memory of nodes that somebody has left."""

    def are_enough(self) -> bool:
        """Whether there may be nodes and CPUs enough."""
        request = self._kind.request
        return self._count >= request.min_nodes and self._sum >= request.min_cpus

    def release(self, job: Job) -> bool:
        """Let a job leave; say whether it had any of the nodes."""
        held, nodes = job.allocation, self._nodes
        if held is None or not held.nodes & nodes:
            return False
        kind, books, cpus, had, memory = self._kind, self._known.books, self._cpus, held.cores, held.memory_mb
        layout, wanted, least = books.layout, kind.wanted, kind.least_memory
        shapes, shape_at = layout.shapes, layout.shape_at
        for place, index in enumerate(held.node_indices):
            if not nodes >> index & 1:
                continue
            full = layout.full[index]
            free = self._free.get(index)
            if free is None:
                free, left = full & ~books.busy[index], layout.memory[index] - books.memory[index]
            else:
                left = self._left[index]
            self._free[index] = free = free | (full if had is None else had[place])
            self._left[index] = left = left + (0 if memory is None else memory[place])
            if free == full:
                self._busy &= ~(1 << index)
            if left < least or free.bit_count() * shapes[shape_at[index]].threads < wanted:
                continue
            now = kind.idle.cpus_of(index, free, books)
            if now >= wanted:
                served = self._serving >> index & 1
                self._sum += now - cpus[index] if served else now
                self._count += not served
                self._serving |= 1 << index
                cpus[index] = now
        return True

    def counts(self) -> tuple[list[int], list[int]]:
        """Return idle cores and memory of each node, to be changed by whoever asks."""
        free, left = self._known.idle.counts()
        for index, cores in self._free.items():
            free[index], left[index] = cores.bit_count(), self._left[index]
        return free, left

    def needs(self) -> tuple[int, int]:
        """Return how many cores and how much memory a node has at least that serves."""
        kind = self._kind
        threads = max([shape.threads for shape in self._known.layout.shapes])
        return -(-kind.wanted // threads), kind.least_memory

    def place(self) -> Found | None:
        """Return the place that the job would get; None: the nodes do not serve after all."""
        kind, layout, nodes = self._kind, self._known.layout, self._serving
        books, free, cpus = self._known.books, self._free, self._cpus
        like = cpus[bitmap.lowest(nodes)] if layout.alike and nodes and not nodes & self._busy else None
        full, busy = layout.full, books.busy

        def idle(index: int) -> CoreBits:
            return free[index] if index in free else full[index] & ~busy[index]

        request, first_fit = kind.request, self._known.mode.first_fit
        taken = choose(request, Pool(nodes, cpus, like), layout, first_fit=first_fit)
        if taken is None:
            return None
        return assign(request, taken, Ground(nodes, cpus, like, idle), books, kind.picker, IDLE)


__all__ = ["Ahead", "Told"]

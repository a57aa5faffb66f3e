"""Tell who further behind in the queue may start now, so that a pass need not plan for the rest of it.

Nodes are promised to keep others from starting now. Where nobody is left who could, no promise matters, and the next
pass plans anew. Jobs are looked at by shape (`makeway_engine.schedulers.shapes`): one glance at the shortest of a
shape answers for all of it. A plan only fills up, and each start takes more, so whoever cannot start now cannot do so
later in the same pass.

`Backfill` without this says what a pass comes to, and `tests/test_deep_queues.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from makeway.bitmap import NodeBits
from makeway.model import Job, Seconds
from makeway.registry.room import YEAR
from makeway_backfill.plan import Plan
from makeway_engine.entries import Entry
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.shapes import ScreenKey, Shape, Shapes


class _Kind(NamedTuple):
    """All by which jobs of one size and partition differ as to when they may start."""

    screened: Hashable
    """What a glance looks at."""
    whom: Hashable
    """Whom they may displace."""
    told: Hashable
    """What the selector says of forecasts when a job comes; None: nothing."""


class _Kinds(Shapes):
    """Shapes that say what their jobs have in common."""

    many = 1
    """A plan for all who wait costs more even where few wait. The same from 1 on: whoever takes over goes on alike."""

    def kind_of(self, job: Job) -> _Kind:
        """Return of which kind a job is that is kept by its shape."""
        key = self._entry_of[job.index][0]
        assert isinstance(key, tuple)
        kind = key[-1]
        assert isinstance(kind, _Kind)
        return kind


class Behind:
    """The eligible entries of one run's queue, and who of them may start in this pass."""

    def __init__(self, attempts: Attempts, screen_key: ScreenKey, at_most: Seconds) -> None:
        """Begin to listen to the queue.

        :param at_most: jobs count as running no longer than that; infinite: as long as they may.
        """
        self._attempts = attempts
        self._screen_key = screen_key
        self._forecast_key = getattr(attempts.placer.selector, "forecast_key", None)
        self._at_most = at_most
        self._ledger = attempts.ledger
        self._placer = attempts.placer
        self._shapes = _Kinds(attempts.queue, self._kind, attempts.placer.rulings.limited)
        self._until: Entry | None = None
        self._open: list[Shape] = []
        """Shapes of which somebody may start now; those that are asked first stand last."""
        self._shortest: dict[int, Seconds] = {}
        """By identity of a shape: nobody who runs for less is left of it."""

    @classmethod
    def of(cls, attempts: Attempts, at_most: Seconds) -> Behind | None:
        """Return it for a run; None: the selector does not say who is alike, or windows and sets of nodes count."""
        policies = attempts.placer.policies
        if policies.implements("makeway_windows") or policies.implements("makeway_node_sets"):
            return None
        screen_key = getattr(attempts.placer.selector, "screen_key", None)
        return None if screen_key is None else cls(attempts, screen_key, at_most)

    def begin(self, depth: int) -> bool:
        """Begin a pass; say whether all who wait are here, in the order in which they are tried.

        :param depth: so many are looked at in the pass.
        """
        attempts = self._attempts
        if attempts.custom_order or attempts.turns or attempts.raw or not self._shapes.complete():
            return False
        entries = attempts.queue.entries
        self._until = entries[depth - 1] if depth < len(entries) else None
        self._open = sorted(self._shapes.behind(None), key=lambda shape: -shape.size)
        self._shortest.clear()
        return True

    def nobody(self, after: Entry, plan: Plan) -> bool:
        """Whether nobody behind an entry can start now, or have others make way."""
        if self._anybody_due():
            return self._first(self._attempts.queue.entries, after) is None
        if self._first(self._shapes.apart, after) is not None:
            return False
        while self._open and not self._may_start(self._open[-1], after, plan):
            self._open.pop()
        return not self._open

    def next(self, after: Entry, arrived: Sequence[Entry]) -> Entry | None:
        """Return the entry behind one; None: there is none, or the pass goes no deeper.

        :param arrived: who came in this pass; they are passed over.
        """
        found = self._first(self._attempts.queue.entries, after)
        while found is not None and found in arrived:
            found = self._first(self._attempts.queue.entries, found)
        return found

    def may_leap(self, after: Entry) -> bool:
        """Whether it is known of each entry behind one, by itself, who may start now."""
        return (
            math.isinf(self._at_most)
            and not self._anybody_due()
            and self._first(self._shapes.apart, after) is None
            and all(map(self._displaces_nobody, self._open))
        )

    def first_open(self, after: Entry, plan: Plan, taken: NodeBits) -> Entry | None:
        """Return the first entry behind one that may start now even if some nodes are taken; None: there is none."""
        # What is known is of those behind the point that the pass has reached, not of those behind `after`.
        known = dict(self._shortest)
        found = [each for shape in self._open for each in self._may_start_of(shape, after, plan, taken)]
        self._shortest = known
        return min(found, default=None)

    def between(self, after: Entry, before: Entry) -> list[Iterator[Iterator[Entry]]] | None:
        """Return for each shape the entries between two that have it, in one list for each length, ascending.

        None: some of them displace others, or the selector knows of some of no like.
        """
        found = []
        for shape in self._shapes.behind(after):
            entry = next(_within(shape.entries, after, before), None)
            if entry is None:
                continue
            if self._shapes.kind_of(entry[1]).told is None or not self._displaces_nobody(shape):
                return None
            found.append(_by_length(shape, after, before))
        return found

    def _anybody_due(self) -> bool:
        """Whether anybody is over his time, who counts as gone to a forecast, but not to a glance."""
        releases = self._ledger.releases()
        return bool(releases) and releases[0][0] <= self._ledger.now

    # ------------------------------------------------------------------------------- shapes
    def _may_start(self, shape: Shape, after: Entry, plan: Plan) -> bool:
        """Whether anybody of a shape behind an entry may start now."""
        if self._lacks_idle(shape):
            return False
        length = self._least_length(shape, after)
        return length is not None and self._fits(shape, length, plan, 0)

    def _lacks_idle(self, shape: Shape) -> bool:
        """Whether too few nodes are left for a job of a shape, however short (`ForecastingSelector`)."""
        ledger = self._ledger
        left = shape.partition.nodes & ledger.up & ~ledger.exclusive
        if left.bit_count() >= shape.size or not shape.entries or not self._displaces_nobody(shape):
            return False
        return self._shapes.kind_of(shape.entries[-1][1]).told is not None

    def _may_start_of(self, shape: Shape, after: Entry, plan: Plan, taken: NodeBits) -> Iterator[Entry]:
        """Yield the first entries behind one that may start now, one for each time limit."""
        length = self._least_length(shape, after)
        if length is None:
            return
        limits = shape.limits
        begin = bisect.bisect_left(limits, length)
        # The longer a job runs, the fewer nodes are open to it.
        over = bisect.bisect_left(
            limits, True, lo=begin, key=lambda limit: not self._fits(shape, min(limit, YEAR), plan, taken)
        )
        for limit in limits[begin:over]:
            entry = self._first(shape.by_limit[limit], after)
            if entry is not None:
                yield entry
        if over < len(limits):
            return
        entry = self._first(shape.entries, after)
        if entry is not None and self._fits(shape, YEAR, plan, taken):
            yield entry

    def _fits(self, shape: Shape, length: Seconds, plan: Plan, taken: NodeBits) -> bool:
        """Whether a job of a shape that runs so long may start now, even if some nodes are taken."""
        ledger = self._ledger
        open_to_it = shape.partition.nodes & ledger.up & ~taken
        nodes = plan.available(ledger.now, ledger.now + length) & open_to_it
        if nodes.bit_count() < shape.size:
            return False
        if not self._displaces_nobody(shape):
            return True  # others might make way on any node
        return bool(self._placer.selector.screen((shape.entries[-1][1],), nodes))

    def _displaces_nobody(self, shape: Shape) -> bool:
        """Whether nobody ever makes way for jobs of a shape; all of it may have started by now."""
        if not (self._placer.preemption and shape.entries):
            return True
        return self._placer.order.nobody(shape.entries[-1][1])

    def _least_length(self, shape: Shape, after: Entry) -> Seconds | None:
        """Return how long the shortest job of a shape behind an entry may run; None: there is none."""
        if self._first(shape.entries, after) is None:
            return None
        limits = shape.limits
        first = bisect.bisect_left(limits, self._shortest.get(id(shape), 0.0))
        left = (limits[at] for at in range(first, len(limits)))
        found = next(
            (each for each in left if self._first(shape.by_limit[each], after) is not None), math.inf
        )
        self._shortest[id(shape)] = found
        return min(found, YEAR, self._at_most)

    def _first(self, listed: Sequence[Entry], after: Entry) -> Entry | None:
        """Return the first of a list behind an entry that this pass gets to; None: there is none."""
        at = bisect.bisect_right(listed, after)
        if at == len(listed) or (self._until is not None and listed[at] > self._until):
            return None
        return listed[at]

    def _kind(self, job: Job) -> _Kind:
        order = self._placer.order
        whom = order.kind_of(job) if self._placer.preemption and order.kind_of is not None else None
        told = None if self._forecast_key is None else self._forecast_key(job, self._ledger)
        return _Kind(self._screen_key(job), whom, told)


def _within(listed: Sequence[Entry], after: Entry, before: Entry) -> Iterator[Entry]:
    """Yield those of a list that stand between two entries."""
    for at in range(bisect.bisect_right(listed, after), len(listed)):
        if listed[at] >= before:
            return
        yield listed[at]


def _by_length(shape: Shape, after: Entry, before: Entry) -> Iterator[Iterator[Entry]]:
    """Yield the entries of a shape between two, for each time limit; last those without one."""
    for limit in shape.limits:
        yield _within(shape.by_limit[limit], after, before)
    if sum(map(len, shape.by_limit.values())) < len(shape.entries):
        yield (each for each in _within(shape.entries, after, before) if each[1].time_limit is None)

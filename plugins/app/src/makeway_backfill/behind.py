"""Tell which jobs further behind in the queue may start now, so that a pass need not plan for the rest of it.

Nodes are promised to keep others from starting now. Where none is left that could, no promise matters, and the next
pass plans anew. Jobs are looked at by shape (`makeway_engine.schedulers.shapes`): one glance at the shortest of a
shape answers for all of it. A plan only fills up, and each start takes more, so what cannot start now cannot do so
later in the same pass.

`Backfill` without this says what a pass comes to, and `tests/test_deep_queues.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from makeway.bitmap import NodeBits
from makeway.model import Job, PreemptMode, Seconds
from makeway.registry.limits import YEAR
from makeway_backfill.plan import Plan
from makeway_engine.entries import Entry
from makeway_engine.schedulers.common import Attempts
from makeway_engine.schedulers.shapes import EquivalenceKey, Shape, Shapes

Removable = Callable[[Job], list[tuple[Job, PreemptMode]]]


class _Kind(NamedTuple):
    """All by which jobs of one size and partition differ as to when they may start."""

    screened: Hashable
    """What a glance looks at."""
    candidates: Hashable
    """What they may displace."""
    told: Hashable
    """What the selector says of forecasts when a job comes; None: nothing."""


class _Kinds(Shapes):
    """Shapes that say what their jobs have in common."""

    many = 1
    """A plan for all that wait costs more even where few wait. The same from 1 on: a takeover goes on alike."""

    def kind_of(self, job: Job) -> _Kind:
        """Return of which kind a job is that is kept by its shape."""
        key = self._entry_of[job.index][0]
        assert isinstance(key, tuple)
        kind = key[-1]
        assert isinstance(kind, _Kind)
        return kind


class Behind:
    """The eligible entries of one run's queue, and which of them may start in this pass."""

    def __init__(
        self, attempts: Attempts, equivalence_key: EquivalenceKey, at_most: Seconds, removable: Removable
    ) -> None:
        """Begin to listen to the queue.

        :param at_most: jobs count as running no longer than that; infinite: as long as they may.
        :param removable: says which jobs make way for one.
        """
        self._removable = removable
        self._starts_by = getattr(attempts.placer.selector, "starts_by", None)
        self._attempts = attempts
        self._equivalence_key = equivalence_key
        self._forecast_key = getattr(attempts.placer.selector, "forecast_key", None)
        self._at_most = at_most
        self._ledger = attempts.ledger
        self._placer = attempts.placer
        self._shapes = _Kinds(attempts.queue, self._kind, attempts.placer.rulings.limited)
        self._until: Entry | None = None
        self._open: list[Shape] = []
        """Shapes of which a job may start now; those that are asked first stand last."""
        self._open_at: tuple[int, NodeBits, int] | None = None
        """What was asked last of those that may start: nothing has changed for it since."""
        self._shortest: dict[int, Seconds] = {}
        """By identity of a shape: no job that runs for less is left of it."""

    @classmethod
    def of(cls, attempts: Attempts, at_most: Seconds, removable: Removable) -> Behind | None:
        """Return it for a run; None: the selector does not say which are alike, or windows and sets of nodes count."""
        policies = attempts.placer.policies
        if policies.limits_say("reservations") or policies.limits_say("node_sets"):
            return None
        equivalence_key = getattr(attempts.placer.selector, "equivalence_key", None)
        return None if equivalence_key is None else cls(attempts, equivalence_key, at_most, removable)

    def begin(self, depth: int) -> bool:
        """Begin a pass; say whether all that wait are here, in the order in which they are tried.

        :param depth: so many are looked at in the pass.
        """
        attempts = self._attempts
        if attempts.custom_order or attempts.turns or attempts.raw or not self._shapes.complete():
            return False
        entries = attempts.queue.entries
        self._until = entries[depth - 1] if depth < len(entries) else None
        self._open = sorted(self._shapes.behind(None), key=lambda shape: -shape.size)
        self._shortest.clear()
        self._open_at = None
        return True

    def none(self, after: Entry, plan: Plan) -> bool:
        """Whether no job behind an entry can start now, or have others make way."""
        if self._starts_by is None and self._any_due():
            return self._first(self._attempts.queue.entries, after) is None
        if self._first(self._shapes.apart, after) is not None:
            return False
        while self._open and not self._may_start(self._open[-1], after, plan):
            self._open.pop()
        return not self._open

    def next(self, after: Entry, arrived: Sequence[Entry]) -> Entry | None:
        """Return the entry behind one; None: there is none, or the pass goes no deeper.

        :param arrived: those that came in this pass; they are passed over.
        """
        found = self._first(self._attempts.queue.entries, after)
        while found is not None and found in arrived:
            found = self._first(self._attempts.queue.entries, found)
        return found

    def _any_due(self) -> bool:
        """Whether any job is over its time: to a forecast it is gone, and it holds its nodes all the same."""
        releases = self._ledger.releases()
        return bool(releases) and releases[0][0] <= self._ledger.now

    # ------------------------------------------------------------------------------- shapes
    def _may_start(self, shape: Shape, after: Entry, plan: Plan) -> bool:
        """Whether any job of a shape behind an entry may start now."""
        if self._lacks_idle(shape):
            return False
        length = self._least_length(shape, after)
        if length is None:
            return False
        now = self._ledger.now
        nodes = plan.available(now, now + length) & shape.partition.nodes & self._ledger.up
        asked = id(shape), nodes, self._ledger.version
        if self._open_at != asked:
            if not self._fits(shape, nodes):
                return False
            self._open_at = asked
        return True

    def _lacks_idle(self, shape: Shape) -> bool:
        """Whether too few nodes are left for a job of a shape, however short (`ForecastingSelector`)."""
        ledger = self._ledger
        left = shape.partition.nodes & ledger.up & ~ledger.exclusive
        if left.bit_count() >= shape.size or self._any_due():
            return False
        if not shape.entries or not self._displaces_none(shape):
            return False
        return self._shapes.kind_of(shape.entries[-1][1]).told is not None

    def _fits(self, shape: Shape, nodes: NodeBits) -> bool:
        """Whether a job of a shape may start now on nodes that are free for as long as it runs."""
        ledger = self._ledger
        if nodes.bit_count() < shape.size:
            return False
        job = shape.entries[-1][1]
        displaces = not self._displaces_none(shape)
        if self._starts_by is not None:
            removable = self._removable(job) if displaces else ()
            return bool(self._starts_by(job, ledger, removable)(nodes, ledger.now))
        # Others might make way on any node.
        return displaces or bool(self._placer.selector.screen((job,), nodes))

    def _displaces_none(self, shape: Shape) -> bool:
        """Whether no job ever makes way for jobs of a shape; all of it may have started by now."""
        if not (self._placer.preemption and shape.entries):
            return True
        return self._placer.order.names_none(shape.entries[-1][1])

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
        candidates = order.kind_of(job) if self._placer.preemption and order.kind_of is not None else None
        told = None if self._forecast_key is None else self._forecast_key(job, self._ledger)
        return _Kind(self._equivalence_key(job), candidates, told)

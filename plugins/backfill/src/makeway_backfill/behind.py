"""Tell when nobody further behind in the queue can start now, so that a pass need not plan for the rest of it.

Nodes are promised to keep others from starting now. Where nobody is left who could, no promise matters, and the next
pass plans anew. Jobs are looked at by shape (`makeway.engine.schedulers.shapes`): one glance at the shortest of a
shape answers for all of it. A plan only fills up, and each start takes more, so whoever cannot start now cannot do so
later in the same pass.

`Backfill` without this says what a pass comes to, and `tests/test_deep_queues.py` holds one to the other.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable

from makeway.engine.entries import Entry
from makeway.engine.schedulers.common import Attempts
from makeway.engine.schedulers.shapes import ScreenKey, Shape, Shapes
from makeway.model import Job, Seconds
from makeway.registry.room import YEAR
from makeway_backfill.plan import Plan


class Behind:
    """The eligible entries of one run's queue, and who of them may start in this pass."""

    def __init__(self, attempts: Attempts, screen_key: ScreenKey, at_most: Seconds) -> None:
        """Begin to listen to the queue.

        :param at_most: jobs count as running no longer than that; infinite: as long as they may.
        """
        self._attempts = attempts
        self._screen_key = screen_key
        self._at_most = at_most
        self._ledger = attempts.ledger
        self._placer = attempts.placer
        self._shapes = Shapes(attempts.queue, self._kind, attempts.placer.rulings.limited)
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

    def begin(self) -> bool:
        """Begin a pass; say whether all who wait are here, in the order in which they are tried."""
        attempts = self._attempts
        if attempts.custom_order or attempts.turns or attempts.raw or not self._shapes.complete():
            return False
        self._open = sorted(self._shapes.behind(None), key=lambda shape: -shape.size)
        self._shortest.clear()
        return True

    def nobody(self, after: Entry, plan: Plan) -> bool:
        """Whether nobody behind an entry can start now, or have others make way."""
        releases = self._ledger.releases()
        if releases and releases[0][0] <= self._ledger.now:
            return False  # who is over his time counts as gone to a forecast, but not to a glance
        apart = self._shapes.apart
        if apart and apart[-1] > after:
            return False
        while self._open and not self._may_start(self._open[-1], after, plan):
            self._open.pop()
        return not self._open

    def _may_start(self, shape: Shape, after: Entry, plan: Plan) -> bool:
        """Whether anybody of a shape behind an entry may start now."""
        length = self._least_length(shape, after)
        if length is None:
            return False
        ledger, partition = self._ledger, shape.partition
        nodes = plan.available(ledger.now, ledger.now + length) & partition.nodes & ledger.up
        if nodes.bit_count() < shape.size:
            return False
        job = shape.entries[-1][1]
        if self._placer.preemption and not self._placer.order.nobody(job):
            return True  # others might make way on any node
        return bool(self._placer.selector.screen((job,), nodes))

    def _least_length(self, shape: Shape, after: Entry) -> Seconds | None:
        """Return how long the shortest job of a shape behind an entry may run; None: there is none."""
        if not shape.entries or shape.entries[-1] <= after:
            return None
        limits = shape.limits
        first = bisect.bisect_left(limits, self._shortest.get(id(shape), 0.0))
        left = (limits[at] for at in range(first, len(limits)))
        found = next((each for each in left if shape.by_limit[each][-1] > after), YEAR)
        self._shortest[id(shape)] = found
        return min(found, YEAR, self._at_most)

    def _kind(self, job: Job) -> Hashable:
        """Return all by which jobs of one size and partition differ as to whether they may start now."""
        order = self._placer.order
        whom = order.kind_of(job) if self._placer.preemption and order.kind_of is not None else None
        return self._screen_key(job), whom

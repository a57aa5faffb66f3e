"""Remember in one pass until when nobody like a job can start, so that the next one is not looked for from now on.

A plan only fills up while nobody starts. Where the selector says that a job has at least the wants of an earlier one
(`makeway.model.ForecastingSelector`), and it runs as long, it can start no earlier. All instants that were passed over
for the earlier one would be passed over for it. `Backfill` without this says what the plan comes to, and
`tests/test_backfill_bounds.py` holds one to the other.

An instant counts as passed over up to the first place that turned out to be promised to others later on: whoever may
choose among fewer nodes might have chosen free ones.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Forecast, Job, PreemptMode, Seconds

Found = tuple[Seconds, Forecast, NodeBits]
"""When and where a job could start, and the nodes that it may choose from."""
Wants = tuple[int, int]
"""Nodes that a job must have to be looked at, and nodes that it takes; more of either are found no earlier."""


@attrs.define
class _Steps:
    """Instants before which nobody of one size can start: the longer the jobs, the later they are."""

    lengths: list[Seconds] = attrs.field(factory=list)
    """Ascending."""
    instants: list[Seconds] = attrs.field(factory=list)
    """Ascending: one for each length."""

    def least(self, length: Seconds) -> Seconds | None:
        """Return the instant for jobs that run so long; None: none is known."""
        at = bisect.bisect_right(self.lengths, length)
        return self.instants[at - 1] if at else None

    def learn(self, length: Seconds, instant: Seconds) -> None:
        """Note an instant, and forget those that say no more than it does."""
        known = self.least(length)
        if known is not None and known >= instant:
            return
        begin = bisect.bisect_left(self.lengths, length)
        over = bisect.bisect_right(self.instants, instant, lo=begin)
        self.lengths[begin:over] = [length]
        self.instants[begin:over] = [instant]


class Spans:
    """Times, each from one instant up to another, within which nothing of one class can start."""

    def __init__(self) -> None:
        self._begins: list[Seconds] = []
        self._ends: list[Seconds] = []

    def over(self, instant: Seconds) -> Seconds:
        """Return the end of the time that an instant is in, or the instant itself if it is in none."""
        at = bisect.bisect_right(self._begins, instant) - 1
        return self._ends[at] if at >= 0 and instant < self._ends[at] else instant

    def add(self, begin: Seconds, end: Seconds) -> None:
        """Add a time, which becomes one with those that it touches."""
        first = bisect.bisect_left(self._ends, begin)
        last = bisect.bisect_right(self._begins, end)
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last], self._ends[first:last] = [begin], [end]


class Bounds:
    """Instants before which jobs cannot start, while the books of one version hold."""

    def __init__(self) -> None:
        self._version = -1
        self._known: dict[Hashable, dict[Wants, _Steps]] = {}
        self.without_promises: dict[tuple[Hashable, Wants], Seconds] = {}
        """When jobs could start if nobody was promised anything; infinite: not for as long as can be seen."""
        self.removable: dict[Hashable, list[tuple[Job, PreemptMode]]] = {}
        """Whom jobs of a kind may displace."""
        self.forecasts: dict[
            tuple[tuple[Hashable, Wants], NodeBits, int],
            tuple[Forecast | None, list[tuple[Job, PreemptMode]]],
        ] = {}
        """When jobs could start on some nodes, by identity of what leaves for them, which is kept so long."""
        self.answers: dict[Hashable, tuple[int, Found | None, list[tuple[Job, PreemptMode]]]] = {}
        """When and where jobs that are alike could start, by the version of the plan."""
        self.closed: dict[Hashable, Spans] = {}
        """Between which instants jobs that are alike cannot start: a plan that fills up does not change that."""

    def hold(self, version: int) -> None:
        """Forget all if the books have changed since."""
        if version != self._version:
            self._version = version
            self.forget()

    def forget(self) -> None:
        """Begin anew: with another plan, or after others were told to leave."""
        self._known.clear()
        self.without_promises.clear()
        self.forecasts.clear()
        self.answers.clear()
        self.closed.clear()
        self.removable.clear()

    def least(self, key: Hashable, wants: Wants, length: Seconds) -> Seconds | None:
        """Return the instant before which a job cannot start; None: none is known.

        :param key: the same for jobs that may choose among the same nodes.
        """
        size, nodes = wants
        found = [
            instant
            for (other_size, other_nodes), steps in self._known.get(key, {}).items()
            if other_size <= size and other_nodes <= nodes and (instant := steps.least(length)) is not None
        ]
        return max(found, default=None)

    def learn(self, key: Hashable, wants: Wants, length: Seconds, instant: Seconds) -> None:
        """Note that a job cannot start before an instant; infinite: not at all, as far as is planned."""
        by_wants = self._known.setdefault(key, {})
        steps = by_wants.get(wants)
        if steps is None:
            steps = by_wants[wants] = _Steps()
        steps.learn(length, instant)

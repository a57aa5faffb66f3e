"""Remember in one pass what was found of a job, for all that are alike: the same request, as long, displacing the same.

A plan only fills up while nothing starts. What cannot start within a time, since too little is free, cannot start there
later in the pass either. What was forecast for some nodes holds until the books change.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Forecast, Job, PreemptMode, Seconds

Found = tuple[Seconds, Forecast, NodeBits]
"""When and where a job could start, and the nodes that it may choose from."""


class Spans:
    """Times, each from one instant up to another, within which nothing of one class can start."""

    def __init__(self, known: Spans | None = None) -> None:
        """Begin with those that are known, or with none."""
        self._begins: list[Seconds] = [] if known is None else known._begins.copy()
        self._ends: list[Seconds] = [] if known is None else known._ends.copy()

    def over(self, instant: Seconds) -> Seconds:
        """Return the end of the time that an instant is in, or the instant itself if it is in none."""
        at = bisect.bisect_right(self._begins, instant) - 1
        return self._ends[at] if at >= 0 and instant < self._ends[at] else instant

    def add(self, begin: Seconds, end: Seconds | None) -> Seconds:
        """Add a time, which becomes one with those that it touches; return its own end.

        :param end: None: there is none.
        """
        over = end = math.inf if end is None else end
        first = bisect.bisect_left(self._ends, begin)
        last = bisect.bisect_right(self._begins, end)
        if first < last:
            begin, over = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last], self._ends[first:last] = [begin], [over]
        return end


@attrs.define(eq=False)
class SeenOfClass:
    """What was found of one class of jobs."""

    removable: list[tuple[Job, PreemptMode]]
    """What they may displace; kept, since it is known by its identity."""
    closed: Spans = attrs.field(factory=Spans)
    """When they cannot start."""
    forecasts: dict[NodeBits, Forecast | None] = attrs.field(factory=dict)
    """When they could start on some nodes."""


class Seen:
    """What a pass has found, while the books of one version hold."""

    def __init__(self) -> None:
        self._version = -1
        self.removable: dict[tuple[Hashable, int], list[tuple[Job, PreemptMode]]] = {}
        """What jobs of a kind may displace, by kind and the index of their partition."""
        self._of: dict[Hashable, dict[Seconds, SeenOfClass]] = {}
        """By how long they run."""

    def hold(self, version: int) -> None:
        """Forget all if the books have changed since."""
        if version != self._version:
            self._version = version
            self.forget()

    def forget(self) -> None:
        """Begin anew: with another plan, or after others were told to leave."""
        self.removable.clear()
        self._of.clear()

    def of(
        self,
        alike: Hashable | None,
        length: Seconds,
        until: Seconds,
        settles: bool,
        removable: list[tuple[Job, PreemptMode]],
    ) -> SeenOfClass:
        """Return what was found of the jobs that are asked about in the same way; None: nothing is like this one."""
        if alike is None:
            return SeenOfClass(removable)
        by_length = self._of.setdefault((alike, until, settles, id(removable)), {})
        found = by_length.get(length)
        if found is None:
            shorter = max([each for each in by_length if each < length], default=None)
            # What cannot start for so long cannot do so for longer either.
            closed = Spans(None if shorter is None else by_length[shorter].closed)
            found = by_length[length] = SeenOfClass(removable, closed)
        return found

"""Remember what was found of a job, for all that are alike: the same request, displacing the same.

What was forecast for some nodes holds until the books change, from one pass to the next. A plan only fills up while
nothing starts: what cannot start within a time, since too little is free, cannot start there later in the pass either,
nor anything as long or longer.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Sequence
from typing import Any

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Forecast, Job, PreemptMode, Seconds, StartsBy
from makeway_engine.ledger import Ledger

Removable = list[tuple[Job, PreemptMode]]
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
class SeenOfKind:
    """What was found of jobs that are alike, however long they run."""

    alike: Hashable | None
    """What they have in common, others that they may displace included; None: there is only one."""
    removable: Removable
    """What they may displace; kept, since it is known by its identity."""
    starts_by: StartsBy | None = None
    """Whether they might start on some nodes by an instant; None: nothing says so."""
    forecasts: dict[NodeBits, Forecast | None] = attrs.field(factory=dict)
    """When they could start on some nodes; at once, if that has passed."""


class Seen:
    """What passes have found, while the books do not change."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._version = -1, -1
        self._releases: Sequence[Any] = ()
        """What the answers rest on."""
        self.removable: dict[tuple[Hashable, int], Removable] = {}
        """What jobs of a kind may displace at this moment, by kind and the index of their partition."""
        self._displaced: dict[tuple[Hashable, int], Removable] = {}
        """The same in the last pass: a list that says the same stays the same."""
        self._kinds: dict[Hashable, SeenOfKind] = {}
        self._closed: dict[Hashable, dict[Seconds, Spans]] = {}
        """When jobs of a kind cannot start in this pass, by how long they run."""
        self._in_vain: dict[Hashable, Seconds] = {}
        """How long the shortest jobs of a kind run that cannot start within the window."""

    def begin(self, *, anew: bool) -> None:
        """Begin a pass, with another plan.

        :param anew: whether time alone changes where jobs fit.
        """
        self._displaced = {**self.removable}
        self.removable.clear()
        self._closed.clear()
        self._in_vain.clear()
        if anew:
            self.forget()
        self.hold()

    def hold(self) -> None:
        """Forget all if the books have changed since, or when jobs leave them."""
        ledger = self._ledger
        if self._version != (ledger.version, ledger.freed) or self._releases is not ledger.releases():
            self.forget()

    def forget(self) -> None:
        """Begin anew: the books have changed, or others were told to leave."""
        self._version = self._ledger.version, self._ledger.freed
        self._releases = self._ledger.releases()
        self.removable.clear()
        self._kinds.clear()
        self._closed.clear()
        self._in_vain.clear()

    def is_in_vain(self, alike: Hashable | None, length: Seconds) -> bool:
        """Whether no job of a kind that runs so long can start within the window; None: nothing is like it."""
        return alike is not None and length >= self._in_vain.get(alike, math.inf)

    def add_in_vain(self, alike: Hashable | None, length: Seconds) -> None:
        """Take note that a job of a kind cannot start within the window."""
        if alike is not None:
            self._in_vain[alike] = min(length, self._in_vain.get(alike, math.inf))

    def displace(self, place: tuple[Hashable, int], found: Removable) -> Removable:
        """Take note of what jobs of a kind may displace, and return it as it is known."""
        known = self._displaced.get(place)
        if known is None or known != found:
            known = found
        self.removable[place] = known
        return known

    def of(self, alike: Hashable | None, removable: Removable) -> SeenOfKind:
        """Return what was found of the jobs that are alike; None: nothing is like this one."""
        if alike is None:
            return SeenOfKind(None, removable)
        found = self._kinds.get(alike)
        if found is None or found.removable is not removable:  # time may protect others no longer
            found = self._kinds[alike] = SeenOfKind(alike, removable)
        return found

    def closed(self, kind: SeenOfKind, length: Seconds, until: Seconds, settles: bool) -> Spans:
        """Return when jobs of a kind that run so long cannot start, asked about in the same way."""
        if kind.alike is None:
            return Spans()
        by_length = self._closed.setdefault((kind.alike, until, settles), {})
        found = by_length.get(length)
        if found is None:
            shorter = max([each for each in by_length if each < length], default=None)
            found = by_length[length] = Spans(None if shorter is None else by_length[shorter])
        return found

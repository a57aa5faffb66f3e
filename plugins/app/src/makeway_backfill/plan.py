"""Promise nodes over time: a list of records (begin, nodes), each in force until the next one begins.

Running jobs are not in it, since the selector's forecast accounts for them.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.model import Seconds, Window

_TINY = 1e-6


def full_second(at: Seconds) -> Seconds:
    """Return an instant as the clock of backfill tells it, which counts full seconds only.

    Recorded: backfill_one_second (a job that ends within the second in which a promise does is not later).
    """
    return at if math.isinf(at) else math.floor(at + _TINY)


class Plan:
    """Which nodes are promised when."""

    def __init__(self, now: Seconds, horizon: Seconds, nodes: NodeBits, grain: Seconds) -> None:
        self._grain = grain
        self._origin = now
        self.begins: list[Seconds] = [now]
        self.free: list[NodeBits] = [nodes]
        self.horizon = now + horizon
        self.promised: NodeBits = 0
        """Nodes promised to any job, whenever."""

    def available(self, start: Seconds, end: Seconds) -> NodeBits:
        """Return the nodes that no job was promised at any instant from `start` to `end`.

        A promise that begins at the very end counts: Slurm keeps a job from ending in the second in which another
        is to start (recorded: backfill_ends_as_other_begins).
        """
        begins, free = self.begins, self.free
        end += _TINY
        at = max(0, bisect.bisect_right(begins, start) - 1)
        nodes = free[at] if begins[at] <= end else -1
        at += 1
        while at < len(begins) and begins[at] <= end:
            nodes &= free[at]
            at += 1
        return nodes

    def open_until(self, start: Seconds, end: Seconds) -> NodeBits:
        """Return the same, but a promise that begins at the very end does not count (`collides`)."""
        return self.available(start, end - 2 * _TINY)

    def next_begin(self, start: Seconds) -> Seconds | None:
        """Return the next instant after `start` at which the promises change."""
        at = bisect.bisect_right(self.begins, start)
        return self.begins[at] if at < len(self.begins) else None

    def next_return(
        self, start: Seconds, end: Seconds, nodes: NodeBits, *, third: bool = False
    ) -> Seconds | None:
        """Return the first instant after `start` at which a promise of some of `nodes` is over; None: none is seen.

        Seen are the records until `end` and the one behind them; those that follow each other with the same nodes are
        one (recorded: limit_stop_retry and limit_stop_retry_time).

        :param third: if none is seen, return when the third record behind `end` begins, whatever it is about.
        """
        begins, free = self.begins, self.free
        at = max(0, bisect.bisect_right(begins, start) - 1)
        while True:
            after = at + 1
            while after < len(free) and free[after] == free[at]:
                after += 1
            if after == len(free):
                return None
            if free[after] & ~free[at] & nodes:
                return begins[after]
            if begins[at] > end + _TINY:
                behind = [begins[each] for each in range(after, len(free)) if free[each] != free[each - 1]]
                return behind[1] if third and len(behind) > 1 else None
            at = after

    def collides(self, start: Seconds, end: Seconds, nodes: NodeBits) -> bool:
        """Whether some of `nodes` are promised to others in that time; both instants are those of full seconds."""
        start, end = full_second(start), full_second(end)
        begins, free = self.begins, self.free
        at = max(0, bisect.bisect_right(begins, start) - 1)
        while at < len(begins) and begins[at] < end:
            if nodes & ~free[at]:
                return True
            at += 1
        return False

    def promise(self, start: Seconds, end: Seconds, nodes: NodeBits) -> None:
        """Promise whole nodes, from `start` rounded down to `end` rounded up, both to full grains of the clock.

        The clock of backfill counts full seconds: what starts within one ends within one (recorded:
        backfill_sharer_as_if_alone).
        """
        self.promised |= nodes
        grain = self._grain
        first = math.floor(start / grain + _TINY) * grain
        last = math.ceil((full_second(start) + end - start) / grain - _TINY) * grain
        begun, over = self._cut(max(first, self._origin)), self._cut(last)
        for at in range(begun, over):
            self.free[at] &= ~nodes

    def around(self, windows: Sequence[Window]) -> Plan:
        """Return the same promises, and beside them those that windows make; windows are not rounded."""
        found = copy.copy(self)
        found.begins, found.free = [*self.begins], [*self.free]
        for window in windows:
            begun = found._cut(max(window.start, self._origin))
            over = len(found.free) if math.isinf(window.end) else found._cut(max(window.end, self._origin))
            for at in range(begun, over):
                found.free[at] &= ~window.nodes
        return found

    def _cut(self, at: Seconds) -> int:
        """Let a record begin at `at`, and return its place."""
        place = bisect.bisect_left(self.begins, at)
        if place == len(self.begins) or self.begins[place] != at:
            self.begins.insert(place, at)
            self.free.insert(place, self.free[place - 1])
        return place


class Sliding:
    """What a plan has available for a given time from instants on that only move forward, as `Plan.available` says.

    The records in view are kept as two halves: what is common to the last so many of the first half, and to all of
    the second. A record is so looked at twice, however many are in view.
    """

    def __init__(self, plan: Plan, length: Seconds) -> None:
        self._begins, self._free = plan.begins, plan.free
        self._length = length
        self._halves = 0
        """Record at which the second half begins."""
        self._over = 0
        """Record behind the second half."""
        self._common: list[NodeBits] = []
        """Of the first half, by how many records of it are in view, less one."""
        self._second: NodeBits = -1

    def available(self, start: Seconds) -> NodeBits:
        """Return the nodes that no job was promised from `start` on; the plan must not have changed."""
        begins, free = self._begins, self._free
        first = max(0, bisect.bisect_right(begins, start) - 1)
        over = bisect.bisect_right(begins, start + self._length + _TINY)
        if first >= self._halves:
            nodes: NodeBits = -1
            self._common = [nodes := nodes & free[at] for at in range(over - 1, first - 1, -1)]
            self._halves = self._over = over
            self._second = -1
            return nodes
        for at in range(self._over, over):
            self._second &= free[at]
        self._over = max(self._over, over)
        return self._common[self._halves - first - 1] & self._second

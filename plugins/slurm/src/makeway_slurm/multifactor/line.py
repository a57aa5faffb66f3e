"""Keep the order of those who wait from one recalculation to later ones, and find the places of those who come.

Age grows alike for all, so two jobs stay as far apart as they are while ranks stand and nobody is as old as can be. Who
stands a whole point and more before another one therefore stays before it, however sums are cut off. So does the older
one of two that age alone tells apart. Where all neighbours are such pairs, nobody's priority need be worked out anew:
those who come get the one that puts them in their places. `Multifactor.current` says what it comes to without this;
`tests/test_line.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from makeway.model import Job, Seconds
from makeway_slurm.multifactor.known import Known, alike

_new = tuple.__new__
_TINY = 1e-6
_ROUNDING = 1e-4
_MOST = 2.0**31
"""Sums beyond this are cut off before long."""
_SAFE = 2.0
"""Sums from this on are not raised to the least priority, whatever is cut off."""
_SPARE = 100
"""So many who have left stay in a line before it is made anew."""


class Place(NamedTuple):
    """Where one job stands in the line of its tier, the first one first."""

    below: float
    """Minus its sum at the recalculation of the line, were age less than nothing before it could start."""
    submit_at: Seconds
    row: int
    """Place in the job table."""
    priority: int
    """It puts the job where it stands among the others of the line."""
    since: int
    """The second since when it ages."""
    least: float
    """Its sum without age."""
    known: Known


class Line:
    """Those who wait, by tier, as a recalculation put them in order."""

    def __init__(self, weight: float, max_age: float, period: float) -> None:
        """Begin with nobody in it, and sure of nothing.

        :param weight: of age.
        :param max_age: seconds after which a job is as old as it can be.
        :param period: seconds from one recalculation to the next.
        """
        self._weight = weight
        self._max_age = max_age
        self._slope = weight / max_age
        self._late = self._slope * period
        """By so much who came after a recalculation is better off than if he aged from then on."""
        self._second = 0
        self._tiers: dict[int, list[Place]] = {}
        self._members: set[str] = set()
        self._most = 0
        self.until: Seconds = -math.inf
        """Up to this recalculation all of them surely stand as they do, ranks being the same."""

    def has(self, jobs: Sequence[Job]) -> bool:
        """Whether all of these are in it."""
        return self._members.issuperset([job.id for job in jobs])

    def form(self, jobs: Sequence[Job], known_of: Mapping[str, Known], second: int) -> None:
        """Begin anew with all who wait, in the order in which they stand by their priorities of a recalculation."""
        self._second = second
        tiers: dict[int, list[Place]] = {}
        self._tiers = tiers
        self.until = -math.inf
        until = math.inf
        for job in jobs:
            known = known_of.get(job.id)
            place = None if known is None else self._place_of(job, known, job.priority)
            if place is None:
                return
            tier = job.partition.priority_tier
            there = tiers.get(tier)
            if there is None:
                tiers[tier] = [place]
                continue
            sure = self._stands(there[-1], place)
            if sure < second:
                return
            if sure < until:
                until = sure
            there.append(place)
        self._members = {job.id for job in jobs}
        self._most = 2 * len(jobs) + _SPARE
        self.until = until

    def join(self, job: Job, known: Known) -> int | None:
        """Return the priority that puts somebody who came where he stands; None: that is not sure, nor is anything."""
        found = self._join(job, known)
        if found is None:
            self.until = -math.inf
        return found

    def _join(self, job: Job, known: Known) -> int | None:
        place = self._place_of(job, known, 0)
        if place is None or len(self._members) >= self._most:
            return None
        there = self._tiers.setdefault(job.partition.priority_tier, [])
        at = bisect.bisect(there, place)
        priority = max(1, int(-place.below))
        until, mine = self.until, place[1:3]
        if at:
            before = there[at - 1]
            until = min(until, self._stands(before, place))
            priority = min(priority, before.priority)
            if priority == before.priority and before[1:3] > mine:
                return None
        if at < len(there):
            behind = there[at]
            until = min(until, self._stands(place, behind))
            if priority < behind.priority or (priority == behind.priority and behind[1:3] < mine):
                return None
        if until < self._second:
            return None
        self.until = until
        self._members.add(job.id)
        there.insert(at, _new(Place, (*place[:3], priority, *place[4:])))
        return priority

    def _place_of(self, job: Job, known: Known, priority: int) -> Place | None:
        """Return where a job stands; None: more counts than its sum."""
        alone, eligible = known.alone, job.eligible_since
        if alone is None or eligible is None or known.later is not None or job.spec.reservation is not None:
            return None
        least = alone.assoc + known.fairshare + alone.rest
        since = math.floor(eligible + _TINY)
        waited = self._second - since
        if not least < _MOST - self._weight or waited < -self._max_age:
            return None
        age = self._slope * waited if waited < self._max_age else self._weight
        return _new(Place, (-(least + age), job.submit_at, job.index, priority, since, least, known))

    def _stands(self, one: Place, other: Place) -> Seconds:
        """Return up to which recalculation `one` surely stands before `other`; before that of the line: never."""
        since, since_behind = one.since, other.since
        is_first = one[1:3] < other[1:3]
        if is_first and since <= since_behind and alike(one.known, other.known):
            return math.inf
        spare = other.below - one.below - (_ROUNDING if is_first else 1.0 + _ROUNDING)
        if since_behind > self._second:
            spare -= self._late
        if spare < 0.0 or not (is_first or one.least >= _SAFE):
            return -math.inf
        if since < since_behind and self._weight:
            # The older one stops growing first; from then on the other one draws nearer, as far as it is younger.
            ends = since + self._max_age
            if spare < self._slope * (since_behind - max(since, self._second - self._max_age)):
                return max(self._second, ends) + spare / self._slope
        return math.inf


__all__ = ["Line"]

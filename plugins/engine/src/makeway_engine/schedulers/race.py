"""Keep the first of each kind of jobs in one partition about in order (`makeway.priorities.KindredPrioritizer`)."""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Sequence

from makeway.model import Seconds
from makeway_engine.entries import Entry, Key
from makeway_engine.kinship import Kinship

Kind = tuple[int, int, Hashable]
"""The partition's place, how many nodes a job asks for, and what the policy says."""
_NEAR = 1.0 + 1e-4
"""Whoever stands no more than this below another may have the higher priority."""
_Place = tuple[float, int, Kind]


class Race:
    """The kinds of one partition, each with the entries that wait, in order of submission; none without any."""

    def __init__(self, kinship: Kinship) -> None:
        self._kinship = kinship
        self.lanes: dict[Kind, list[Entry]] = {}
        self._ranked: list[_Place] = []
        """About where the first of each kind stands, the foremost first: less what it stands, and its job's place."""
        self._places: dict[Kind, _Place] = {}
        """The same, by kind."""
        self._until: dict[Kind, Seconds] = {}
        """Up to when; who has not been looked at since stands there at most."""
        self._wild: set[Kind] = set()
        """Those who may stand anywhere."""
        self._changed: set[Kind] = set()
        """Those of which another one is first."""
        self._first: Entry | None = None
        """Who is first; None: not known."""
        self._first_until: Seconds = 0.0
        """When to look again, ranks being the same, whoever else comes."""
        self._came: list[Entry] = []
        """Who came since that was found out, and is first of a kind."""

    # ------------------------------------------------------------------------------ who waits
    def add(self, kind: Kind, entry: Entry) -> None:
        """Let somebody wait, behind all others of the kind."""
        lane = self.lanes.get(kind)
        if lane is None:
            self.lanes[kind] = [entry]
            self._changed.add(kind)
            self._came.append(entry)
        else:
            lane.append(entry)

    def remove(self, kind: Kind, index: int) -> None:
        """Let somebody go.

        :param index: place of the job in the job table.
        """
        lane = self.lanes[kind]
        if self._first is not None and self._first[1].index == index:
            self._first = None
        if self._came:
            self._came = [entry for entry in self._came if entry[1].index != index]
        if lane[0][1].index != index:
            lane[:] = [entry for entry in lane if entry[1].index != index]
            return
        del lane[0]
        self._changed.add(kind)
        if not lane:
            del self.lanes[kind]

    # ------------------------------------------------------------------------------ who is first
    def forget(self) -> None:
        """Know of nobody where he stands."""
        self._ranked.clear()
        self._places.clear()
        self._until.clear()
        self._wild.clear()
        self._changed = set(self.lanes)
        self._first = None

    def _take_note(self) -> None:
        """Find out about where those stand who came to be first."""
        if not self._changed:
            return
        kinds = [kind for kind in self._changed if kind in self.lanes]
        many = len(self._changed) > len(self._ranked)
        for kind in self._changed:
            self._wild.discard(kind)
            self._until.pop(kind, None)
            place = self._places.pop(kind, None)
            if place is not None:
                del self._ranked[bisect.bisect_left(self._ranked, place)]
        self._changed.clear()
        for kind, found in zip(
            kinds, self._kinship.standings([self.lanes[kind][0][1] for kind in kinds]), strict=True
        ):
            if found is None:
                self._wild.add(kind)
                continue
            place = self._places[kind] = -found[0], self.lanes[kind][0][1].index, kind
            self._until[kind] = found[1]
            if many:
                self._ranked.append(place)
            else:
                bisect.insort(self._ranked, place)
        if many:
            self._ranked.sort(key=_place)

    def near(self, most: int | None = None, out: frozenset[Kind] | set[Kind] = frozenset()) -> list[Entry]:
        """Return those of whom one is first by now; empty: nobody waits.

        :param most: those who ask for more nodes count for nothing; None: all count.
        :param out: kinds that count for nothing.
        """
        self._take_note()
        now, until = self._kinship.now, self._until
        while True:
            found: list[Kind] = []
            least = 0.0
            for behind, _, kind in self._ranked:
                if found and behind > least:
                    break
                if (most is not None and kind[1] > most) or kind in out:
                    continue
                if not found:
                    least = behind + _NEAR
                found.append(kind)
            old = {kind for kind in found if until[kind] <= now}
            if not old:
                break
            self._changed |= old
            self._take_note()
        if self._wild:
            found = [kind for kind in self.lanes if (most is None or kind[1] <= most) and kind not in out]
        return [self.lanes[kind][0] for kind in found]

    def first(self) -> Entry:
        """Return who is first by now; somebody waits."""
        first, kinship = self._first, self._kinship
        if first is None or self._first_until <= kinship.now:
            near = self.near()
            first = near[0] if len(near) == 1 else in_order(near, kinship)[0]
            rivals, until = self._rivals(first, near)
        elif self._came:
            rivals, until = [first, *self._came], self._first_until
            first = in_order(rivals, kinship)[0]
        else:
            return first
        jobs = [first[1], *(entry[1] for entry in rivals if entry is not first)]
        self._first = first
        self._first_until = min(until, kinship.leads_among(jobs)) if len(jobs) > 1 else until
        self._came.clear()
        return first

    def _rivals(self, first: Entry, near: list[Entry]) -> tuple[list[Entry], Seconds]:
        """Return who may come to stand before the first, and up to when nobody else does."""
        own = next((until for kind, until in self._until.items() if self.lanes[kind][0] is first), 0.0)
        if own <= self._kinship.next_after():
            return [lane[0] for lane in self.lanes.values()], math.inf
        return near, own

    @property
    def leads_until(self) -> Seconds:
        """When somebody else may be first though nothing happens, ranks being the same."""
        self.first()
        return self._first_until


def in_order(entries: Sequence[Entry], kinship: Kinship) -> list[Entry]:
    """Return entries as they stand by now."""
    found = kinship.priorities([entry[1] for entry in entries])
    keys = [
        (key[0], key[1], -priority, key[3], key[4], key[5])
        for (key, _, _), priority in zip(entries, found, strict=True)
    ]
    return [entry for _, entry in sorted(zip(keys, entries, strict=True), key=_key)]


def _key(pair: tuple[Key, Entry]) -> Key:
    return pair[0]


def _place(place: _Place) -> tuple[float, int]:
    return place[:2]


__all__ = ["Kind", "Race", "in_order"]

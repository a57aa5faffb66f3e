"""Turn nodes and CPUs of intervals into rectangles: ranges of neighbouring nodes, and lanes within a node.

A lane is the share of a node that a job has, by the numbers of its CPUs: its upper edge and its height in parts of
`WHOLE`. Jobs that run on the same CPUs at once (sharing without gang scheduling) get lanes beside one another.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.hostlist import expand_hostlist

WHOLE = 240
"""Height of a node; many numbers divide it."""
MOST_LANES = 8
"""Most jobs on the same CPUs that are drawn beside one another."""

Range = tuple[int, int, int, int]
"""First node, number of nodes, upper edge, height."""


@attrs.frozen
class Place:
    """Where a job was."""

    ranges: tuple[Range, ...]
    cores: int


class Places:
    """Knows all places of a record; each is worked out once."""

    def __init__(self, cluster: Mapping[str, Any]) -> None:
        self.names: list[str] = []
        self.cpus: list[int] = []
        for group in cluster["nodes"]:
            names = expand_hostlist(group["names"])
            self.names += names
            self.cpus += [group["cpus"]] * len(names)
        self._index = {name: at for at, name in enumerate(self.names)}
        self._offsets = [0]
        for cpus in self.cpus:
            self._offsets.append(self._offsets[-1] + cpus)
        self._known: dict[tuple[str, tuple[str, ...]], int] = {}
        self._spans: dict[str, list[tuple[int, int]]] = {}
        self._numbers: dict[tuple[Range, ...], int] = {}
        self.places: list[Place] = []

    def number(self, interval: Mapping[str, Any]) -> int:
        """Return the number of the place of an interval."""
        cpus: Mapping[str, str] = interval.get("cpus") or {}
        key = (interval["nodes"], tuple(cpus.values()))
        found = self._known.get(key)
        if found is None:
            named = cpus or dict.fromkeys(expand_hostlist(interval["nodes"]), "")
            found = self._known[key] = self._make(named)
        return found

    def lane(self, number: int, slot: int, slots: int) -> int:
        """Return the number of a lane of a place: the `slot`-th of `slots`."""
        place = self.places[number]
        ranges = tuple(
            (first, count, top + slot * height // slots, max(1, height // slots))
            for first, count, top, height in place.ranges
        )
        return self._numbered(ranges, place.cores)

    def cores(self, interval: Mapping[str, Any]) -> int:
        """Return how many CPUs an interval holds."""
        cpus: Mapping[str, str] = interval.get("cpus") or {}
        return sum(stop - first for text in cpus.values() for first, stop in self._runs(text))

    def bits(self, number: int) -> int:
        """Return the CPUs of a place as a bitmap over the whole cluster."""
        found = 0
        offsets = self._offsets
        for first, count, top, height in self.places[number].ranges:
            if height == WHOLE:
                span = offsets[first + count] - offsets[first]
                found |= ((1 << span) - 1) << offsets[first]
                continue
            for node in range(first, first + count):
                total = self.cpus[node]
                start, stop = -(-top * total // WHOLE), -(-(top + height) * total // WHOLE)
                found |= ((1 << max(1, stop - start)) - 1) << offsets[node] + start
        return found

    def _make(self, cpus: Mapping[str, str]) -> int:
        cells: list[tuple[int, int, int]] = []
        cores = 0
        for name, text in cpus.items():
            node = self._index.get(name)
            if node is None:
                continue  # a node that the cluster does not list
            total = self.cpus[node]
            for first, stop in self._runs(text) or [(0, total)]:
                cores += stop - first
                top, end = first * WHOLE // total, stop * WHOLE // total
                cells.append((node, top, max(1, end - top)))
        return self._numbered(tuple(_joined(cells)), cores)

    def _numbered(self, ranges: tuple[Range, ...], cores: int) -> int:
        found = self._numbers.get(ranges)
        if found is None:
            found = self._numbers[ranges] = len(self.places)
            self.places.append(Place(ranges, cores))
        return found

    def _runs(self, text: str) -> list[tuple[int, int]]:
        """Return 0-3,8 as (0, 4), (8, 9)."""
        found = self._spans.get(text)
        if found is None:
            found = []
            for part in text.split(",") if text else ():
                first, _, last = part.partition("-")
                found.append((int(first), int(last or first) + 1))
            self._spans[text] = found
        return found


def _joined(cells: Iterable[tuple[int, int, int]]) -> Iterable[Range]:
    """Join neighbouring nodes with the same lane."""
    open_: dict[tuple[int, int], list[int]] = {}
    done: list[Range] = []
    for node, top, height in sorted(cells):
        run = open_.get((top, height))
        if run is not None and run[0] + run[1] == node:
            run[1] += 1
            continue
        if run is not None:
            done.append((run[0], run[1], top, height))
        open_[top, height] = [node, 1]
    done += [(run[0], run[1], top, height) for (top, height), run in open_.items()]
    return sorted(done)


def lanes(pieces: Sequence[tuple[float, float, int]], places: Places) -> list[int]:
    """Return the place of each piece, a lane of it where others run on the same CPUs at that time.

    :param pieces: start, end and place, in order of start.
    """
    slots: list[int] = []
    """CPUs in use, by slot."""
    ends: list[tuple[float, int, int, int]] = []
    chosen: list[int] = []
    crowded = [False] * len(pieces)
    on: dict[int, int] = {}
    for at, (start, end, number) in enumerate(pieces):
        while ends and ends[0][0] <= start:
            _, who, slot, bits = heapq.heappop(ends)
            slots[slot] &= ~bits
            del on[who]
        bits = places.bits(number)
        slot = next((s for s, busy in enumerate(slots) if not busy & bits), len(slots))
        if slot == len(slots):
            slots.append(0)
        if slot or any(busy & bits for busy in slots[1:]):
            for who, other in on.items():
                if other & bits:
                    crowded[who] = crowded[at] = True
        slots[slot] |= bits
        heapq.heappush(ends, (end, at, slot, bits))
        on[at] = bits
        chosen.append(slot)
    wide = min(MOST_LANES, max(chosen, default=0) + 1)
    if wide == 1:
        return [number for _, _, number in pieces]
    return [
        places.lane(number, slot % wide, wide) if full else number
        for (_, _, number), slot, full in zip(pieces, chosen, crowded, strict=True)
    ]

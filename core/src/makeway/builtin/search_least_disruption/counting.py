"""Choose victims of a cover problem by counting freed nodes: a good choice, quickly, that is not proved best.

Method: take until it fits, then give back in reverse while it still fits. This is done in several orders; the
fewest victims win, then the least price. Whoever is left is needed: what is freed only shrinks as others are
given back, so a candidate that could not be given back in its turn cannot be given back in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import lcm


class Room:
    """Which nodes the candidates taken so far have freed."""

    def __init__(self, blockers: Mapping[int, Sequence[int]]) -> None:
        self._groups = list(blockers.values())
        self._stay = [len(group) for group in self._groups]
        self.freed = 0
        self.nodes_of: dict[int, list[int]] = {}
        """Candidate -> the nodes (numbered anew) that it has to leave."""
        for node, group in enumerate(self._groups):
            for job in group:
                self.nodes_of.setdefault(job, []).append(node)

    def take(self, job: int) -> None:
        """Let `job` leave its nodes."""
        for node in self.nodes_of[job]:
            self._stay[node] -= 1
            self.freed += not self._stay[node]

    def give_back(self, job: int) -> None:
        """Let `job` stay after all."""
        for node in self.nodes_of[job]:
            self.freed -= not self._stay[node]
            self._stay[node] += 1


def good_choice(
    blockers: Mapping[int, Sequence[int]], price: Sequence[int], need: int
) -> list[int] | None:
    """Return a choice from which nobody can be given back; None if all of them free too few nodes."""
    if len(blockers) < need:
        return None
    room = Room(blockers)
    cheapest = sorted(room.nodes_of, key=lambda job: (price[job], job))
    largest = sorted(cheapest, key=lambda job: -len(room.nodes_of[job]))
    choices = [_take_and_give_back(room, order, need) for order in (largest, cheapest)]
    return min(choices, key=lambda taken: (len(taken), sum(price[job] for job in taken)))


def _take_and_give_back(room: Room, order: Iterable[int], need: int) -> list[int]:
    taken: list[int] = []
    for job in order:
        if room.freed >= need:
            break
        room.take(job)
        taken.append(job)
    kept: list[int] = []
    for job in reversed(taken):
        room.give_back(job)
        if room.freed < need:
            room.take(job)
            kept.append(job)
    for job in kept:
        room.give_back(job)
    return kept


def at_least(blockers: Mapping[int, Sequence[int]], need: int) -> int:
    """Return a number of victims below which no choice frees `need` nodes.

    Every blocker of a node is credited with an equal share of it. Victims free no more nodes than their
    credits add up to, so as many of the largest credits as add up to `need` are a lower bound.
    """
    whole = lcm(*{len(group) for group in blockers.values()})
    credit: dict[int, int] = {}
    for group in blockers.values():
        for job in group:
            credit[job] = credit.get(job, 0) + whole // len(group)
    missing, count = need * whole, 0
    for share in sorted(credit.values(), reverse=True):
        if missing <= 0:
            break
        missing -= share
        count += 1
    return count

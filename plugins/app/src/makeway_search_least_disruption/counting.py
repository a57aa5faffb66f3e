"""Choose victims of a cover problem by counting freed nodes: a good choice, quickly, that is not
proved best.

Method: take until it fits, then give back in reverse while it still fits. This is done in several
orders; the fewest victims win, then the least price. What is left is needed: what is freed only
shrinks as others are given back, so a candidate that could not be given back in its turn cannot be
given back in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import lcm

Group = tuple[int, ...]
"""Candidates that have to leave a node, ascending."""
Groups = Mapping[Group, int]
"""How many nodes each group blocks."""


class Room:
    """How many nodes the candidates taken so far have freed."""

    def __init__(self, groups: Groups) -> None:
        self._nodes = list(groups.values())
        self._stay = [len(group) for group in groups]
        self.freed = 0
        self._groups_of: dict[int, list[int]] = {}
        self.touched: dict[int, int] = {}
        """Candidate -> how many nodes it has to leave."""
        for number, (group, nodes) in enumerate(groups.items()):
            for job in group:
                self._groups_of.setdefault(job, []).append(number)
                self.touched[job] = self.touched.get(job, 0) + nodes

    def take(self, job: int) -> None:
        """Let `job` leave its nodes."""
        for group in self._groups_of[job]:
            self._stay[group] -= 1
            if not self._stay[group]:
                self.freed += self._nodes[group]

    def give_back(self, job: int) -> None:
        """Let `job` stay after all."""
        for group in self._groups_of[job]:
            if not self._stay[group]:
                self.freed -= self._nodes[group]
            self._stay[group] += 1


def good_choice(groups: Groups, price: Sequence[int], need: int) -> list[int]:
    """Return a choice from which none can be given back; all together have to be enough."""
    room = Room(groups)
    cheapest = sorted(room.touched, key=lambda job: (price[job], job))
    largest = sorted(cheapest, key=lambda job: -room.touched[job])
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


def at_least(groups: Groups, need: int) -> int:
    """Return a number of victims below which no choice frees `need` nodes.

    Every blocker of a node is credited with an equal share of it. Victims free no more nodes than
    their credits add up to, so as many of the largest credits as add up to `need` are a lower
    bound.
    """
    whole = lcm(*{len(group) for group in groups})
    credit: dict[int, int] = {}
    for group, nodes in groups.items():
        for job in group:
            credit[job] = credit.get(job, 0) + nodes * (whole // len(group))
    missing, count = need * whole, 0
    for share in sorted(credit.values(), reverse=True):
        if missing <= 0:
            break
        missing -= share
        count += 1
    return count

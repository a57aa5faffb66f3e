"""Hold the tournaments of one pass by fair shares, silent heads among the others (kueue 7.2).

`makeway_kueue_cohort.passes` holds them among entries that have all been nominated. Here a silent head of a calm tree
is nominated when something has made it speak, and put aside when its turn has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from makeway_kueue_cohort.flat import Flat
from makeway_kueue_cohort.passes import Entry, rank_in_flat, winner_of
from makeway_kueue_cohort.rounds import Rounds
from makeway_kueue_cohort.tree import Node, root_of
from makeway_kueue_cohort.waiting import Asking
from makeway_kueue_cohort.yard import Yard


@attrs.define(eq=False)
class Seat:
    """A head in one pass of Kueue."""

    asking: Asking
    entry: Entry | None
    """None: it is silent."""
    root: Node

    @classmethod
    def of(cls, asking: Asking, entry: Entry | None) -> Seat:
        """Seat a head."""
        return cls(asking, entry, root_of(asking.workload.queue))


class Seats:
    """The heads of one pass of Kueue."""

    def __init__(
        self, seats: Sequence[Seat], yard: Yard, rounds: Rounds, speak: Callable[[Asking], Entry]
    ) -> None:
        """Begin with all of them, in the order of queues.

        :param speak: nominates a silent head that lacks quota no more.
        """
        self._left = list(seats)
        self._yard = yard
        self._rounds = rounds
        self._speak = speak
        self._stamp = yard.stamp
        """State of the books at which the silent are known to be so."""

    def __iter__(self) -> Iterator[Entry]:
        """Yield the winners one by one; books may change in between."""
        while self._left:
            root = self._left[0].root
            flat = self._yard.books.flats.get(root.name) if root.queue is None else None
            self._listen()
            speaking = [seat for seat in self._left if seat.root is root and seat.entry is not None]
            silent = [seat for seat in self._left if seat.root is root and seat.entry is None]
            if not speaking:
                self._put_aside(silent)
                continue
            entries = [seat.entry for seat in speaking if seat.entry is not None]
            won = winner_of(root, flat, entries)
            if silent and flat is not None and self._sooner(silent, flat, won):
                continue
            self._left = [seat for seat in self._left if seat.entry is not won]
            yield won

    def _listen(self) -> None:
        """See who speaks by now."""
        if self._stamp != self._yard.stamp:
            self._stamp = self._yard.stamp
            for seat in self._left:
                if seat.entry is None and not self._yard.lacks(seat.asking):
                    seat.entry = self._speak(seat.asking)

    def _sooner(self, silent: Sequence[Seat], flat: Flat, won: Entry) -> bool:
        """Put those aside whose turn comes before the winner's; say whether the first of all was among them."""
        first, rank = self._left[0], rank_in_flat(flat, won.head.workload, won.assignment.uses)
        sooner = [seat for seat in silent if _rank(flat, seat) < rank]
        self._put_aside(sooner)
        return first in sooner

    def _put_aside(self, seats: Sequence[Seat]) -> None:
        for seat in seats:
            self._rounds.put_aside(seat.asking)
        if seats:
            gone = set(map(id, seats))
            self._left = [seat for seat in self._left if id(seat) not in gone]


def _rank(flat: Flat, seat: Seat) -> tuple[bool, int, tuple[float, float, str]]:
    return rank_in_flat(flat, seat.asking.workload, seat.asking.workload.uses)

"""Know for sure that nobody has changed rank, without working ranks out anew.

Two siblings change places where their shares over usage cross. Usage that does not decay, but is divided by a common
scale, grows in straight lines; so each pair of neighbours says up to which common sum it surely stands, as long as
nobody starts. Who starts has its own pairs looked at again. Where a pair has changed places, its level is ranked anew:
all others stand as they did. `FairTree.factors` says what it comes to without this, and
`tests/test_sure.py` holds one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from makeway_slurm.accounts.usage import RAW, UsageBook
from makeway_slurm.multifactor.fair_tree import FairTree

_ROUNDING = 1e-9
_FAINT = 1e-100
"""Less usage than this may vanish altogether."""
_TOP, _BETWEEN, _BOTTOM = 2, 1, 0
"""Where who has used nothing stands, who has, and who has no share."""
_STEEP = 1.05
"""Nothing is sure where usage decays faster in a period."""
_Amount = tuple[float, float, float]
"""What was used as of the last recalculation, divided by the common scale; what will have been as of the next one at
least, with those who have ended; and what is added a second."""


class RankGuard:
    """Watches the ranks of one tree, as `FairTree.factors` last found them."""

    def __init__(self, book: UsageBook, fair: FairTree) -> None:
        self._book = book
        self._fair = fair
        self._places = fair.places
        self._raw = book.columns[RAW]
        self._behind: dict[int, tuple[int, bool]] = {}
        """Who stands next behind an association, and whether they are tied."""
        self._ahead: dict[int, tuple[int, bool]] = {}
        """The same of who stands next before it."""
        self._bounds: dict[int, float] = {}
        """Up to which common sum an association stands before the next one."""
        self._room: dict[int, float] = {}
        """Up to which usage, divided by the common scale, it does so whatever happens; not there: that is not known."""
        self._until = -math.inf
        """Up to which common sum ranks stand."""
        self._watches = False
        """Whether pairs are those of the ranks that were found last."""
        self._turned: set[int] = set()
        """In whose levels somebody has changed places since; empty: that is not known."""
        self._calm = book.worth <= _STEEP and not book.resets

    def holds(self) -> bool:
        """Whether all ranks of the last recalculation are surely those that were found last."""
        book = self._book
        if not self._watches:
            return False
        newcomers = book.newcomers()
        if newcomers:
            self._look_at(newcomers)
        return book.decayed_sum <= self._until or self._looks_again()

    def found_anew(self, usage: Callable[[], Sequence[float]]) -> Sequence[float]:
        """Find the factors of all users that do not surely stand, and watch them from now on.

        :param usage: returns what each association had used at the last recalculation.
        """
        fair = self._fair
        if not self._watches or not self._turned:
            found = fair.factors(usage())
            if self._calm:
                self._begin()
            return found
        found = fair.factors_after(self._turned, self._level)
        self._go_on()
        return found

    def _begin(self) -> None:
        """Watch from now on what was just found."""
        self._watches = True
        self._book.newcomers()
        for known in (self._behind, self._ahead, self._bounds, self._room):
            known.clear()
        young = self._young_rates()
        for one, other, tied in self._fair.neighbours():
            self._behind[one] = other, tied
            self._ahead[other] = one, tied
            self._watch(one, (other, tied), young)
        self._until = min(self._bounds.values(), default=math.inf)

    def _go_on(self) -> None:
        """Watch those who have other neighbours now; what is known of others is so still."""
        fair, behind, ahead, bounds = self._fair, self._behind, self._ahead, self._bounds
        now = self._book.decayed_sum
        doubtful = {one for one, until in bounds.items() if until < now}
        for above in self._turned:
            before = {one: behind.pop(one, None) for one in fair.in_level(above)}
            for one in before:
                ahead.pop(one, None)
            for one, other, tied in fair.neighbours((above,)):
                pair = behind[one] = other, tied
                ahead[other] = one, tied
                if before[one] != pair:
                    doubtful.add(one)
            for one in before:
                if one not in behind:
                    bounds.pop(one, None)
                    self._room.pop(one, None)
                    doubtful.discard(one)
        young = self._young_rates()
        for one in doubtful:
            self._watch(one, behind[one], young)
        self._until = min(bounds.values(), default=math.inf)

    def forget(self) -> None:
        """Be sure of nothing."""
        self._watches = False

    def _look_at(self, newcomers: Collection[int]) -> None:
        """See up to which common sum those stand between their neighbours who use more, or had used nothing.

        What one uses more keeps it behind the one before it, unless it had used nothing, or was tied.
        """
        book, raw, rooms, bounds = self._book, self._raw, self._room, self._bounds
        behind, ahead, entries = self._behind, self._ahead, book.associations
        now, young = book.decayed_sum, self._young_rates()
        for index in newcomers:
            if index in behind:
                room, entry = rooms.get(index), entries[index]
                until = -math.inf
                if room is not None:
                    # as in `_amount_of`, without a call
                    rate = entry.rate[raw]
                    used = entry.sums[raw] + rate * (now - entry.mark)
                    rate += young.get(index, 0.0)
                    if rate:
                        until = now + (room - used) / rate
                    elif used < room:
                        until = math.inf
                if until < self._until or room is None:
                    self._watch(index, behind[index], young)
                else:
                    bounds[index] = until
            if index in ahead:
                one, tied = ahead[index]
                if tied or one not in rooms:
                    self._watch(one, (index, tied), young)

    def _watch(self, one: int, pair: tuple[int, bool], young: dict[int, float]) -> None:
        """Note up to when an association surely stands before the next one."""
        other, tied = pair
        self._room.pop(one, None)
        mine, behind = self._amount_of(one, young), self._amount_of(other, young)
        until = self._bounds[one] = self._pair(one, mine, other, behind, tied=tied)
        if until < self._until:
            self._until = until

    def _looks_again(self) -> bool:
        """Whether those stand as they did who may not, by what was used up to the last recalculation."""
        now, bounds = self._book.decayed_sum, self._bounds
        doubtful = [one for one, until in bounds.items() if until < now]
        self._turned.clear()
        for one in doubtful:
            other, tied = self._behind[one]
            level, level_behind = self._level(one), self._level(other)
            if level != level_behind if tied else level <= level_behind:
                self._turned.add(self._places[one][0])
        if self._turned:
            return False
        young = self._young_rates()
        for one in doubtful:
            self._watch(one, self._behind[one], young)
        self._until = min(bounds.values(), default=math.inf)
        return True

    def _level(self, index: int) -> float:
        """Return what `FairTree` ranks an association by."""
        above, share, endless = self._places[index]
        if endless:
            return math.inf
        if not share:
            return 0.0
        total = self._book.used_by(above)
        part = self._book.used_by(index) / total if total else 0.0
        return share / part if part else math.inf

    def _pair(self, one: int, mine: _Amount, other: int, behind: _Amount, *, tied: bool) -> float:
        """Return up to which common sum `one` surely stands before `other`, nobody starting."""
        (_, share, endless), (_, share_behind, endless_behind) = self._places[one], self._places[other]
        (used, most, rate), (used_behind, most_behind, rate_behind) = mine, behind
        if not (
            tied
            or endless
            or endless_behind
            or used < _FAINT
            or used_behind < _FAINT
            or not share
            or not share_behind
        ):
            least = share_behind * (1.0 + _ROUNDING)
            room = share * (1.0 - _ROUNDING) * used_behind / least
            if room <= used:
                return -math.inf
            self._room[one] = room
            if most > room:
                return self._book.decayed_sum
            return self._book.decayed_sum + (room - most) / rate if rate else math.inf
        if (used < _FAINT and (used or rate)) or (used_behind < _FAINT and (used_behind or rate_behind)):
            return -math.inf
        # Whoever has ended adds its last piece at the next recalculation.
        for amount, amount_behind, until in (
            (used, used_behind, -math.inf),
            (most, most_behind, self._book.decayed_sum),
        ):
            rung, rung_behind = (
                _rung(share, amount, endless),
                _rung(share_behind, amount_behind, endless_behind),
            )
            if rung == rung_behind == _BETWEEN:
                stands = not (rate or rate_behind) and amount == amount_behind and share == share_behind
            else:
                stands = rung == rung_behind if tied else rung > rung_behind
            if not stands:
                return until
        return math.inf  # as long as nobody starts

    def _amount_of(self, index: int, young: dict[int, float]) -> _Amount:
        """Return what an association has used, and what it adds.

        :param young: what jobs add that have just started, by association.
        """
        book, raw = self._book, self._raw
        entry = book.associations[index]
        rate = entry.rate[raw]
        most = entry.sums[raw] + rate * (book.decayed_sum - entry.mark)
        used = entry.frozen / book.scale if entry.frozen_at == book.ticks else most
        return used, most, rate + young.get(index, 0.0)

    def _young_rates(self) -> dict[int, float]:
        """Return what jobs add that have just started, by association."""
        found: dict[int, float] = {}
        for charge in self._book.young:
            rate = charge.shape.rates[RAW]
            if rate:
                for entry in charge.entries:
                    if entry.index >= 0:
                        found[entry.index] = found.get(entry.index, 0.0) + rate
        return found


def _rung(share: float, used: float, endless: bool) -> int:
    """Return where somebody stands whatever the others have used."""
    return _TOP if endless else _BOTTOM if not share else _TOP if not used else _BETWEEN


__all__ = ["RankGuard"]

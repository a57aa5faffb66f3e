"""Know for sure that nobody has changed rank, without working ranks out anew.

Two siblings change places where their shares over usage cross. Usage that does not decay, but is divided by a common
scale, grows in straight lines; so each pair of neighbours says up to which common sum it surely stands, as long as
nobody starts. Who starts has its own pairs looked at again. `FairTree.factors` says what it comes to without this, and
`tests/test_sure.py` holds one to the other.
"""

from __future__ import annotations

import math

from makeway_slurm.accounts.usage import RAW, UsageBook
from makeway_slurm.multifactor.fair_tree import FairTree

_ROUNDING = 1e-9
_FAINT = 1e-100
"""Less usage than this may vanish altogether."""
_TOP, _BETWEEN, _BOTTOM = 2, 1, 0
"""Where who has used nothing stands, who has, and who has no share."""
_STEEP = 1.05
"""Nothing is sure where usage decays faster in a period."""
_Amount = tuple[float, float]
"""What was used as of the last recalculation, divided by the common scale, and what is added a second."""


class RankGuard:
    """Watches the ranks of one tree, as `FairTree.factors` last found them."""

    def __init__(self, book: UsageBook, fair: FairTree) -> None:
        self._book = book
        self._fair = fair
        self._places = fair.places
        self._raw = book.columns[RAW]
        self._ahead: dict[int, tuple[int, bool]] = {}
        """Who stands next before an association, and whether they are tied."""
        self._behind: dict[int, tuple[int, bool]] = {}
        self._until = -math.inf
        """Up to which common sum ranks stand."""
        self._calm = book.worth <= _STEEP and not book.resets

    def holds(self) -> bool:
        """Whether all ranks of the last recalculation are surely those that were found last."""
        book = self._book
        if book.decayed_sum > self._until:
            return False
        if book.newcomers:
            young = self._young_rates()
            for index in book.newcomers:
                until = self._stands(index, young)
                if until < self._until:
                    self._until = until
            self._take_note()
        return book.decayed_sum <= self._until

    def lasts(self) -> float:
        """Return for how many seconds of growth, of today's worth, ranks surely stand."""
        return max(0.0, (self._until - self._book.decayed_sum) * self._book.scale) if self.holds() else 0.0

    def begin(self) -> None:
        """Watch from now on what `FairTree.factors` has just found."""
        book = self._book
        ticks = book.ticks  # whose last piece counts from the next recalculation on is looked at again then
        book.newcomers = {index for index, entry in book.associations.items() if entry.frozen_at == ticks}
        self._until = -math.inf
        if not self._calm:
            return
        ahead: dict[int, tuple[int, bool]] = {}
        behind: dict[int, tuple[int, bool]] = {}
        self._ahead, self._behind = ahead, behind
        young = self._young_rates()
        until = math.inf
        last, amount = -1, (0.0, 0.0)
        for one, other, tied in self._fair.neighbours():
            behind[one] = other, tied
            ahead[other] = one, tied
            mine = amount if one == last else self._amount_of(one, young)
            last, amount = other, self._amount_of(other, young)
            sure = self._pair(one, mine, other, amount, tied=tied)
            if sure < until:
                until = sure
                if until == -math.inf:
                    break
        self._until = until

    def _take_note(self) -> None:
        """Forget who was looked at, but for those whose last piece counts from the next recalculation on."""
        book = self._book
        entries, ticks = book.associations, book.ticks
        book.newcomers = {index for index in book.newcomers if entries[index].frozen_at == ticks}

    def forget(self) -> None:
        """Be sure of nothing."""
        self._until = -math.inf

    def _stands(self, index: int, young: dict[int, float]) -> float:
        """Return up to which common sum an association stands between its neighbours.

        What it uses more keeps it behind the one before it, unless it had used nothing, or was tied.
        """
        behind, ahead = self._behind.get(index), self._ahead.get(index)
        if behind is None and ahead is None:
            return math.inf
        until = math.inf
        mine = self._amount_of(index, young)
        if behind is not None:
            other, tied = behind
            until = self._pair(index, mine, other, self._amount_of(other, young), tied=tied)
        if ahead is not None and (ahead[1] or mine[0] < _FAINT):
            other, tied = ahead
            until = min(until, self._pair(other, self._amount_of(other, young), index, mine, tied=tied))
        return until

    def _pair(self, one: int, mine: _Amount, other: int, behind: _Amount, *, tied: bool) -> float:
        """Return up to which common sum `one` surely stands before `other`, nobody starting."""
        (_, share, endless), (_, share_behind, endless_behind) = self._places[one], self._places[other]
        (used, rate), (used_behind, rate_behind) = mine, behind
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
            gap = share * (1.0 - _ROUNDING) * used_behind - least * used
            if gap <= 0.0:
                return -math.inf
            return self._book.decayed_sum + gap / (least * rate) if rate else math.inf
        if (used < _FAINT and (used or rate)) or (used_behind < _FAINT and (used_behind or rate_behind)):
            return -math.inf
        level = _TOP if endless else _BOTTOM if not share else _TOP if not used else _BETWEEN
        level_behind = (
            _TOP if endless_behind else _BOTTOM if not share_behind else _TOP if not used_behind else _BETWEEN
        )
        if level != _BETWEEN or level_behind != _BETWEEN:  # for good, as long as nobody starts
            stands = level == level_behind if tied else level > level_behind
            return math.inf if stands else -math.inf
        same = not (rate or rate_behind) and used == used_behind and share == share_behind
        return math.inf if same else -math.inf

    def _amount_of(self, index: int, young: dict[int, float]) -> _Amount:
        """Return what an association has used, and what it adds.

        :param young: what jobs add that have just started, by association.
        """
        book, raw = self._book, self._raw
        entry = book.associations[index]
        rate = entry.rate[raw]
        if entry.frozen_at == book.ticks:
            used = entry.frozen / book.scale
        else:
            used = entry.sums[raw] + rate * (book.decayed_sum - entry.mark)
        return used, rate + young.get(index, 0.0)

    def _young_rates(self) -> dict[int, float]:
        """Return what jobs add that have just started, by association."""
        found: dict[int, float] = {}
        raw = self._raw
        for charge in self._book.young:
            rate = charge.rate_in(raw)
            if rate:
                for entry in charge.entries:
                    if entry.index >= 0:
                        found[entry.index] = found.get(entry.index, 0.0) + rate
        return found


__all__ = ["RankGuard"]

"""Choose victims by shares in a cohort without cohorts whose queues have quota of one pair (kueue 6).

`fair` says what comes out in any tree, and is what the tests hold this against.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.flat import Flat
from makeway_kueue_cohort.flat_search import ByQueue, Line, Search
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.reasons import Reason, Victim
from makeway_kueue_cohort.site import Rule

_Rivals = list[tuple[int, bool, bool, tuple[int, float, str], int, Line]]


def choose(preemptor: Workload, flat: Flat, admitted: ByQueue, books: Books) -> tuple[Victim, ...]:
    """Return the victims, first taken first; empty: nobody can make room."""
    return _ByShares(preemptor, flat, admitted, books).victims()


class _ByShares(Search):
    def victims(self) -> tuple[Victim, ...]:
        """Search with the request counted as used (6.4)."""
        lines = self.lines()
        first, *rest = self.site.rules
        if not lines or not (self._first(lines, first) or (rest and self._second(lines))):
            return ()
        self.give_back()
        return self.found()

    # ----------------------------------------------------------------------------- strategies
    def _first(self, lines: Sequence[Line], rule: Rule) -> bool:
        rivals: _Rivals = []
        for line in lines:
            self._compete(rivals, line, 0)
        while rivals:
            line = heapq.heappop(rivals)[-1]
            if line.mine:
                at, reason = line.at, Reason.IN_QUEUE
            elif self.site.entitlement and self.used + self.asked <= self.me.quota:
                at, reason = line.at, Reason.RECLAMATION
            else:
                at, reason = self._passing(line, rule), Reason.FAIR
            line.at = at + 1
            if at < line.end:
                self.take(line, at, reason)
                if self.fits():
                    return True
                if line.at < line.end:
                    self._compete(rivals, line, line.at)
        return False

    def _second(self, lines: Sequence[Line]) -> bool:
        """Try the first of the candidates that each queue has left; there is no third chance (6.9)."""
        rivals: _Rivals = []
        for line in lines:
            if line.kept >= 0:
                self._compete(rivals, line, line.kept)
        while rivals:
            line = heapq.heappop(rivals)[-1]
            if self._share() < self.flat.share(line.member, line.used):
                self.take(line, line.kept, Reason.FAIR)
                if self.fits():
                    return True
        return False

    def _compete(self, rivals: _Rivals, line: Line, at: int) -> None:
        """Let a queue come next that has the highest share, of equal ones the one whose candidate is first (6.5)."""
        share = self._share() if line.mine else self.flat.share(line.member, line.used)
        if share or line.mine:
            first = line.workloads[at]
            key = (-share, not first.evicted, line.mine, first.rank, line.member.at, line)
            heapq.heappush(rivals, key)

    def _passing(self, line: Line, rule: Rule) -> int:
        """Return the place of the first candidate that passes, those before it are kept; the end: nobody does."""
        asked, start = self._share(), line.at
        if rule is Rule.INITIAL:
            most = line.used if asked < self.flat.share(line.member, line.used) else 0
        elif asked:
            most = line.used - self.flat.used_below(line.member, asked)
        else:
            most = line.used
        at = start
        for size in line.sizes[start : line.end] if most > 0 else ():
            if size <= most:
                break
            at += 1
        else:
            at = line.end
        if at > start and line.kept < 0:
            line.kept = start
        return at

    def _share(self) -> int:
        """Return the share of the preemptor's queue, with the request."""
        return self.flat.share(self.me, self.used + self.asked)

"""Choose victims in the classic way in a cohort without cohorts whose queues have quota of one pair (kueue 5).

`classic` says what comes out in any tree, and is what the tests hold this against. There the one ancestor of all is
the root, so that either all candidates of other queues are hierarchical, or none is (5.2).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.flat import Flat
from makeway_kueue_cohort.flat_search import ByQueue, Line, Search
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.reasons import Reason, Victim

_Next = list[tuple[bool, bool, tuple[int, float, str], int, Line]]


def choose(preemptor: Workload, flat: Flat, admitted: ByQueue, books: Books) -> tuple[Victim, ...]:
    """Return the victims, first taken first; empty: nobody can make room (5.6)."""
    search = _InOrder(preemptor, flat, admitted, books)
    for borrowing in search.attempts():
        if search.attempt(borrowing=borrowing):
            return search.found()
        search = _InOrder(preemptor, flat, admitted, books)
    return ()


class _InOrder(Search):
    def __init__(self, preemptor: Workload, flat: Flat, admitted: ByQueue, books: Books) -> None:
        super().__init__(preemptor, flat, admitted, books)
        queue = preemptor.queue.queue
        assert queue is not None
        self.policy = queue.preemption
        self.by_right = self.used + self.asked <= self.me.quota
        """Whether the queue has room for the request by right, so that it reclaims (5.2)."""

    def attempts(self) -> Sequence[bool]:
        """Return which searches are made, with borrowing or without (5.6)."""
        lines, borrow = self.lines(), self.policy.borrow
        own = sum(sum(line.sizes[: line.end]) for line in lines if line.mine)
        alone = self.used + self.asked - self.me.quota <= own
        """Whether its own quota suffices once all candidates of its own have gone (5.4)."""
        under = self.used < self.me.quota
        if all(line.mine for line in lines) or (not borrow and not under):
            found: tuple[bool, ...] = (True,)
        elif not borrow and not self.by_right:
            found = (False, True) if alone else (True,)
        else:
            found = (True, False) if alone else (True,)
        return found if lines else ()

    def attempt(self, *, borrowing: bool) -> bool:
        """Take until it fits, then give back; say whether it does (5.1)."""
        lines: _Next = []
        for line in self.lines():
            self._stand(lines, line)
        while lines:
            line = heapq.heappop(lines)[-1]
            at, line.at = line.at, line.at + 1
            reason = Reason.IN_QUEUE if line.mine else self._reason(line.workloads[at], borrowing=borrowing)
            if reason is not None and (line.mine or line.used > line.member.quota):
                self.take(line, at, reason)
                if self.fits(borrowing=borrowing):
                    self.give_back(borrowing=borrowing)
                    return True
            self._stand(lines, line)
        return False

    def _stand(self, lines: _Next, line: Line) -> None:
        """Let a queue's next candidate stand in line with those of others, while the queue borrows (4, 5.5)."""
        if line.at < line.end and (line.mine or line.used > line.member.quota):
            each = line.workloads[line.at]
            heapq.heappush(lines, (not each.evicted, line.mine, each.rank, line.member.at, line))

    def _reason(self, candidate: Workload, *, borrowing: bool) -> Reason | None:
        """Return why a candidate of another queue has to leave; None: it is passed over (5.3, 5.5)."""
        if self.by_right:
            return Reason.RECLAMATION
        most = self.policy.max_priority
        over = most is not None and candidate.priority > most
        if not self.policy.borrow or candidate.priority >= self.preemptor.priority or over:
            return None if borrowing else Reason.RECLAMATION
        return Reason.WHILE_BORROWING

"""Choose victims by shares in a cohort without cohorts whose queues have quota of one pair (spec kueue 6).

`fair` says what comes out in any tree, and is what the tests hold this against. Here shares are whole numbers, the
candidates of each queue are in order already, and the books are not touched.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence

import attrs

from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.flat import Flat, Member
from makeway_kueue_cohort.order import Workload, allows
from makeway_kueue_cohort.reasons import Reason, Victim
from makeway_kueue_cohort.site import Pair, Rule, Within
from makeway_kueue_cohort.stock import ordered

ByQueue = Mapping[str, Collection[Workload]]


def flat_of(preemptor: Workload, short: Sequence[Pair], books: Books) -> Flat | None:
    """Return the cohort in which victims can be sought in this way; None: they cannot."""
    parent = preemptor.queue.parent
    if parent is None or books.site.by_local_queue:
        return None
    flat = books.flats.get(parent.name)
    if flat is None or tuple(short) != (flat.pair,) or list(preemptor.uses) != [flat.pair]:
        return None
    return flat


def choose(preemptor: Workload, flat: Flat, admitted: ByQueue, books: Books) -> tuple[Victim, ...]:
    """Return the victims, first taken first; empty: nobody can make room."""
    return _Search(preemptor, flat, admitted, books).victims()


@attrs.define(eq=False)
class _Line:
    """The candidates of one queue, first to lose first, and what the queue uses by now."""

    member: Member
    mine: bool
    used: int
    workloads: Sequence[Workload]
    sizes: Sequence[int]
    end: int
    """How many of these are candidates."""
    at: int = 0
    """How many have been looked at."""
    kept: int = -1
    """The first that was passed over, for the second strategy; -1: nobody was."""


_Taken = tuple[_Line, int, Reason]
_Rivals = list[tuple[int, bool, bool, tuple[int, float, str], int, _Line]]


class _Search:
    def __init__(self, preemptor: Workload, flat: Flat, admitted: ByQueue, books: Books) -> None:
        node, pair = preemptor.queue, flat.pair
        self.preemptor = preemptor
        self.flat = flat
        self.admitted = admitted
        self.site = books.site
        self.asked = preemptor.uses[pair]
        self.me = flat.members[node.name]
        self.used = node.usage.get(pair, 0)
        """What the preemptor's queue uses, the request left out."""
        self.free = flat.quota - flat.root.usage.get(pair, 0)
        """What is left in the cohort."""
        self.taken: list[_Taken] = []

    def victims(self) -> tuple[Victim, ...]:
        """Search with the request counted as used (6.4)."""
        lines = self._lines()
        first, *rest = self.site.rules
        if not lines or not (self._first(lines, first) or (rest and self._second(lines))):
            return ()
        self._give_back()
        return tuple(Victim(line.workloads[at], reason) for line, at, reason in self.taken)

    # ---------------------------------------------------------------------------- candidates
    def _lines(self) -> list[_Line]:
        """Return the queues that have candidates (3.2, 3.3)."""
        queue, pair = self.preemptor.queue.queue, self.flat.pair
        assert queue is not None
        policy, found = queue.preemption, list[_Line]()
        for member in self.flat.members.values():
            mine = member is self.me
            used = member.node.usage.get(pair, 0)
            if mine or used > member.quota:
                line = self._line(member, policy.within_queue if mine else policy.reclaim, used, mine=mine)
                if line.end:
                    found.append(line)
        return found

    def _line(self, member: Member, policy: Within, used: int, *, mine: bool) -> _Line:
        held = self.admitted.get(member.node.name, ()) if policy is not Within.NEVER else ()
        workloads, sizes = ordered(held, self.flat.pair)
        if policy is not Within.ANY and workloads:
            chosen = [at for at, each in enumerate(workloads) if allows(policy, self.preemptor, each)]
            workloads, sizes = [workloads[at] for at in chosen], [sizes[at] for at in chosen]
        return _Line(member, mine, used, workloads, sizes, len(workloads))

    # ----------------------------------------------------------------------------- strategies
    def _first(self, lines: Sequence[_Line], rule: Rule) -> bool:
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
                self._take(line, at, reason)
                if self._fits():
                    return True
                if line.at < line.end:
                    self._compete(rivals, line, line.at)
        return False

    def _second(self, lines: Sequence[_Line]) -> bool:
        """Try the first of the candidates that each queue has left; there is no third chance (6.9)."""
        rivals: _Rivals = []
        for line in lines:
            if line.kept >= 0:
                self._compete(rivals, line, line.kept)
        while rivals:
            line = heapq.heappop(rivals)[-1]
            if self._share() < self.flat.share(line.member, line.used):
                self._take(line, line.kept, Reason.FAIR)
                if self._fits():
                    return True
        return False

    def _compete(self, rivals: _Rivals, line: _Line, at: int) -> None:
        """Let a queue come next that has the highest share, of equal ones the one whose candidate is first (6.5)."""
        share = self._share() if line.mine else self.flat.share(line.member, line.used)
        if share or line.mine:
            first = line.workloads[at]
            key = (-share, not first.evicted, line.mine, first.rank, line.member.at, line)
            heapq.heappush(rivals, key)

    def _passing(self, line: _Line, rule: Rule) -> int:
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

    # ------------------------------------------------------------------------------- the books
    def _take(self, line: _Line, at: int, reason: Reason) -> None:
        self._change(line, -line.sizes[at])
        self.taken.append((line, at, reason))

    def _change(self, line: _Line, by: int) -> None:
        """Count more or less as used; of that, what the queue keeps for itself is not passed up (1.9)."""
        local, before = line.member.local, line.used
        line.used = before + by
        self.free -= max(0, before + by - local) - max(0, before - local)
        if line.mine:
            self.used = line.used

    def _fits(self) -> bool:
        """Whether the request fits, borrowing allowed (1.10, 5.4)."""
        me, over = self.me, max(0, self.used - self.me.local)
        room = self.free if me.limit is None else min(self.free, me.quota - me.local - over + me.limit)
        return self.asked <= max(0, me.local - self.used) + room

    def _give_back(self) -> None:
        """Put back, last but one first, whose leaving is not needed (5.1)."""
        for number in range(len(self.taken) - 2, -1, -1):
            line, at, _ = self.taken[number]
            self._change(line, line.sizes[at])
            if self._fits():
                del self.taken[number]
            else:
                self._change(line, -line.sizes[at])

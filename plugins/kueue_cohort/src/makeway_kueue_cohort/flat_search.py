"""Take victims in a cohort without cohorts whose queues have quota of one pair, with whole numbers (kueue 5, 6).

`fair_flat` and `classic_flat` seek them so. The candidates of each queue are in order already, and the books are not
touched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from makeway_kueue_cohort.books import Books
from makeway_kueue_cohort.flat import Flat, Member
from makeway_kueue_cohort.order import Workload, allows
from makeway_kueue_cohort.reasons import Reason, Victim
from makeway_kueue_cohort.site import Pair, Within
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


@attrs.define(eq=False)
class Line:
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


class Search:
    """What a search has come to."""

    def __init__(self, preemptor: Workload, flat: Flat, admitted: ByQueue, books: Books) -> None:
        """Begin with nobody taken."""
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
        self.taken: list[tuple[Line, int, Reason]] = []

    # ---------------------------------------------------------------------------- candidates
    def lines(self) -> list[Line]:
        """Return the queues that have candidates (3.2, 3.3)."""
        queue, pair = self.preemptor.queue.queue, self.flat.pair
        assert queue is not None
        policy, found = queue.preemption, list[Line]()
        for member in self.flat.members.values():
            mine = member is self.me
            used = member.node.usage.get(pair, 0)
            if mine or used > member.quota:
                line = self._line(member, policy.within_queue if mine else policy.reclaim, used, mine=mine)
                if line.end:
                    found.append(line)
        return found

    def _line(self, member: Member, policy: Within, used: int, *, mine: bool) -> Line:
        held = self.admitted.get(member.node.name, ()) if policy is not Within.NEVER else ()
        workloads, sizes = ordered(held, self.flat.pair)
        if policy is not Within.ANY and workloads:
            chosen = [at for at, each in enumerate(workloads) if allows(policy, self.preemptor, each)]
            workloads, sizes = [workloads[at] for at in chosen], [sizes[at] for at in chosen]
        return Line(member, mine, used, workloads, sizes, len(workloads))

    # ------------------------------------------------------------------------------- the books
    def take(self, line: Line, at: int, reason: Reason) -> None:
        """Take a candidate."""
        self._change(line, -line.sizes[at])
        self.taken.append((line, at, reason))

    def _change(self, line: Line, by: int) -> None:
        """Count more or less as used; of that, what the queue keeps for itself is not passed up (1.9)."""
        local, before = line.member.local, line.used
        line.used = before + by
        self.free -= max(0, before + by - local) - max(0, before - local)
        if line.mine:
            self.used = line.used

    def fits(self, *, borrowing: bool = True) -> bool:
        """Whether the request fits, with borrowing or only of the queue's own (1.10, 5.4)."""
        me, over = self.me, max(0, self.used - self.me.local)
        room = self.free if me.limit is None else min(self.free, me.quota - me.local - over + me.limit)
        fits = self.asked <= max(0, me.local - self.used) + room
        return fits and (borrowing or self.used + self.asked <= me.quota)

    def give_back(self, *, borrowing: bool = True) -> None:
        """Put back, last but one first, whose leaving is not needed (5.1)."""
        for number in range(len(self.taken) - 2, -1, -1):
            line, at, _ = self.taken[number]
            self._change(line, line.sizes[at])
            if self.fits(borrowing=borrowing):
                del self.taken[number]
            else:
                self._change(line, -line.sizes[at])

    def found(self) -> tuple[Victim, ...]:
        """Return who is taken, first taken first."""
        return tuple(Victim(line.workloads[at], reason) for line, at, reason in self.taken)

"""Lead a run through Kueue's passes: who is tried next, in which flavors, at whose cost (kueue 7).

A pass of makeway is as many passes of Kueue as it takes until nobody is left who is worth trying: each tries the head
of every queue. Those are nominated together, on the books as they are when it begins, and tried one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from makeway.model import Blocked, Candidates, ClusterView, Job, JobState, PreemptMode
from makeway_kueue_cohort.books import Node, fits
from makeway_kueue_cohort.flavors import (
    Assignment,
    Grade,
    Mode,
    assign,
    assign_single,
    height_that_fits,
    may_preempt,
    too_much,
)
from makeway_kueue_cohort.passes import Entry, Head, held, in_order, nominate
from makeway_kueue_cohort.reasons import Victim
from makeway_kueue_cohort.rounds import Rounds
from makeway_kueue_cohort.seats import Seat, Seats
from makeway_kueue_cohort.site import Amounts, Sharing, Within
from makeway_kueue_cohort.waiting import Asking
from makeway_kueue_cohort.yard import REASON, Yard, yard_of


@attrs.frozen(eq=False)
class Claim:
    """Quota kept for a job whose victims are leaving (7.4)."""

    job: Job
    node: Node
    plan: Assignment
    victims: tuple[str, ...]


class Turns:
    """What one run has come to in its present pass. A book, so that there is one for each run."""

    def __init__(self, view: ClusterView) -> None:
        """Begin before the first pass."""
        self.yard: Yard = yard_of(view)
        self.claims: dict[str, Claim] = {}
        self._asked: dict[str, tuple[str, ...]] = {}
        """Who has just had others told, and whom."""
        self._rounds = Rounds(self.yard)
        self._cycle: dict[str, tuple[Asking, Entry, int]] = {}
        """Those nominated, with the version of the books at which they were."""
        self._left: Iterator[Entry] = iter(())
        self._current: Asking | None = None
        self._again: set[str] = set()
        """Heads of strict queues that were tried in vain before, and are nominated anew."""
        self._held: list[tuple[Node, Amounts]] = []
        self._vain: dict[str, Entry] = {}
        """What nominating those came to who lacked quota at a glance."""
        self._limit: tuple[Assignment, int, Blocked | None] | None = None
        """The last answer about a limit: for which plan, and at which state of the books."""
        self._sought: tuple[Assignment, int, tuple[Victim, ...]] | None = None
        """The last victims that were sought for a job when its turn had come, likewise."""

    # ------------------------------------------------------------------------------ the roll
    def started(self, job: Job, view: ClusterView) -> None:
        """Keep nothing for a job any more: it has what it asked for."""
        del view
        self._vain.pop(job.id, None)
        self._drop(job.id)
        asking = self.yard.asking(job)
        if asking is not None and self._rounds.first.get(asking.workload.queue.name) is asking:
            del self._rounds.first[asking.workload.queue.name]

    def gone(self, job: Job, view: ClusterView) -> None:
        """Forget a job."""
        del view
        self._vain.pop(job.id, None)

    def left(self, job: Job, view: ClusterView) -> None:
        """Do nothing: claims are looked at when a pass begins."""

    def keep(self, job: Job, uses: Amounts, victims: tuple[str, ...]) -> None:
        """Keep quota for a job until its victims have gone."""
        asking = self.yard.asking(job)
        if asking is not None:
            node = asking.workload.queue
            self.claims[job.id] = Claim(job, node, Assignment(uses, Grade(Mode.RECLAIM)), victims)
            self.yard.books.add(node, uses)
            self.yard.changed()

    def _drop(self, job_id: str) -> None:
        claim = self.claims.pop(job_id, None)
        if claim is not None:
            self.yard.books.take(claim.node, claim.plan.uses)
            self.yard.changed()

    # ------------------------------------------------------------------------------ whose turn
    def next(self, tried: Sequence[Job]) -> tuple[Job, ...]:
        """Return the job to be tried next; empty: the pass is over."""
        if tried:
            self._settle()
        else:
            self._begin()
            self.yard.sort_in()
            if not (self._rounds.all_steady or self.claims) and self.yard.nothing_to_do():
                return ()
        while True:
            for entry in self._left:
                asking, _, _ = self._cycle[entry.head.workload.name]
                if asking.job.id in self._again and not entry.helps:
                    self._waits_on(asking, entry, roomless=False)
                    continue
                self._rounds.tried.add(asking.job.id)
                if asking.job.reason == REASON and self.yard.lacks(asking):
                    self._waits_on(asking, entry, roomless=False)
                    continue
                self._current = asking
                return (asking.job,)
            self._release()
            if not self._nominate():
                self._cycle = {}
                return ()

    def _begin(self) -> None:
        self._release()
        self._current, self._cycle, self._left = None, {}, iter(())
        self._rounds.begin()
        for job_id, claim in list(self.claims.items()):
            waits = claim.job.state is JobState.PENDING
            if not waits or not any(name in self.yard.jobs for name in claim.victims):
                self._drop(job_id)
                asking = self.yard.asking(claim.job)
                if waits and asking is not None:
                    self._rounds.first[claim.node.name] = asking

    def _release(self) -> None:
        """Give back what was kept during a pass of Kueue."""
        if not self._held:
            return
        self.yard.changed()
        for node, amounts in self._held:
            self.yard.books.take(node, amounts)
        self._held = []

    def _settle(self) -> None:
        """See what has become of the job whose turn it was."""
        asking, self._current = self._current, None
        if asking is None:
            return
        job = asking.job
        if job.state is not JobState.PENDING:
            return
        entry = self._cycle[job.id][1]
        name = asking.workload.queue.name
        if self._rounds.first.get(name) is asking:
            del self._rounds.first[name]
        victims = self._asked.pop(job.id, ())
        if victims:
            self.keep(job, entry.assignment.uses, victims)
            return
        self._waits_on(asking, entry, roomless=not self.lacks_quota(asking))

    def _waits_on(self, asking: Asking, entry: Entry, *, roomless: bool) -> None:
        """Put a job aside that was tried in vain, or would be; during this pass of Kueue quota is kept for it."""
        node = asking.workload.queue
        self.yard.put_aside(asking, roomless=roomless)
        assert node.queue is not None
        waits_in_vain = entry.assignment.grade.mode is not Mode.FIT and not entry.victims
        if waits_in_vain and entry.assignment.uses and node.queue.preemption.reclaim is not Within.ANY:
            kept = held(node, entry.assignment)
            self.yard.books.add(node, kept)
            self.yard.changed()
            self._held.append((node, kept))

    def _nominate(self) -> bool:
        """Begin a pass of Kueue with the heads of all queues; say whether there are any."""
        yard = self.yard
        yard.sort_in()
        busy = {claim.node.name for claim in self.claims.values()}
        heads = self._rounds.heads(busy)
        while heads and all(map(self._adds_nothing, heads)):  # such a pass of Kueue changes nothing
            for asking in heads:
                self._rounds.tried.add(asking.job.id)
                yard.put_aside(asking)
            heads = self._rounds.heads(busy)
        if self._rounds.any_calm:
            seats = [
                Seat.of(asking, None if silent else self._entry(asking))
                for asking, silent in self._rounds.in_place(heads)
            ]
            version = yard.version
            self._left = iter(Seats(seats, yard, self._rounds, lambda asking: self._speaks(asking, version)))
            return bool(heads)
        again = [self._entry(asking) for asking in self._rounds.strict(busy)]
        self._again = {entry.head.workload.name for entry in again}
        helped = [
            entry for entry in again if entry.helps and entry.head.workload.name not in self._rounds.tried
        ]
        if not heads and not helped:
            return False
        found = [self._entry(asking) for asking in heads] + (again if heads else helped)
        if len(found) > 1 or (found and found[0].victims):  # else nothing is given back in this pass
            found += [self._entry(asking) for asking in self._rounds.silent()]
        self._left = in_order(found, yard.books)
        return bool(found)

    def _entry(self, asking: Asking) -> Entry:
        entry = self._in_vain(asking) if self.yard.lacks(asking) else None
        if entry is None:
            entry = nominated(asking, self.yard)
        self._cycle[asking.job.id] = (asking, entry, self.yard.version)
        return entry

    def _speaks(self, asking: Asking, version: int) -> Entry:
        """Return what nominating a job came to that lacked quota when this pass of Kueue began."""
        entry = self._in_vain(asking)
        self._cycle[asking.job.id] = (asking, entry, version)
        return entry

    def _adds_nothing(self, asking: Asking) -> bool:
        """Whether a job was told before that it lacks quota, lacks it still, and has none kept for it meanwhile."""
        queue = asking.workload.queue.queue
        assert queue is not None
        keeps = queue.preemption.reclaim is not Within.ANY
        return not keeps and asking.job.reason == REASON and self.yard.lacks(asking)

    def _in_vain(self, asking: Asking) -> Entry:
        """Return what nominating a job comes to of which a glance tells that it lacks quota."""
        assert asking.single is not None
        node, (pair, amount) = asking.workload.queue, asking.single
        fair = self.yard.books.site.sharing is Sharing.FAIR
        seeks = may_preempt(node, pair, amount, fair=fair)
        grade = Grade(Mode.NO_CANDIDATES if seeks else Mode.NO_FIT, height_that_fits(node, pair, amount))
        before = self._vain.get(asking.job.id)
        if before is not None and before.assignment.grade == grade:
            return before
        if not seeks:
            none = Assignment({}, grade, missing=too_much(node, pair, amount), victims=())
            found = self._vain[asking.job.id] = Entry(Head(asking.workload, asking.pod_sets), none, ())
            return found
        chosen = {(asking.pod_sets[0].name, pair[1]): pair[0]}
        plan = Assignment({pair: amount}, grade, (pair,), chosen, victims=())
        found = self._vain[asking.job.id] = Entry(Head(asking.workload, asking.pod_sets), plan, ())
        return found

    # ------------------------------------------------------------------------------ one job
    def plan(self, asking: Asking) -> Assignment:
        """Return the flavors chosen for a job: when it was nominated, or else now."""
        job_id = asking.job.id
        if job_id in self._cycle:
            return self._cycle[job_id][1].assignment
        if job_id in self.claims:
            return self.claims[job_id].plan
        return assign(asking.workload, asking.pod_sets, self.yard.admitted, self.yard.books)

    def limit(self, asking: Asking, gone: Sequence[Job]) -> Blocked | None:
        """Return what keeps a job out once `gone` have left; None: its quota is there."""
        plan, last = self.plan(asking), self._limit
        if last is not None and not gone and last[0] is plan and last[1] == self.yard.stamp:
            return last[2]
        if plan.grade.mode is not Mode.NO_FIT:
            self.yard.plans[asking.job.id] = plan
        found = self._limited(asking, plan, gone)
        self._limit = None if gone else (plan, self.yard.stamp, found)
        return found

    def _limited(self, asking: Asking, plan: Assignment, gone: Sequence[Job]) -> Blocked | None:
        if plan.grade.mode is Mode.NO_FIT:
            return Blocked(reason=REASON, resource="quota", detail=plan.missing)
        given = self._given(asking, gone)
        books, node = self.yard.books, asking.workload.queue
        for queue, uses in given:
            books.take(queue, uses)
        found = None if fits(node, plan.uses) else _blocked(node, plan)
        for queue, uses in given:
            books.add(queue, uses)
        return found

    def _given(self, asking: Asking, gone: Sequence[Job]) -> list[tuple[Node, Amounts]]:
        """Return what a job may use beside what is left: what `gone` hold, and what is kept for itself."""
        yard = self.yard
        without = [each for job in gone if (each := yard.workload(job)) is not None]
        if gone and yard.settings.grace_time:  # without, nobody stays after being told
            without += [each for held in yard.admitted.values() for each in held if each.evicted]
        claim = self.claims.get(asking.job.id)
        given = [(each.queue, each.uses) for each in dict.fromkeys(without)]
        return given + ([(claim.node, claim.plan.uses)] if claim is not None else [])

    def lacks_quota(self, asking: Asking) -> bool:
        """Whether a job lacks quota, for a `limit` that nobody reads."""
        plan, last = self.plan(asking), self._limit
        known = last is not None and last[0] is plan and last[1] == self.yard.stamp
        if known or self.claims or plan.grade.mode is Mode.NO_FIT:
            return self.limit(asking, ()) is not None
        self.yard.plans[asking.job.id] = plan
        return not fits(asking.workload.queue, plan.uses)

    def in_vain(self, job: Job) -> str | None:
        """Return why a job whose turn it is would wait if it were tried; None: others may make way, or it starts."""
        asking = self._current
        if asking is None or asking.job is not job:
            return None
        entry = self._cycle[job.id][1]
        if entry.assignment.grade.mode is Mode.NO_FIT or not self.lacks_quota(asking):
            return None
        return None if any(not each.workload.evicted for each in self.victims(asking)) else REASON

    def victims(self, asking: Asking) -> tuple[Victim, ...]:
        """Return who has to leave for a job; empty: nobody can make room, or nobody has to."""
        yard = self.yard
        known = self._cycle.get(asking.job.id)
        if known is not None and known[2] == yard.version:
            return known[1].victims
        keep, stamp, last = self.plan(asking), yard.stamp, self._sought
        if last is not None and last[0] is keep and last[1] == stamp:
            return last[2]
        found = nominated(asking, yard, keep).victims
        self._sought = (keep, stamp, found)
        return found

    def told(self, preemptor: Job, victims: Sequence[Job]) -> None:
        """Take note of whom a job has had told."""
        self._sought = None  # some of them may be leaving now
        names = tuple(job.id for job in victims)
        self._asked[preemptor.id] = (*self._asked.get(preemptor.id, ()), *names)
        if self.yard.settings.grace_time:
            self.yard.mark_leaving(names)


def turns_of(view: ClusterView) -> Turns:
    """Return the book of this run."""
    return view.book(Turns)


def nominated(asking: Asking, yard: Yard, keep: Assignment | None = None) -> Entry:
    """Choose flavors for a job, and whom it would preempt."""
    if asking.single is not None:
        pod_set = asking.pod_sets[0]
        found = assign_single(asking.workload, pod_set, asking.single[0], yard.admitted, yard.books)
        return Entry(Head(asking.workload, asking.pod_sets), found, found.victims or ())
    return nominate(Head(asking.workload, asking.pod_sets), yard.admitted, yard.books, keep)


def _blocked(node: Node, plan: Assignment) -> Blocked:
    assert node.queue is not None
    for pair, amount in plan.uses.items():
        free = max(0, node.available(pair))
        if amount > free:
            policy = node.queue.preemption
            return Blocked(
                reason=REASON,
                resource="quota",
                wanted=amount / 1000,
                available=free / 1000,
                detail=f"{pair[1]} of flavor {pair[0]}: {amount / 1000:g} wanted, {free / 1000:g} left for {node.name}",
                liftable=policy.within_queue is not Within.NEVER or policy.reclaim is not Within.NEVER,
            )
    return Blocked(reason=REASON, resource="quota")


def candidates(preemptor: Job, view: ClusterView) -> Candidates:
    """Name those who have to leave, as the search of Kueue finds them, each with its reason."""
    turns = turns_of(view)
    asking = turns.yard.asking(preemptor)
    if asking is None or turns.limit(asking, ()) is None:
        return Candidates(note="its quota is there, and quota is all that others are displaced for")
    found = [each for each in turns.victims(asking) if not each.workload.evicted]
    jobs = tuple(turns.yard.jobs[each.workload.name] for each in found)
    return Candidates(
        jobs=jobs,
        modes=tuple(mode_of(job) for job in jobs),
        reasons=tuple(each.reason.line for each in found),
        note="" if jobs else "nobody holds quota that it may preempt or reclaim",
    )


def mode_of(job: Job) -> PreemptMode:
    """Return how a job makes way: its pods are deleted, and it waits again (8.2, 8.3)."""
    return PreemptMode.REQUEUE if job.requeueable else PreemptMode.CANCEL


__all__ = ["REASON", "Turns", "candidates", "mode_of", "nominated", "turns_of"]

"""Lead a run through Kueue's passes: who is tried next, in which flavors, at whose cost (kueue 7).

A pass of makeway is as many passes of Kueue as it takes until no job worth trying is left: each tries the head
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
)
from makeway_kueue_cohort.passes import Entry, Head, held, in_order, nominate
from makeway_kueue_cohort.reasons import Victim
from makeway_kueue_cohort.rounds import Rounds
from makeway_kueue_cohort.site import Amounts, Within
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
        """Which jobs have just had others told, and which others."""
        self._rounds = Rounds(self.yard)
        self._cycle: dict[str, tuple[Asking, Entry, int, int]] = {}
        """Those nominated, with the version of the books then, and how much had been given back in their tree."""
        self._left: Iterator[Entry] = iter(())
        self._current: Asking | None = None
        self._again: set[str] = set()
        """Heads of strict queues that were tried in vain before, and are nominated anew."""
        self._held: list[tuple[Node, Amounts]] = []

    # ------------------------------------------------------------------------------ the roll
    def started(self, job: Job, view: ClusterView) -> None:
        """Keep nothing for a job any more: it has what it asked for."""
        del view
        self._drop(job.id)
        asking = self.yard.asking(job)
        if asking is not None:
            self._rounds.had_turn(asking)

    def gone(self, job: Job, view: ClusterView) -> None:
        """Do nothing: a job that waits has nothing here, and one that is active has left before."""

    def left(self, job: Job, view: ClusterView) -> None:
        """Do nothing: claims are looked at when a pass begins."""

    def keep(self, job: Job, uses: Amounts, victims: tuple[str, ...]) -> None:
        """Keep quota for a job until its victims have gone."""
        asking = self.yard.asking(job)
        if asking is not None:
            node = asking.workload.queue
            self.claims[job.id] = Claim(job, node, Assignment(uses, Grade(Mode.RECLAIM)), victims)
            self.yard.books.add(node, uses)

    def _drop(self, job_id: str) -> None:
        claim = self.claims.pop(job_id, None)
        if claim is not None:
            self.yard.books.take(claim.node, claim.plan.uses)

    # ------------------------------------------------------------------------------ whose turn
    def next(self, tried: Sequence[Job]) -> tuple[Job, ...]:
        """Return the job to be tried next; empty: the pass is over."""
        if tried:
            self._settle()
        else:
            self._begin()
            self.yard.sort_in()
        while True:
            for entry in self._left:
                asking, _, version, _ = self._cycle[entry.head.workload.name]
                if asking.job.id in self._again and not entry.helps:
                    self._waits_on(asking, entry, roomless=False)
                    continue
                self._rounds.tried.add(asking.job.id)
                if self._lacks_as_before(asking, entry, version):
                    self._rounds.had_turn(asking)
                    self._waits_on(asking, entry, roomless=False)
                    continue
                self._current = asking
                return (asking.job,)
            self._release()
            if not self._nominate():
                self._cycle = {}
                return ()

    def _lacks_as_before(self, asking: Asking, entry: Entry, version: int) -> bool:
        """Whether a job was told before that it lacks quota, and nominating it has just said so again."""
        known = version == self.yard.version and not self.claims
        # Each pass of Kueue tries the head of a strict queue again.
        again = self.yard.waiting[asking.workload.queue.name].strict
        return known and not again and not entry.helps and asking.job.reason == REASON

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
        self._rounds.had_turn(asking)
        victims = self._asked.pop(job.id, ())
        if victims:
            self.keep(job, entry.assignment.uses, victims)
            return
        self._waits_on(asking, entry, roomless=self.limit(asking, ()) is None)

    def _waits_on(self, asking: Asking, entry: Entry, *, roomless: bool) -> None:
        """Put a job aside that was tried in vain, or would be; during this pass of Kueue quota is kept for it."""
        node = asking.workload.queue
        self.yard.put_aside(asking, self._cycle[asking.job.id][3], roomless=roomless)
        assert node.queue is not None
        waits_in_vain = entry.assignment.grade.mode is not Mode.FIT and not entry.victims
        if waits_in_vain and entry.assignment.uses and node.queue.preemption.reclaim is not Within.ANY:
            kept = held(node, entry.assignment)
            self.yard.books.add(node, kept)
            self._held.append((node, kept))

    def _nominate(self) -> bool:
        """Begin a pass of Kueue with the heads of all queues; say whether there are any."""
        yard = self.yard
        yard.sort_in()
        busy = {claim.node.name for claim in self.claims.values()}
        heads = self._rounds.heads(busy)
        again = [self._entry(asking) for asking in self._rounds.strict(busy)]
        self._again = {entry.head.workload.name for entry in again}
        helped = [
            entry for entry in again if entry.helps and entry.head.workload.name not in self._rounds.tried
        ]
        if not heads and not helped:
            return False
        found = [self._entry(asking) for asking in heads] + (again if heads else helped)
        self._left = in_order(found, yard.books)
        return bool(found)

    def _entry(self, asking: Asking) -> Entry:
        entry = nominated(asking, self.yard)
        freed = self.yard.freed_for(self.yard.waiting[asking.workload.queue.name])
        self._cycle[asking.job.id] = (asking, entry, self.yard.version, freed)
        return entry

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
        plan = self.plan(asking)
        if plan.grade.mode is Mode.NO_FIT:
            return Blocked(reason=REASON, resource="quota", detail=plan.missing)
        self.yard.plans[asking.job.id] = plan
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
        if gone and yard.settings.grace_time:  # without, no job stays after being told
            without += [each for held in yard.admitted.values() for each in held if each.evicted]
        claim = self.claims.get(asking.job.id)
        given = [(each.queue, each.uses) for each in dict.fromkeys(without)]
        return given + ([(claim.node, claim.plan.uses)] if claim is not None else [])

    def victims(self, asking: Asking) -> tuple[Victim, ...]:
        """Return what has to leave for a job; empty: nothing can make room, or nothing has to."""
        yard = self.yard
        known = self._cycle.get(asking.job.id)
        if known is not None and known[2] == yard.version:
            return known[1].victims
        return nominated(asking, yard, self.plan(asking)).victims

    def told(self, preemptor: Job, victims: Sequence[Job]) -> None:
        """Take note of what a job has had told."""
        names = tuple(job.id for job in victims)
        self._asked[preemptor.id] = (*self._asked.get(preemptor.id, ()), *names)
        if self.yard.settings.grace_time:
            self.yard.mark_leaving(names)


def turns_of(view: ClusterView) -> Turns:
    """Return the book of this run."""
    return view.book(Turns)


def nominated(asking: Asking, yard: Yard, keep: Assignment | None = None) -> Entry:
    """Choose flavors for a job, and what it would preempt."""
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
        note="" if jobs else "no job holds quota that it may preempt or reclaim",
    )


def mode_of(job: Job) -> PreemptMode:
    """Return how a job makes way: its pods are deleted, and it waits again (8.2, 8.3)."""
    return PreemptMode.REQUEUE if job.requeueable else PreemptMode.CANCEL


__all__ = ["REASON", "Turns", "candidates", "mode_of", "nominated", "turns_of"]

"""Say what attempts came to, for records and for people; nothing here changes what is decided."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import attrs

from makeway.model import Blocked, Candidates, Choice, Job, Partition, Placement, PreemptMode
from makeway.record import Decision, Recorder
from makeway.registry import Policies
from makeway_engine.ledger import Ledger
from makeway_engine.making_way import MakingWay
from makeway_engine.placing.order import Order
from makeway_engine.placing.probe import Prober
from makeway_engine.placing.question import Question
from makeway_engine.placing.search import Search


class Telling:
    """Makes decisions of what the four questions came to, where they are wanted."""

    def __init__(
        self,
        ledger: Ledger,
        policies: Policies,
        order: Order,
        prober: Prober,
        search: Search,
        making_way: MakingWay,
        recorder: Recorder,
    ) -> None:
        self._ledger = ledger
        self._order = order
        self._prober = prober
        self._search = search
        self._making_way = making_way
        self._recorder = recorder
        self._by = policies.who("makeway_preempt_candidates")
        self.traces = recorder.traced is not None
        """Whether all attempts of some jobs are kept."""
        self.notes = self.traces or recorder.listens
        """Whether attempts are to be told."""

    def starts(self, job: Job, placement: Placement) -> None:
        """Note that a job starts on what is free."""
        if self.notes and self._recorder.follows(job):
            self._recorder.decided(
                Decision(
                    at=self._ledger.now,
                    job=job.id,
                    partition=job.partition.name,
                    outcome="starts",
                    placement=self._recorder.node_list(placement.allocation.nodes),
                    detail=placement.why,
                )
            )

    def waits(self, job: Job, blocked: Blocked, candidates: Candidates | None, note: str) -> None:
        """Note that a job has to wait."""
        if self.notes and self._recorder.is_news(job, blocked.reason):
            self._recorder.decided(self._decision(job, "waits", blocked, candidates, note))

    def not_tried(self, job: Job, partition: Partition, why: str) -> None:
        """Trace why a job was not tried in this pass; the record takes no note of it."""
        decision = self._decision(job, "waits", Blocked(reason=job.reason, detail=why), None, "")
        self._recorder.trace(attrs.evolve(decision, partition=partition.name))

    def in_vain(self, question: Question, *, preempt: bool) -> None:
        """Trace what the questions would come to for a job that need not be tried; the record takes no note of it."""
        job = question.job
        if not self._recorder.traces(job):
            return
        candidates, note = Candidates(), ""
        if preempt:
            candidates = self._order.candidates(job)
            note = self._why_in_vain(question, candidates)
        told = self._prober.in_full(question, preempt=preempt)
        detail = told.detail if isinstance(told, Blocked) else ""
        blocked = Blocked(reason=candidates.reason or job.reason, detail=detail)
        self._recorder.trace(self._decision(job, "waits", blocked, candidates, note))

    def _why_in_vain(self, question: Question, candidates: Candidates) -> str:
        if not candidates.jobs:
            return ""
        not_for = self._order.not_for(question.job, candidates)
        if not_for:
            return not_for
        answer, _ = self._search.choose(question.job, question.allowed, candidates)
        return "" if isinstance(answer, Choice) else self.why_none(question, candidates, answer)

    def chosen(
        self,
        job: Job,
        choice: Choice,
        candidates: Candidates,
        chosen: Sequence[tuple[Job, PreemptMode]],
        blocked: Blocked,
    ) -> None:
        """Note what a search chose, and whether the victims were told."""
        if not (self.notes and self._recorder.follows(job)):
            return
        if self._making_way.held_back:
            awaited = ", ".join(each.id for each in self._making_way.awaited(job))
            note = "it waits for those that it has had told to leave" + (f": {awaited}" if awaited else "")
            self._recorder.decided(self._decision(job, "waits", blocked, candidates, note))
            return
        taken = tuple((v.id, mode.value) for v, mode in chosen if v.id not in candidates.vacated)
        decision = self._decision(job, "preempts" if taken else "starts", blocked, candidates, "")
        if chosen and not taken:
            names = ", ".join(victim.id for victim, _ in chosen)
            decision = attrs.evolve(decision, detail=f"uses what suspended jobs hold: {names}")
        nodes = self._recorder.node_list(choice.placement.allocation.nodes)
        self._recorder.decided(attrs.evolve(decision, placement=nodes, victims=taken, method=choice.method))

    def why_none(self, question: Question, candidates: Candidates, answer: Choice | Blocked | None) -> str:
        """Return why no victim was found; empty if nothing listens."""
        job = question.job
        if isinstance(answer, Blocked) and answer.detail:
            return answer.detail
        if not (self.notes and self._recorder.follows(job)):
            return ""
        if len(candidates.vacated) == len(candidates.jobs):
            return "what suspended jobs hold would not be enough"
        if self._recorder.traces(job) and self._search.would_help(job, question.allowed, candidates):
            return "the search chose no job, though removing all candidates would make room"
        ledger, why = self._ledger, "removing all candidates would not make room"
        shut = functools.reduce(operator.or_, (each.nodes for each in candidates.jobs)) & ledger.completing
        if not shut:
            return why
        return (
            f"{why} while job {', '.join(ledger.leaving(shut))} is leaving {self._recorder.node_list(shut)}"
        )

    def _decision(
        self, job: Job, outcome: str, blocked: Blocked, candidates: Candidates | None, note: str
    ) -> Decision:
        listed = candidates or Candidates()
        now = self._ledger.now
        if not listed.costs:
            listed = listed.priced(now)
        told = [
            (job.id, mode.value, cost)
            for job, mode, cost in zip(listed.jobs, listed.modes, listed.costs, strict=True)
            if job.id not in listed.vacated
        ]
        return Decision(
            at=now,
            job=job.id,
            partition=job.partition.name,
            outcome=outcome,
            reason=blocked.reason,
            detail="; ".join(part for part in (blocked.detail, listed.note, note) if part),
            candidates=tuple((job_id, mode) for job_id, mode, _ in told),
            costs=tuple(cost for _, _, cost in told),
            vacated=tuple(c.id for c in listed.jobs if c.id in listed.vacated),
            protected=dict(listed.protected),
            by=self._by,
        )

"""Try to start one pending job: the four questions probe, order, search, action (slurm-preemption 0).

Each has a room of its own. An attempt is one `Question`; it goes from room to room and comes back to none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from makeway.model import (
    Blocked,
    Candidates,
    Choice,
    Job,
    Partition,
    Placement,
    PreemptMode,
    Selector,
)
from makeway.partition_bounds import BOUNDS, CONFIG, beyond
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.forgiving import POLICY_ERROR, Forgiveness
from makeway_engine.ledger import SETTLED, Ledger, enter
from makeway_engine.placing.action import Action
from makeway_engine.placing.border import under
from makeway_engine.placing.glance import Glance
from makeway_engine.placing.kept import Kept
from makeway_engine.placing.order import Order
from makeway_engine.placing.probe import Prober
from makeway_engine.placing.question import Outcome, Question, Room, outcome_of
from makeway_engine.placing.search import Search
from makeway_engine.placing.telling import Telling
from makeway_engine.rulings import Rulings
from makeway_engine.transitions import Transitions

_LICENCES = "Licenses"

_NO_LIMITS = BOUNDS.union(SETTLED)
"""Reasons kept behind others that no limit gives."""


class Placer:
    """Tries jobs one by one against the books of a run."""

    def __init__(
        self,
        ledger: Ledger,
        selector: Selector,
        policies: Policies,
        rulings: Rulings,
        transitions: Transitions,
        recorder: Recorder,
        forgiveness: Forgiveness,
        *,
        preemption: bool,
    ) -> None:
        """Be ready for the first attempt.

        :param forgiveness: keeps a run going, where it is on, after a policy has raised.
        """
        self.ledger = ledger
        self.selector = selector
        self.policies = policies
        self.rulings = rulings
        self.transitions = transitions
        self.making_way = transitions.making_way
        self.recorder = recorder
        self.preemption = preemption
        """Whether any job may displace another."""
        self.forgiveness = forgiveness
        self._has_limits = rulings.limited
        self.beyond: dict[str, str] = {}
        """Jobs that wait for good, since their partition's limits are not changed; with the reason."""
        self._nodes_before_licences = ledger.gives_whole_nodes and ledger.rule("nodes_before_licences")
        self.glance = Glance(ledger, selector)
        self.kept = Kept(lambda job: ledger.is_active(job) or transitions.is_leaving(job))
        """What is kept for those that have had others make way."""
        self.order = Order(ledger, policies, rulings)
        self.prober = Prober(ledger, selector, policies, rulings, self.order, self.kept, recorder)
        self.search = Search(ledger, selector, policies, rulings, self.order, self.prober)
        self.telling = Telling(
            ledger, policies, self.order, self.prober, self.search, self.making_way, recorder
        )
        self.action = Action(ledger, policies, transitions, self.kept, self.telling, recorder)

    @property
    def forgives(self) -> bool:
        """Whether a run goes on after a policy has raised."""
        return self.forgiveness.on

    def stop_preemption(self) -> None:
        """Let no job displace another from now on: a policy has failed too often."""
        self.preemption = False

    # -------------------------------------------------------------------------- attempt
    def serve(self) -> None:
        """Try those first whose victims have all gone; what was kept for them is open to all from then on."""
        ledger, claims = self.ledger, len(self.kept.claims)
        due = self.kept.take_due()
        if len(self.kept.claims) < claims:
            ledger.reopened()
        for job, partition in due:
            self.try_start(Question(job, partition, ledger.all_nodes, preempt=False))

    def try_start(self, question: Question) -> Outcome:
        """Try to start a job."""
        job, partition = question.job, question.partition
        if reason := self.out_of_bounds(job, partition):
            return self.wait_beyond(job, partition, reason)
        if not self.forgiveness.on:
            return self._try_start(question)
        outcome = self.forgiveness.run(lambda: self._try_start(question), None, job)
        if outcome is not None:
            if self.preemption and question.preempt:
                self.forgiveness.answered()
            return outcome
        if self.ledger.is_active(job):
            return Outcome.STARTED
        blocked = Blocked(reason=POLICY_ERROR, detail="a policy failed; the record says how")
        return self.action.wait(job, blocked, Outcome.LIMITED)

    def out_of_bounds(self, job: Job, partition: Partition) -> str:
        """Return why a job may never run in one of its partitions, by the bounds of that; empty: it may."""
        found = self.beyond.get(job.id, "") if self.beyond else ""
        if len(job.partitions) > 1:
            return beyond(job, partition) or (found if found == CONFIG else "")
        return found

    def wait_beyond(self, job: Job, partition: Partition, reason: str) -> Outcome:
        """Let a job wait that is beyond the bounds of one of its partitions, as `out_of_bounds` says.

        A limit that is its reason already stays so, or gives way to one of this partition that is looked at before
        nodes (recorded: part_bounds_and_limit). Of any other job the bounds are the reason, whether or not such a limit
        keeps it out here (recorded: part_bounds_before_limit).
        """
        if job.partition is not partition:
            enter(job, partition)
        if (
            len(job.partitions) > 1
            and job.reason in self.ledger.settled_reasons
            and job.reason not in _NO_LIMITS
        ):
            limit = None if self.forgiveness.on else self.ledger.kept_out(job)
            if limit is not None and limit.before_nodes and limit.reason not in BOUNDS:
                return self.action.wait(job, limit, Outcome.LIMITED)
            return Outcome.LIMITED
        return self.action.wait(job, Blocked(reason=reason), Outcome.LIMITED)

    def _try_start(self, question: Question) -> Outcome:
        job = question.job
        if job.partition is not question.partition:
            enter(job, question.partition)
        preempt = self.preemption and question.preempt
        if self._has_limits(job) or not question.limits:
            limit = self.prober.limit(question)
            if limit is not None:
                if limit.depends_on_nodes:
                    return self._as_chosen(question, limit, preempt=preempt)
                if limit.reason == _LICENCES:
                    short = self._without_nodes(question, preempt=preempt)
                    if short is not None:
                        return self.action.wait(job, short, outcome_of(short), note=question.note)
                return self._limited(question, limit, preempt=preempt)
        found = self.prober.ask(question, preempt=preempt)
        if isinstance(found, Placement):
            if found.alternative and preempt:
                return self._preempt_rather(question, found) or self.action.start(job, found)
            return self.action.start(job, found)
        if found.never:
            return self.action.give_up(job, found, by_nodes=True)
        if found.ask_again_at is not None:
            self.making_way.remember(found.ask_again_at)
        if preempt:
            return self._preempt(question, found)
        return self.action.wait(job, found, outcome_of(found), note=question.note)

    def _as_chosen(self, question: Question, limit: Blocked, *, preempt: bool) -> Outcome:
        """Start a job that a limit on nodes keeps out, if it lets in one that gets the nodes chosen for this one.

        Others make way for it, if it keeps to the limit on what they leave (recorded: limit_per_node_preempts).
        """
        job, found = question.job, self.prober.ask(question, preempt=False)
        if isinstance(found, Placement):
            if limit.lets_in(found.allocation.nodes):
                return self.action.start(job, found)
            chosen = found.allocation.nodes.bit_count()
            if chosen > job.size:
                limit = attrs.evolve(limit, detail=f"{limit.detail}; {chosen:,} nodes were chosen for it")
            return self._limited(question, limit, preempt=preempt)
        if job.asked_nodes & self.ledger.completing and limit.lets_in(job.asked_nodes):
            return self.action.wait(
                job, found, outcome_of(found), note="those who make way for it are leaving"
            )
        ignores = limit.counted and self.ledger.rule("node_limits_ignore_victims")
        if limit.allows_fewest and ignores and preempt:
            return self._preempt(question, found)
        if preempt and not limit.liftable and not ignores:
            self.ledger.searches += 1
            outcome = self._preempt_if(question, lambda place: limit.lets_in(place.allocation.nodes), found)
            if outcome is not None:
                return outcome
        if limit.nodes_first or limit.allows_fewest or self._fits_idle(question, limit, found):
            return self.action.wait(job, found, outcome_of(found), note=question.note)
        return self._limited(question, limit, preempt=preempt)

    def _fits_idle(self, question: Question, limit: Blocked, found: Blocked) -> bool:
        """Whether a limit on what a job has on each node would let it in, were all nodes idle that it may use.

        It then waits for nodes, and holds up others as one does that lacks room (recorded: limit_per_node_busy).
        """
        if limit.counted or found.never:
            return False
        nodes = question.allowed & question.partition.nodes & self.ledger.up
        place = self.prober.place_if_idle(question.job, nodes)
        return place is not None and limit.lets_in(place.allocation.nodes)

    def _without_nodes(self, question: Question, *, preempt: bool) -> Blocked | None:
        """Say that a job that lacks licences lacks nodes as well, where these count first; None: there are some.

        Recorded: licences_or_nodes_linear. One that may have others make way is asked about its licences first.
        """
        if not self._nodes_before_licences or (preempt and self.order.candidates(question.job).jobs):
            return None
        found = self.prober.ask(question, preempt=False)
        return found if isinstance(found, Blocked) and not found.never else None

    def stopped(self, question: Question) -> Outcome | None:
        """Let a job wait that a limit keeps out, and say what that comes to; None: none does.

        For jobs that get idle nodes of their own: no choice of these lets a job in that asks for too many.
        """
        limit = self.prober.limit(question)
        return None if limit is None else self._limited(question, limit, preempt=False)

    def _limited(self, question: Question, limit: Blocked, *, preempt: bool) -> Outcome:
        """Go on with a job that a limit keeps out: some limits let it through once others have made way."""
        if limit.ask_again_at is not None:
            self.making_way.remember(limit.ask_again_at)
        if limit.never:
            return self.action.give_up(question.job, limit)
        if limit.liftable and preempt:
            return self._preempt(question, limit)
        return self.action.wait(question.job, limit, Outcome.BUSY if limit.holds_up else Outcome.LIMITED)

    # ----------------------------------------------------------------------- preempting
    def _preempt(self, question: Question, blocked: Blocked) -> Outcome:
        job = question.job
        candidates = self.order.candidates(job)
        if candidates.ask_again_at is not None:
            self.making_way.remember(candidates.ask_again_at)
        unable: frozenset[str] = frozenset()
        for left in range(max(1, candidates.rounds), 0, -1):
            outcome = self._one_round(question, blocked, candidates)
            if outcome is not Outcome.FAILED:
                return outcome
            unable |= {victim.id for victim in self.making_way.unable}
            if job.asked_at == self.ledger.now:
                return Outcome.PREEMPTING  # some are leaving; once they are gone others are sought
            if left > 1:
                candidates = self.order.others(job, unable)
        return self.action.wait(job, blocked, outcome_of(blocked), candidates, "victims could not make way")

    def _one_round(self, question: Question, blocked: Blocked, candidates: Candidates) -> Outcome:
        """Search once, and tell the victims; FAILED: some of them could not make way, others may."""
        job = question.job
        if not candidates.jobs:
            return self.action.wait(job, blocked, outcome_of(blocked), candidates)
        self.ledger.searches += 1
        not_for = self.order.not_for(job, candidates)
        if not_for:
            return self.action.wait(job, blocked, outcome_of(blocked), candidates, not_for)
        choice, unjudged = self.search.choose(job, question.allowed, candidates)
        if not isinstance(choice, Choice):
            note = self.telling.why_none(question, candidates, choice)
            return self.action.wait(job, blocked, outcome_of(blocked), candidates, note)
        room = self.search.room(job, choice, candidates)
        if unjudged:
            limit = self.ledger.kept_out(job, self._without(choice.placement, room, candidates))
            if limit is not None and not (
                limit.depends_on_nodes and limit.lets_in(choice.placement.allocation.nodes)
            ):
                note = "a limit would still keep it out once its victims were gone"
                return self.action.wait(job, limit, Outcome.LIMITED, candidates, note)
        return self.action.take(job, choice, candidates, room, blocked)

    def _without(
        self, placement: Placement, room: Room, candidates: Candidates
    ) -> list[tuple[Job, PreemptMode]]:
        """Return the victims, and those that the arbiter suspends since the job is laid over them."""
        found = list(zip(room.victims, room.modes, strict=True))
        if placement.overlays and self.transitions.gang is not None:
            listed = zip(candidates.jobs, candidates.modes, strict=True)
            below = [each for each, mode in listed if mode is PreemptMode.SUSPEND]
            found += [(each, PreemptMode.SUSPEND) for each in under(placement.allocation, below)]
        return found

    def _preempt_rather(self, question: Question, found: Placement) -> Outcome | None:
        """Have others make way for a feature alternative written before the one that is free (5.0 no. 6).

        :returns: None: only the last alternative may preempt, or the search did not help an earlier one.
        """
        if self.ledger.rule("last_alternative_preempts"):
            return None
        return self._preempt_if(question, lambda place: place.alternative < found.alternative, Blocked())

    def _preempt_if(
        self, question: Question, suits: Callable[[Placement], bool], blocked: Blocked
    ) -> Outcome | None:
        """Have others make way for a job if the place that one search finds suits it; None: none does.

        :param blocked: why it waits until they have left.
        """
        job = question.job
        candidates = self.order.candidates(job)
        if not candidates.jobs or self.order.not_for(job, candidates):
            return None
        choice, _ = self.search.choose(job, question.allowed, candidates)
        if not isinstance(choice, Choice) or not suits(choice.placement):
            return None
        room = self.search.room(job, choice, candidates)
        outcome = self.action.take(job, choice, candidates, room, blocked)
        return None if outcome is Outcome.FAILED else outcome

    # ------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return which jobs wait for good, and where others could never run, for `restore`."""
        jobs = self.ledger.jobs
        beyond = {job_id: reason for job_id, reason in self.beyond.items() if job_id in jobs}
        return {"beyond": beyond, "refusing": self.action.save(), "kept": self.kept.save()}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with what another placer found out."""
        self.beyond = dict(memory["beyond"])
        self.action.restore(memory["refusing"])
        self.kept.restore(memory["kept"], self.ledger.jobs)

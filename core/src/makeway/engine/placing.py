"""Try to start one pending job: the four questions probe, order, search, action (spec slurm-preemption 0)."""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from makeway import bitmap, licences
from makeway.bitmap import NodeBits
from makeway.config import McsTable
from makeway.engine.border import misplaced, overlapping
from makeway.engine.exclusivity import node_filter, wants_user
from makeway.engine.forgiving import POLICY_ERROR, Forgiveness
from makeway.engine.kept import Kept
from makeway.engine.ledger import Ledger, put
from makeway.engine.limited import LIMIT, LimitedAttempt
from makeway.engine.rulings import Rulings
from makeway.engine.transitions import Transitions
from makeway.model import (
    Allocation,
    Attempt,
    Blocked,
    Candidates,
    Choice,
    Job,
    JobState,
    ModeFlag,
    Partition,
    Placement,
    PreemptMode,
    Selector,
)
from makeway.record import Decision, Recorder
from makeway.registry import Policies


class Outcome(enum.Enum):
    """How an attempt ended."""

    STARTED = "started"
    PREEMPTING = "preempting"
    """Others were told to make way; the job starts in a later attempt."""
    BUSY = "busy"
    LIMITED = "limited"
    """A limit or a licence keeps it out; it does not hold up others."""
    NEVER = "never"
    """It cannot run on this cluster at all."""
    FAILED = "failed"
    """Some of its victims could not make way; for the time of one attempt only."""


_STARTED = Outcome.STARTED
_NO_ROOM = Blocked()
"""What is said of a job that a glance shows to have no room."""


class Room(NamedTuple):
    """Where a job could start once its victims were gone."""

    nodes: NodeBits
    victims: Sequence[Job]
    modes: Sequence[PreemptMode]
    reasons: Sequence[str]
    """Why each of them; empty: nobody said."""


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
        *,
        preemption: bool,
    ) -> None:
        self.ledger = ledger
        self.selector = selector
        self.policies = policies
        self.transitions = transitions
        self.rulings = rulings
        self.making_way = transitions.making_way
        self.recorder = recorder
        self.preemption = preemption
        self.forgiveness: Forgiveness | None = None
        """Keeps a run going after a policy has raised; None: its error ends the run."""
        self.kept = Kept(lambda job: ledger.is_active(job) or transitions.is_leaving(job))
        """What is kept for those that have had others make way."""
        self._keeps = transitions.clockwork.keep_freed
        self._limited = rulings.limited
        self._closes = policies.implements("makeway_closed_nodes")
        self.beyond: dict[str, str] = {}
        """Jobs that wait for good, since their partition's limits are not changed; with the reason."""
        self._refusing: dict[str, set[int]] = {}
        """Partitions that could never run a job that waits in several, by their index."""
        self._traces = recorder.traced is not None
        self._notes = self._traces or recorder.listens
        decides = self._closes or policies.implements("makeway_protect") or self._traces
        self.glances = policies.selector_searches and not decides
        """Whether all that decides about a job are its limits, the selector, and whom it may displace."""
        self.kind_of = policies.preemptor_kind(ledger)
        """Tells jobs apart that may displace different others; None: each is asked about by itself."""
        self._by = policies.who("makeway_preempt_candidates")
        self._mcs = ledger.settings(McsTable)
        self._mcs_on = self._mcs.label != "none"
        self._gang = ModeFlag.GANG in ledger.preempt_mode.flags

    # ---------------------------------------------------------------------------- nodes
    def nodes_for(self, job: Job, allowed: NodeBits) -> NodeBits:
        """Return the nodes of `allowed` that `job` may use at this instant, busy or not."""
        ledger = self.ledger
        nodes = allowed & job.partition.nodes & ledger.up & ~(ledger.completing | ledger.exclusive)
        if self.kept:
            nodes &= ~self.kept.from_others(job)
        if ledger.anyone_exclusive or wants_user(job) or self._mcs_on:
            return node_filter(ledger, self._mcs, job, nodes)
        return nodes

    def filter_nodes(self, job: Job, nodes: NodeBits) -> NodeBits:
        """Drop nodes that other users or labels keep from `job`, however soon they may leave."""
        return node_filter(self.ledger, self._mcs, job, nodes)

    def _nodes_with(self, job: Job, allowed: NodeBits, candidates: Sequence[Job]) -> NodeBits:
        """Add the nodes of running candidates that do not share back (spec slurm-preemption 1.10 step 4)."""
        ledger = self.ledger
        nodes = self.nodes_for(job, allowed)
        if len(candidates) == ledger.active_count:
            back = ledger.exclusive
        else:
            back = bitmap.of(
                [
                    index
                    for candidate in candidates
                    if candidate.state is JobState.RUNNING
                    and (allocation := candidate.allocation) is not None
                    and not allocation.shared
                    for index in allocation.node_indices
                ]
            )
        if self.kept:
            back &= ~self.kept.from_others(job)
        return nodes | (back & allowed & job.partition.nodes & ledger.up & ~ledger.completing)

    # -------------------------------------------------------------------------- attempt
    def serve(self) -> None:
        """Try those first whose victims have all gone; what was kept for them is open to all from then on."""
        ledger, claims = self.ledger, len(self.kept)
        due = self.kept.take_due()
        if len(self.kept) < claims:
            ledger.reopened()
        for job, partition in due:
            self.try_start(job, partition, ledger.all_nodes, preempt=False)

    def try_start(
        self,
        job: Job,
        partition: Partition,
        allowed: NodeBits,
        *,
        preempt: bool = True,
        limits: bool = True,
        closes: bool = True,
        note: str = "",
    ) -> Outcome:
        """Try to start `job` in `partition` on nodes of `allowed`.

        :param preempt: whether it may displace others.
        :param limits: whether limits of policies hold.
        :param closes: whether nodes that policies keep for others stay closed to it.
        :param note: what to say beside if it has to wait.
        """
        if self.forgiveness is None:
            return self._try_start(job, partition, allowed, preempt, limits, closes, note)
        blocked = Blocked(reason=POLICY_ERROR, detail="a policy failed; the record says how")
        outcome = self.forgiveness.run(
            lambda: self._try_start(job, partition, allowed, preempt, limits, closes, note), None, job
        )
        if outcome is not None:
            if self.preemption and preempt:
                self.forgiveness.answered()
            return outcome
        return _STARTED if self.ledger.is_active(job) else self._waits(job, blocked, Outcome.LIMITED)

    def _try_start(
        self,
        job: Job,
        partition: Partition,
        allowed: NodeBits,
        preempt: bool,
        limits: bool,
        closes: bool,
        note: str,
    ) -> Outcome:
        if job.partition is not partition:
            put(job, partition=partition)
        if self.beyond and (reason := self.beyond.get(job.id)):
            return self._waits(job, Blocked(reason=reason), Outcome.LIMITED)
        limit = self.ledger.kept_out(job) if limits else self._unlicensed(job)
        if limit is not None:
            if limit.ask_again_at is not None:
                self.making_way.remember(limit.ask_again_at)
            limit = attrs.evolve(limit, resource=LIMIT)
            if limit.never:
                return self._give_up(job, limit)
            if limit.liftable and self.preemption and preempt:
                return self._preempt(job, allowed, limit)
            return self._waits(job, limit, Outcome.LIMITED)
        if preempt and self._is_known_to_wait(job):
            if self.preemption:
                return self._preempt(job, allowed, _NO_ROOM)
            return self._waits(job, _NO_ROOM, Outcome.BUSY)
        closing = closes and self._closes
        closed = self.policies.closed_nodes(job, self.rulings.before, self.ledger) if closing else 0
        found = self._probe_open(job, allowed, closed, over_exclusive=self.preemption and preempt)
        if isinstance(found, Placement):
            if found.alternative and self.preemption and preempt:
                return self._preempt_rather(job, allowed, found) or self._start(job, found)
            return self._start(job, found)
        if not found.never and self.preemption and preempt:
            return self._preempt(job, allowed, found)
        if found.never:
            return self._give_up(job, found)
        return self._waits(job, found, _outcome_of(found), note=note)

    def not_tried(self, job: Job, partition: Partition, why: str) -> None:
        """Note of a job that is watched why it was not tried in this pass."""
        self.recorder.decided(
            Decision(
                at=self.ledger.now,
                job=job.id,
                partition=partition.name,
                outcome="waits",
                reason=job.reason,
                detail=why,
                by=self._by,
            )
        )

    def _is_known_to_wait(self, job: Job) -> bool:
        """Whether a job that found no room before need not be probed: a glance says that there is none now."""
        if job.reason != _NO_ROOM.reason or self._traces or job.spec.licenses:
            return False
        ledger = self.ledger
        if job.required & ledger.completing:
            return False  # a selector may let it have those
        return not self.selector.screen((job,), ledger.up & ~ledger.completing)

    def _unlicensed(self, job: Job) -> Blocked | None:
        """Return which licence a job lacks whose limits do not count: there are no more licences for that."""
        return licences.lacking(job, self.ledger) if job.spec.licenses else None

    def _give_up(self, job: Job, blocked: Blocked) -> Outcome:
        """Refuse a job that could not run on the empty cluster, in whichever of its partitions, as ``sbatch`` does."""
        self._waits(job, blocked, Outcome.NEVER)
        refusing = self._refusing.setdefault(job.id, set())
        refusing.add(job.partition.index)
        if (
            len(refusing) == len({partition.index for partition in job.partitions})
            and job.spec.het_id is None
        ):
            del self._refusing[job.id]
            self.recorder.rejected(job, blocked.detail or blocked.reason, self.ledger.now)
            self.transitions.cancel_pending(job, JobState.FAILED)
        return Outcome.NEVER

    def _probe_open(
        self, job: Job, allowed: NodeBits, closed: NodeBits, *, over_exclusive: bool
    ) -> Placement | Blocked:
        if not closed:
            nodes = self.nodes_for(job, allowed)
            if over_exclusive and self.ledger.exclusive and self._gang:
                # Gang may lay the job over them, so they are among the nodes from the start (1.10 step 4).
                nodes = self._nodes_with(job, allowed, self.candidates(job).jobs)
            return self.probe(self.selector.attempt(job, nodes, self.ledger))
        found = self.probe(self.selector.attempt(job, self.nodes_for(job, allowed & ~closed), self.ledger))
        if isinstance(found, Blocked) and found.never:
            return attrs.evolve(found, never=False)  # the closed nodes may open again
        return found

    def _attempt(self, job: Job, nodes: NodeBits, *, own: bool) -> Attempt:
        """Begin an attempt for a search.

        :param own: whether it is the selector's own search, whose choice limits judge; else they take part in it.
        """
        limited = self._limited(job)
        if (limited or self._closes) and not own:
            closing = self.rulings.before if self._closes else None
            return LimitedAttempt(
                self.selector, self.policies, self.ledger, job, nodes, closing, limits=limited
            )
        if self._closes:
            nodes &= ~self.policies.closed_nodes(job, self.rulings.before, self.ledger)
        return self.selector.attempt(job, nodes, self.ledger)

    def probe(self, attempt: Attempt) -> Placement | Blocked:
        """Ask an attempt whether its job fits, and check the answer."""
        try:
            found: object = attempt.probe()
        except Exception as error:
            raise self.policies.blame("makeway_selector", attempt.job, error) from error
        if isinstance(found, Placement):
            self._check_place(attempt.job, found, "makeway_selector")
        elif not isinstance(found, Blocked):
            text = f"its probe() returned {found!r:.80}; allowed: Placement or Blocked"
            raise self.policies.fault("makeway_selector", attempt.job, text)
        return found

    def _start(self, job: Job, placement: Placement) -> Outcome:
        if self._notes and self.recorder.follows(job):
            self.recorder.decided(
                Decision(
                    at=self.ledger.now,
                    job=job.id,
                    partition=job.partition.name,
                    outcome="starts",
                    placement=self.recorder.node_list(placement.allocation.nodes),
                    detail=placement.why,
                )
            )
        self._check_overlap(job, placement.allocation, "makeway_selector")
        self.start_on(job, placement.allocation)
        return _STARTED

    def start_on(self, job: Job, allocation: Allocation) -> None:
        """Start a job on what was found for it; where one of several licences is enough, with one that is free now."""
        if job.spec.licenses_any and allocation.licenses:
            held = licences.taken_by(job, self.ledger.licenses_free)
            allocation = attrs.evolve(allocation, licenses=held)
        self.transitions.start(job, allocation)

    def _waits(
        self,
        job: Job,
        blocked: Blocked,
        outcome: Outcome,
        candidates: Candidates | None = None,
        note: str = "",
    ) -> Outcome:
        if candidates is not None and candidates.reason and not blocked.liftable:
            blocked = attrs.evolve(blocked, reason=candidates.reason)
        self.ledger.wait_for(job, blocked.reason)
        if self._notes and self.recorder.is_news(
            job,
            blocked.reason,
            candidates=candidates is not None and bool(candidates.jobs),
            protected=candidates is not None and bool(candidates.protected),
        ):
            self.recorder.decided(self._decision(job, "waits", blocked, candidates, note))
        return outcome

    def _decision(
        self, job: Job, outcome: str, blocked: Blocked, candidates: Candidates | None, note: str
    ) -> Decision:
        listed = candidates or Candidates()
        return Decision(
            at=self.ledger.now,
            job=job.id,
            partition=job.partition.name,
            outcome=outcome,
            reason=blocked.reason,
            detail="; ".join(part for part in (blocked.detail, listed.note, note) if part),
            candidates=tuple(
                (c.id, mode.value)
                for c, mode in zip(listed.jobs, listed.modes, strict=True)
                if c.id not in listed.vacated
            ),
            vacated=tuple(c.id for c in listed.jobs if c.id in listed.vacated),
            protected=dict(listed.protected),
            by=self._by,
        )

    # ------------------------------------------------------------------------- preempting
    def _preempt(self, job: Job, allowed: NodeBits, blocked: Blocked) -> Outcome:
        if self.glances and self.kind_of is not None and self.kind_of(job) == ():
            return self._waits(job, blocked, _outcome_of(blocked))  # it displaces nobody, whoever is there
        candidates = self.candidates(job)
        if candidates.ask_again_at is not None:
            self.making_way.remember(candidates.ask_again_at)
        unable: frozenset[str] = frozenset()
        for left in range(max(1, candidates.rounds), 0, -1):
            outcome = self._one_round(job, allowed, blocked, candidates)
            if outcome is not Outcome.FAILED:
                return outcome
            unable |= {victim.id for victim in self.making_way.unable}
            if job.asked_at == self.ledger.now:
                return Outcome.PREEMPTING  # some are leaving; once they are gone others are sought
            if left > 1:
                candidates = _without(self.candidates(job), unable)
        return self._waits(job, blocked, _outcome_of(blocked), candidates, "victims could not make way")

    def _one_round(self, job: Job, allowed: NodeBits, blocked: Blocked, candidates: Candidates) -> Outcome:
        """Search once, and tell the victims; FAILED: some of them could not make way, others may."""
        if not candidates.jobs:
            return self._waits(job, blocked, _outcome_of(blocked), candidates)
        self.ledger.searches += 1
        not_for = self._not_for(job, candidates)
        if not_for:
            return self._waits(job, blocked, _outcome_of(blocked), candidates, not_for)
        choice, unjudged = self._search(job, allowed, candidates)
        if not isinstance(choice, Choice):
            note = self._why_nobody(job, allowed, candidates, choice)
            return self._waits(job, blocked, _outcome_of(blocked), candidates, note)
        room = self._room(job, choice, candidates)
        limit = (
            self.ledger.kept_out(job, tuple(zip(room.victims, room.modes, strict=True))) if unjudged else None
        )
        if limit is not None:
            note = "a limit would still keep it out once its victims were gone"
            return self._waits(job, limit, Outcome.LIMITED, candidates, note)
        return self._take(job, choice, candidates, room, blocked)

    def _search(
        self, job: Job, allowed: NodeBits, candidates: Candidates
    ) -> tuple[Choice | Blocked | None, bool]:
        """Return what the searches say, and whether limits have yet to judge it.

        A victim that may not be displaced once those before it have been is left out, and the search goes on.
        """
        nodes = self._nodes_with(job, allowed, candidates.jobs)
        positions: Sequence[int] = range(len(candidates.jobs))
        left = candidates
        while True:
            choice, unjudged = self.policies.search(
                job, lambda own: self._attempt(job, nodes, own=own), left, self.ledger
            )
            if not isinstance(choice, Choice) or left.allowed_after is None:
                return choice, unjudged
            wrong = self.policies.not_allowed(job, left, choice)
            if wrong is None:
                return attrs.evolve(choice, victims=tuple(positions[at] for at in choice.victims)), unjudged
            positions = [at for at in positions if at != positions[wrong]]
            left = candidates.only(positions)

    def _room(self, job: Job, choice: Choice, candidates: Candidates) -> Room:
        """Return what a search found, once its placement has been looked at."""
        self._check_place(job, choice.placement, "makeway_search")
        listed = choice.victims
        return Room(
            choice.placement.allocation.nodes,
            [candidates.jobs[at] for at in listed],
            choice.modes or [candidates.modes[at] for at in listed],
            choice.reasons or [candidates.reasons[at] for at in listed if candidates.reasons],
        )

    def _why_nobody(
        self, job: Job, allowed: NodeBits, candidates: Candidates, answer: Choice | Blocked | None
    ) -> str:
        """Return why no victim was found, for people; empty if nobody listens."""
        if isinstance(answer, Blocked) and answer.detail:
            return answer.detail
        if not (self._notes and self.recorder.follows(job)):
            return ""
        if len(candidates.vacated) == len(candidates.jobs):
            return "what suspended jobs hold would not be enough"
        if self._traces and self.recorder.traces(job) and self._would_help(job, allowed, candidates):
            return "the search chose nobody, though removing all candidates would make room"
        ledger, why = self.ledger, "removing all candidates would not make room"
        shut = functools.reduce(operator.or_, (each.nodes for each in candidates.jobs)) & ledger.completing
        if not shut:
            return why
        return f"{why} while job {', '.join(ledger.leaving(shut))} is leaving {self.recorder.node_list(shut)}"

    def _would_help(self, job: Job, allowed: NodeBits, candidates: Candidates) -> bool:
        """Whether the job would fit with all candidates gone, whatever the search said; worked out for people."""
        attempt = self._attempt(job, self._nodes_with(job, allowed, candidates.jobs), own=False)
        for candidate, mode in self.policies.together(job, candidates):
            attempt.remove(candidate, mode)
        return isinstance(self.probe(attempt), Placement)

    def _not_for(self, job: Job, candidates: Candidates) -> str:
        """Return why nobody is displaced for what `job` lacks; empty: there is no such reason."""
        limit = self.ledger.kept_out(job) if candidates.not_for else None
        return "" if limit is None else candidates.not_for.get(limit.resource, "")

    def _preempt_rather(self, job: Job, allowed: NodeBits, found: Placement) -> Outcome | None:
        """Have others make way for a feature alternative written before the one that is free (5.0 no. 6).

        :returns: None: only the last alternative may preempt, or the search did not help an earlier one.
        """
        if self.ledger.rule("last_alternative_preempts"):
            return None
        candidates = self.candidates(job)
        if not candidates.jobs or self._not_for(job, candidates):
            return None
        choice, _ = self._search(job, allowed, candidates)
        if not isinstance(choice, Choice) or choice.placement.alternative >= found.alternative:
            return None
        outcome = self._take(job, choice, candidates, self._room(job, choice, candidates), Blocked())
        return None if outcome is Outcome.FAILED else outcome

    def find_room(self, job: Job, allowed: NodeBits) -> Room | None:
        """Say who would have to make way for a job that starts later, with its other components.

        :returns: None if preempting does not help.
        """
        candidates = self.candidates(job)
        if not candidates.jobs or self._not_for(job, candidates):
            return None
        choice, _ = self._search(job, allowed, candidates)
        if not isinstance(choice, Choice):
            return None
        return self._room(job, choice, candidates)

    def candidates(self, job: Job) -> Candidates:
        """Return whom `job` may displace, the protected ones taken out."""
        ledger = self.ledger
        found = self.policies.candidates(job, ledger.active, ledger)
        if not self.rulings.any_protected or not found.jobs:
            return found
        vetoes = self.ledger.protected(job, found.jobs)
        if not vetoes:
            return found
        kept = [at for at, candidate in enumerate(found.jobs) if candidate.id not in vetoes]
        ends = [each.until for each in vetoes.values() if each.until is not None]
        if found.ask_again_at is not None:
            ends.append(found.ask_again_at)
        return attrs.evolve(
            found.only(kept),
            protected={**found.protected, **{job_id: each.reason for job_id, each in vetoes.items()}},
            ask_again_at=min(ends, default=None),
        )

    def _take(
        self,
        job: Job,
        choice: Choice,
        candidates: Candidates,
        room: Room,
        blocked: Blocked,
    ) -> Outcome:
        victims, modes = room.victims, room.modes
        piecemeal = candidates.rounds > 1
        must_wait = self.making_way.tell(
            job, victims, modes, room.reasons, piecemeal=piecemeal, once_more=candidates.while_waiting
        )
        if self._notes and self.recorder.follows(job):
            self._note_choice(job, choice, candidates, list(zip(victims, modes, strict=True)), blocked)
        if piecemeal and self.making_way.unable:
            return Outcome.FAILED
        if must_wait:
            self.ledger.wait_for(job, "Resources")
            if job.asked_at == self.ledger.now:
                put(job, asked_nodes=choice.placement.allocation.nodes)
                if self._keeps:
                    self.kept.keep(job, choice.placement.allocation.nodes, self.making_way.leaving)
            return Outcome.PREEMPTING
        self._check_overlap(job, choice.placement.allocation, "makeway_search")
        self.start_on(job, choice.placement.allocation)
        return _STARTED

    def _note_choice(
        self,
        job: Job,
        choice: Choice,
        candidates: Candidates,
        chosen: Sequence[tuple[Job, PreemptMode]],
        blocked: Blocked,
    ) -> None:
        """Note of a job that is watched what a search chose, and whether the victims were told."""
        if self.making_way.held_back:
            awaited = ", ".join(each.id for each in self.making_way.awaited(job))
            note = "it waits for those that it has had told to leave" + (f": {awaited}" if awaited else "")
            self.recorder.decided(self._decision(job, "waits", blocked, candidates, note))
            return
        taken = tuple((v.id, mode.value) for v, mode in chosen if v.id not in candidates.vacated)
        decision = self._decision(job, "preempts" if taken else "starts", blocked, candidates, "")
        if chosen and not taken:
            names = ", ".join(victim.id for victim, _ in chosen)
            decision = attrs.evolve(decision, detail=f"uses what suspended jobs hold: {names}")
        nodes = self.recorder.node_list(choice.placement.allocation.nodes)
        self.recorder.decided(attrs.evolve(decision, placement=nodes, victims=taken, method=choice.method))

    # --------------------------------------------------------------------------- adoption
    def hand_over(self) -> dict[str, Any]:
        """Return which jobs wait for good, and where others could never run, for `take_over`."""
        jobs = self.ledger.jobs
        refusing = {job_id: sorted(places) for job_id, places in self._refusing.items() if job_id in jobs}
        beyond = {job_id: reason for job_id, reason in self.beyond.items() if job_id in jobs}
        return {"beyond": beyond, "refusing": refusing, "kept": self.kept.hand_over()}

    def take_over(self, memory: Mapping[str, Any]) -> None:
        """Go on with what another placer found out."""
        self.beyond = dict(memory["beyond"])
        self._refusing = {job_id: set(places) for job_id, places in memory["refusing"].items()}
        self.kept.take_over(memory["kept"], self.ledger.jobs)

    # ------------------------------------------------------------------------- the border
    def _check_place(self, job: Job, placement: Placement, hook: str) -> None:
        wrong = misplaced(job, placement, self.ledger, self.recorder.node_list)
        if wrong:
            raise self.policies.fault(hook, job, wrong)

    def _check_overlap(self, job: Job, allocation: Allocation, hook: str) -> None:
        ledger = self.ledger
        if not allocation.nodes & ledger.held or self.transitions.gang is not None:
            return
        wrong = overlapping(job, allocation, ledger)
        if wrong:
            raise self.policies.fault(hook, job, wrong)


def _without(candidates: Candidates, unable: frozenset[str]) -> Candidates:
    """Leave out who has just been unable to make way."""
    kept = [at for at, job in enumerate(candidates.jobs) if job.id not in unable]
    why = dict.fromkeys(sorted(unable), "it could not make way a moment ago")
    return attrs.evolve(candidates.only(kept), protected={**candidates.protected, **why})


def _outcome_of(blocked: Blocked) -> Outcome:
    limited = blocked.resource in (licences.LICENCES, LIMIT)
    return Outcome.LIMITED if limited else Outcome.BUSY

"""Start heterogeneous jobs: all components at once or none (slurm-preemption 5.3 no. 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.model import Allocation, Blocked, Job, JobState, Partition, Placement, PreemptMode
from makeway.record import Decision
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger, enter, put
from makeway_engine.placing import Outcome, Placer, Room
from makeway_engine.placing.question import outcome_of
from makeway_engine.transitions import Transitions


class HetStarter:
    """Plans the components one by one on nodes that the earlier ones do not use."""

    def __init__(self, ledger: Ledger, placer: Placer) -> None:
        self._ledger = ledger
        self._placer = placer
        self.in_order: Callable[[list[Entry]], list[Entry]] = lambda entries: entries
        """Puts entries of the queue in the order in which policies want jobs to be tried."""
        self.planned_licences = ledger.rule("het_starts_without_licences")
        """Whether licences are not looked at once each component was planned by itself."""
        self._short: tuple[str, Blocked] = ("", Blocked())
        """Which component found no room in the last attempt, and what it lacked."""

    def try_start(
        self,
        job: Job,
        partition: Partition,
        allowed: NodeBits,
        *,
        preempt: bool = True,
        fits_plan: Callable[[Sequence[Job]], bool] = lambda _: True,
        licensed: bool = False,
        later: bool = False,
    ) -> Outcome:
        """Try to start all components of the job that `job` belongs to, `job` itself in `partition`.

        `fits_plan` is asked before they start, and may say that the plan of the pass has no room for all of them.
        One that is `licensed` may start without a look at licences; one that may start `later` in the pass waits.
        When others were told to make way, `job.asked_nodes` are the nodes that all of it waits for.
        """
        if job.partition is not partition:
            enter(job, partition)
        components = self._in_queue_order(job)
        if not self.eligible(components):
            return Outcome.BUSY
        if self._never(components):
            return Outcome.NEVER
        plan = self._plan(components, allowed, licensed=licensed)
        if plan is None:
            if not self.eligible(components):
                return Outcome.NEVER
            for part in components:
                if part.reason in ("", "None"):
                    self._ledger.wait_for(part, "Resources")
            if preempt and self._placer.preemption:
                return self._preempt(job, components, allowed)
            self._note_waiting(components)
            return Outcome.BUSY
        if later:
            return Outcome.BUSY
        if not fits_plan(components):
            for part in components:
                self._ledger.wait_for(part, "Resources")
                self._note(
                    part, "waits", 0, "the plan of this pass has no room for its components side by side"
                )
            return Outcome.BUSY
        for part, placement in zip(components, plan, strict=True):
            self._note(part, "starts", placement.allocation.nodes, "with its other components")
            self._placer.action.start_on(part, placement.allocation)
        return Outcome.STARTED

    def _in_queue_order(self, job: Job) -> list[Job]:
        """Return the components as they stand in the queue (recorded: backfill_het_preemptor_first)."""
        queue = self._placer.transitions.queue
        parts = [(part, part.partition) for part in self._ledger.components(job)]
        entries = sorted((queue.place(part, partition), part, partition) for part, partition in parts)
        return [part for _, part, _ in self.in_order(entries)]

    # -------------------------------------------------------------------------- what is told
    def _note(
        self,
        part: Job,
        outcome: str,
        nodes: NodeBits,
        detail: str,
        victims: Sequence[tuple[Job, PreemptMode]] = (),
    ) -> None:
        """Keep what was decided about a component that is watched."""
        recorder = self._placer.recorder
        if not recorder.follows(part):
            return
        recorder.decided(
            Decision(
                at=self._ledger.now,
                job=part.id,
                partition=part.partition.name,
                outcome=outcome,
                reason=part.reason if outcome != "starts" else "",
                detail=detail,
                placement=recorder.node_list(nodes) if nodes else "",
                victims=tuple((victim.id, mode.value) for victim, mode in victims),
            )
        )

    def _note_waiting(self, components: Sequence[Job], why: str = "") -> None:
        short, found = self._short
        text = f"component {short}: {found.detail or found.reason}; components start together"
        for part in components:
            self._note(part, "waits", 0, f"{text}; {why}" if why else text)

    def eligible(self, components: Sequence[Job]) -> bool:
        """Whether nothing but a lack of room keeps the components from starting at this instant."""
        return all(
            part.state is JobState.PENDING
            and part.eligible_at <= self._ledger.now
            and not part.held
            and part.partition.up
            for part in components
        )

    def required_by_others(self, part: Job) -> NodeBits:
        """Return the nodes that other components of its job require: it keeps off them (recorded: het_required)."""
        required: NodeBits = 0
        for other in self._ledger.components(part):
            if other is not part:
                required |= other.required
        return required

    def _never(self, components: Sequence[Job]) -> bool:
        """Whether they could not run on the empty cluster either, alone or side by side.

        Slurm lets those that have no room side by side wait for ever (recorded: Q11); the others are refused.
        """
        reachable: NodeBits = 0
        for part in components:
            impossible = self._placer.selector.possible(part, self._ledger)
            if impossible is not None:
                self._ledger.wait_for(part, impossible.reason)
                self._give_up(components, f"component {part.id}: {impossible.detail or impossible.reason}")
                return True
            reachable |= part.partition.nodes
        size = sum(part.size for part in components)
        if size <= (reachable & self._ledger.up).bit_count():
            return False
        have = reachable.bit_count()
        for part in components:
            self._ledger.wait_for(part, "Resources")
            self._note(
                part,
                "waits",
                0,
                f"its components need {size} nodes side by side; their partitions have {have}",
            )
        return True

    def _give_up(self, components: Sequence[Job], problem: str) -> None:
        """Refuse the whole job, unless it may also be tried in another partition."""
        if all(len(part.partitions) == 1 for part in components):
            refuse(components, problem, self._placer.transitions)

    def _plan(
        self, components: Sequence[Job], allowed: NodeBits, *, licensed: bool = False
    ) -> list[Placement] | None:
        plan: list[Placement] = []
        free = allowed
        for at, part in enumerate(components):
            found = self._probe(part, free, components[:at], licensed=licensed)
            if isinstance(found, Blocked):
                # Only backfill tries components, and it knows no other word for what is short (recorded: het_licences).
                self._ledger.wait_for(part, "Resources" if found.reason == "Licenses" else found.reason)
                self._short = part.id, found
                if found.never:
                    self._give_up(components, f"component {part.id}: {found.detail or found.reason}")
                return None
            plan.append(found)
            free &= ~found.allocation.nodes
        return plan

    def limit(self, part: Job, earlier: Sequence[Job] = ()) -> Blocked | None:
        """Return which limit or licence keeps a component out; None: none does.

        :param earlier: components that start at the same time, and take their licences first.
        """
        found = self._ledger.kept_out(part)
        if found is not None and found.allows_fewest:
            found = None
        if found is None and part.spec.licenses:
            found = licences.lacking(part, self._ledger, _taken(earlier, self._ledger.licenses_free))
        return found

    def _probe(
        self, part: Job, allowed: NodeBits, earlier: Sequence[Job] = (), *, licensed: bool = False
    ) -> Placement | Blocked:
        """Ask limits and selector.

        :param earlier: components that start at the same time, and take their licences first.
        :param licensed: whether it needs no licence now.
        """
        placer = self._placer
        limit = self.limit(part, earlier)
        if limit is not None and not (licensed and limit.resource == licences.LICENCES):
            return limit
        nodes = placer.prober.nodes_for(part, allowed & ~self.required_by_others(part))
        attempt = placer.selector.attempt(part, nodes, self._ledger)
        return placer.prober.look(attempt)

    def _preempt(self, job: Job, components: Sequence[Job], allowed: NodeBits) -> Outcome:
        """Have others make way for the components that do not fit, if that makes room for all of them.

        They start at once if no job has to be waited for, as where others are only suspended.
        """
        free = allowed
        steps: list[_Step] = []
        for at, part in enumerate(components):
            step = self._step(part, free, components[:at])
            if step is None:
                self._note_waiting(components, "having others make way would not help")
                return Outcome.BUSY
            steps.append(step)
            free &= ~step.nodes
        told = [self._tell(step) for step in steps]
        if any(told):
            put(job, asked_nodes=allowed & ~free)
            return Outcome.PREEMPTING
        if any(step.room is not None and step.room.kills for step in steps):
            return Outcome.BUSY
        self._start(steps)
        return Outcome.STARTED

    def start_in_turn(self, job: Job, choice: Mapping[str, NodeBits]) -> Outcome:
        """Start the components of `job` one by one, as Slurm's backfill does once each was planned from now on.

        At the first that cannot start the others are taken back: they wait for as long as a requeued job does, though
        no restart counts. Others make way for this one only (recorded: backfill_het_taken_back). No one looks at
        licences any more: each was planned as if it took its own alone (recorded: backfill_het_licences_twice).

        :param choice: the nodes among which each component may choose, by id: those that could serve it when its start
            was estimated (recorded: backfill_het_memory_of_first_node).
        """
        components = self._in_queue_order(job)
        if not self.eligible(components):
            return Outcome.BUSY
        licensed = self.planned_licences
        taken: NodeBits = 0
        steps: list[_Step] = []
        for at, part in enumerate(components):
            step = self._step(part, choice[part.id] & ~taken, components[:at], licensed=licensed)
            if step is None or (step.room is not None and step.room.kills):
                return self._take_back(components[:at], part, step)
            steps.append(step)
            taken |= step.nodes
        for step in steps:
            self._tell(step)
        self._start(steps)
        return Outcome.STARTED

    def _step(
        self, part: Job, free: NodeBits, earlier: Sequence[Job], *, licensed: bool = False
    ) -> _Step | None:
        """Return where a component can start, once others have made way if need be; None: nowhere.

        :param licensed: whether it may start without a look at licences.
        """
        found = self._probe(part, free, earlier, licensed=licensed)
        if isinstance(found, Placement):
            return _Step(part, found.allocation, None)
        self._short = part.id, found
        if outcome_of(found) is Outcome.LIMITED and not found.liftable:
            return None
        answer = self._placer.search.find_room(part, free & ~self.required_by_others(part))
        return None if answer is None else _Step(part, *answer)

    def _tell(self, step: _Step) -> bool:
        """Have others make way for a component; say whether it has to wait for them."""
        part, room = step.part, step.room
        if room is None:
            return False
        still = [at for at, victim in enumerate(room.victims) if self._ledger.is_active(victim)]
        victims = [room.victims[at] for at in still]
        modes = [room.modes[at] for at in still]
        reasons = [room.reasons[at] for at in still if room.reasons]
        told = self._placer.making_way.tell(part, victims, modes, reasons)
        if told:
            self._note(part, "preempts", room.nodes, "", list(zip(victims, modes, strict=True)))
        return told

    def _start(self, steps: Sequence[_Step]) -> None:
        for step in steps:
            self._note(step.part, "starts", step.nodes, "with its other components")
            self._placer.action.start_on(step.part, step.allocation)

    def _take_back(self, started: Sequence[Job], part: Job, step: _Step | None) -> Outcome:
        """Have others make way for a component that cannot start, and let those that could have wait again."""
        ledger, transitions = self._ledger, self._placer.transitions
        told = step is not None and self._tell(step)
        if step is not None and part.asked_at == ledger.now:
            put(part, asked_nodes=step.nodes)
        ledger.wait_for(part, "Resources")
        if step is None:
            self._note_waiting([part], "having others make way would not help")
        clockwork = transitions.clockwork
        again = clockwork.whole_second(ledger.now) + clockwork.requeue_delay
        for other in started:
            if again > ledger.now:
                transitions.queue.begin_at(other, again, ledger.now)
            text = f"component {part.id} cannot start with it; it is taken back and waits again"
            self._note(other, "waits", 0, text)
        return Outcome.PREEMPTING if told else Outcome.BUSY


class _Step(NamedTuple):
    """Where a component starts, and what makes way for it."""

    part: Job
    allocation: Allocation
    room: Room | None
    """None: it fits beside all that are there."""

    @property
    def nodes(self) -> NodeBits:
        return self.allocation.nodes


def refuse(jobs: Sequence[Job], problem: str, transitions: Transitions) -> None:
    """End pending jobs that can never run, with the reason."""
    for job in tuple(jobs):
        transitions.recorder.rejected(job, problem, transitions.ledger.now)
        transitions.cancel_pending(job, JobState.FAILED)


def _taken(parts: Sequence[Job], free: Mapping[str, int]) -> Mapping[str, int]:
    """Return the licences that components take together."""
    taken: dict[str, int] = {}
    for part in parts:
        left = {name: count - taken.get(name, 0) for name, count in free.items()}
        for name, count in licences.taken_by(part, left).items():
            taken[name] = taken.get(name, 0) + count
    return taken

"""Start heterogeneous jobs: all components at once or none (spec slurm-preemption 5.3 no. 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.engine.ledger import Ledger, put
from makeway.engine.placing import Outcome, Placer, Room
from makeway.engine.transitions import Transitions
from makeway.model import Blocked, Job, JobState, Partition, Placement, PreemptMode
from makeway.record import Decision


class HetStarter:
    """Plans the components one by one on nodes that the earlier ones do not use."""

    def __init__(self, ledger: Ledger, placer: Placer) -> None:
        self._ledger = ledger
        self._placer = placer
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
    ) -> Outcome:
        """Try to start all components of the job that `job` belongs to, `job` itself in `partition`.

        `fits_plan` is asked before they start, and may say that the plan of the pass has no room for all of them.
        When others were told to make way, `job.asked_nodes` are the nodes that all of it waits for.
        """
        if job.partition is not partition:
            put(job, partition=partition)
        components = sorted(self._ledger.components(job), key=_place_in_queue)
        if not self.eligible(components):
            return Outcome.BUSY
        if self._never(components):
            return Outcome.NEVER
        plan = self._plan(components, allowed)
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

    def _plan(self, components: Sequence[Job], allowed: NodeBits) -> list[Placement] | None:
        plan: list[Placement] = []
        free = allowed
        for at, part in enumerate(components):
            found = self._probe(part, free, components[:at])
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

    def _probe(self, part: Job, allowed: NodeBits, earlier: Sequence[Job] = ()) -> Placement | Blocked:
        """Ask limits and selector.

        :param earlier: components that start at the same time, and take their licences first.
        """
        placer = self._placer
        limit = self._ledger.kept_out(part)
        if limit is None and part.spec.licenses:
            limit = licences.lacking(part, self._ledger, _taken(earlier, self._ledger.licenses_free))
        if limit is not None:
            return limit
        nodes = placer.prober.nodes_for(part, allowed & ~self.required_by_others(part))
        attempt = placer.selector.attempt(part, nodes, self._ledger)
        return placer.prober.look(attempt)

    def _preempt(self, job: Job, components: Sequence[Job], allowed: NodeBits) -> Outcome:
        """Have others make way for the components that do not fit, if that makes room for all of them."""
        free = allowed
        wanted: list[tuple[Job, Room]] = []
        for part in components:
            found = self._probe(part, free)
            if isinstance(found, Placement):
                free &= ~found.allocation.nodes
                continue
            room = self._placer.search.find_room(part, free & ~self.required_by_others(part))
            if room is None:
                self._note_waiting(components, "having others make way would not help")
                return Outcome.BUSY
            wanted.append((part, room))
            free &= ~room.nodes
        waits = False
        for part, room in wanted:
            still = [at for at, victim in enumerate(room.victims) if self._ledger.is_active(victim)]
            victims = [room.victims[at] for at in still]
            modes = [room.modes[at] for at in still]
            reasons = [room.reasons[at] for at in still if room.reasons]
            told = self._placer.making_way.tell(part, victims, modes, reasons)
            if told:
                self._note(part, "preempts", room.nodes, "", list(zip(victims, modes, strict=True)))
            waits = waits or told
        if not waits:
            return Outcome.BUSY
        put(job, asked_nodes=allowed & ~free)
        return Outcome.PREEMPTING


def refuse(jobs: Sequence[Job], problem: str, transitions: Transitions) -> None:
    """End pending jobs that can never run, with the reason."""
    for job in tuple(jobs):
        transitions.recorder.rejected(job, problem, transitions.ledger.now)
        transitions.cancel_pending(job, JobState.FAILED)


def _place_in_queue(part: Job) -> tuple[int, int, float, int]:
    return (-part.partition.priority_tier, -part.priority, part.submit_at, part.index)


def _taken(parts: Sequence[Job], free: Mapping[str, int]) -> Mapping[str, int]:
    """Return the licences that components take together."""
    taken: dict[str, int] = {}
    for part in parts:
        left = {name: count - taken.get(name, 0) for name, count in free.items()}
        for name, count in licences.taken_by(part, left).items():
            taken[name] = taken.get(name, 0) + count
    return taken

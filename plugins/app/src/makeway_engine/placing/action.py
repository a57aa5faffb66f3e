"""The fourth question: what follows? The job starts, others make way for it, it waits, or it is given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from makeway import licences
from makeway.model import Allocation, Blocked, Candidates, Choice, Job, JobState, Placement
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.ledger import Ledger, put
from makeway_engine.placing.border import overlapping
from makeway_engine.placing.kept import Kept
from makeway_engine.placing.question import Outcome, Room
from makeway_engine.placing.telling import Telling
from makeway_engine.transitions import Transitions

NOT_AVAILABLE = "ReqNodeNotAvail"
"""Reason of a job that could not run on the nodes that others leave in a pass, or that are in service."""
RESERVED = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"
"""Reason of a job whose nodes are kept for partitions of a higher tier, or of which too few are in service."""
_STARTED = Outcome.STARTED


class Action:
    """Carries out what the other questions came to."""

    def __init__(
        self,
        ledger: Ledger,
        policies: Policies,
        transitions: Transitions,
        kept: Kept,
        telling: Telling,
        recorder: Recorder,
    ) -> None:
        self._ledger = ledger
        self._policies = policies
        self._transitions = transitions
        self._making_way = transitions.making_way
        self._kept = kept
        self._telling = telling
        self._recorder = recorder
        self._keeps = transitions.clockwork.keep_freed
        self._refusing: dict[str, set[int]] = {}
        """Partitions that could never run a job that waits in several, by their index."""

    # ------------------------------------------------------------------------------ start
    def start(self, job: Job, placement: Placement) -> Outcome:
        """Start a job on what is free."""
        if self._telling.notes:
            self._telling.starts(job, placement)
        allocation = placement.allocation
        self.check_overlap(job, allocation, "makeway_selector")
        if job.spec.licenses_any:
            self.start_on(job, allocation)
        else:
            self._transitions.start(job, allocation)
        return _STARTED

    def start_on(self, job: Job, allocation: Allocation) -> None:
        """Start a job on what was found for it; where one of several licences is enough, with one that is free now."""
        if job.spec.licenses_any and allocation.licenses:
            held = licences.taken_by(job, self._ledger.licenses_free)
            allocation = attrs.evolve(allocation, licenses=held)
        self._transitions.start(job, allocation)

    def check_overlap(self, job: Job, allocation: Allocation, hook: str) -> None:
        """See that a job takes no cores of others, unless an arbiter lets them take turns.

        :raises PolicyError: it does.
        """
        ledger = self._ledger
        if not allocation.nodes & ledger.held or self._transitions.gang is not None:
            return
        wrong = overlapping(job, allocation, ledger)
        if wrong:
            raise self._policies.fault(hook, job, wrong)

    # ---------------------------------------------------------------------------- make way
    def take(self, job: Job, choice: Choice, candidates: Candidates, room: Room, blocked: Blocked) -> Outcome:
        """Tell the victims to make way, and start the job unless it has to wait for them.

        :returns: FAILED: some of them could not make way; others may.
        """
        victims, modes = room.victims, room.modes
        making_way, nodes = self._making_way, choice.placement.allocation.nodes
        piecemeal = candidates.rounds > 1
        if self._telling.notes:
            candidates = candidates.priced(self._ledger.now)  # before they are told, and lose it
        must_wait = making_way.tell(
            job, victims, modes, room.reasons, piecemeal=piecemeal, once_more=candidates.while_waiting
        )
        self._telling.chosen(job, choice, candidates, list(zip(victims, modes, strict=True)), blocked)
        if piecemeal and making_way.unable:
            return Outcome.FAILED
        if must_wait:
            self._ledger.wait_for(job, "Resources")
            if job.asked_at == self._ledger.now:
                put(job, asked_nodes=nodes)
                if self._keeps:
                    self._kept.keep(job, nodes, making_way.leaving)
            return Outcome.PREEMPTING
        self.check_overlap(job, choice.placement.allocation, "makeway_search")
        self.start_on(job, choice.placement.allocation)
        return _STARTED

    # -------------------------------------------------------------------------------- wait
    def wait(
        self,
        job: Job,
        blocked: Blocked,
        outcome: Outcome,
        candidates: Candidates | None = None,
        note: str = "",
    ) -> Outcome:
        """Let a job wait, with the reason."""
        if candidates is not None and candidates.reason and not blocked.liftable:
            blocked = attrs.evolve(blocked, reason=candidates.reason)
        if blocked.stays:
            self._ledger.settled_reasons.add(blocked.reason)
        self._ledger.wait_for(job, blocked.reason)
        self._telling.waits(job, blocked, candidates, note)
        return outcome

    def give_up(self, job: Job, blocked: Blocked, *, by_nodes: bool = False) -> Outcome:
        """Refuse a job that could not run on the empty cluster, in whichever of its partitions, as ``sbatch`` does.

        While nodes are out of service that were in service when the run began, it waits: they may come back.

        :param by_nodes: whether it is nodes that it lacks, not what a limit allows.
        """
        if job.partition.nodes & self._ledger.missing:
            return self.wait(job, attrs.evolve(blocked, reason=NOT_AVAILABLE, never=False), Outcome.NEVER)
        if by_nodes and (reason := self._out_of_service(job)):
            detail = f"{reason}: {blocked.detail}" if blocked.detail else reason
            blocked = attrs.evolve(blocked, reason=reason, detail=detail)
        self.wait(job, blocked, Outcome.NEVER)
        refusing = self._refusing.setdefault(job.id, set())
        refusing.add(job.partition.index)
        if (
            len(refusing) == len({partition.index for partition in job.partitions})
            and job.spec.het_id is None
        ):
            del self._refusing[job.id]
            self._recorder.rejected(job, blocked.detail or blocked.reason, self._ledger.now)
            self._transitions.cancel_pending(job, JobState.FAILED)
        return Outcome.NEVER

    def _out_of_service(self, job: Job) -> str:
        """Return what squeue says of a job that would run if all nodes were in service; empty: it would not."""
        ledger, partition = self._ledger, job.partition
        out, up = partition.nodes & ~ledger.up, ledger.up
        ledger.up = ledger.all_nodes
        impossible = self._transitions.selector.possible(job, ledger) if out else None
        ledger.up = up
        if not out or impossible is not None:
            return ""
        if job.required & out or out == partition.nodes:
            return f"{NOT_AVAILABLE},_UnavailableNodes:{self._recorder.node_list(out)}"
        return RESERVED

    # ---------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return in which partitions jobs could never run, for `restore`."""
        jobs = self._ledger.jobs
        return {job_id: sorted(places) for job_id, places in self._refusing.items() if job_id in jobs}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with what another run found out."""
        self._refusing = {job_id: set(places) for job_id, places in memory.items()}

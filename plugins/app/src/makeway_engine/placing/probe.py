"""The first question: does a job fit on what is free (slurm-preemption 0)?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

from makeway import bitmap, licences
from makeway.bitmap import NodeBits
from makeway.config import McsTable
from makeway.model import (
    Attempt,
    Blocked,
    Exclusive,
    Forecast,
    Job,
    JobState,
    ModeFlag,
    Placement,
    PreemptMode,
    Selector,
    Sharing,
    SuspendedBy,
    Window,
)
from makeway.record import Recorder
from makeway.registry import Policies, guarded
from makeway.registry.limits import closed_by, length_of
from makeway_engine.exclusivity import node_filter, wants_user
from makeway_engine.ledger import Ledger
from makeway_engine.placing.border import misplaced
from makeway_engine.placing.kept import Kept
from makeway_engine.placing.limited import LIMIT
from makeway_engine.placing.order import Order
from makeway_engine.placing.question import Question
from makeway_engine.rulings import Rulings

_USER = Exclusive.USER
_NO_ROOM = Blocked()
"""What is said of a job that a glance shows to have no room."""
_MOST_TOLD = 100
"""Answers of policies that are remembered."""


class Prober:
    """Asks limits and selector, and checks what the selector answers."""

    def __init__(
        self,
        ledger: Ledger,
        selector: Selector,
        policies: Policies,
        rulings: Rulings,
        order: Order,
        kept: Kept,
        recorder: Recorder,
    ) -> None:
        self._ledger = ledger
        self._selector = selector
        self._policies = policies
        self._rulings = rulings
        self._order = order
        self._kept = kept
        self._recorder = recorder
        self._closes = policies.closes
        self._windows = policies.limits_say("reservations")
        self._in_sets = policies.in_sets()
        """Tells for which jobs nodes come in sets; None: for none."""
        self._mcs = ledger.settings(McsTable)
        self._mcs_on = self._mcs.label != "none"
        self._takes_completing = getattr(selector, "takes_completing_required", False)
        self._gang = ModeFlag.GANG in ledger.preempt_mode.flags
        self._told: dict[int, tuple[Blocked, Blocked]] = {}
        """By identity: what a policy said, often of many jobs, and what is said of a job for it."""
        self.plain = not (self._closes or self._in_sets is not None or self._gang)
        """Whether a job has all nodes that are open to it, and is asked about once."""
        self._could_run_on: Callable[[Job, NodeBits], bool] | None = getattr(selector, "could_run_on", None)
        """Says whether a job could run on idle nodes; None: the selector does not."""

    # ---------------------------------------------------------------------------- nodes
    def nodes_for(self, job: Job, allowed: NodeBits) -> NodeBits:
        """Return the nodes of `allowed` that `job` may use at this instant, busy or not."""
        ledger = self._ledger
        partition = job.partition
        completing = ledger.completing
        nodes = allowed & partition.nodes & ledger.up & ~(completing | ledger.exclusive)
        if completing and self._takes_completing and job.required & completing:
            nodes |= job.required & completing & allowed & partition.nodes & ledger.up
        if self._kept.claims:
            nodes &= ~self._kept.from_others(job)
        if ledger.anyone_exclusive or self._mcs_on or partition.exclusive_user or job.spec.exclusive is _USER:
            return node_filter(ledger, self._mcs, job, nodes)
        return nodes

    def keeps_apart(self, job: Job) -> bool:
        """Whether other users or labels may keep nodes from `job`."""
        return bool(self._ledger.anyone_exclusive or wants_user(job) or self._mcs_on)

    def filter_nodes(self, job: Job, nodes: NodeBits) -> NodeBits:
        """Drop nodes that other users or labels keep from `job`, however soon they may leave."""
        return node_filter(self._ledger, self._mcs, job, nodes)

    def nodes_with(self, job: Job, allowed: NodeBits, candidates: Sequence[Job]) -> NodeBits:
        """Add the nodes of running candidates that do not share back (slurm-preemption 1.10 step 4)."""
        ledger = self._ledger
        nodes = self.nodes_for(job, allowed)
        if not ledger.exclusive:
            return nodes  # all that run share theirs
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
        if self._kept.claims:
            back &= ~self._kept.from_others(job)
        return nodes | (back & allowed & job.partition.nodes & ledger.up & ~ledger.completing)

    # -------------------------------------------------------------------------- answers
    def limit(self, question: Question) -> Blocked | None:
        """Return the limit that keeps a job out, or the licence that it lacks; None: none does."""
        job = question.job
        if question.limits:
            limit = self._ledger.kept_out(job)
        else:  # the licences are there or not, whatever does not count
            limit = licences.lacking(job, self._ledger) if job.spec.licenses else None
        if limit is None or limit.resource == LIMIT:
            return limit
        known = self._told.get(id(limit))
        if known is not None and known[0] is limit:
            return known[1]
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        told = attrs.evolve(limit, resource=LIMIT)
        self._told[id(limit)] = limit, told
        return told

    def ask(self, question: Question, *, preempt: bool) -> Placement | Blocked:
        """Return where the job fits as things stand, or why it fits nowhere.

        :param preempt: whether others may be displaced for it now.
        """
        job = question.job
        if question.preempt and job.reason == _NO_ROOM.reason and self._is_known_to_wait(job):
            return self._no_room(question, preempt=preempt)
        if self.plain:
            return self._on(job, self.nodes_for(job, question.allowed))
        return self.in_full(question, preempt=preempt)

    def _on(self, job: Job, nodes: NodeBits) -> Placement | Blocked:
        """Ask the selector for a place on some nodes, and check the answer."""
        return self.look(self._selector.attempt(job, nodes, self._ledger))

    def could_run_on(self, job: Job, nodes: NodeBits) -> bool:
        """Whether a job could run on some nodes if no other was there: by the selector's own word, if it has one."""
        if self._could_run_on is not None:
            return bool(guarded(self._policies, "makeway_selector", job, self._could_run_on, job, nodes))
        return self.place_if_idle(job, nodes) is not None

    def place_if_idle(self, job: Job, nodes: NodeBits) -> Placement | None:
        """Return what a job would get of some nodes if no other was there; None: it could not run."""
        attempt = self._selector.attempt(job, nodes, self._ledger)
        gone: set[str] = set()
        for other in self._ledger.active:
            name = other.spec.het_id or other.id  # components are removed together
            if name not in gone and other.suspended_by is not SuspendedBy.ADMIN:
                gone.add(name)
                attempt.remove(other, PreemptMode.CANCEL)
        found = self.look(attempt)
        return found if isinstance(found, Placement) else None

    def _is_known_to_wait(self, job: Job) -> bool:
        """Whether a job that found no room before need not be probed: a glance says that there is none now."""
        if job.spec.licenses:
            return False
        ledger = self._ledger
        if job.required and job.required & ledger.completing:
            return False  # a selector may let it have those
        return not self._selector.screen((job,), ledger.up & ~ledger.completing)

    def _no_room(self, question: Question, *, preempt: bool) -> Blocked:
        """Say only that there is no room; of a traced job, say what it lacks."""
        if not self._recorder.traces(question.job):
            return _NO_ROOM
        found = self.in_full(question, preempt=preempt)
        return attrs.evolve(_NO_ROOM, detail=found.detail) if isinstance(found, Blocked) else _NO_ROOM

    def in_full(self, question: Question, *, preempt: bool) -> Placement | Blocked:
        """Return it without a glance before: what the job lacks as well."""
        job, allowed = question.job, question.allowed
        if self.plain:
            return self._on(job, self.nodes_for(job, allowed))
        closed: NodeBits = 0
        if self._closes and question.closes:
            closed = self._policies.closed_nodes(job, self._rulings.before, self._ledger)
        if not closed:
            nodes = self.nodes_for(job, allowed)
            if preempt and self._ledger.exclusive and self._gang:
                # Gang may lay the job over them, so they are among the nodes from the start (1.10 step 4).
                nodes = self.nodes_with(job, allowed, self._order.candidates(job).jobs)
            return self._in_its_sets(job, nodes)
        found = self._in_its_sets(job, self.nodes_for(job, allowed & ~closed))
        if isinstance(found, Blocked):
            if found.never:  # the closed nodes may open again
                found = attrs.evolve(found, never=False)
            return self._by_windows(job, found) if self._windows else found
        return found

    def _in_its_sets(self, job: Job, nodes: NodeBits) -> Placement | Blocked:
        """Ask the selector for one set of nodes after the other, if a plugin has any."""
        if self._in_sets is None or not self._in_sets(job):
            return self._on(job, nodes)
        sets = self._policies.node_sets(job, nodes, self._ledger)
        blocked = Blocked(detail="none of the sets of nodes that it may use has room")
        for each in sets.sets:
            found = self._on(job, each)
            if isinstance(found, Placement):
                return found
            if each == nodes:
                blocked = found
        return attrs.evolve(blocked, ask_again_at=sets.ask_again_at)

    def _by_windows(self, job: Job, found: Blocked) -> Blocked:
        """Say when a window ends that keeps nodes from a job, and name it where it leaves none."""
        now = self._ledger.now
        windows = [
            each
            for each in self._policies.reservations(job, self._ledger)
            if each.closes(now, length_of(job))
        ]
        ends = [window.end for window in windows if now < window.end < math.inf]
        if found.ask_again_at is not None:
            ends.append(found.ask_again_at)
        again = min(ends, default=None)
        reason = self._reason_of(job, windows)
        if not reason:
            return attrs.evolve(found, ask_again_at=again)
        return attrs.evolve(found, reason=reason, detail=reason, ask_again_at=again)

    def _reason_of(self, job: Job, windows: Sequence[Window]) -> str:
        """Return what a job waits for where windows leave it too few nodes, and none of those is busy."""
        if not any(window.reason for window in windows):
            return ""
        ledger = self._ledger
        left = job.partition.nodes & ledger.up & ~closed_by(windows, ledger.now, length_of(job))
        busy = ledger.completing | (~ledger.idle if job.spec.exclusive else ledger.exclusive)
        if _shares(job):
            busy &= bitmap.of(
                index
                for index in bitmap.indices(left & busy)
                if not all(_shares(other) for other in ledger.jobs_on(index))
            )
        if left & busy or (left.bit_count() >= job.size and self.could_run_on(job, left)):
            return ""
        return next(window.reason for window in windows if window.reason)

    def kept_by_windows(self, job: Job) -> str:
        """Return the pending reason of a job to which windows leave too few nodes; empty: it waits for others.

        It waits for resources as long as a node that it is left is in use, if it cannot share that (recorded:
        resv_idle_but_few, resv_partly_used, resv_too_few_cpus).
        """
        if not self._windows:
            return ""
        windows = self._policies.reservations(job, self._ledger)
        return self._reason_of(
            job, [each for each in windows if each.closes(self._ledger.now, length_of(job))]
        )

    # ------------------------------------------------------------------------ looking ahead
    def forecast(
        self, job: Job, nodes: NodeBits, removable: Sequence[tuple[Job, PreemptMode]] = ()
    ) -> Forecast | None:
        """Say when a job could start on `nodes`, in one of the sets of nodes that it may use; None: it could not."""
        ledger = self._ledger
        if self._in_sets is None or not self._in_sets(job):
            return self._selector.forecast(job, nodes, ledger, removable)
        sets = self._policies.node_sets(job, nodes, ledger).sets
        if nodes in sets:  # where it will lie once it starts does not count yet
            return self._selector.forecast(job, nodes, ledger, removable)
        every = (self._selector.forecast(job, each, ledger, removable) for each in dict.fromkeys(sets))
        return min((found for found in every if found is not None), key=lambda each: each.at, default=None)

    def forecast_between(self, job: Job, nodes: NodeBits) -> Forecast | None:
        """Say the same of a job that has to keep clear of windows."""
        if not self._windows:
            if self._in_sets is None or not self._in_sets(job):
                return self._selector.forecast(job, nodes, self._ledger, ())
            return self.forecast(job, nodes)
        now, length = self._ledger.now, length_of(job)
        windows = self._policies.reservations(job, self._ledger)
        for start in sorted({now, *(each.end for each in windows if now < each.end < math.inf)}):
            found = self.forecast(job, nodes & ~closed_by(windows, start, length))
            if found is None:
                continue
            at = max(found.at, start)
            if not closed_by(windows, at, length) & found.nodes:
                return attrs.evolve(found, at=at)
        return None

    def look(self, attempt: Attempt) -> Placement | Blocked:
        """Ask an attempt whether its job fits, and check the answer."""
        try:
            found: object = attempt.probe()
        except Exception as error:
            raise self._policies.blame("makeway_selector", attempt.job, error) from error
        if isinstance(found, Placement):
            self.check(attempt.job, found, "makeway_selector")
        elif not isinstance(found, Blocked):
            text = f"its probe() returned {found!r:.80}; allowed: Placement or Blocked"
            raise self._policies.fault("makeway_selector", attempt.job, text)
        return found

    def check(self, job: Job, placement: Placement, hook: str) -> None:
        """Check a placement by itself.

        :raises PolicyError: it is none.
        """
        wrong = misplaced(job, placement, self._ledger, self._recorder.node_list)
        if wrong:
            raise self._policies.fault(hook, job, wrong)


def _shares(job: Job) -> bool:
    """Whether a job offers to share its nodes, where the partition has it share."""
    sharing = job.partition.oversubscribe.sharing
    return sharing is Sharing.FORCE or (sharing is Sharing.YES and job.spec.oversubscribe)

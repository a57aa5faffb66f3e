"""Plan heterogeneous jobs in a pass of backfill: component by component, and started together
(slurm-preemption 5.3, slurm-gang-and-select 5.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.licences import LICENCES
from makeway.model import Forecast, Job, JobState, Partition, Seconds
from makeway_backfill.plan import Plan
from makeway_engine.entries import Entry
from makeway_engine.ledger import enter
from makeway_engine.placing import Outcome
from makeway_engine.schedulers.common import Attempts


class Planner(Protocol):
    """What is asked about a component as about any job (`makeway_backfill.scheduler.Backfill`)."""

    def length(self, job: Job, standby: bool = False) -> Seconds:
        """Return how long a job counts on its nodes."""

    def around(self, job: Job, plan: Plan, length: Seconds) -> Plan:
        """Return the plan as a job sees it that has to keep clear of windows."""

    def promise(self, job: Job, plan: Plan, at: Seconds, length: Seconds, nodes: NodeBits) -> None:
        """Keep nodes for a job from `at` on."""

    def earliest(
        self, job: Job, partition: Partition, plan: Plan, length: Seconds, after: Seconds = 0.0
    ) -> tuple[Seconds, Forecast, NodeBits] | None:
        """Find when and where a job could start at the earliest; also the nodes it may choose from."""

    def forecast(self, job: Job, nodes: NodeBits) -> Forecast | None:
        """Return when a job could start on `nodes`."""


class HetPlans:
    """The heterogeneous jobs of a run's passes."""

    def __init__(self, attempts: Attempts, clockwork: Clockwork, planner: Planner) -> None:
        """Begin before the first pass."""
        self._attempts = attempts
        self._ledger = attempts.ledger
        self._clockwork = clockwork
        self._planner = planner
        self._together = attempts.ledger.rule("het_planned_together")
        self._licence_first = attempts.ledger.rule("het_needs_licence_for_plan")
        self._in_turn = attempts.ledger.rule("het_starts_in_turn")
        self._last = self._in_turn and attempts.ledger.rule("het_starts_last")
        self._ready: list[tuple[Job, dict[str, NodeBits]]] = []
        """Heterogeneous jobs that start when the pass is over, and the nodes among which each component may choose."""
        self._last_of: dict[str, Seconds] = {}
        """Id of a heterogeneous job -> when the last of its components planned so far in this pass could start."""
        self._apart: dict[str, str] = {}
        """Heterogeneous jobs between whose components others stand in the queue -> the last component."""
        self._nodes_now: dict[str, NodeBits | None] = {}
        """Id of such a job -> nodes on which those planned so far could start now; None: one of them could not."""
        self._turns: dict[str, tuple[int, NodeBits, dict[str, NodeBits]]] = {}
        """Id of a heterogeneous job -> components yet to be planned in this pass, nodes that were open to all, and
        those among which the planned ones may choose, by component."""

    def begin(self) -> None:
        """Begin a pass."""
        self._last_of.clear()
        self._nodes_now.clear()
        self._turns.clear()
        self._ready.clear()

    def sort(self, entries: Sequence[Entry]) -> None:
        """Look at what stands between the components of a job, in the order of a pass."""
        self._apart = {} if self._last else _parted(entries)

    def start(self) -> None:
        """Start those that were put off to the end of a pass."""
        for job, choice in self._ready:
            self._attempts.het.start_in_turn(job, choice)

    def plan_for(
        self, job: Job, partition: Partition, plan: Plan, handled: set[str], whole: set[str]
    ) -> None:
        """Start all components at the first one's turn, or promise each nodes of its own at its own turn.

        If others stand between the components in the queue, those are promised nodes before the last component is: all
        start at its turn, if each could start by the plan then (recorded: backfill_het_other_between).

        :param whole: ids of the heterogeneous jobs that were tried in this pass; changed.
        """
        components = self._ledger.components(job)
        handled.add(job.id)
        now = self._ledger.now
        het_id = job.spec.het_id or job.id
        if self._in_turn and not self._attempts.het.eligible(components):
            pass  # those that may start are planned, and wait for the others (recorded: backfill_het_taken_back)
        elif het_id in self._apart:
            if not self._attempts.het.eligible(components):
                handled.update(part.id for part in components)
                return
        elif het_id not in whole:
            whole.add(het_id)
            length = max(self._planner.length(part) for part in components)
            open_now = plan.available(now, now + length)
            outcome = self._attempts.het.try_start(
                job,
                partition,
                open_now,
                preempt=not self._in_turn,
                fits_plan=lambda parts: self._side_by_side(parts, open_now),
                later=self._last,
            )
            if outcome is Outcome.PREEMPTING:
                plan.promise(now, now + length, job.asked_nodes)
            # One without room side by side is planned too: it keeps nodes from others for good.
            waits = outcome in (Outcome.BUSY, Outcome.NEVER) and job.state is JobState.PENDING
            if not waits or not self._attempts.het.eligible(components):
                handled.update(part.id for part in components)
                return
            if self._in_turn and outcome is Outcome.BUSY:
                self._turns[het_id] = len(components), open_now, {}
        enter(job, partition)
        length = self._planner.length(job)
        last = self._last_of.get(het_id, 0.0)
        own = self._planner.around(job, plan, length)
        nothing = last > plan.horizon or self._lacks_licence(job)
        found = None if nothing else self._planner.earliest(job, partition, own, length, last)
        if found is not None:
            at, forecast, _ = found
            self._planner.promise(job, plan, at, length, forecast.nodes)
        if self._together:
            # Behind a component without a place in the plan the others get none (recorded: backfill_het_first_never).
            self._last_of[het_id] = math.inf if found is None else max(found[0], last)
        if het_id in self._apart:
            ready = self._nodes_now.get(het_id, 0)
            could = found[1].nodes if found is not None and found[0] <= now else None
            self._nodes_now[het_id] = None if ready is None or could is None else ready | could
            if job.id == self._apart[het_id]:
                self._start_apart(job, partition, plan, self._nodes_now[het_id])
        elif het_id in self._turns:
            left, open_now, choice = self._turns.pop(het_id)
            if found is not None and found[0] <= now and self._may_start(job, found[1].nodes):
                if self._last:
                    unfit = found[2] & ~found[1].eligible if found[1].eligible else 0
                    choice[job.id] = self._clear_of_windows(job, length) & ~unfit
                else:
                    choice[job.id] = open_now & (found[1].eligible or open_now)
                if left == 1 and self._last:
                    self._ready.append((job, choice))
                elif left == 1:
                    self._attempts.het.start_in_turn(job, choice)
                else:
                    self._turns[het_id] = left - 1, open_now, choice

    def _clear_of_windows(self, job: Job, length: Seconds) -> NodeBits:
        """Return the nodes that no window keeps from a component, whatever is promised of them."""
        ledger = self._ledger
        plan = Plan(ledger.now, self._clockwork.bf_window, ledger.up, self._clockwork.bf_resolution)
        return self._planner.around(job, plan, length).available(ledger.now, ledger.now + length)

    def _lacks_licence(self, job: Job) -> bool:
        """Whether no nodes are kept for a component since a licence is missing (recorded: backfill_het_licence)."""
        if not self._licence_first:
            return False
        limit = self._attempts.het.limit(job)
        return limit is not None and limit.resource == LICENCES

    def _may_start(self, job: Job, nodes: NodeBits) -> bool:
        """Whether a component may start on the nodes estimated for it: they are clean, and no limit keeps it out."""
        return not nodes & self._ledger.completing and self._attempts.het.limit(job) is None

    def _start_apart(self, job: Job, partition: Partition, plan: Plan, nodes: NodeBits | None) -> None:
        """Start all components of a job, each of which has been planned at its own turn; `job` was the last.

        :param nodes: what they were promised from now on; None: one of them has to wait.
        """
        now = self._ledger.now
        waits = nodes is None
        open_now = plan.available(now, now) if nodes is None else nodes
        het = self._attempts.het
        het.try_start(
            job,
            partition,
            open_now,
            preempt=not waits,
            fits_plan=lambda _: not waits,
            licensed=het.planned_licences and not waits,
        )

    def _side_by_side(self, components: Sequence[Job], nodes: NodeBits) -> bool:
        """Whether estimates give each component nodes at once that the ones before it leave.

        They give it as many as it can use (recorded: backfill_het_takes_all), where a start makes do with fewer.
        """
        now = self._ledger.now
        for part in components:
            usable = nodes & part.partition.nodes & ~self._attempts.het.required_by_others(part)
            found = self._planner.forecast(part, usable)
            if found is None or found.at > now:
                return False
            nodes &= ~found.nodes
        return True


def _parted(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the heterogeneous jobs between whose components others stand, each with its last component."""
    turns: dict[str, dict[str, int]] = {}
    for at, (_, job, _) in enumerate(entries):
        if job.spec.het_id is not None:
            turns.setdefault(job.spec.het_id, {}).setdefault(job.id, at)
    found = {}
    for het_id, places in turns.items():
        first, last = min(places.values()), max(places.values())
        if any(entries[at][1].spec.het_id != het_id for at in range(first, last)):
            found[het_id] = max(places, key=places.__getitem__)
    return found

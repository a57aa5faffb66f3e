"""Backfill as Slurm does it: a plan of whole-node reservations, rebuilt in every pass (spec slurm-preemption 5.3,
slurm-gang-and-select 5.4).

Node availability over time is a list of records (begin, nodes); running jobs are not in it, since the
selector's forecast accounts for them.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.engine.ledger import put
from makeway.engine.placing import Outcome, Question
from makeway.engine.schedulers.common import Attempts
from makeway.model import Candidates, Forecast, Job, JobState, Partition, PreemptMode, Seconds, Window
from makeway.registry.room import YEAR

_TINY = 1e-6
_STANDBY_LIMIT: Seconds = 60.0
"""Limit assumed for jobs of a NoReserve QOS while preemption is on (slurm-preemption 5.3 no. 7)."""


class Skipping:
    """Passes over instants at which too few nodes are free, or will be before a job that starts then is over."""

    def __init__(self, begins: Sequence[Seconds], bad: Sequence[int]) -> None:
        self._begins = begins
        self._bad = bad
        """By record: the last one up to it with too few nodes; -1: none."""

    def first_from(self, start: Seconds, length: Seconds) -> Seconds | None:
        """Return the first instant from `start` on that is worth a look; None: there is none."""
        begins = self._begins
        while True:
            over = self._bad[bisect.bisect_right(begins, start + length + _TINY) - 1]
            if over < max(0, bisect.bisect_right(begins, start) - 1):
                return start
            if over + 1 == len(begins):
                return None
            start = begins[over + 1]


class Plan:
    """Which nodes are promised when."""

    def __init__(self, now: Seconds, horizon: Seconds, nodes: NodeBits, grain: Seconds) -> None:
        self._grain = grain
        self._origin = now
        self.begins: list[Seconds] = [now]
        self.free: list[NodeBits] = [nodes]
        self.horizon = now + horizon

    def available(self, start: Seconds, end: Seconds) -> NodeBits:
        """Return the nodes that nobody was promised at any instant from `start` to `end`.

        A promise that begins at the very end counts: Slurm keeps a job from ending in the second in which another
        is to start (recorded: backfill_ends_as_other_begins).
        """
        begins, free = self.begins, self.free
        end += _TINY
        at = max(0, bisect.bisect_right(begins, start) - 1)
        nodes = free[at] if begins[at] <= end else -1
        at += 1
        while at < len(begins) and begins[at] <= end:
            nodes &= free[at]
            at += 1
        return nodes

    def skipping(self, nodes: NodeBits, least: int) -> Skipping:
        """Return what finds the instants from which on at least so many of `nodes` might stay free for a while."""
        last, bad = -1, []
        for at, free in enumerate(self.free):
            if (free & nodes).bit_count() < least:
                last = at
            bad.append(last)
        return Skipping(self.begins, bad)

    def next_begin(self, start: Seconds) -> Seconds | None:
        """Return the next instant after `start` at which the promises change."""
        at = bisect.bisect_right(self.begins, start)
        return self.begins[at] if at < len(self.begins) else None

    def collides(self, start: Seconds, end: Seconds, nodes: NodeBits) -> Seconds | None:
        """Return the end of the first record that lacks some of `nodes` in that time; None: none does."""
        begins, free = self.begins, self.free
        at = max(0, bisect.bisect_right(begins, start) - 1)
        while at < len(begins) and begins[at] < end:
            if nodes & ~free[at]:
                return begins[at + 1] if at + 1 < len(begins) else math.inf
            at += 1
        return None

    def promise(self, start: Seconds, end: Seconds, nodes: NodeBits) -> None:
        """Promise whole nodes, from `start` rounded down to `end` rounded up, both to full grains of the clock.

        The clock of backfill counts full seconds: what starts within one ends within one (recorded:
        backfill_sharer_as_if_alone).
        """
        grain = self._grain
        first = math.floor(start / grain + _TINY) * grain
        last = math.ceil((math.floor(start + _TINY) + end - start) / grain - _TINY) * grain
        begun, over = self._cut(max(first, self._origin)), self._cut(last)
        for at in range(begun, over):
            self.free[at] &= ~nodes

    def around(self, windows: Sequence[Window]) -> Plan:
        """Return the same promises, and beside them those that windows make; windows are not rounded."""
        found = copy.copy(self)
        found.begins, found.free = [*self.begins], [*self.free]
        for window in windows:
            begun = found._cut(max(window.start, self._origin))
            over = len(found.free) if math.isinf(window.end) else found._cut(max(window.end, self._origin))
            for at in range(begun, over):
                found.free[at] &= ~window.nodes
        return found

    def _cut(self, at: Seconds) -> int:
        """Let a record begin at `at`, and return its place."""
        place = bisect.bisect_left(self.begins, at)
        if place == len(self.begins) or self.begins[place] != at:
            self.begins.insert(place, at)
            self.free.insert(place, self.free[place - 1])
        return place


class Sliding:
    """What a plan has available for a given time from instants on that only move forward, as `Plan.available` says.

    The records in view are kept as two halves: what is common to the last so many of the first half, and to all of
    the second. A record is so looked at twice, however many are in view.
    """

    def __init__(self, plan: Plan, length: Seconds) -> None:
        self._begins, self._free = plan.begins, plan.free
        self._length = length
        self._halves = 0
        """Record at which the second half begins."""
        self._over = 0
        """Record behind the second half."""
        self._common: list[NodeBits] = []
        """Of the first half, by how many records of it are in view, less one."""
        self._second: NodeBits = -1

    def available(self, start: Seconds) -> NodeBits:
        """Return the nodes that nobody was promised from `start` on; the plan must not have changed."""
        begins, free = self._begins, self._free
        first = max(0, bisect.bisect_right(begins, start) - 1)
        over = bisect.bisect_right(begins, start + self._length + _TINY)
        if first >= self._halves:
            nodes: NodeBits = -1
            self._common = [nodes := nodes & free[at] for at in range(over - 1, first - 1, -1)]
            self._halves = self._over = over
            self._second = -1
            return nodes
        for at in range(self._over, over):
            self._second &= free[at]
        self._over = max(self._over, over)
        return self._common[self._halves - first - 1] & self._second


class Backfill:
    """The backfill scheduler of one run."""

    def __init__(self, attempts: Attempts, clockwork: Clockwork) -> None:
        self._attempts = attempts
        self._ledger = attempts.ledger
        self._placer = attempts.placer
        self._clockwork = clockwork
        self.expected: dict[str, Seconds] = {}
        """Job id -> start planned in the last pass."""
        self._windows = attempts.placer.policies.implements("makeway_windows")
        self._together = attempts.ledger.rule("het_planned_together")
        self._last_of: dict[str, Seconds] = {}
        """Id of a heterogeneous job -> when the last of its components planned so far in this pass could start."""

    def run(self) -> None:
        """Make one pass."""
        ledger = self._ledger
        plan = Plan(
            ledger.now, self._clockwork.bf_window, ledger.all_nodes & ledger.up, self._clockwork.bf_resolution
        )
        self._last_of.clear()
        self.expected.clear()
        ledger.searches = 0
        handled: set[str] = set()
        whole: set[str] = set()
        for tried, (_, job, partition) in enumerate(self._attempts.ordered()):
            if tried >= self._clockwork.bf_max_job_test:
                break
            if job.state is not JobState.PENDING or job.id in handled:
                continue
            if job.spec.het_id is not None:
                self._try_het(job, partition, plan, handled, whole)
            elif self._try(job, partition, plan):
                handled.add(job.id)

    # ------------------------------------------------------------------------- ordinary jobs
    def _try(self, job: Job, partition: Partition, plan: Plan) -> bool:
        """Start `job`, have others make way for it, or promise it nodes; say whether it is settled."""
        put(job, partition=partition)
        if self._placer.rulings.limited(job):
            limit = self._ledger.kept_out(job)
            if limit is not None and limit.keeps_nothing:
                self._placer.try_start(Question(job, partition, partition.nodes & self._ledger.up))
                return False
        unreserved = job.qos is not None and "NoReserve" in job.qos.flags
        standby = unreserved and self._placer.preemption
        length = self._length(job, standby)
        found = self._earliest(job, partition, self._around(job, plan, length), length)
        if found is not None and found[0] <= self._ledger.now:
            return self._start(job, partition, plan, found[1], found[2], length)
        reason = self._placer.prober.kept_by_windows(job)
        if reason:
            self._ledger.wait_for(job, reason)
        if found is None:
            return False
        at, forecast, _ = found
        if not unreserved:
            self._promise(job, plan, at, length, forecast.nodes)
        return False

    def _around(self, job: Job, plan: Plan, length: Seconds) -> Plan:
        """Return the plan as a job sees it that has to keep clear of windows."""
        windows = self._placer.policies.windows(job, self._ledger) if self._windows else ()
        return plan.around(windows) if windows else plan

    def _promise(self, job: Job, plan: Plan, at: Seconds, length: Seconds, nodes: NodeBits) -> None:
        """Keep nodes for a job from `at` on, if that is within the window."""
        if at <= plan.horizon:
            self.expected[job.id] = at
            plan.promise(at, at + length, nodes)

    def _earliest(
        self, job: Job, partition: Partition, plan: Plan, length: Seconds, after: Seconds = 0.0
    ) -> tuple[Seconds, Forecast, NodeBits] | None:
        """Find when and where `job` could start at the earliest; also the nodes it may choose from.

        :param after: not before this instant.
        :returns: None: not within the window.
        """
        ledger = self._ledger
        placer = self._placer
        candidates = placer.order.candidates(job) if placer.preemption else Candidates()
        removable = placer.policies.together(job, candidates)
        open_to_it = partition.nodes & ledger.up
        if job.spec.het_id is not None:
            open_to_it &= ~self._attempts.het.required_by_others(job)
        start = max(ledger.now, after)
        # Nothing changes while the plan is searched: the same nodes get the same answer at each instant after now.
        known: dict[tuple[NodeBits, bool], Forecast | None] = {}
        skipping = plan.skipping(open_to_it, job.size)
        sliding = Sliding(plan, length)
        while start <= plan.horizon:
            worth = skipping.first_from(start, length)
            if worth is None:
                return None
            if worth != start:
                start = worth
                continue
            nodes = sliding.available(start) & open_to_it
            asked = nodes, start <= ledger.now
            if asked not in known:
                known[asked] = self._forecast(job, nodes, start, removable)
            forecast = known[asked]
            later = plan.next_begin(start)
            if forecast is None and later is None:
                return None
            if later is not None and (forecast is None or max(forecast.at, start) > later):
                start = later  # nodes that are promised to others now may be free by then
                continue
            assert forecast is not None
            at = max(forecast.at, start)
            if at <= ledger.now:
                return at, forecast, nodes
            blocked_until = plan.collides(at, at + length, forecast.nodes)
            if blocked_until is not None:
                if math.isinf(blocked_until):
                    return None
                start = blocked_until
                continue
            return at, forecast, nodes
        return None

    def _length(self, job: Job, standby: bool) -> Seconds:
        limit = job.time_limit if job.time_limit is not None else YEAR
        return min(limit, _STANDBY_LIMIT) if standby else limit

    def _forecast(
        self,
        job: Job,
        nodes: NodeBits,
        start: Seconds,
        removable: list[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        ledger = self._ledger
        usable = self._placer.prober.filter_nodes(job, nodes)
        if usable.bit_count() < job.size:
            return None
        return self._placer.prober.forecast(job, usable, removable if start <= ledger.now else ())

    def _start(
        self,
        job: Job,
        partition: Partition,
        plan: Plan,
        forecast: Forecast,
        nodes: NodeBits,
        length: Seconds,
    ) -> bool:
        ledger = self._ledger
        if forecast.nodes & ledger.completing:
            plan.promise(ledger.now, ledger.now + length, forecast.nodes)
            return False
        outcome = self._placer.try_start(Question(job, partition, nodes))
        if outcome in (Outcome.PREEMPTING, Outcome.BUSY):
            plan.promise(ledger.now, ledger.now + length, forecast.nodes)
        elif outcome is Outcome.STARTED:
            # Running jobs are not in the plan; whole-node promises made so far stay valid.
            return True
        return False

    # ---------------------------------------------------------------------------- het jobs
    def _try_het(
        self, job: Job, partition: Partition, plan: Plan, handled: set[str], whole: set[str]
    ) -> None:
        """Start all components at the first one's turn, or promise each nodes of its own at its own turn.

        :param whole: ids of the heterogeneous jobs that were tried in this pass; changed.
        """
        components = self._ledger.components(job)
        handled.add(job.id)
        now = self._ledger.now
        if job.spec.het_id is not None and job.spec.het_id not in whole:
            whole.add(job.spec.het_id)
            length = max(self._length(part, False) for part in components)
            open_now = plan.available(now, now + length)
            outcome = self._attempts.het.try_start(
                job, partition, open_now, fits_plan=lambda parts: self._side_by_side(parts, open_now)
            )
            if outcome is Outcome.PREEMPTING:
                plan.promise(now, now + length, job.asked_nodes)
            # One without room side by side is planned too: it keeps nodes from others for good.
            waits = outcome in (Outcome.BUSY, Outcome.NEVER) and job.state is JobState.PENDING
            if not waits or not self._attempts.het.eligible(components):
                handled.update(part.id for part in components)
                return
        put(job, partition=partition)
        het_id = job.spec.het_id or job.id
        length = self._length(job, False)
        last = self._last_of.get(het_id, 0.0)
        own = self._around(job, plan, length)
        found = None if last > plan.horizon else self._earliest(job, partition, own, length, last)
        if found is not None:
            at, forecast, _ = found
            self._promise(job, plan, at, length, forecast.nodes)
        if self._together:
            # Behind a component without a place in the plan the others get none (recorded: backfill_het_first_never).
            self._last_of[het_id] = math.inf if found is None else max(found[0], last)

    def _side_by_side(self, components: Sequence[Job], nodes: NodeBits) -> bool:
        """Whether estimates give each component nodes at once that the ones before it leave.

        They give it as many as it can use (recorded: backfill_het_takes_all), where a start makes do with fewer.
        """
        now = self._ledger.now
        for part in components:
            usable = nodes & part.partition.nodes & ~self._attempts.het.required_by_others(part)
            found = self._forecast(part, usable, now, [])
            if found is None or found.at > now:
                return False
            nodes &= ~found.nodes
        return True

    # --------------------------------------------------------------------------- adoption
    def hand_over(self) -> dict[str, Any]:
        """Return the starts planned in the last pass, for `take_over`."""
        return {"expected": dict(self.expected)}

    def take_over(self, memory: Mapping[str, Any]) -> None:
        """Go on from the plan of another pass."""
        self.expected.update(memory["expected"])

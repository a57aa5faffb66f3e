"""Backfill as Slurm does it: a plan of whole-node reservations, rebuilt in every pass (slurm-preemption 5.3,
slurm-gang-and-select 5.4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.errors import ConfigError, Problem
from makeway.licences import lacking
from makeway.model import Blocked, Forecast, Job, JobState, ModeFlag, Partition, PreemptMode, Qos, Seconds
from makeway.partition_bounds import BOUNDS
from makeway.preemption import PreemptionTable
from makeway.registry.limits import YEAR
from makeway_backfill.behind import Behind
from makeway_backfill.het import HetPlans
from makeway_backfill.licence_plan import LicencePlan
from makeway_backfill.plan import Plan, Sliding, full_second
from makeway_backfill.seen import Found, Seen
from makeway_engine.ledger import enter, put
from makeway_engine.placing import Outcome, Question
from makeway_engine.schedulers.common import Attempts

_NO_JOBS: list[tuple[Job, PreemptMode]] = []
_FIRST: Any = ((-math.inf,),)
"""Stands before all entries of a queue."""
_SECOND: Seconds = 1.0
"""What starts within a second counts as started at its beginning."""
_STANDBY_LIMIT: Seconds = 60.0
"""Limit assumed for jobs of a NoReserve QOS while preemption is on (slurm-preemption 5.3 no. 7)."""


def _threshold(qos: Qos) -> int:
    """Return the MinPrioThreshold of a QOS: for jobs of a lower priority nothing is kept.

    :raises ConfigError: it is no number.
    """
    keys = ("minpriothreshold", "minpriothresh", "minpriothres")
    found = next(((key, each) for key, each in qos.attributes.items() if key.lower() in keys), None)
    if found is None or found[1] in ("", None):
        return 0
    key, value = found
    if not str(value).isdecimal():
        text = f"got {value!r:.40}; expected a whole number, 0 for none"
        raise ConfigError("configuration", [Problem(f"qos.{qos.name}.attributes.{key}", text)])
    return int(value)


def _keeps_nothing(qos: Qos) -> bool:
    """Whether no nodes are kept for jobs of a QOS (slurm-preemption 5.3 no. 7)."""
    return "NoReserve" in qos.flags


class Backfill:
    """The backfill scheduler of one run."""

    def __init__(self, attempts: Attempts, clockwork: Clockwork) -> None:
        self._attempts = attempts
        self._ledger = attempts.ledger
        self._placer = attempts.placer
        self._clockwork = clockwork
        self.grain: Seconds = clockwork.bf_resolution
        """To full multiples of it promises are rounded."""
        self.expected: dict[str, Seconds] = {}
        """Job id -> start planned in the last pass, as far as it planned."""
        self.keeps_idle = False
        """Whether idle nodes were promised in the last pass, had it planned for all that wait. Slurm then makes one
        pass after the other, since the state of such nodes changes each time. False where nothing asks."""
        self._held_back: dict[str, Seconds] = {}
        """By the name of a QOS: no job of it may start before, since one of it waits for a limit (this pass)."""
        self._last_array: tuple[tuple[str, int] | None, Seconds] = None, 0.0
        """Array and partition of the last job that was asked for, and before when it may not start."""
        self._stood_back: dict[tuple[str, int], Job] = {}
        """The first task of each array, by partition, whose nodes are still being left (this pass).

        Whichever of its tasks finds nodes, the first one starts there.
        """
        self._asked_of_idle = clockwork.sched_interval > 0 and attempts.ledger.rule(
            "begin_time_wakes_no_backfill"
        )
        self._sees_time = clockwork.sched_interval > 0 and attempts.ledger.rule("reasons_are_news")
        """Whether backfill may be the first to see that a victim is no longer exempt."""
        self._lays_over = ModeFlag.GANG in attempts.ledger.preempt_mode.flags
        self._thresholds = {each.name: _threshold(each) for each in attempts.ledger.cluster.qos}
        self._windows = attempts.placer.policies.limits_say("reservations")
        policies = attempts.placer.policies
        alike = not (self._windows or policies.limits_say("node_sets"))
        self._forecast_key = getattr(attempts.placer.selector, "forecast_key", None) if alike else None
        self._starts_by = getattr(attempts.placer.selector, "starts_by", None) if alike else None
        standby = attempts.placer.preemption and any(map(_keeps_nothing, attempts.ledger.cluster.qos))
        self._behind = Behind.of(attempts, _STANDBY_LIMIT if standby else math.inf, self.removable)
        """Which jobs behind another may start now; None: all that wait are looked at."""
        self._seen = Seen(attempts.ledger)
        """What was found of jobs that are alike."""
        self._tasks_planned: Counter[str] = Counter()
        """For how many tasks of each array this pass keeps nodes."""
        self._beyond_array_limit = attempts.ledger.rule("backfill_plans_beyond_array_limit")
        self._to_third_record = attempts.ledger.rule("put_off_to_third_record")
        self._asks_for_a_minute = attempts.ledger.rule("backfill_asks_limits_for_a_minute")
        self._shortens_starts = standby and attempts.ledger.rule("backfill_starts_for_a_minute")
        self._skips_unlicensed = attempts.ledger.rule("backfill_skips_unlicensed")
        self._licences: LicencePlan | None = None
        """The licences of this pass; None: they are not planned."""
        self._het = HetPlans(attempts, clockwork, self)

    def run(self) -> None:
        """Make one pass."""
        ledger = self._ledger
        plan = Plan(
            ledger.now, self._clockwork.bf_window, ledger.all_nodes & ledger.up, self._clockwork.bf_resolution
        )
        self._het.begin()
        self.expected.clear()
        self._held_back.clear()
        self._last_array = None, 0.0
        self._stood_back.clear()
        self._tasks_planned.clear()
        ledger.searches = 0
        self._seen.begin(anew=self._lays_over and self._guards())
        self._licences = LicencePlan(ledger) if self._clockwork.bf_licenses else None
        if self._licences is not None:
            self._run_through(plan)
        elif self._behind is not None and self._behind.begin(self._clockwork.bf_max_job_test):
            self._run_while_any(plan, self._behind)
        else:
            self._run_through(plan)
        self.keeps_idle = self._asked_of_idle and bool(plan.promised & ledger.idle)

    def _guards(self) -> bool:
        """Whether running jobs may be protected for a time, or by others."""
        exempt = self._ledger.settings(PreemptionTable).exempt_time
        return bool(exempt) or self._placer.rulings.any_protected

    def _run_while_any(self, plan: Plan, behind: Behind) -> None:
        """Make a pass that ends where nothing behind can start; all stand once in the queue, each by itself."""
        arrivals, before = self._attempts.queue.arrivals, len(self._attempts.queue.arrivals)
        after = _FIRST
        while not behind.none(after, plan) or self._is_open_of_idle(plan):
            entry = behind.next(after, arrivals[before:])
            while entry is not None and self._is_in_vain(entry[1]):
                entry = behind.next(entry, arrivals[before:])
            if entry is None:
                return
            after = entry
            self._try(entry[1], entry[2], plan)

    def _is_in_vain(self, job: Job) -> bool:
        """Whether one that is alike, and runs no longer, could not start within the window."""
        return self._seen.is_in_vain(self._class_of(job), self.length(job, self._is_standby(job)))

    def _class_of(self, job: Job) -> Hashable | None:
        """Return what tells jobs apart that can start within the window or not; None: nothing is like this one."""
        if job.spec.array_limit is not None or self._placer.rulings.limited(job):
            return None
        return self.alike(job)

    def _is_standby(self, job: Job) -> bool:
        """Whether nodes are kept for a job for a minute only (slurm-preemption 5.3 no. 7)."""
        return self._placer.preemption and job.qos is not None and _keeps_nothing(job.qos)

    def _is_open_of_idle(self, plan: Plan) -> bool:
        """Whether `keeps_idle` is asked for, and depends on the jobs that are not yet planned for."""
        idle = self._ledger.idle
        return self._asked_of_idle and bool(idle) and not plan.promised & idle

    def _run_through(self, plan: Plan) -> None:
        """Make a pass over all that wait."""
        handled: set[str] = set()
        whole: set[str] = set()
        entries = self._attempts.ordered()
        self._het.sort(entries)
        for tried, (_, job, partition) in enumerate(entries):
            if tried >= self._clockwork.bf_max_job_test:
                break
            if job.state is not JobState.PENDING or job.id in handled:
                continue
            if job.spec.het_id is not None:
                self._het.plan_for(job, partition, plan, handled, whole)
                self._seen.forget()
            elif self._try(job, partition, plan):
                handled.add(job.id)
        self._het.start()

    # ------------------------------------------------------------------------- ordinary jobs
    def _try(self, job: Job, partition: Partition, plan: Plan) -> bool:
        """Start `job`, have others make way for it, or promise it nodes; say whether it is settled."""
        if job.partition is not partition:
            enter(job, partition)
        if reason := self._placer.out_of_bounds(job, partition):
            self._placer.wait_beyond(job, partition, reason)
            return False
        if job.reason in BOUNDS:
            self._ledger.wait_for(job, "None")  # of another partition
        if self._tasks_planned[job.spec.array_id or ""] >= self._clockwork.bf_max_job_array_resv:
            return False
        if (
            self._licences is None
            and self._skips_unlicensed
            and job.spec.licenses
            and lacking(job, self._ledger) is not None
        ):
            return False
        limit, after, limits = None, 0.0, True
        standby = self._is_standby(job)
        if self._placer.rulings.limited(job):
            after = self._not_before(job, partition)
            limit = self._ledger.kept_out(job)
            if limit is not None and not limit.before_nodes and standby and self._passes_for_a_minute(job):
                limit, limits = None, False
            open_to_it = partition.nodes & self._ledger.up
            if limit is not None and limit.allows_fewest:
                limit = None  # it is planned as ever; a start looks at the nodes that it gets
            if limit is not None and limit.depends_on_nodes:
                chosen = self._chosen(job, partition, plan, limit)
                if chosen is not None and not limit.counted and limit.lets_in(chosen[1].nodes):
                    limit = None
                else:
                    open_to_it = self._idle_of(chosen)
            if limit is not None and limit.keeps_nothing:
                return self.try_start(Question(job, partition, open_to_it)) is Outcome.STARTED
        urgent = self._is_urgent_enough(job, partition)
        length = self.length(job, standby)
        around = self.around(job, plan, length)
        found = self._with_licences(job, partition, around, length, after)
        held_back = ""
        if found is not None and found[0] <= self._ledger.now:
            if limit is None or not limit.reserves:
                return self._start(job, partition, plan, found[1], found[2], length, limits=limits)
            if not limit.at_submission_only:
                outcome = self.try_start(Question(job, partition, found[2]))
                if outcome in (Outcome.STARTED, Outcome.PREEMPTING):
                    return outcome is Outcome.STARTED
            found = self._put_off(job, partition, around, length, found, limit)
            held_back = limit.qos
        reason = self._placer.prober.kept_by_windows(job)
        if reason:
            self._ledger.wait_for(job, reason)
        if found is None:
            self._seen.add_in_vain(self._class_of(job), length)
            return False
        at, forecast, _ = found
        if urgent:
            if held_back:
                self._hold_back(held_back, at)
            if job.qos is None or not _keeps_nothing(job.qos):
                self.promise(job, plan, at, length, forecast.nodes)
                self._plan_for_others_of(job, partition, plan, limit)
        return False

    def _with_licences(
        self, job: Job, partition: Partition, plan: Plan, length: Seconds, after: Seconds
    ) -> Found | None:
        """Find when and where a job could start at the earliest, with its licences where these are planned."""
        licences = self._licences
        if licences is None or not job.spec.licenses:
            return self.earliest(job, partition, plan, length, after)
        at = licences.earliest(job, max(after, self._ledger.now), length)
        while at <= plan.horizon:
            found = self.earliest(job, partition, plan, length, at)
            if found is None:
                return None
            at = licences.earliest(job, found[0], length)
            if at <= found[0]:
                return found
        return None

    def _hold_back(self, qos: str, at: Seconds) -> None:
        """Let jobs of a QOS start no earlier than one before them that its limit keeps out.

        With NoReserve, too, where no nodes are kept for it (recorded: limit_stop_noreserve), but not where that is for
        its low priority (recorded: limit_stop_low_priority).
        """
        self._held_back[qos] = max(at, self._held_back.get(qos, 0.0))

    def _put_off(
        self,
        job: Job,
        partition: Partition,
        plan: Plan,
        length: Seconds,
        found: Found | None,
        limit: Blocked | None,
    ) -> Found | None:
        """Return when and where nodes are kept for a job: as found, or later, if only a limit keeps it from starting.

        That is where it would have started, once the first promise on nodes of its partition is over; without one,
        after the time that the limit says (recorded: limit_stop_retry and limit_stop_retry_time). Newer releases go to
        the third change of promises behind the job's end before that (`put_off_to_third_record`).

        :param found: when and where it could start; None: not within the window.
        :param limit: what keeps it out; None: nothing does.
        """
        now = self._ledger.now
        if found is None or found[0] > now or limit is None or not limit.retry_after:
            return found
        chosen = found[1]
        mine = partition.nodes & self._ledger.up
        at = plan.next_return(now, now + length, mine, third=self._to_third_record)
        if at is None:
            at = now + limit.retry_after
        if not plan.collides(at, at + length, chosen.nodes):
            return at, chosen, chosen.nodes
        return self.earliest(job, partition, plan, length, at)

    def _plan_for_others_of(self, job: Job, partition: Partition, plan: Plan, limit: Blocked | None) -> None:
        """Keep nodes for the tasks that wait for others of their array (`backfill_plans_beyond_array_limit`).

        If the nodes of `job` are still being left, it starts where one of them could (recorded:
        array_next_while_cleaned).

        :param limit: what keeps them all out; None: nothing but their array.
        """
        array_id = job.spec.array_id
        if not self._beyond_array_limit or array_id is None or job.spec.array_limit is None:
            return
        stands_back = self._stood_back.get((array_id, partition.index)) is job
        for task in self._attempts.queue.throttle.behind(job):
            if self._tasks_planned[array_id] >= self._clockwork.bf_max_job_array_resv:
                return
            own = task.partition
            enter(task, partition)
            length = self.length(task)
            around = self.around(task, plan, length)
            found = self.earliest(task, partition, around, length)
            found = self._put_off(task, partition, around, length, found, limit)
            enter(task, own)
            if found is None:
                return
            at, forecast, nodes = found
            if at <= self._ledger.now:
                if not stands_back:
                    return
                if not forecast.nodes & self._ledger.completing:
                    self.try_start(Question(job, partition, nodes))
                    return
            self.promise(task, plan, at, length, forecast.nodes)
            if limit is not None and limit.qos:
                self._hold_back(limit.qos, at)

    def _chosen(self, job: Job, partition: Partition, plan: Plan, limit: Blocked) -> Found | None:
        """Return when and where a job could start that a limit lets in or not by its nodes; None: it could not.

        Backfill holds it to a limit on what it has on each node with these, whether it could start now or later
        (recorded: limit_per_node_busy); which nodes count already is known for now alone.
        """
        length, until = self.length(job), self._ledger.now if limit.counted else math.inf
        return self.earliest(job, partition, self.around(job, plan, length), length, until=until)

    def _idle_of(self, chosen: Found | None) -> NodeBits:
        """Return the nodes on which a job could start now and keeps clear of others' promises; none: it cannot."""
        return chosen[2] if chosen is not None and chosen[0] <= self._ledger.now else 0

    def _not_before(self, job: Job, partition: Partition) -> Seconds:
        """Return before when a job may not start since one before it waits for a limit of the same QOS.

        Recorded: limit_stop_qos and limit_stop_never; those behind a limit of an association are free to start
        (limit_stop_account). Tasks of an array that have not started do not hold each other back (limit_stop_retry).
        """
        held_back = self._held_back
        names = (job.qos.name if job.qos is not None else "", partition.qos or "")
        array = (
            (job.spec.array_id, partition.index) if job.spec.array_id is not None and not job.starts else None
        )
        if array is None or array != self._last_array[0]:
            self._last_array = array, max(held_back.get(name, 0.0) for name in names)
        return self._last_array[1]

    def _passes_for_a_minute(self, job: Job) -> bool:
        """Whether no limit keeps a job out that is tried with a time limit of one minute (recorded: noreserve_minutes).

        It runs with its own limit all the same.
        """
        given = job.time_limit
        if not self._asks_for_a_minute or (given is not None and given <= _STANDBY_LIMIT):
            return False
        return self._ledger.would_be_kept_out(job, time_limit=_STANDBY_LIMIT) is None

    def _is_urgent_enough(self, job: Job, partition: Partition) -> bool:
        """Whether its priority lets nodes be kept for a job."""
        return self._attempts.queue.priority_in(job, partition) >= self._least(job)

    def _least(self, job: Job) -> int:
        """Return the priority from which on nodes are kept for a job: the cluster's, or that of its QOS if higher."""
        own = self._thresholds.get(job.qos.name, 0) if job.qos is not None else 0
        return max(own, self._clockwork.bf_min_prio_reserve)

    def around(self, job: Job, plan: Plan, length: Seconds) -> Plan:
        """Return the plan as a job sees it that has to keep clear of windows."""
        windows = self._placer.policies.reservations(job, self._ledger) if self._windows else ()
        return plan.around(windows) if windows else plan

    def promise(self, job: Job, plan: Plan, at: Seconds, length: Seconds, nodes: NodeBits) -> None:
        """Keep nodes for a job from `at` on, if that is within the window."""
        if at <= plan.horizon:
            self.expected[job.id] = at
            if job.spec.array_id is not None:
                self._tasks_planned[job.spec.array_id] += 1
            plan.promise(at, at + length, nodes)
            if self._licences is not None:
                self._licences.promise(job, at, length)

    def earliest(
        self,
        job: Job,
        partition: Partition,
        plan: Plan,
        length: Seconds,
        after: Seconds = 0.0,
        until: Seconds = math.inf,
    ) -> Found | None:
        """Find when and where `job` could start at the earliest; also the nodes it may choose from.

        :param after: not before this instant.
        :param until: give up beyond this instant.
        :returns: None: not within the window.
        """
        ledger = self._ledger
        removable = self.removable(job)
        open_to_it = partition.nodes & ledger.up
        if job.spec.het_id is not None:
            open_to_it &= ~self._attempts.het.required_by_others(job)
        start, last = max(ledger.now, after), min(plan.horizon, until)
        alike = self.alike(job) if after <= ledger.now else None
        settles = self._starts_by is not None and alike is not None and job.spec.array_limit is None
        """Whether it makes no difference when the job starts once the plan is over."""
        seen = self._seen.of(alike, removable)
        closed = self._seen.closed(seen, length, until, settles)
        if seen.starts_by is None and alike is not None and self._starts_by is not None:
            seen.starts_by = self._starts_by(job, ledger, removable)
        starts_by = seen.starts_by
        sliding = Sliding(plan, length)
        while start <= last:
            over = closed.over(start)
            if over != start:
                start = over
                continue
            nodes = sliding.available(start) & open_to_it
            later = plan.next_begin(start)
            if nodes.bit_count() < job.size:
                start = closed.add(start, later)
                continue
            if starts_by is not None and (later is not None or settles):
                by = last if later is None else later
                if not starts_by(nodes, by + _SECOND):
                    start = closed.add(start, later)
                    continue
            if nodes not in seen.forecasts:
                # Jobs that may be displaced leave whenever the job starts (recorded: backfill_displaces_later).
                seen.forecasts[nodes] = self.forecast(job, nodes, removable)
            forecast = seen.forecasts[nodes]
            if forecast is None and later is None:
                return None
            if later is not None and (forecast is None or full_second(max(forecast.at, start)) > later):
                # Nodes that are promised to others now may be free by then.
                start = later if starts_by is not None else closed.add(start, later)
                continue
            assert forecast is not None
            at = max(forecast.at, start)
            # Nodes that can be had at once are free for as long as the job runs.
            if at == start or not plan.collides(at, at + length, forecast.nodes):
                return at, forecast, nodes
            start = at  # there are nodes beside the promise, perhaps (recorded: backfill_promise_beside)
        return None

    def removable(self, job: Job) -> list[tuple[Job, PreemptMode]]:
        """Return which jobs `job` may displace, and how; the same list for all of a kind and partition."""
        placer = self._placer
        if not placer.preemption:
            return _NO_JOBS
        order = placer.order
        kind = order.kind_of(job) if order.kind_of is not None else None
        place = kind, job.partition.index
        self._seen.hold()
        known = self._seen.removable.get(place) if kind is not None else None
        if known is not None:
            return known
        candidates = order.candidates(job)
        if self._sees_time and candidates.ask_again_at is not None:
            placer.making_way.remember(candidates.ask_again_at)
        found = placer.policies.together(job, candidates) or _NO_JOBS
        return found if kind is None else self._seen.displace(place, found)

    def alike(self, job: Job) -> Hashable | None:
        """Return what tells jobs apart for forecasts; None: it has to be looked for."""
        if self._forecast_key is None or job.spec.het_id is not None or self._placer.prober.keeps_apart(job):
            return None
        displaces: Hashable | None = ()
        if self._placer.preemption:
            displaces = None if self._placer.order.kind_of is None else self._placer.order.kind_of(job)
        key: Hashable | None = self._forecast_key(job, self._ledger)
        return None if key is None or displaces is None else (job.partition.index, job.size, key, displaces)

    def length(self, job: Job, standby: bool = False) -> Seconds:
        """Return how long a job counts on its nodes."""
        limit = job.time_limit if job.time_limit is not None else YEAR
        return min(limit, _STANDBY_LIMIT) if standby else limit

    def forecast(
        self, job: Job, nodes: NodeBits, leaving: Sequence[tuple[Job, PreemptMode]] = ()
    ) -> Forecast | None:
        """Return when `job` could start on `nodes`.

        :param leaving: jobs that make way for it.
        """
        usable = self._placer.prober.filter_nodes(job, nodes)
        if usable.bit_count() < job.size:
            return None
        return self._placer.prober.forecast(job, usable, leaving)

    def _start(
        self,
        job: Job,
        partition: Partition,
        plan: Plan,
        forecast: Forecast,
        nodes: NodeBits,
        length: Seconds,
        *,
        limits: bool = True,
    ) -> bool:
        ledger = self._ledger
        if forecast.nodes & ledger.completing:
            plan.promise(ledger.now, ledger.now + length, forecast.nodes)
            if job.spec.array_id is not None and not job.restarts:
                self._stood_back.setdefault((job.spec.array_id, partition.index), job)
                self._plan_for_others_of(job, partition, plan, None)
            return job.state is not JobState.PENDING
        starts = self._first_like(job, partition)
        outcome = self.try_start(Question(starts, partition, nodes, limits=limits))
        if outcome in (Outcome.PREEMPTING, Outcome.BUSY):
            plan.promise(ledger.now, ledger.now + length, forecast.nodes)
        # Running jobs are not in the plan; whole-node promises made so far stay valid.
        return outcome is Outcome.STARTED and starts is job

    def _first_like(self, job: Job, partition: Partition) -> Job:
        """Return what starts where a job finds nodes: its array's first task that stood back, which it replaces."""
        if job.spec.array_id is None or job.restarts:
            return job
        key = job.spec.array_id, partition.index
        first = self._stood_back.pop(key, None)
        if first is None or first.state is not JobState.PENDING:
            return job
        self._stood_back[key] = job
        enter(first, partition)
        return first

    def try_start(self, question: Question) -> Outcome:
        """Try to start a job; once it, or others for it, were told anything, what is known of starts may not hold."""
        job = question.job
        shortened = self._shortens_starts and job.qos is not None and _keeps_nothing(job.qos)
        if shortened and job.time_limit is not None and job.time_limit > _STANDBY_LIMIT:
            put(job, limit_at_start=_STANDBY_LIMIT)
        outcome = self._placer.try_start(question)
        if shortened and outcome is not Outcome.STARTED:
            put(job, limit_at_start=None)
        if outcome not in (Outcome.BUSY, Outcome.LIMITED):
            self._seen.forget()
        return outcome

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return the starts planned in the last pass, and whether idle nodes are kept, for `restore`."""
        return {"expected": dict(self.expected), "keeps_idle": self.keeps_idle}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on from the plan of another pass."""
        self.expected.update(memory["expected"])
        self.keeps_idle = memory.get("keeps_idle", True)

"""Drive one run: events in, actions out.

The engine has no clock. A world calls `Engine.step` with the time and what happened, carries out the actions
that come back, and calls again at `Engine.next_wake` at the latest.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from makeway import vendors
from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.config import Config, McsTable, build_clockwork, build_cluster, parse_mode
from makeway.engine import staying
from makeway.engine.adoption import adopt, hand_over, take_in
from makeway.engine.commands import Commands
from makeway.engine.deeds import Deeds
from makeway.engine.exclusivity import label_of
from makeway.engine.forgiving import Forgiveness, ForgivenSelector
from makeway.engine.het import refuse
from makeway.engine.ledger import Ledger, put
from makeway.engine.placing import Placer
from makeway.engine.priority import Multifactor
from makeway.engine.queue import Queue
from makeway.engine.reports import Reports
from makeway.engine.rhythm import Grid
from makeway.engine.rulings import Rulings
from makeway.engine.schedulers import Schedulers
from makeway.engine.transitions import Transitions
from makeway.errors import RunnerError
from makeway.features import unknown_features, unreadable
from makeway.model import (
    Gang,
    Job,
    JobDraft,
    JobSpec,
    JobState,
    Partition,
    Plan,
    PreemptBasis,
    PreemptMode,
    Seconds,
    Selector,
    Stay,
)
from makeway.obstacle import counted, length
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.state import State
from makeway.worlds.events import (
    Action,
    Adopted,
    Checkpointed,
    Cleaned,
    Command,
    Event,
    Failed,
    Finished,
    NodesDown,
    NodesDrained,
    NodesUp,
    Noticed,
    Performed,
    Started,
    Submitted,
)

_TINY = 1e-6
_MOST_STEPS_AT_ONE_INSTANT = 10_000
_NEVER = math.inf
_NATURAL_ENDS = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class Engine:
    """One run: the books, the queue, and who decides."""

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        policies: Policies,
        clockwork: Clockwork | None = None,
    ) -> None:
        self.config = config
        self.clockwork = clockwork or build_clockwork(config.scheduler.clockwork)
        self.recorder = recorder
        self.policies = policies
        recorder.young = config.scheduler.young_victim_age
        self.deeds: Deeds | None = Deeds()
        """Numbers the actions; None: the world is trusted."""
        scheduler = config.scheduler
        rulings = Rulings(policies)
        self.ledger = Ledger(
            recorder.cluster,
            parse_mode(config.policy.preempt_mode),
            vendors.rules_in_force(scheduler, policies.vendors),
            {**policies.settings, Clockwork: self.clockwork},
            rulings,
            config.policy.select_parameters,
            config.policy.preempt,
            policies.preempt_basis(config.policy.preempt),
            on_reason=recorder.waits_for if recorder.listens else None,
        )
        ledger = self.ledger
        ledger.gone = []
        recorder.grouping = policies.displaces_by(ledger)
        self.selector = policies.selector(ledger)
        self.gang = policies.gang(ledger)
        self.queue = Queue(ledger)
        self.transitions = Transitions(
            ledger, self.queue, self.selector, self.gang, policies, recorder, self.clockwork
        )
        self.transitions.max_requeues = scheduler.max_requeues
        if scheduler.priority == "multifactor":
            self.transitions.priorities = Multifactor(recorder.cluster, scheduler.priority_weights)
        self.making_way = self.transitions.making_way
        self.placer = Placer(
            ledger,
            self.selector,
            policies,
            rulings,
            self.transitions,
            recorder,
            preemption=ledger.preempt_basis is not PreemptBasis.NOTHING,
        )
        self.schedulers = Schedulers(ledger, self.queue, self.placer, policies, scheduler, self.clockwork)
        self.commands = Commands(ledger, self.queue, self.transitions, policies, recorder, self.placer)
        self.reports = Reports(
            ledger, self.queue, self.transitions, recorder, config.world.failures, rulings.stubborn
        )
        self.reports.deeds = self.deeds
        self.forgiveness: Forgiveness | None = None
        self._mcs = ledger.settings(McsTable)
        self._labels = self._mcs.label != "none"
        self._requeue = scheduler.requeue
        self._count = 0
        self._refused_het: dict[str, str] = {}
        """Ids of heterogeneous jobs that were refused, with the reason."""
        self._partition_sets: dict[tuple[str, ...], tuple[tuple[Partition, ...], str]] = {}
        self._type = scheduler.type
        self._marks = policies.implements("makeway_marks")
        self._plans_for_late = policies.implements("makeway_over_limit")
        self._enforce = scheduler.enforce_time_limits
        clockwork = self.clockwork
        self._passing = Grid(clockwork.sched_phase, clockwork.sched_interval)
        self._backfilling = Grid(clockwork.bf_phase, clockwork.bf_interval)
        self._sweeping = Grid(clockwork.limit_phase, clockwork.limit_sweep)
        self._pass_point: Seconds | None = None
        """The point of each grid that is reached in this step; None: none is."""
        self._backfill_point: Seconds | None = None
        self._sweep_point: Seconds | None = None
        self._last_backfill: Seconds | None = None
        self._grid_pass_at: Seconds | None = None
        self._bf_dirty = False
        self._periodic = self.clockwork.sched_interval > 0
        self._submit_pass_at: Seconds | None = None
        self._soon = False
        self._instant_steps = 0
        self._tick_at: Seconds | None = None

    def trust(self) -> None:
        """Take it that the world neither fails nor forgets: actions are not numbered, and no outcome is awaited."""
        self.deeds = self.reports.deeds = self.ledger.gone = None

    def forgive(self) -> None:
        """Go on from now on when a plugin raises: what it was asked for waits (`makeway.engine.forgiving`)."""
        most = self.config.world.failures.policy_errors
        self.forgiveness = Forgiveness(self.policies, self.recorder, self.ledger, most)
        self.placer.forgiveness = self.transitions.forgiveness = self.forgiveness
        self.transitions.selector = cast(Selector, ForgivenSelector(self.selector, self.forgiveness))

    # -------------------------------------------------------------------------- stepping
    def step(self, now: Seconds, events: Sequence[Event]) -> list[Action]:
        """Take note of what has happened by `now`, and return what is to be done.

        :raises RunnerError: time runs backwards.
        :raises PolicyError: a plugin fails or answers wrongly, and the engine does not `forgive` that.
        """
        ledger, transitions, queue = self.ledger, self.transitions, self.queue
        if self._periodic or self._sweeping.interval:
            self._note_points(now)
        if now > ledger.now:
            ledger.now = now
            self._instant_steps = 0
        else:
            self._watch_instant(now)
        transitions.actions = []
        if self.forgiveness is None:
            for event in events:
                self._handle(event)
        else:
            for event in events:
                self.forgiveness.run(functools.partial(self._handle, event), None)
        if self.reports.timers:
            self.reports.due(now)
        if queue.later and queue.mature(now):
            transitions.changed = True
        if queue.bounced and queue.take_back(now):
            transitions.changed = True
        if ledger.by_end and ledger.by_end[0][0] <= now:
            self._deadlines(now)
        if self._tick_at is not None and self._tick_at <= now + _TINY:
            transitions.tick()
        if self.forgiveness is None:
            self._schedule(now)
        else:
            self.forgiveness.run(lambda: self._schedule(now), None)
            if self.forgiveness.given_up is not None:
                self.placer.preemption = False
        if self.gang is not None:
            self._tick_at = self._next_tick(self.gang)
        if ledger.gone:
            self.reports.ended(ledger.gone)
        if self.deeds is not None and transitions.actions:
            return self.deeds.number(transitions.actions)
        return transitions.actions

    def _note_points(self, now: Seconds) -> None:
        """Note which points of the grids are reached, by what the engine asked for after the last step."""
        last = self.ledger.now
        waiting = bool(self.queue.waiting)
        if self._periodic:
            self._pass_point = self._passing.reached(self._pass_wake(last) if waiting else None, now)
            if self._backfilling.interval:
                self._backfill_point = self._backfilling.reached(
                    self._backfilling.after(last) if waiting and self._bf_dirty else None, now
                )
        if self._sweeping.interval:
            by_end = self.ledger.by_end
            asked = self._sweeping.first_from(by_end[0][0], last) if by_end else None
            self._sweep_point = self._sweeping.reached(asked, now)

    def _next_tick(self, gang: Gang) -> Seconds | None:
        at: object = gang.next_tick
        if at is not None and (not isinstance(at, int | float) or at != at):
            text = f"its next_tick is {at!r:.80}; allowed: seconds since the start, or None"
            raise self.policies.fault("makeway_gang", None, text)
        return at

    def _watch_instant(self, now: Seconds) -> None:
        if now < self.ledger.now:
            raise RunnerError(f"time ran backwards: from {self.ledger.now} to {now}")
        self._instant_steps += 1
        if self._instant_steps > _MOST_STEPS_AT_ONE_INSTANT:
            raise RunnerError(
                f"at {now} s the same instant goes on for ever: jobs displace one another in a circle; "
                "give victims a requeue_delay or an exempt time"
            )

    def _handle(self, event: Event) -> None:
        if type(event) is Finished:
            self._finished(event)
        elif type(event) is Submitted:
            self._submitted(event)
        elif isinstance(event, Cleaned):
            self._cleaned(event)
        elif isinstance(event, Command):
            self.commands.carry_out(event)
        elif isinstance(event, NodesDown | NodesDrained | NodesUp):
            self._nodes(event)
        else:
            self._other(event)

    def _other(self, event: Event) -> None:
        reports = self.reports
        if isinstance(event, Failed):
            reports.failed(event)
        elif isinstance(event, Started):
            reports.started(event)
        elif isinstance(event, Performed):
            reports.performed(event)
        elif isinstance(event, Noticed):
            reports.noticed(event)
        elif isinstance(event, Checkpointed):
            reports.checkpointed(event)
        elif isinstance(event, Adopted):
            why = take_in(self, event.standing)
            if why:
                reports.no_news(event, why, event.standing.spec.id)
        else:
            reports.no_news(event, "no event of that kind is known")

    def _submitted(self, event: Submitted) -> None:
        job_id = event.spec.id
        if self.deeds is not None and (job_id in self.ledger.jobs or self.reports.has_ended(job_id)):
            self.reports.no_news(event, "it was submitted before", job_id)
        else:
            self.submit(event.spec)

    def _cleaned(self, event: Cleaned) -> None:
        job = self.reports.known(event, event.job_id, event.incarnation)
        if job is None:
            return
        if not self.transitions.is_leaving(job):
            self.reports.no_news(event, f"the job is {job.state.value}", job.id)
        elif event.nodes is not None:
            self.transitions.cleaned_partly(job, event.nodes)
        else:
            self.transitions.cleaned(job)

    def _nodes(self, event: NodesDown | NodesDrained | NodesUp) -> None:
        nodes = self.reports.nodes(event)
        if isinstance(event, NodesDown):
            self._nodes_down(nodes)
        elif isinstance(event, NodesDrained):
            self.ledger.set_down(nodes)
        else:
            self.ledger.set_up(nodes)
            self.transitions.changed = True

    # ------------------------------------------------------------------------ submission
    def submit(self, spec: JobSpec) -> None:
        """Enter a new job; one that can never run ends at once as FAILED with the reason."""
        ledger = self.ledger
        transitions = self.transitions
        now = ledger.now
        self._count += 1
        draft, problem = self._draft(spec, self._count)
        priority = spec.priority
        if priority is None and transitions.priorities is None:
            priority = transitions.next_priority() - spec.nice
        draft.priority = 0 if priority is None else priority
        job = ledger.enter(draft)
        if priority is None:
            put(job, priority=max(1, transitions.fresh_priority(job) - spec.nice))
        self.recorder.entered(job, now)
        self.queue.add(job, now)
        transitions.changed = True
        if spec.het_id is not None and self._type == "builtin":
            problem = problem or "heterogeneous jobs are started by the backfill scheduler alone"
        if spec.features and not problem and (unknown := unknown_features(spec.features, ledger.cluster)):
            problem = f"no node has the feature {unknown[0]!r}"
        if not problem and not self.config.scheduler.enforce_part_limits:
            beyond = self._beyond(job)
            if beyond:
                self.placer.beyond[job.id] = beyond
                return
        problem = problem or self._misfit(job) or self._impossible(job)
        if spec.het_id is not None:
            problem = self._refused_het.get(spec.het_id, "") or problem
        if problem:
            self._reject(job, problem)

    def _draft(self, spec: JobSpec, index: int) -> tuple[JobDraft, str]:
        """Return a job as it is when it is submitted now, its priority apart, and what is wrong with it."""
        now = self.ledger.now
        partitions, problem = self._partition_sets.get(spec.partitions) or self._partitions(spec)
        first = partitions[0]
        qos = None
        if spec.qos is not None:
            cluster = self.ledger.cluster
            qos = cluster.qos_named(spec.qos)
            if qos is None and cluster.qos:
                problem = problem or f"InvalidQOS: {spec.qos!r}"
        limit = spec.time_limit
        if limit is None:
            limit = first.default_time if first.default_time is not None else first.max_time
        required = excluded = 0
        if spec.required_nodes or spec.excluded_nodes:
            required, excluded, wrong = self._named_nodes(spec)
            problem = problem or wrong
        if spec.features:
            problem = problem or unreadable(spec.features)
        draft = JobDraft(
            spec=spec,
            id=spec.id,
            index=index,
            user=spec.user,
            account=spec.account,
            partitions=partitions,
            partition=first,
            qos=qos,
            submit_at=now,
            eligible_at=now if spec.begin_at is None else max(now, spec.begin_at),
            time_limit=limit,
            priority=0,
            requeueable=spec.batch and (spec.requeue if spec.requeue is not None else self._requeue),
            size=spec.min_nodes if spec.min_nodes > 1 else 1,
            required=required,
            excluded=excluded,
            mcs_label=self._label(spec) if self._labels else None,
        )
        return draft, problem

    def _label(self, spec: JobSpec) -> str | None:
        return label_of(self._mcs, spec.user, spec.group, spec.account, spec.mcs_label)

    def _partitions(self, spec: JobSpec) -> tuple[tuple[Partition, ...], str]:
        """Return the partitions of a job, and what is wrong with them; never none, so that it can be rejected."""
        found = self._partition_sets[spec.partitions] = self._find_partitions(spec.partitions)
        return found

    def _find_partitions(self, names: tuple[str, ...]) -> tuple[tuple[Partition, ...], str]:
        cluster = self.ledger.cluster
        any_one = cluster.partitions[:1]
        if not names:
            default = cluster.default_partition
            if default is None:
                return any_one, "no partition given and there is no default one"
            return (default,), ""
        found = []
        for name in names:
            partition = cluster.partition(name)
            if partition is None:
                return any_one, f"no partition named {name!r}"
            found.append(partition)
        return tuple(found), ""

    def _named_nodes(self, spec: JobSpec) -> tuple[NodeBits, NodeBits, str]:
        """Return the nodes that a job must and must not have, and what is wrong with them."""
        required, missing = self._bits(spec.required_nodes)
        excluded, _ = self._bits(spec.excluded_nodes)
        if missing:
            return required, excluded, f"no node named {missing!r}"
        named = required.bit_count()
        if spec.max_nodes is not None and named > spec.max_nodes:
            wrong = f"must have {counted(named, 'node')}, but takes {spec.max_nodes:,} at the most"
            return required, excluded, wrong
        return required, excluded, ""

    def _bits(self, names: Sequence[str]) -> tuple[NodeBits, str]:
        bits = 0
        for name in names:
            node = self.ledger.cluster.node(name)
            if node is None:
                return bits, name
            bits |= 1 << node.index
        return bits, ""

    def _beyond(self, job: Job) -> str:
        """Return which limit of its one partition a job is beyond, where that only makes it wait; empty: none."""
        partition = job.partition
        if len(job.partitions) > 1:
            return ""
        most = partition.nodes.bit_count()
        if partition.max_nodes is not None:
            most = min(most, partition.max_nodes)
        if not partition.min_nodes <= job.size <= most:
            return "PartitionNodeLimit"
        cpus = sum(node.cpus for node in self.ledger.cluster.nodes if partition.nodes >> node.index & 1)
        if job.spec.cpus > cpus:
            return "PartitionConfig"
        if partition.max_time is not None and (job.time_limit or 0.0) > partition.max_time:
            return "PartitionTimeLimit"
        return ""

    def _misfit(self, job: Job) -> str:
        reasons = []
        size = job.size
        for partition in job.partitions:
            most = partition.nodes.bit_count()
            if partition.max_nodes is not None and partition.max_nodes < most:
                most = partition.max_nodes
            if size > most:
                reasons.append(
                    f"needs {counted(size, 'node')}; partition {partition.name} gives {most} at the most"
                )
            elif size < partition.min_nodes:
                reasons.append(
                    f"asks for {counted(size, 'node')}; partition {partition.name} wants {partition.min_nodes} or more"
                )
            elif (
                partition.max_time is not None
                and job.time_limit is not None
                and job.time_limit > partition.max_time
            ):
                reasons.append(
                    f"asks for a time limit of {length(job.time_limit)}; "
                    f"partition {partition.name} allows {length(partition.max_time)}"
                )
            elif not partition.accepts:
                what = "drained" if partition.up else "inactive"
                reasons.append(f"partition {partition.name} is {what}: it takes no new jobs")
            else:
                return ""
        return "; ".join(reasons)

    def _impossible(self, job: Job) -> str:
        """Say why no empty cluster could run a job in any of its partitions, as ``sbatch`` does; empty: one could.

        Nodes out of service may come back, so that a job is not judged without them.
        """
        told: list[str] = []
        for partition in job.partitions:
            if partition.nodes & ~self.ledger.up:
                return ""
            put(job, partition=partition)
            blocked = self.selector.possible(job, self.ledger)
            if blocked is None:
                put(job, partition=job.partitions[0])
                return ""
            told.append(blocked.detail or blocked.reason)
        put(job, partition=job.partitions[0], reason="BadConstraints")
        return "; ".join(dict.fromkeys(told))

    def _reject(self, job: Job, problem: str) -> None:
        """Refuse a job; of a heterogeneous one all components, those that are still to come as well."""
        het_id = job.spec.het_id
        if het_id is None:
            refuse((job,), problem, self.transitions)
            return
        told = self._refused_het.setdefault(het_id, f"component {job.id}: {problem}")
        refuse(
            [part for part in self.ledger.components(job) if part.state is JobState.PENDING],
            told,
            self.transitions,
        )

    # --------------------------------------------------------------------------- endings
    def _finished(self, event: Finished) -> None:
        transitions = self.transitions
        job = self.ledger.active_job(event.job_id)
        if job is None or event.incarnation not in (0, job.starts) or event.state not in _NATURAL_ENDS:
            self._no_end(event, job)
            return
        if transitions.graces and self._ends_as_preempted(job):
            plan = transitions.graces[job.id]
            if plan.mode is PreemptMode.REQUEUE and job.requeueable:
                transitions.requeue_finished(job, cleaned=event.cleaned)
            else:
                transitions.finish(job, JobState.PREEMPTED, cleaned=event.cleaned)
        elif transitions.survived_grace and job.id in transitions.survived_grace:
            transitions.survived_grace.discard(job.id)
            transitions.requeue_finished(job, cleaned=event.cleaned)
        else:
            state = event.state
            if job.end_at is not None and job.end_at < self.ledger.now and state is JobState.COMPLETED:
                state = self._end_after(job.end_at)
            transitions.finish(job, state, cleaned=event.cleaned)

    def _no_end(self, event: Finished, job: Job | None) -> None:
        """Count an end that is none."""
        if job is not None and event.state not in _NATURAL_ENDS:
            self.reports.no_news(
                event, f"{event.state.value} is no end that a job comes to by itself", job.id
            )
            return
        job = self.reports.known(event, event.job_id, event.incarnation)
        if job is not None and not self.transitions.is_leaving(job):  # else it was killed at the same instant
            self.reports.no_news(event, f"the job is {job.state.value}", job.id)

    def _end_after(self, deadline: Seconds) -> JobState:
        """Return how a job counts that ended by itself after a deadline that nobody had noticed yet."""
        scheduler = self.config.scheduler
        late = deadline + scheduler.over_time_limit < self.ledger.now - _TINY
        return JobState.TIMEOUT if late and scheduler.enforce_time_limits else JobState.COMPLETED

    def _ends_as_preempted(self, job: Job) -> bool:
        return job.id in self.transitions.graces and self.ledger.rule("grace_exit_is_preemption")

    def _nodes_down(self, nodes: NodeBits) -> None:
        self.ledger.set_down(nodes)
        for job in self.ledger.active:
            if job.nodes & nodes:
                if job.requeueable:
                    self.transitions.requeue(job, "node failure")
                else:
                    self.transitions.kill(job, JobState.NODE_FAIL, "node failure")

    # ------------------------------------------------------------------------- deadlines
    def _deadlines(self, now: Seconds) -> None:
        by_end = self.ledger.by_end
        if self._sweeping.interval:
            if self._sweep_point is None:
                return
            now = self._sweep_point  # who is due since then is due at the next sweep
        due = [job for _, _, job in itertools.takewhile(lambda each: each[0] <= now + _TINY, by_end)]
        over = self.config.scheduler.over_time_limit
        late = []
        for job in due:
            if job.preempt_at is not None and self.making_way.deadline_passed(job):
                continue
            if (
                self.config.scheduler.enforce_time_limits
                and job.end_at is not None
                and job.end_at + over <= now + _TINY
            ):
                late.append(job)
        if late:
            self._over_limit(late)

    def stays(self, job: Job) -> list[Stay]:
        """Return why a suspended job stays suspended now; nothing is decided or changed."""
        return staying.stays(job, self.gang, self.policies, self.ledger)

    def _over_limit(self, late: Sequence[Job]) -> None:
        plans: Sequence[Plan | None] = [None] * len(late)
        if self._plans_for_late:
            plans = self.policies.over_limit(late, self.ledger)
        for job, plan in zip(late, plans, strict=True):
            if plan is None:
                self.transitions.kill(job, JobState.TIMEOUT, "time limit")
            else:
                self.making_way.send_away(plan)

    # ------------------------------------------------------------------------ scheduling
    def _schedule(self, now: Seconds) -> None:
        if not self._periodic:
            transitions = self.transitions
            if self.making_way.retries and self.making_way.due(now):
                self.schedulers.attempts.again = transitions.changed = True
            if transitions.changed and (self.queue.entries or self.gang):
                self._pass(now, self.clockwork.default_queue_depth, backfill=True)
            else:
                transitions.changed = False
            return
        self._periodic_passes(now)

    def _periodic_passes(self, now: Seconds) -> None:
        clockwork = self.clockwork
        transitions = self.transitions
        point = self._pass_point
        on_grid = point is not None and self._grid_pass_at != now  # one look per interval
        due = self.making_way.due(point) if on_grid and point is not None else False
        if transitions.changed:
            self._soon = True
        if due:
            self._soon = self.schedulers.attempts.again = True
        triggered = False
        if transitions.left_nodes:
            triggered = True
        if self._submit_pass_at is not None and now >= self._submit_pass_at - _TINY:
            triggered = True
        if (on_grid and self._soon) or triggered:
            depth = len(self.queue.entries) if on_grid else clockwork.default_queue_depth
            self._pass(now, max(depth, 1), backfill=False)
            if on_grid:
                self._soon = False
                self._grid_pass_at = now
            self._submit_pass_at = None
            self._bf_dirty = True
        elif transitions.changed and clockwork.pass_on_submit and self._submit_pass_at is None:
            self._submit_pass_at = now + clockwork.submit_delay
            if clockwork.submit_delay == 0:
                self._pass(now, clockwork.default_queue_depth, backfill=False)
                self._submit_pass_at = None
            self._bf_dirty = True
        elif transitions.changed:
            self._bf_dirty = True
        transitions.changed = False
        transitions.left_nodes = False
        if self._type == "backfill" and self._bf_dirty:
            interval = clockwork.bf_interval
            if not interval or (self._last_backfill != now and self._backfill_point is not None):
                self._last_backfill = now
                before = self.ledger.version
                self.schedulers.backfill.run()
                self._bf_dirty = self.ledger.version != before  # its own starts are news for its next plan
                self._after_pass()

    def _pass(self, now: Seconds, depth: int, *, backfill: bool) -> None:
        transitions = self.transitions
        transitions.changed = False
        transitions.left_nodes = False
        self.ledger.searches = 0
        if self.gang is not None:
            transitions.before_pass()
        if self._marks:
            self._mark()
        if self.placer.kept:
            self.placer.serve()
        self.schedulers.run(depth, backfill=backfill)
        if self._marks:
            self._mark()
        if self.gang is not None:
            transitions.after_pass()
        self._after_pass()

    def _mark(self) -> None:
        """Let policies remember what they want about jobs."""
        for job_id, marks in self.policies.marks(self.ledger).items():
            put(self.ledger.jobs[job_id], marks=marks)

    def _after_pass(self) -> None:
        # What the pass itself changed (a start, a kill) is news for nobody but gang and later passes.
        if self._periodic and (self.transitions.changed or self.schedulers.strict.passed_over):
            self._soon = True
        self.transitions.changed = False

    # ---------------------------------------------------------------------------- waking
    @property
    def next_wake(self) -> Seconds | None:
        """When the engine wants to be called at the latest; None: not before something happens."""
        now = self.ledger.now
        # With nobody to take turns the arbiter's clock stands still: it must not keep a replay going for ever.
        wake = self._tick_at if self._tick_at is not None and self.ledger.active_count else _NEVER
        later = self.queue.later
        if later and later[0][0] < wake:
            wake = later[0][0]
        if self.reports.timers and self.reports.timers[0][0] < wake:
            wake = self.reports.timers[0][0]
        by_end = self.ledger.by_end
        if by_end and (self._enforce or self.transitions.graces):
            first = by_end[0][0]
            if first <= now or self.clockwork.limit_sweep:
                wake = min(wake, self._deadline_wake(first, now))
            elif first < wake:
                wake = first
        if self.queue.waiting:
            if self._periodic:
                wake = min([wake, *self._pass_wakes(now)])
            elif self.making_way.retries:
                retry = self.making_way.next_retry(now)
                if retry is not None and retry < wake:
                    wake = retry
        if wake == _NEVER:
            return None
        return wake if wake > now else now

    def _deadline_wake(self, first: Seconds, now: Seconds) -> Seconds:
        """Return when limits have to be looked at, if not simply at the first deadline."""
        over = self.config.scheduler.over_time_limit
        if self._sweeping.interval:
            return self._sweeping.first_from(first, now)
        return next((at + over for at, _, _ in self.ledger.by_end if at + over > now), _NEVER)

    def _pass_wake(self, now: Seconds) -> Seconds | None:
        """Return the point of the grid at which the next full pass is wanted; None: none is."""
        wakes = []
        if self._soon:
            wakes.append(self._passing.after(now))
        retry = self.making_way.next_retry(now) if self.making_way.retries else None
        if retry is not None:
            wakes.append(self._passing.first_from(retry, now))
        return min(wakes, default=None)

    def _pass_wakes(self, now: Seconds) -> list[Seconds]:
        wakes = [self._pass_wake(now), self._submit_pass_at]
        if self._type == "backfill" and self._bf_dirty and self._backfilling.interval:
            wakes.append(self._backfilling.after(now))
        return [wake for wake in wakes if wake is not None]

    # --------------------------------------------------------------------------- adoption
    def hand_over(self) -> State:
        """Return what the cluster is doing, so that another engine can go on from here; to be called between steps.

        :raises PolicyError: a plugin hands over what JSON does not have.
        """
        return hand_over(self)

    def adopt(self, state: State, source: str = "state") -> list[Action]:
        """Take a state over that this engine did not bring about itself, before its first step.

        :param source: name of the file, for messages.
        :returns: what its arbiter orders when it sees the jobs; mostly nothing.
        :raises ConfigError: with all that does not fit this cluster and these policies; the engine is of no use then.
        """
        return adopt(self, state, source)

    def memory(self) -> dict[str, Any]:
        """Return when passes are due, and the like; for `hand_over`."""
        return {
            "count": self._count,
            "refused_het": dict(self._refused_het),
            "last_backfill": self._last_backfill,
            "grid_pass_at": self._grid_pass_at,
            "bf_dirty": self._bf_dirty,
            "submit_pass_at": self._submit_pass_at,
            "soon": self._soon,
            "tick_at": self._tick_at,
        }

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self._count = max(self._count, memory["count"])
        self._refused_het = dict(memory["refused_het"])
        self._last_backfill = memory["last_backfill"]
        self._grid_pass_at = memory["grid_pass_at"]
        self._bf_dirty = memory["bf_dirty"]
        self._submit_pass_at = memory["submit_pass_at"]
        self._soon = memory["soon"]
        self._tick_at = memory["tick_at"]

    @property
    def last_index(self) -> int:
        """Place of the last job in the job table so far."""
        return self._count

    def draft(self, spec: JobSpec, index: int) -> tuple[JobDraft, str]:
        """Return a job that was submitted before this engine came, and what is wrong with it here; empty: nothing."""
        self._count = max(self._count, index)
        return self._draft(spec, index)

    def wake_up(self, pending: Iterable[Job]) -> None:
        """Let a pass be made in the next step, and see which of the jobs that wait already wait for good."""
        if not self.config.scheduler.enforce_part_limits:
            for job in pending:
                beyond = self._beyond(job)
                if beyond:
                    self.placer.beyond[job.id] = beyond
        self.transitions.changed = True
        self._soon = self._bf_dirty = True
        if self.gang is not None:
            self._tick_at = self._next_tick(self.gang)

    # --------------------------------------------------------------------------- results
    def metrics(self) -> Mapping[str, Any]:
        """Return the figures so far."""
        return self.recorder.metrics.as_dict(sum(node.cpus for node in self.ledger.cluster.nodes))


__all__ = ["Engine", "build_cluster"]

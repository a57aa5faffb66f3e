"""Drive one run: events in, actions out.

The engine has no clock. A world calls `Engine.step` with the time and what happened, carries out the actions
that come back, and calls again at `Engine.next_wake` at the latest.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from makeway import vendors
from makeway.clockwork import Clockwork
from makeway.config import Config, build_clockwork, build_cluster, parse_mode
from makeway.errors import RunnerError
from makeway.model import (
    Gang,
    Job,
    JobSpec,
    PreemptBasis,
    Seconds,
    Stay,
)
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.registry.limits import Has
from makeway.state import State
from makeway.worlds.events import (
    Action,
    Adopted,
    BegunAnew,
    Checkpointed,
    Cleaned,
    Command,
    Event,
    Failed,
    Finished,
    NodesDown,
    NodesDrained,
    NodesQuiet,
    NodesUp,
    NodesUsed,
    Noticed,
    Obstructed,
    Performed,
    Reused,
    Started,
    Submitted,
)
from makeway_engine.adoption import adopt, take_in
from makeway_engine.commands import Commands
from makeway_engine.deeds import Deeds
from makeway_engine.endings import Endings
from makeway_engine.entries import Listeners
from makeway_engine.forgiving import Forgiveness
from makeway_engine.in_use import InUse
from makeway_engine.ledger import Ledger
from makeway_engine.placing import Placer
from makeway_engine.priorities import Priorities
from makeway_engine.priority import priorities_of
from makeway_engine.queue import Queue
from makeway_engine.remembered import Remembered
from makeway_engine.reports import Reports
from makeway_engine.rhythm import Rhythm
from makeway_engine.rulings import Ahead, Rulings
from makeway_engine.schedulers import Schedulers
from makeway_engine.snapshot import save
from makeway_engine.submission import Submission
from makeway_engine.transitions import Transitions
from makeway_engine.vacating import Vacating
from makeway_engine.why_suspended import reasons_of

_log = logging.getLogger("makeway")
_TINY = 1e-6
_NODE_STATES = {NodesDown: "down", NodesDrained: "drained", NodesUp: "up"}
_MOST_STEPS_AT_ONE_INSTANT = 10_000
_NEVER = math.inf


class Engine:
    """One run: the books, the queue, and what decides."""

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        policies: Policies,
        clockwork: Clockwork | None = None,
        *,
        trusted: bool = False,
    ) -> None:
        """Be ready for the first step.

        :param trusted: the world neither fails nor forgets: actions are not numbered, and no outcome is awaited.
        """
        self.config = config
        self.clockwork = clockwork or build_clockwork(config.scheduler.clockwork)
        self.recorder = recorder
        self.policies = policies
        self.deeds = None if trusted else Deeds()
        """Numbers the actions; None: the world is trusted."""
        scheduler = config.scheduler
        ahead = Ahead()
        rulings = Rulings(policies, ahead)
        listeners = Listeners()
        self.ledger = ledger = Ledger(
            recorder.cluster,
            parse_mode(config.policy.preempt_mode),
            vendors.rules_in_force(scheduler, policies.vendors, real=config.world.real),
            {**policies.settings, Clockwork: self.clockwork},
            rulings,
            config.policy.select_parameters,
            config.policy.preempt,
            policies.preempt_basis(config.policy.preempt),
            on_reason=recorder.waits_for if recorder.listens else None,
            gone=None if trusted else [],
            listeners=listeners,
        )
        self.selector = policies.selector(ledger)
        ledger.gives_whole_nodes = getattr(self.selector, "gives_whole_nodes", False)
        self.in_use = in_use = InUse(recorder.cluster)
        policies.build_limits(ledger, [Has("in_use", in_use)] if in_use.vacates else ())
        policies.build_queue(ledger)
        rulings.bind(ledger)
        recorder.begin(policies.displaces_by(ledger), config.scheduler.young_victim_age)
        self.gang = policies.gang(ledger)
        self.queue = Queue(ledger, listeners, kill_invalid_depend=scheduler.kill_invalid_depend)
        self.forgiveness = Forgiveness(policies, recorder, ledger, config.world.failures.policy_errors)
        self.priorities = Priorities(
            policies, ledger, self.queue, self.forgiveness, priorities_of(recorder.cluster, scheduler)
        )
        self.transitions = Transitions(
            ledger,
            self.queue,
            self.selector,
            self.gang,
            policies,
            recorder,
            self.clockwork,
            self.forgiveness,
            max_requeues=scheduler.max_requeues,
            priorities=self.priorities,
        )
        self.making_way = self.transitions.making_way
        self.placer = Placer(
            ledger,
            self.selector,
            policies,
            rulings,
            self.transitions,
            recorder,
            self.forgiveness,
            preemption=ledger.preempt_basis is not PreemptBasis.NOTHING,
        )
        self.schedulers = Schedulers(
            ledger,
            self.queue,
            self.placer,
            policies,
            scheduler,
            self.clockwork,
            ahead=ahead,
        )
        self.rhythm = Rhythm(
            ledger,
            self.queue,
            self.transitions,
            self.placer,
            self.schedulers,
            policies,
            scheduler,
            self.clockwork,
            watch=self.priorities.watcher,
        )
        self.commands = Commands(
            ledger,
            self.queue,
            self.transitions,
            policies,
            recorder,
            self.placer,
            lambda job, spec: self.submission.rewrite(job, spec),
            in_use,
        )
        self.reports = Reports(
            ledger,
            self.queue,
            self.transitions,
            recorder,
            config.world.failures,
            rulings.stubborn,
            self.deeds,
        )
        self.vacating = Vacating(in_use, ledger, self.transitions, self.commands, self.reports, recorder)
        self.submission = Submission(
            ledger, self.queue, self.transitions, self.placer, self.selector, recorder, scheduler
        )
        self.endings = Endings(ledger, self.transitions, self.reports, policies, scheduler, self.clockwork)
        self._enforce = scheduler.enforce_time_limits
        self._instant_steps = 0
        self._tick_at: Seconds | None = None

    def remember_ended(self) -> None:
        """Remember jobs that end from now on, so that people can have them run again; in a trusted world alone."""
        if self.deeds is None:
            self.transitions.remembered = Remembered(self.clockwork.min_job_age)

    def forgive(self) -> None:
        """Go on from now on when a plugin raises: what it was asked for waits (`makeway_engine.forgiving`)."""
        self.forgiveness.begin()

    # -------------------------------------------------------------------------- stepping
    def step(self, now: Seconds, events: Sequence[Event]) -> list[Action]:
        """Take note of what has happened by `now`, and return what is to be done.

        :raises RunnerError: time runs backwards.
        :raises PolicyError: a plugin fails or answers wrongly, and the engine does not `forgive` that.
        """
        ledger, transitions, queue = self.ledger, self.transitions, self.queue
        rhythm, forgiveness = self.rhythm, self.forgiveness
        if rhythm.on_grids:
            rhythm.note_points(now)
        if now > ledger.now:
            self.recorder.time_moves(now)
            ledger.now = now
            self._instant_steps = 0
        else:
            self._watch_instant(now)
        transitions.actions = []
        if forgiveness.on:
            for event in events:
                self._forgiven(event)
        else:
            for event in events:
                if type(event) is Finished:
                    self.endings.finished(event)
                elif type(event) is Submitted and self.deeds is None:
                    self.submission.submit(event.spec)
                else:
                    self._handle(event)
        if self.reports.timers:
            self.reports.due(now)
        if queue.later and queue.mature(now):
            rhythm.came_by_clock()
        while queue.withdrawn:
            if (withdrawn := queue.withdrawn.pop(0)) in queue:
                transitions.cancel_pending(withdrawn)
        if queue.bounced and queue.take_back(now):
            transitions.changed = True
        if ledger.by_end and ledger.by_end[0][0] <= now:
            by = rhythm.deadlines_by(now)
            if by is not None:
                self.endings.deadlines(by)
        if self.endings.looks:
            by = rhythm.deadlines_by(now)
            at = self.endings.look_at
            if by is not None and at is not None and at <= by + _TINY:
                self.endings.overdue(now)
        if self._tick_at is not None and self._tick_at <= now + _TINY:
            transitions.tick()
        self._run(now)
        if self.gang is not None:
            self._tick_at = self._next_tick(self.gang)
        if self.endings.looks:
            self.endings.look_ahead(now)
            rhythm.look_at = self.endings.look_at
        if ledger.gone:
            self.reports.ended(ledger.gone)
        if self.deeds is not None and transitions.actions:
            return self.deeds.number(transitions.actions)
        return transitions.actions

    def _run(self, now: Seconds) -> None:
        """Work priorities out that are due, and make the passes that are."""
        rhythm, forgiveness = self.rhythm, self.forgiveness
        if self.priorities.prioritizer is not None and self.priorities.due(now):
            self._renew_priorities()
        if forgiveness.on:
            forgiveness.run(lambda: rhythm.run(now), None)
            if forgiveness.given_up is not None:
                self.placer.stop_preemption()
        else:
            rhythm.run(now)

    def _renew_priorities(self) -> None:
        """Let all priorities be worked out anew; a pass is made where that may decide something."""
        again = self.priorities.again
        moved = self.forgiveness.run(again, False) if self.forgiveness.on else again()
        if moved or self.placer.preemption:
            self.rhythm.look_again()

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

    def _forgiven(self, event: Event) -> None:
        """Take note of an event; what one asks for never ends the step of others."""
        try:
            self.forgiveness.run(functools.partial(self._handle, event), None)
        except Exception as error:
            if not isinstance(event, Submitted | Command):
                raise
            _log.exception("what was asked for is refused, since it cannot be handled")
            why = f"internal error, please report it: {type(error).__name__}: {str(error)[:200]}"
            if isinstance(event, Command):
                self.recorder.refused(event, why, self.ledger.now)
                return
            job = self.ledger.jobs.get(event.spec.id)
            if job is not None:
                self.submission.reject(job, why)
            else:
                self.recorder.note("rejected", event.spec.id, self.ledger.now, reason=why)

    def _handle(self, event: Event) -> None:
        if type(event) is Finished:
            self.endings.finished(event)
        elif type(event) is Submitted:
            self._submitted(event)
        elif isinstance(event, Cleaned):
            self.endings.cleaned(event)
        elif isinstance(event, Command):
            self.commands.carry_out(event)
        elif isinstance(event, NodesDown | NodesDrained | NodesUp):
            self._nodes(event)
        elif isinstance(event, NodesUsed):
            self.vacating.used(event)
        elif isinstance(event, NodesQuiet):
            self.vacating.quiet(event)
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
        elif isinstance(event, Obstructed):
            reports.obstructed(event)
        elif isinstance(event, BegunAnew):
            reports.begun_anew(event)
        elif isinstance(event, Reused):
            reports.reused(event)
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

    def _nodes(self, event: NodesDown | NodesDrained | NodesUp) -> None:
        nodes = self.reports.nodes(event)
        if nodes:
            self.recorder.nodes_changed(nodes, _NODE_STATES[type(event)], self.ledger.now)
        if isinstance(event, NodesDown):
            self.endings.nodes_down(nodes)
        elif isinstance(event, NodesDrained):
            self.ledger.set_down(nodes)
        else:
            self.ledger.set_up(nodes)
            self.transitions.changed = True

    def submit(self, spec: JobSpec) -> None:
        """Enter a new job; one that can never run ends at once as FAILED with the reason."""
        self.submission.submit(spec)

    def stays(self, job: Job) -> list[Stay]:
        """Return why a suspended job stays suspended now; nothing is decided or changed."""
        return self.in_use.stays(job) or reasons_of(job, self.gang, self.policies, self.ledger)

    # ---------------------------------------------------------------------------- waking
    @property
    def next_wake(self) -> Seconds | None:
        """When the engine wants to be called at the latest; None: not before something happens."""
        now = self.ledger.now
        # With no job to take turns the arbiter's clock stands still: it must not keep a replay going for ever.
        wake = self._tick_at if self._tick_at is not None and self.ledger.active_count else _NEVER
        queue, rhythm = self.queue, self.rhythm
        if queue.withdrawn:
            return now
        later = queue.later
        if later and later[0][0] < wake:
            wake = later[0][0]
        if self.reports.timers and self.reports.timers[0][0] < wake:
            wake = self.reports.timers[0][0]
        by_end = self.ledger.by_end
        if by_end and (self._enforce or self.transitions.graces):
            at: Seconds | None = by_end[0][0]
            if rhythm.sweeps or by_end[0][0] <= now:
                at = rhythm.deadline_wake(by_end[0][0], now)
            if at is not None and at < wake:
                wake = at
        look = self.endings.look_at
        if look is not None and self.ledger.active_count:
            at = rhythm.look_wake(look, now)
            if at < wake:
                wake = at
        due = self.priorities.next_at if self.priorities.prioritizer is not None else None
        if due is not None and due < wake:
            wake = due
        if queue.waiting and (rhythm.periodic or self.making_way.retries):
            at = rhythm.next_pass(now)
            if at is not None and at < wake:
                wake = at
        if wake == _NEVER:
            return None
        return wake if wake > now else now

    # --------------------------------------------------------------------------- adoption
    def save(self) -> State:
        """Return what the cluster is doing, so that another engine can go on from here; to be called between steps.

        :raises PolicyError: a plugin hands over what JSON does not have.
        """
        return save(self)

    def adopt(self, state: State, source: str = "state") -> list[Action]:
        """Take a state over that this engine did not bring about itself, before its first step.

        :param source: name of the file, for messages.
        :returns: what its arbiter orders when it sees the jobs; mostly nothing.
        :raises ConfigError: with all that does not fit this cluster and these policies; the engine is of no use then.
        """
        return adopt(self, state, source)

    def memory(self) -> dict[str, Any]:
        """Return when passes are due, and the like; for `save`."""
        return {**self.submission.save(), **self.rhythm.save(), "tick_at": self._tick_at}

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self.submission.restore(memory)
        self.rhythm.restore(memory)
        self._tick_at = memory["tick_at"]

    def wake_up(self, pending: Iterable[Job]) -> None:
        """Let a pass be made in the next step, and see which of the jobs that wait already wait for good."""
        self.submission.look_again(pending)
        self.rhythm.wake_up()
        if self.gang is not None:
            self._tick_at = self._next_tick(self.gang)

    # --------------------------------------------------------------------------- results
    def metrics(self) -> Mapping[str, Any]:
        """Return the figures so far."""
        return self.recorder.figures(sum(node.cpus for node in self.ledger.cluster.nodes))


__all__ = ["Engine", "build_cluster"]

"""The contract of worlds: they do what they are told, once, and tell what happened.

The engine drives the world through random workloads, by the live loop and on a clock that stands for the computer's;
what the two say to one another is watched. A world that starts real processes overrides `command` to say what a job of
a workload runs, and `tolerance` to say how late it may be.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
from hypothesis.strategies import SearchStrategy

from makeway.config import Config, WorldTable, build_cluster
from makeway.errors import InvariantError, MakewayError
from makeway.model import JobSpec, JobState, Seconds
from makeway.record import Line, Recorder, to_json
from makeway.registry import Policies, build_world
from makeway.worlds.api import Moment, State, Survey, World
from makeway.worlds.clock import Clock, FakeClock
from makeway.worlds.events import (
    Action,
    Cleaned,
    Event,
    Failed,
    Finished,
    Kill,
    Resume,
    SendSignal,
    Start,
    Suspend,
)
from makeway_app.replay import Options, Run, replay
from makeway_engine.engine import Engine
from makeway_live.agenda import Agenda
from makeway_live.differences import differences
from makeway_live.drive import Live
from makeway_testing import builders
from makeway_testing.contracts.base import Contract, PatientChecker, any_victim
from makeway_testing.failures import BreachError
from makeway_testing.policies import lower_tiers
from makeway_testing.strategies import Scenario, contended

_TINY = 1e-6
_MOST_TURNS = 5_000


class WorldContract(Contract):
    """What every world promises (``makeway_world``)."""

    hook = "makeway_world"
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    policies: ClassVar[Sequence[tuple[str, str]]] = (
        ("preempt/none", "off"),
        (lower_tiers.NAME, "requeue"),
        (lower_tiers.NAME, "cancel"),
        (lower_tiers.NAME, "suspend,gang"),
    )
    """Preempt plugin and cluster-wide mode of the random runs."""
    tolerance: ClassVar[Seconds] = 0.0
    """By how much a job may end later than its run time says."""
    exact: ClassVar[bool] = False
    """Whether it promises the same record as the simulated world, on a clock that is never late."""

    def key(self) -> str:
        """Return the key of ``[policy]`` that a plugin without decisions stands under."""
        return "plugins"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters and up to eight jobs; no latencies, no epilogs."""
        return contended(self.policies).map(_without_latencies)

    def _wired(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.config}

    def clock(self) -> Clock:
        """Return the clock of one run."""
        return FakeClock()

    def job(self, spec: JobSpec) -> JobSpec:
        """Return a job of a random workload as this world can run it; override it to give it a `command`."""
        return spec

    def world(self, config: Config, state: State) -> World:
        """Build the world as ``makeway replay --world`` does."""
        table = WorldTable(name=self.plugin, settings=dict(self.settings))
        named = attrs.evolve(config, world=table)
        found: World = build_world(named, build_cluster(config), state, {self.plugin: self._plugin()})
        return found

    # ---------------------------------------------------------------------------------- rules
    def test_it_can_be_built(self) -> None:
        """It is built from cluster, settings and state, and can perform, wait and be surveyed."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                self.world(self.configured(), State(directory=Path(folder), clock=self.clock()))
            except MakewayError as error:
                self.fail(str(error), hook=self.hook)

    def test_nothing_happens_by_itself(self) -> None:
        """With nothing started, `wait` has no events, and returns by the instant that it is given."""
        with tempfile.TemporaryDirectory() as folder:
            clock = self.clock()
            world = self.world(self.configured(), State(directory=Path(folder), clock=clock))
            for until in (0.0, 5.0, 1.0):
                found = world.wait(until)
                if found is not None and found[1]:
                    self.fail(
                        f"wait({until:g}) reported {found[1]!r:.80}, but nothing was started", hook=self.hook
                    )
            if world.survey().jobs:
                self.fail("its survey shows jobs, but nothing was started", hook=self.hook)

    def test_time_goes_forward(self) -> None:
        """`wait` never goes back in time, and is no later than the tolerance when something is due."""
        self.watched("time")

    def test_only_running_jobs_end(self) -> None:
        """Only a job that was started and runs ends by itself, and once: none that is suspended or was killed."""
        self.watched("ends")

    def test_jobs_have_their_run_time(self) -> None:
        """A job ends when it has run for its run time; while it is suspended its work stands still."""
        self.watched("run time")

    def test_killed_jobs_are_cleaned_up(self) -> None:
        """Every job that is killed is reported as cleaned, once."""
        self.watched("cleaned")

    def test_events_name_the_incarnation(self) -> None:
        """Every event about a job names the incarnation that it is about."""
        self.watched("incarnation")

    def test_what_is_told_again_is_done_once(self) -> None:
        """After a crash the daemon asks again for what it is not sure of: a job is never started twice."""

        def rule(scenario: Scenario) -> None:
            self._run(scenario, seen=[], again=True)

        self.hold(rule)

    def test_the_survey_agrees_with_the_books(self) -> None:
        """At any time `survey` shows what the engine knows already: what runs, what is stopped, what is leaving."""

        def rule(scenario: Scenario) -> None:
            self._run(scenario, surveyed=True)

        self.hold(rule)

    def test_nothing_forbidden_happens(self) -> None:
        """Whole random runs break none of the invariants, and tell the engine nothing that is no news."""

        def rule(scenario: Scenario) -> None:
            try:
                self._run(scenario, checked=True)
            except InvariantError as error:
                raise BreachError(str(error)) from None

        self.hold(rule)

    def test_it_agrees_with_the_simulated_world(self) -> None:
        """A world that promises it leaves the record that the simulated one leaves."""

        def rule(scenario: Scenario) -> None:
            for mine, its in zip([*self._run(scenario), ""], [*self._simulated(scenario), ""], strict=False):
                if mine != its:
                    raise BreachError(
                        f"it has\n{mine or 'nothing more'}\nthe simulated world\n{its or 'no more'}"
                    )

        if not self.exact:
            self.skip("it does not claim to be exact")
        self.hold(rule)

    # ---------------------------------------------------------------------------------- driving
    def watched(self, about: str) -> None:
        """Hold one of the rules that `_Watched` looks after."""

        def rule(scenario: Scenario) -> None:
            seen: list[_Watched] = []
            try:
                self._run(scenario, seen=seen)
            except BreachError as error:
                if error.hook == f"{self.hook} ({about})":
                    raise
                return
            for each in seen:
                each.finish(about)

        self.hold(rule)

    def _run(
        self,
        scenario: Scenario,
        *,
        checked: bool = False,
        surveyed: bool = False,
        again: bool = False,
        seen: list[_Watched] | None = None,
    ) -> list[str]:
        """Run a scenario in the world; return its record."""
        config = self._config(scenario)
        specs = [self.job(spec) for spec in scenario.specs]
        lines: list[Line] = []
        engine = Engine(
            config, Recorder(build_cluster(config), lines.append), Policies(config, self.companions)
        )
        clock = self.clock()
        with tempfile.TemporaryDirectory() as folder:
            state = State(directory=Path(folder), clock=clock, clockwork=engine.clockwork)
            world = self.world(config, state)
            watch = _Watched(world, self.hook, self.tolerance, again=again)
            if seen is not None:
                seen.append(watch)
            live = Live(engine, watch, clock, agenda=Agenda(specs))
            checker = PatientChecker(allowed=any_victim) if checked else None
            try:
                self._turn(live, checker, surveyed=surveyed)
            except MakewayError:
                raise
            except Exception as error:
                raise BreachError(f"it raised {type(error).__name__}: {error}", hook=self.hook) from error
            finally:
                live.close()
        if checker is not None:
            if engine.reports.unheeded:
                raise BreachError(
                    f"it reported what is no news: {min(engine.reports.unheeded)}", hook=self.hook
                )
            checker.finish(
                Run(engine=engine, recorder=engine.recorder, ended_at=engine.ledger.now),
                specs if not self.tolerance else (),
            )
        return [to_json(line) for line in lines]

    def _turn(self, live: Live, checker: PatientChecker | None, *, surveyed: bool) -> None:
        for _ in range(_MOST_TURNS):
            if live.over:
                return
            live.turn()
            if checker is not None:
                checker(live.engine)
            if surveyed:
                found = differences(live.engine, live.world.survey())
                if found:
                    raise BreachError(f"its survey differs from the books: {found[0]!r:.160}", hook=self.hook)
        raise BreachError(f"no end after {_MOST_TURNS} turns, at {live.clock.now():g} s", hook=self.hook)

    def _simulated(self, scenario: Scenario) -> list[str]:
        lines: list[Line] = []
        replay(
            self._config(scenario), scenario.specs, (), Options(sink=lines.append, plugins=self.companions)
        )
        return [to_json(line) for line in lines]

    def _config(self, scenario: Scenario) -> Config:
        assert isinstance(scenario.settings, Mapping)
        return builders.config(scenario.machine, {**scenario.settings, **self.config})


def _without_latencies(scenario: Scenario) -> Scenario:
    return scenario.with_settings(clockwork={"requeue_delay": 5.0})


@attrs.define
class _Work:
    """One incarnation of a job, as its events and actions tell."""

    incarnation: int
    left: Seconds | None
    """Work to do, in seconds of running; None: it ends when it is told to."""
    since: Seconds | None
    """Running since; None: suspended."""
    signalled: bool = False

    def due(self) -> Seconds | None:
        """Return when it has done its work."""
        return None if self.left is None or self.since is None else self.since + self.left


class _Watched:
    """A world that is looked at from the side of the engine."""

    def __init__(self, inner: World, hook: str, tolerance: Seconds, *, again: bool = False) -> None:
        self._inner = inner
        self._hook = hook
        self._tolerance = tolerance
        self._again = again
        self._now: Seconds = 0.0
        self._working: dict[str, _Work] = {}
        self._killed: set[tuple[str, int]] = set()

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Note what is asked for, and ask for it; twice, if that is what is looked at."""
        for action in actions:
            self._note(action, now)
        self._inner.perform(actions, now)
        if self._again:
            self._inner.perform([action for action in actions if not isinstance(action, Kill)], now)

    def _note(self, action: Action, now: Seconds) -> None:
        job = action.job
        work = self._working.get(job.id)
        if isinstance(action, Start):
            left = job.spec.run_time
            self._working[job.id] = _Work(
                incarnation=action.incarnation,
                left=None if left is None else max(0.0, left - job.begun_with),
                since=None if action.stopped else now,
            )
        elif isinstance(action, Kill):
            self._working.pop(job.id, None)
            self._killed.add((job.id, action.incarnation))
        elif work is None:
            return
        elif isinstance(action, Suspend) and work.since is not None:
            if work.left is not None:
                work.left -= now - work.since
            work.since = None
        elif isinstance(action, Resume) and work.since is None:
            work.since = now
        elif isinstance(action, SendSignal):
            work.signalled = True

    def wait(self, until: Seconds | None) -> Moment | None:
        """Wait, and look at what is reported."""
        found = self._inner.wait(until)
        if found is None:
            return None
        at, events = found
        if at < self._now - _TINY:
            raise self._breach("time", f"wait() went back from {self._now:g} s to {at:g} s")
        due = min((each for work in self._working.values() if (each := work.due()) is not None), default=None)
        if not events and due is not None and at > due + self._tolerance + _TINY:
            raise self._breach("time", f"it came back at {at:g} s without an event; one was due at {due:g} s")
        self._now = at
        for event in events:
            self._check(event, at)
        return found

    def survey(self) -> Survey:
        """Look at what is there."""
        return self._inner.survey()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _check(self, event: Event, at: Seconds) -> None:
        if isinstance(event, Finished):
            self._finished(event, at)
        elif isinstance(event, Cleaned):
            key = event.job_id, event.incarnation
            if not event.incarnation:
                raise self._breach(
                    "incarnation", "it is reported as cleaned without its incarnation", event.job_id
                )
            if key not in self._killed:
                raise self._breach(
                    "cleaned", "it is reported as cleaned, but nothing killed it", event.job_id
                )
            if event.nodes is None:
                self._killed.discard(key)
        elif isinstance(event, Failed) and not event.why:
            raise self._breach("ends", "an action is reported as failed without a reason")

    def _finished(self, event: Finished, at: Seconds) -> None:
        work = self._working.pop(event.job_id, None)
        if work is None:
            killed = any(job_id == event.job_id for job_id, _ in self._killed)
            why = "it was killed" if killed else "it does not run"
            raise self._breach("ends", f"it is reported as ended, but {why}", event.job_id)
        if event.incarnation != work.incarnation:
            text = f"it is reported as ended in incarnation {event.incarnation}; it is in {work.incarnation}"
            raise self._breach("incarnation", text, event.job_id)
        if work.signalled:
            return
        if work.since is None:
            raise self._breach("ends", "it is reported as ended, but it is suspended", event.job_id)
        if event.state not in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED):
            raise self._breach("ends", f"it ended as {event.state.value}", event.job_id)
        due = work.due()
        if due is None or at < due - _TINY or at > due + self._tolerance + _TINY:
            shown = "never" if due is None else f"at {due:g} s"
            raise self._breach("run time", f"it ended at {at:g} s; its work is done {shown}", event.job_id)

    def finish(self, about: str) -> None:
        """Check what must have happened once nothing happens any more."""
        if about == "cleaned" and self._killed:
            raise self._breach(about, "it was killed, and never reported as cleaned", min(self._killed)[0])
        for job_id, work in self._working.items():
            if about == "run time" and work.due() is not None:
                raise self._breach(about, f"its work was done at {work.due():g} s; it never ended", job_id)

    def _breach(self, about: str, found: str, job: str = "") -> BreachError:
        return BreachError(found, hook=f"{self._hook} ({about})", job=job, at=self._now)

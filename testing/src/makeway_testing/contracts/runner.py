"""The contract of runners, the worlds that jobs run in. EXPERIMENTAL, as the hook is.

A runner is driven by the engine through random workloads, and what it does is watched. One whose clock is not
simulated is tested on a clock that is: override `runner`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from hypothesis.strategies import SearchStrategy

from makeway.clockwork import Clockwork
from makeway.config import build_clockwork, build_cluster
from makeway.errors import InvariantError, MakewayError, RunnerError
from makeway.model import JobSpec, JobState, Seconds
from makeway.record import Line, Recorder, to_json
from makeway.registry import Policies
from makeway.registry.finding import OWN
from makeway.runners.api import Runner, RunnerWorld
from makeway.worlds.events import (
    Action,
    Cleaned,
    Event,
    Finished,
    Kill,
    Resume,
    SendSignal,
    Start,
    Submitted,
    Suspend,
)
from makeway_app.replay import Options, Run, drive
from makeway_app.runners.simulated import SimulatedRunner
from makeway_engine.engine import Engine
from makeway_testing import builders, nuisances
from makeway_testing.contracts.base import Contract, PatientChecker, anybody
from makeway_testing.failures import BreachError
from makeway_testing.policies import lower_tiers
from makeway_testing.strategies import Scenario, contended

_TINY = 1e-6
_MOST_WAITS = 5_000


class RunnerContract(Contract):
    """What every world that ``makeway_runners`` lists promises."""

    hook = "makeway_runners"
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    world: ClassVar[str] = ""
    """Name of the runner, if the plugin lists several."""
    policies: ClassVar[Sequence[tuple[str, str]]] = (
        ("preempt/none", "off"),
        (lower_tiers.NAME, "requeue"),
        (lower_tiers.NAME, "cancel"),
        (lower_tiers.NAME, "suspend,gang"),
    )
    """Preempt plugin and cluster-wide mode of the random runs."""
    tolerance: ClassVar[Seconds] = 0.0
    """By how much a job may end later than its run time says."""
    exact: ClassVar[bool] = True
    """Whether it promises the same record as the simulated world."""

    def key(self) -> str:
        """Return the key of ``[policy]`` that a plugin without decisions stands under."""
        return "plugins"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters and up to eight jobs; no latencies, no epilogs."""
        return contended(self.policies).map(_without_latencies)

    def _wired(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.config}  # no configuration names a runner

    def runner(self, jobs: Iterable[JobSpec], clockwork: Clockwork) -> Runner:
        """Build the world; override it to give it a clock that stands for the computer's."""
        listed = self._plugin().makeway_runners()
        if self.world not in listed and (self.world or len(listed) != 1):
            self.fail(f"it lists {sorted(listed)}; set `world` to one of them", hook=self.hook)
        factory = listed[self.world] if self.world else next(iter(listed.values()))
        found: Runner = factory(jobs, clockwork)
        return found

    # ---------------------------------------------------------------------------------- rules
    def test_it_can_wait_and_act(self) -> None:
        """The factory takes jobs and clockwork, and returns something that can act and wait."""
        found: Any = self.runner((), Clockwork())
        for method in ("act", "wait"):
            if not callable(getattr(found, method, None)):
                self.fail(f"{type(found).__name__} has no method {method!r}", hook=self.hook)
        if found.wait(None) is not None:
            self.fail("without jobs wait(None) returned something; allowed: None, for never", hook=self.hook)

    def test_time_goes_forward(self) -> None:
        """`wait` never goes back in time, nor beyond the instant it was given, and has no events if that came first."""
        self.watched("time")

    def test_jobs_are_submitted_once(self) -> None:
        """Every job is submitted once, in order, at its instant."""
        self.watched("submitted")

    def test_only_running_jobs_end(self) -> None:
        """Only a job that was started and runs ends by itself, and once: nobody who is suspended or was killed."""
        self.watched("ends")

    def test_jobs_have_their_run_time(self) -> None:
        """A job ends when it has run for its run time; while it is suspended its work stands still."""
        self.watched("run time")

    def test_killed_jobs_are_cleaned_up(self) -> None:
        """Every job that is killed is reported as cleaned, once."""
        self.watched("cleaned")

    def test_nothing_forbidden_happens(self) -> None:
        """Whole random runs break none of the invariants, and give the engine nothing that it cannot understand."""

        def rule(scenario: Scenario) -> None:
            try:
                self._run(scenario, checked=True)
            except (InvariantError, RunnerError) as error:
                raise BreachError(str(error)) from None

        self.hold(rule)

    def test_same_input_same_record(self) -> None:
        """Two runs of one scenario leave the same record, whatever the computer's clock says."""
        package = inspect.getmodule(type(self.runner((), Clockwork())))
        name = package.__name__.partition(".")[0] if package is not None else ""
        clocks = [nuisances.Clock(at, "" if name in OWN else name) for at in nuisances.CLOCKS]

        def rule(scenario: Scenario) -> None:
            first = self._run(scenario)
            for clock in clocks:
                with clock:
                    if self._run(scenario) != first:
                        raise BreachError(f"with the clock at {clock.instant:.0f} s the record differs")

        self.hold(rule)

    def test_it_agrees_with_the_simulated_world(self) -> None:
        """A world that promises it leaves the record that the simulated one leaves."""

        def rule(scenario: Scenario) -> None:
            mine, its = self._run(scenario), self._run(scenario, SimulatedRunner)
            for line, other in zip([*mine, ""], [*its, ""], strict=False):
                if line != other:
                    raise BreachError(
                        f"it has\n{line or 'nothing more'}\nthe simulated world\n{other or 'no more'}"
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
            except RunnerError:
                pass
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
        factory: Any = None,
        *,
        checked: bool = False,
        seen: list[_Watched] | None = None,
    ) -> list[str]:
        """Run a scenario in the world; return its record."""
        config = builders.config(scenario.machine, self._settings(scenario))
        lines: list[Line] = []
        policies = Policies(config, self.companions)
        engine = Engine(config, Recorder(build_cluster(config), lines.append), policies)
        world = (factory or self.runner)(iter(scenario.specs), build_clockwork(config.scheduler.clockwork))
        if seen is not None:
            world = _Watched(world, scenario.specs, self.hook, self.tolerance)
            seen.append(world)
        checker = PatientChecker(allowed=anybody)
        options = Options(after_step=checker if checked else _Counter())
        try:
            ended_at = drive(engine, RunnerWorld(world), options)
        except MakewayError:
            raise
        except Exception as error:
            raise BreachError(f"it raised {type(error).__name__}: {error}", hook=self.hook) from error
        if checked:
            checker.finish(Run(engine=engine, recorder=engine.recorder, ended_at=ended_at), scenario.specs)
        return [to_json(line) for line in lines]

    def _settings(self, scenario: Scenario) -> Mapping[str, Any]:
        assert isinstance(scenario.settings, Mapping)
        return {**scenario.settings, **self.config}


def _without_latencies(scenario: Scenario) -> Scenario:
    return scenario.with_settings(clockwork={"requeue_delay": 5.0})


class _Counter:
    """Ends a run that would never end."""

    def __init__(self) -> None:
        self._steps = 0

    def __call__(self, engine: Engine) -> None:
        self._steps += 1
        if self._steps > _MOST_WAITS:
            raise RunnerError(f"no end after {_MOST_WAITS} steps, at {engine.ledger.now:g} s")


@attrs.define
class _Work:
    """One incarnation of a job, as its events and actions tell."""

    left: Seconds | None
    """Work to do, in seconds of running; None: it ends when it is told to."""
    since: Seconds | None
    """Running since; None: suspended."""
    signalled: bool = False

    def due(self) -> Seconds | None:
        return None if self.left is None or self.since is None else self.since + self.left


class _Watched:
    """A runner that is looked at from the side of the engine."""

    def __init__(self, inner: Runner, specs: Sequence[JobSpec], hook: str, tolerance: Seconds) -> None:
        self._inner = inner
        self._specs = list(specs)
        self._hook = hook
        self._tolerance = tolerance
        self._now: Seconds = 0.0
        self._next = 0
        self._working: dict[str, _Work] = {}
        self._killed: set[str] = set()

    def act(self, actions: Sequence[Action], now: Seconds) -> None:
        for action in actions:
            self._note(action, now)
        self._inner.act(actions, now)

    def _note(self, action: Action, now: Seconds) -> None:
        job = action.job
        work = self._working.get(job.id)
        if isinstance(action, Start):
            left = job.spec.run_time
            self._working[job.id] = _Work(
                left=None if left is None else max(0.0, left - job.begun_with), since=now
            )
        elif isinstance(action, Kill):
            self._working.pop(job.id, None)
            self._killed.add(job.id)
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

    def wait(self, until: Seconds | None) -> tuple[Seconds, Sequence[Event]] | None:
        found = self._inner.wait(until)
        if found is None:
            return None
        at, events = found
        if at < self._now - _TINY:
            raise self._breach("time", f"wait() went back from {self._now:g} s to {at:g} s")
        if until is not None and at > until + _TINY:
            raise self._breach("time", f"asked to wait until {until:g} s, it came back at {at:g} s")
        if not events and at != until:
            raise self._breach("time", f"it came back at {at:g} s without an event, before {until} s")
        self._now = at
        for event in events:
            self._check(event, at)
        return found

    def _check(self, event: Event, at: Seconds) -> None:
        if isinstance(event, Submitted):
            self._submitted(event.spec, at)
        elif isinstance(event, Finished):
            self._finished(event, at)
        elif isinstance(event, Cleaned):
            if event.job_id not in self._killed:
                raise self._breach("cleaned", "it is reported as cleaned, but nobody killed it", event.job_id)
            if event.nodes is None:
                self._killed.discard(event.job_id)

    def _submitted(self, spec: JobSpec, at: Seconds) -> None:
        if self._next >= len(self._specs) or spec.id != self._specs[self._next].id:
            raise self._breach("submitted", "it is submitted out of turn, or again", spec.id)
        if abs(at - spec.submit_at) > self._tolerance + _TINY:
            raise self._breach(
                "submitted", f"it is due at {spec.submit_at:g} s, and came at {at:g} s", spec.id
            )
        self._next += 1

    def _finished(self, event: Finished, at: Seconds) -> None:
        work = self._working.pop(event.job_id, None)
        if work is None:
            why = "it was killed" if event.job_id in self._killed else "it does not run"
            raise self._breach("ends", f"it is reported as ended, but {why}", event.job_id)
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
        if about == "submitted" and self._next < len(self._specs):
            raise self._breach(about, "it was never submitted", self._specs[self._next].id)
        if about == "cleaned" and self._killed:
            raise self._breach(about, "it was killed, and never reported as cleaned", min(self._killed))
        for job_id, work in self._working.items():
            if about == "run time" and work.due() is not None:
                raise self._breach(about, f"its work was done at {work.due():g} s; it never ended", job_id)

    def _breach(self, about: str, found: str, job: str = "") -> BreachError:
        return BreachError(found, hook=f"{self._hook} ({about})", job=job, at=self._now)


__all__ = ["RunnerContract"]

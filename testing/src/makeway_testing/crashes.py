"""Run jobs in a world that hurts, under a daemon that crashes: what may never happen does not happen.

A crash strikes at any point of a step: before it is written down, right after, or amid the actions. Then a new engine
takes over from what was written, and from what the world shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs

from makeway.config import Config, build_cluster
from makeway.model import Job, JobSpec, JobState, Seconds
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.api import Journal, Step
from makeway.worlds.clock import FakeClock
from makeway.worlds.events import Action, Event, Submitted
from makeway_app.replay import Run
from makeway_engine.engine import Engine
from makeway_live.agenda import Agenda
from makeway_live.drive import Live
from makeway_live.journal import Journal as FileJournal
from makeway_live.recovery import perform_again, recover
from makeway_testing.faulty import Faults, FaultyWorld
from makeway_testing.invariants import InvariantChecker, check_conservation

MOST_TURNS = 5_000
_ENDS = frozenset(state.value for state in JobState if state.ended)
WHERE = ("before the transaction", "after the transaction", "amid the actions", "after the actions")
"""Points of a step at which a daemon may die."""


class Crash(BaseException):  # no error: it stands for the power going off
    """The daemon dies here."""


class Notebook:
    """A journal in memory that outlives the daemon, with a real one beside it or not."""

    def __init__(self, crashes: Callable[[str], None]) -> None:
        self.steps: list[Step] = []
        self.ends: Counter[str] = Counter()
        """How often each job reached its end."""
        self.real: Journal | None = None
        """Written to as well, if there is one."""
        self._crashes = crashes

    def write(self, step: Step) -> None:
        """Write a step down, unless the daemon dies before that."""
        self._crashes("before the transaction")
        if self.real is not None:
            self.real.write(step)
        self.steps.append(step)
        states = [line for line in step.lines if line.kind == "state"]
        self.ends.update(line.job for line in states if line.data.get("state") in _ENDS)
        self._crashes("after the transaction")


Recovery = Callable[[Config, Policies, Sequence[Step]], Engine]
"""Builds the engine that takes over, from what was written down."""


def play_again(config: Config, policies: Policies, steps: Sequence[Step]) -> Engine:
    """Bring a new engine to where the old one was by the same events: it decides the same.

    :raises AssertionError: it does not.
    """
    engine = Engine(config, Recorder(build_cluster(config), _unheard), policies)
    engine.forgive()
    for step in steps:
        actions = engine.step(step.now, step.events)
        assert _named(actions) == _named(step.actions), f"at {step.now:g} s it decides something else"
        del actions
        _ = engine.next_wake
    return engine


def _named(actions: Sequence[Action]) -> list[tuple[int, str, str, int]]:
    return [(each.serial, type(each).__name__, each.job.id, each.incarnation) for each in actions]


def _unheard(line: object) -> None:
    """Hear nothing."""


@attrs.define
class Outcome:
    """What came of a run."""

    engine: Engine
    world: FaultyWorld
    crashes: int
    turns: int
    ended_at: Seconds


class CrashingRun:
    """One run: a workload, a seed, and so many crashes."""

    def __init__(
        self,
        config: Config,
        jobs: Sequence[JobSpec],
        *,
        seed: int,
        crashes: int = 3,
        faults: Faults | None = None,
        commands: Sequence[tuple[Seconds, Event]] = (),
        plugins: Mapping[str, Any] | None = None,
        policies: Policies | None = None,
        recovery: Recovery = play_again,
        journal: Path | None = None,
    ) -> None:
        """Begin.

        :param recovery: how a new daemon takes over, if there is no `journal`.
        :param journal: a file for the journal of daemons (`makeway_live.journal`), which then takes over from it.
        """
        self._config = config
        self._jobs = jobs
        self._commands = commands
        self._rng = Random(seed)
        self._policies = policies or Policies(config, plugins)
        self._recovery = recovery
        self._points = [
            (self._rng.choice(WHERE), self._rng.choice((1, 1, 2, 3, 5, 8, 13))) for _ in range(crashes)
        ]
        """Where to crash next, and after how many times of being there."""
        self.crashed_at: Counter[str] = Counter()
        self.clock = FakeClock()
        self.journal = Notebook(self._may_crash)
        cluster = build_cluster(config)
        self._path = journal
        self._plugins = plugins
        engine = self._recovered() if journal else Engine(config, Recorder(cluster, _unheard), self._policies)
        self.world = FaultyWorld(
            len(cluster.nodes),
            engine.clockwork,
            self.clock,
            seed=seed,
            faults=faults,
            may_overlap=self._both_run,
        )
        self._join(engine)

    def _may_crash(self, where: str) -> None:
        """Die here, if this is one of the points."""
        if not self._points or self._points[0][0] != where:
            return
        _, left = self._points[0]
        if left > 1:
            self._points[0] = where, left - 1
            return
        self._points.pop(0)
        self.crashed_at[where] += 1
        raise Crash(where)

    def _both_run(self, one: Job, other: Job) -> bool:
        """Whether the engine itself lets both run now: then it is the policy that shares their cores."""
        jobs = self.live.engine.ledger.jobs
        there = [jobs[each.id] for each in (one, other) if each.id in jobs]
        return len(there) == 2 and all(job.state is JobState.RUNNING for job in there)

    def _join(self, engine: Engine) -> None:
        known = {
            event.spec.id
            for step in self.journal.steps
            for event in step.events
            if isinstance(event, Submitted)
        }
        now = self.clock.now()
        agenda = Agenda(
            [spec for spec in self._jobs if spec.id not in known],
            [each for each in self._commands if each[0] > now],
        )
        self.live = Live(
            engine, _Doomed(self.world, self._may_crash), self.clock, journal=self.journal, agenda=agenda
        )

    def _restore(self) -> None:
        """Let a new daemon take over."""
        self.world.crash()
        if self._path is not None:
            engine = self._recovered()
            perform_again(engine, self.world)
            self._join(engine)
            return
        engine = self._recovery(self._config, self._policies, self.journal.steps)
        self._join(engine)
        assert engine.deeds is not None
        self.world.perform(engine.deeds.unsettled(), self.clock.now())

    def _recovered(self) -> Engine:
        """Return an engine that goes on where the file stands."""
        assert self._path is not None
        self._close_journal()
        real = self.journal.real = FileJournal(self._path)
        return recover(
            self._config, real, Recorder(build_cluster(self._config), _unheard), self._plugins
        ).engine

    def _close_journal(self) -> None:
        if isinstance(self.journal.real, FileJournal):
            self.journal.real._engine = None  # what is killed writes nothing down on leaving
            self.journal.real.close()

    def run(self, after_turn: Callable[[Engine], None] | None = None) -> Outcome:
        """Run until no job is left, and close the journal's file, if there is one.

        :raises AssertionError: something happened that may never happen, or it does not come to an end.
        """
        try:
            return self._run(after_turn)
        finally:
            self._close_journal()

    def _run(self, after_turn: Callable[[Engine], None] | None) -> Outcome:
        crashes = 0
        for turn in range(MOST_TURNS):
            if self.live.over and not self.live.engine.ledger.jobs:
                return Outcome(self.live.engine, self.world, crashes, turn, self.clock.now())
            try:
                self.live.turn()
            except Crash:
                crashes += 1
                self._restore()
            if after_turn is not None:
                after_turn(self.live.engine)
            assert not self.world.wrongs, self.world.wrongs[0]
        left = {job.id: (job.state.value, job.reason) for job in self.live.engine.ledger.jobs.values()}
        raise AssertionError(f"no end after {MOST_TURNS} turns, at {self.clock.now():g} s: {left}")


class _Doomed:
    """A world whose daemon may die amid its actions."""

    def __init__(self, world: FaultyWorld, crashes: Callable[[str], None]) -> None:
        self._world = world
        self._crashes = crashes

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Perform actions; those that were not reached are not known to the world."""
        for reached in range(1, len(actions)):
            try:
                self._crashes("amid the actions")
            except Crash:
                self._world.perform(actions[:reached], now)
                raise
        self._world.perform(actions, now)
        self._crashes("after the actions")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


def check_ends(run: CrashingRun, jobs: Sequence[JobSpec]) -> None:
    """See that each job ended exactly once, by what was written down.

    :raises AssertionError: naming the job.
    """
    for spec in jobs:
        assert run.journal.ends[spec.id] == 1, f"job {spec.id} ended {run.journal.ends[spec.id]} times"


def check_run(outcome: Outcome, jobs: Sequence[JobSpec]) -> None:
    """See that each job ended exactly once, and that all work was counted.

    :raises AssertionError, InvariantError: naming the job.
    """
    histories = outcome.engine.recorder.histories
    for spec in jobs:
        assert spec.id in histories, f"job {spec.id} was lost"
        assert histories[spec.id].final_state is not None, f"job {spec.id} never ended"
    check_conservation(
        Run(engine=outcome.engine, recorder=outcome.engine.recorder, ended_at=outcome.ended_at)
    )


__all__ = [
    "Crash",
    "CrashingRun",
    "InvariantChecker",
    "Notebook",
    "Outcome",
    "check_ends",
    "check_run",
    "play_again",
]

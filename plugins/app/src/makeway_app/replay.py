"""Replay a workload: engine and simulated world, joined."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway import collector
from makeway.clockwork import Clockwork
from makeway.config import Config, build_cluster
from makeway.errors import ConfigError, MakewayError, OutOfTime, Problem
from makeway.measures import Measures
from makeway.model import Cluster, Job, JobSpec, Seconds
from makeway.record import Archive, Decision, Line, Recorder
from makeway.registry import Policies, tool
from makeway.state import State as RunState
from makeway.worlds.api import World
from makeway.worlds.clock import Clock
from makeway.worlds.events import Command, Event
from makeway.worlds.watch import time_limit
from makeway_app.readers.commands import commands_of
from makeway_app.readers.outages import outages_of
from makeway_app.worlds.power import Power, power_of
from makeway_app.worlds.simulated import ABOUT_NODES, SimulatedWorld
from makeway_engine.engine import Engine


@attrs.frozen(kw_only=True, eq=False)
class Run:
    """A replay that is over."""

    engine: Engine
    recorder: Recorder
    ended_at: Seconds

    def summary(self) -> dict[str, Any]:
        """Return the run in the design's shape."""
        return self.recorder.summary(self.ended_at)


@attrs.frozen(kw_only=True)
class Options:
    """What a caller may want beside the plain run."""

    until: Seconds | None = None
    """Stop at this instant; None: when nothing happens any more."""
    sink: Callable[[Line], None] | None = None
    """Gets every line of the record."""
    keep: bool = True
    """Keep ended jobs in memory (needed for the summary of single jobs)."""
    started: Callable[[Engine], None] | None = None
    """Called once, before anything happens."""
    archive: Archive | None = None
    """Gets each job when it has ended, and each preemption."""
    traced: Callable[[Job], bool] | None = None
    """Jobs whose attempts are kept as decisions."""
    decided: Callable[[Engine, Decision], None] | None = None
    """Called with each of these decisions at the very moment: before what it led to, and what others do, is done."""
    after_step: Callable[[Engine], None] | None = None
    """Called after every step, for checks and progress."""
    stop: Sequence[object] = ()
    """Somebody may put something in here meanwhile: the run stops before the next instant."""
    snapshots: Mapping[Seconds, Callable[[Engine], None]] = attrs.field(factory=dict)
    """Called at the instants named, before anything happens there."""
    begin: RunState | None = None
    """Go on from there; jobs that were submitted earlier are left out. None: begin with an empty machine."""
    begin_from: str = "state"
    """Name of its file, for messages."""
    states: Mapping[Seconds, Callable[[RunState], None]] = attrs.field(factory=dict)
    """Given the state of the run at the instants named, before anything happens there."""
    plugins: Mapping[str, Any] = attrs.field(factory=dict)
    """Plugins by name that need no installation."""
    clockwork: Clockwork | None = None
    clock: Clock | None = None
    """Of a world that is not simulated; None: the computer's."""
    measures: bool = False
    """Add up completion times, fairness and evictions on clusters without GPUs, too."""
    trace: bool = False
    """Log every call of a hook."""


def replay(
    config: Config,
    jobs: Iterable[JobSpec],
    commands: Sequence[tuple[Seconds, Event]] | None = None,
    options: Options | None = None,
    cluster: Cluster | None = None,
) -> Run:
    """Replay `jobs` under `config`.

    :param jobs: in order of submission; read as time goes on.
    :param commands: people's commands and other events from outside, each with its instant. None: those of
        ``config.action``.
    :raises PluginError, PolicyError, ConfigError: see `makeway.errors`.
    """
    options = options or Options()
    if commands is None:
        commands = [*commands_of(config, "config"), *outages_of(config, "config")]
    simulated = not config.world.real
    with time_limit(config.policy.decision_time_limit):
        policies = Policies(config, options.plugins, trace=options.trace)
        built = cluster or build_cluster(config)
        recorder = Recorder(
            built,
            options.sink,
            keep=options.keep,
            archive=options.archive,
            measures=measures_of(built, always=options.measures),
        )
        if options.traced is not None:
            recorder.traced = options.traced
        with answerable(policies):
            engine = Engine(config, recorder, policies, options.clockwork, trusted=simulated)
        if any(isinstance(event, Command) for _, event in commands):
            engine.remember_ended()
        if options.started is not None:
            options.started(engine)
        if options.decided is not None:
            recorder.on_decision = functools.partial(options.decided, engine)
        if simulated:
            ended_at = _simulated(engine, jobs, commands, options, power_of(config, built))
        else:
            ended_at = _live(engine, jobs, commands, options)
    return Run(engine=engine, recorder=recorder, ended_at=ended_at)


def measures_of(cluster: Cluster, *, always: bool) -> Measures | None:
    """Return what adds up the measures of a run on this cluster; None: nothing does.

    :param always: also where they are of little use.
    """
    if not always and not any(node.gres for node in cluster.nodes):
        return None
    found: Measures | None = tool("measures", "--metrics").measures_of(cluster, always=always)
    return found


def _simulated(
    engine: Engine,
    jobs: Iterable[JobSpec],
    commands: Sequence[tuple[Seconds, Event]],
    options: Options,
    power: Power | None,
) -> Seconds:
    """Replay jobs in the simulated world."""
    world = _begun(engine, jobs, commands, options, power)
    with collector.paused():  # there are no cycles among records
        return drive(engine, world, options, over=_over(engine, world, commands))


def _begun(
    engine: Engine,
    jobs: Iterable[JobSpec],
    commands: Sequence[tuple[Seconds, Event]],
    options: Options,
    power: Power | None,
) -> SimulatedWorld:
    """Build the simulated world: empty, or as the state says, with what comes after it."""
    state = options.begin
    if state is None:
        return SimulatedWorld(jobs, engine.clockwork, commands, power)
    known = {job.spec.id for job in state.jobs}
    exact = "world" in state.memory  # then all of that instant had happened
    later = (
        spec
        for spec in jobs
        if spec.submit_at >= state.at and not (exact and spec.submit_at == state.at) and spec.id not in known
    )
    orders = [each for each in commands if each[0] > state.at or (each[0] == state.at and not exact)]
    world = SimulatedWorld(later, engine.clockwork, orders, power)
    with answerable(engine.policies):
        actions = engine.adopt(state, options.begin_from)
    ledger = engine.ledger
    leaving = [job for job in ledger.jobs.values() if engine.transitions.is_leaving(job)]
    try:
        world.restore(ledger.active, leaving, state.memory.get("world"), ledger.cluster, state.at)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = (
            f"it cannot be read ({type(error).__name__}: {error}); leave it out to begin from the jobs alone"
        )
        raise ConfigError(options.begin_from, [Problem("memory.world", text)]) from None
    world.perform(actions, state.at)
    if engine.transitions.changed:
        with answerable(engine.policies):
            world.perform(engine.step(state.at, ()), state.at)
    return world


def _states(engine: Engine, world: World, options: Options) -> Callable[[], None] | None:
    """Return what takes the states that are asked for, to be called before each wait; None: there are none."""
    if not options.states or not isinstance(world, SimulatedWorld):
        return None
    marks = sorted(options.states)

    def take() -> None:
        if not marks:
            return
        wake = engine.next_wake
        following = min(world.next_at(), math.inf if wake is None else wake)
        while marks and marks[0] < following:
            state = engine.save()
            memory = {**state.memory, "world": world.save(engine.ledger.cluster)}
            options.states[marks.pop(0)](attrs.evolve(state, memory=memory))

    return take


def _live(
    engine: Engine, jobs: Iterable[JobSpec], commands: Sequence[tuple[Seconds, Event]], options: Options
) -> Seconds:
    """Run jobs in the world that ``[world]`` names, as fast as its clock runs; return the last instant."""
    ended_at: Seconds = tool("live", "--world").run(
        engine,
        jobs,
        commands,
        clock=options.clock,
        plugins=options.plugins,
        until=options.until,
        after_step=options.after_step,
        snapshots=options.snapshots,
    )
    return ended_at


@contextlib.contextmanager
def answerable(policies: Policies) -> Iterator[None]:
    """Blame a plugin for what its code raises outside of hooks, and for what it does not end in time.

    :raises PolicyError: names the plugin; what makeway itself raised goes on as it is.
    """
    try:
        yield
    except MakewayError:
        raise
    except (Exception, SystemExit, OutOfTime) as error:
        blamed = policies.blamed(error)
        if blamed is None:
            raise
        raise blamed from error


def _over(
    engine: Engine, world: SimulatedWorld, commands: Sequence[tuple[Seconds, Event]]
) -> Callable[[], bool] | None:
    """Return what says whether nodes alone would be lost and come back from now on; None: they never are."""
    if not any(isinstance(event, ABOUT_NODES) for _, event in commands):
        return None
    jobs = engine.ledger.jobs
    return lambda: not jobs and world.only_nodes


def drive(engine: Engine, world: World, options: Options, over: Callable[[], bool] | None = None) -> Seconds:
    """Let `engine` and `world` talk until nothing happens any more; return the last instant.

    :param over: says before each wait whether no job will ever be touched again.
    """
    try:
        return _drive(engine, world, options, over)
    except OutOfTime:
        with answerable(engine.policies):
            raise


def _wake_for_show(engine: Engine, marks: Sequence[Seconds], wake: Seconds | None) -> Seconds | None:
    """Return when priorities are due that only a snapshot shows; None: not before `wake`.

    While no job runs, an engine wakes up for them once.
    """
    prioritizer = engine.priorities.prioritizer
    at = prioritizer.next_at if prioritizer is not None else None
    return at if at is not None and at <= marks[-1] and (wake is None or at < wake) else None


def _drive(engine: Engine, world: World, options: Options, over: Callable[[], bool] | None) -> Seconds:
    marks = sorted(options.snapshots)
    until, stop = options.until, options.stop
    step, wait, after_step = engine.step, world.wait, options.after_step
    take_states = _states(engine, world, options)
    now = ended = engine.ledger.now
    while True:
        if take_states is not None:
            take_states()
        wake = engine.next_wake
        for_show = _wake_for_show(engine, marks, wake) if marks else None
        moment = wait(wake if for_show is None else for_show) if over is None or not over() else None
        if moment is None or (until is not None and moment[0] > until):
            for mark in marks:
                options.snapshots[mark](engine)
            return until if until is not None else ended
        if stop:
            return now
        now, events = moment
        if for_show is None or now < for_show or events:
            ended = now
        while marks and marks[0] < now:
            options.snapshots[marks.pop(0)](engine)
        try:
            actions = step(now, events)
        except MakewayError:
            raise
        except (Exception, SystemExit):
            with answerable(engine.policies):
                raise
        if actions:
            world.perform(actions, now)
        if after_step is not None:
            after_step(engine)

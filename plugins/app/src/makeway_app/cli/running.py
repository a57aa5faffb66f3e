"""Replay one configuration for a command: with progress, snapshots, states and invariants."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from makeway import registry
from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.model import Seconds
from makeway.readers.api import ReadOptions, Workload
from makeway.state import State, write_state
from makeway.worlds.events import Event
from makeway_app.cli.group import TRACE, switched_on
from makeway_app.cli.inputs import open_jobs
from makeway_app.cli.meter import Gauge
from makeway_app.cli.outputs import Output
from makeway_app.cli.records import Keeper
from makeway_app.cli.request import CONFIGURED, Request
from makeway_app.cli.upgrade import Story
from makeway_app.readers.commands import commands_with
from makeway_app.replay import Options, Run
from makeway_app.replay import replay as run_replay
from makeway_app.report import Column, column, queue
from makeway_engine.engine import Engine


class InvariantChecker(Protocol):
    """Checks after every step what may never happen; the kit for plugin authors brings it."""

    steps: int
    excused: Sequence[Any]

    def __call__(self, engine: Engine) -> None:
        """Look at the engine after a step."""

    def finish(self, run: Run) -> None:
        """Look at the whole run."""


@attrs.frozen(kw_only=True)
class Ran:
    """A run that is over."""

    column: Column
    run: Run | None
    """None: it was another process's."""
    queues: Sequence[str] = ()
    """What status commands showed, in order."""
    notes: Sequence[str] = ()
    story: Story | None = None
    """What runs under other releases are held against; None: there are none."""
    against: Any = None
    """What held the run against its log; None: nothing did."""


def ran(
    request: Request,
    label: str,
    config: Config,
    keeper: Keeper,
    gauge: Gauge,
    *,
    stop: Sequence[object] = (),
    beside: str = "",
) -> Ran:
    """Replay one configuration.

    :param stop: see `Options.stop`.
    :param beside: what the run is called beside others; empty: it is alone.
    """
    first = label == CONFIGURED
    queues: list[str] = []
    notes: list[str] = []

    def started(engine: Engine) -> None:
        engine.recorder.metrics.wait_of = {} if beside else None
        keeper.started(engine)
        gauge.started(engine)

    options = Options(
        until=request.until,
        sink=None if keeper.log is None else keeper.write,
        keep=request.check_invariants,
        archive=keeper.told(),
        started=started,
        stop=stop,
        snapshots=_snapshots(request.queues, queues, "" if first else f" ({beside}: {label})"),
        trace=switched_on(TRACE),
        measures=request.measures,
        plugins=request.plugins,
        begin=request.begin,
        begin_from=request.begin_from,
        states=_writers_of_states(request.states_at) if first else {},
    )
    with watched(request, config, gauge) as workload:
        config, told = warmed_up(config, request.warm_up, workload.start_wall)
        notes += told
        commands = commands_with(config, str(request.loaded.path), workload)
        checker = _checker(commands) if request.check_invariants else None
        options = begun_warm(options, workload, config)
        cluster = keeper.begin(config, label, workload)
        run = run_replay(config, workload.jobs, commands, attrs.evolve(options, after_step=checker), cluster)
    if checker is not None:
        notes.append(_finish(checker, run, request.until))
    run.recorder.metrics.rows_unusable = workload.rejected_count
    figures = dict(run.engine.metrics())
    figures["jobs_unfinished"] = figures["jobs"] - run.recorder.metrics.ended
    keeper.end(run, figures)
    shown = column(label, run, workload, figures, cut_short=bool(stop) or request.until is not None)
    if keeper.against is not None:
        keeper.against.finish(run.recorder)
    if keeper.story is not None:
        keeper.story.finish(run.recorder)
    return Ran(column=shown, run=run, queues=queues, notes=notes, against=keeper.against, story=keeper.story)


def warmed_up(
    config: Config, files: Sequence[Path], workload_start: float | None
) -> tuple[Config, Sequence[str]]:
    """Return the configuration with what each user had used when the workload begins, and what is missing for that.

    :param files: of ``--warm-up``; empty: nothing is worked out.
    :param workload_start: Unix time; None: the workload does not say.
    :raises ConfigError: it cannot be worked out.
    """
    if not files:
        return config, ()
    found, notes = registry.tool("warm-up", "--warm-up").warmed(config, files, workload_start)
    made: Config = found
    return made, notes


def begun_warm(options: Options, workload: Workload, config: Config) -> Options:
    """Return the options of a run that begins with the jobs that ran when its log begins, if that is asked for.

    :raises ConfigError: the log does not say who ran, or the run begins otherwise or elsewhere.
    """
    if not config.workload.warm:
        return options
    problem = ""
    if options.begin is not None:
        problem = "the state of --from says who runs at the start; leave one of them out"
    elif config.world.real:
        problem = "it is for the simulated world; leave out --world"
    if problem:
        raise ConfigError("workload.warm", [Problem("", f"got true, but {problem}")])
    state = registry.tool("warm", "workload.warm").warm_start(workload, config, options.plugins)
    return attrs.evolve(options, begin=state, begin_from=workload.name)


def _writers_of_states(states_at: Sequence[tuple[Seconds, str]]) -> dict[Seconds, Callable[[State], None]]:
    """Return what writes the state of each instant into its files."""
    names: dict[Seconds, list[str]] = {}
    for at, name in states_at:
        names.setdefault(at, []).append(name)

    def write(listed: Sequence[str], state: State) -> None:
        for name in listed:
            with Output(name) as file:
                file.write(write_state(state))

    return {at: functools.partial(write, listed) for at, listed in names.items()}


@contextlib.contextmanager
def watched(request: Request, config: Config, gauge: Gauge) -> Iterator[Workload]:
    """Open the workload; while the body runs, the gauge knows how much of it was read."""
    path = request.workload
    gauge.opens(path.stat().st_size if path is not None and path.is_file() else None)
    with gauge.following():
        options = ReadOptions(
            config=config,
            limit=request.limit,
            progress=gauge.read,
            most_rejected=None if request.all_rejected else 1000,
        )
        if path is None and request.begin is not None and not config.job:
            workload = Workload(name=request.begin_from, jobs=iter(()))
        else:
            workload = open_jobs(request.loaded, path, options, request.format)
        gauge.opened(workload, request.limit)
        yield workload


def _checker(commands: Sequence[tuple[Seconds, Event]]) -> InvariantChecker:
    found: InvariantChecker = registry.tool("invariants", "--check-invariants").InvariantChecker(commands)
    return found


def _finish(checker: InvariantChecker, run: Run, until: Seconds | None) -> str:
    """Check what holds in the end, and return what was checked.

    :raises InvariantError: something does not hold.
    """
    if until is None:
        checker.finish(run)
    excused = Counter(each.excuse for each in checker.excused)
    shown = ", ".join(f"{excuse} {number:,} times" for excuse, number in sorted(excused.items()))
    leader = run.engine.policies.leader
    as_told = f"as real {leader.title} does" if leader is not None else "as its rules say"
    but = f"; {as_told}: {shown}" if excused else ""
    return f"the invariants held after all of {checker.steps:,} steps{but}"


def _snapshots(
    shown: Mapping[str, Sequence[Seconds]], into: list[str], of: str
) -> Mapping[Seconds, Callable[[Engine], None]]:
    def look(at: Seconds, engine: Engine) -> None:
        for command, instants in shown.items():
            if at in instants:
                heading, _, rest = queue(engine, at, command).partition("\n")
                into.append(f"{heading}{of}\n{rest}")

    return {at: functools.partial(look, at) for instants in shown.values() for at in instants}

"""``makeway replay``: run a workload through a configuration and show what came of it."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

import attrs
import click
from rich.console import RenderableType
from rich.text import Text

from makeway import registry
from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.model import Seconds, Vocabulary
from makeway.readers.api import Loaded
from makeway.readers.lines import read_text
from makeway.state import State, read_state
from makeway_app import status
from makeway_app.archive import JsonArchive
from makeway_app.cli import upgrade
from makeway_app.cli.asked import Asked
from makeway_app.cli.changes import is_file, variant
from makeway_app.cli.group import INTERRUPTED, UNUSABLE
from makeway_app.cli.inputs import check_plugins, refusals, with_actions
from makeway_app.cli.listing import in_short
from makeway_app.cli.loose import load_files
from makeway_app.cli.meter import Board
from makeway_app.cli.nearer import without_effect
from makeway_app.cli.options import Duration, status_instants, status_options, workload_options
from makeway_app.cli.outputs import STDOUT, Output, check_names
from makeway_app.cli.processes import cores, side_by_side
from makeway_app.cli.records import Keeper, page_writer, views_named
from makeway_app.cli.request import CONFIGURED, Request, in_world
from makeway_app.cli.running import Ran, ran
from makeway_app.cli.terminal import console, note, show
from makeway_app.report import Column, left_out, letters, rejections, short_name, summary, terms_table

T = TypeVar("T")


@click.command()
@workload_options
@click.option("--json", "json_file", metavar="FILE", help="Write jobs, preemptions and metrics.")
@click.option("--log", "log_file", metavar="FILE", help="Write the record, one JSON line each.")
@click.option(
    "--report",
    "report_file",
    metavar="FILE",
    help="Write a page for a browser: which jobs made way, when, for which, and what it cost; with --compare all runs.",
)
@click.option(
    "--rejected",
    "rejected_file",
    metavar="FILE",
    help="List all unusable rows, and jobs that can never run.",
)
@click.option(
    "--allow-unusable",
    is_flag=True,
    help="Exit with 0 although rows of the workload cannot be used or jobs can never run here.",
)
@click.option(
    "--queue-at",
    type=Duration(),
    multiple=True,
    metavar="SECONDS",
    help="Show the queue at this second, as the status command of the scheduler does; repeatable.",
)
@status_options
@click.option(
    "--bjobs-at", type=Duration(), multiple=True, metavar="SECONDS", help="The same as bjobs of LSF has it."
)
@click.option(
    "--showq-at", type=Duration(), multiple=True, metavar="SECONDS", help="The same as showq of Moab has it."
)
@click.option(
    "--compare",
    "compared",
    multiple=True,
    metavar="KEY=VALUE|FILE",
    help="Run again with a key changed (several with ';' between), under another release (release=26.05), or with "
    "another configuration, and show both. Repeatable.",
)
@click.option(
    "--from",
    "begin_file",
    metavar="STATE",
    type=click.Path(path_type=Path),
    help="Begin with what a state file says instead of an empty machine; jobs submitted earlier are left out.",
)
@click.option(
    "--state-at",
    "states_at",
    nargs=2,
    type=(Duration(), str),
    multiple=True,
    metavar="SECONDS FILE",
    help="Write the state of the run at this second, for --from; repeatable.",
)
@click.option(
    "--metrics",
    is_flag=True,
    help="Show completion times, fairness and evictions for any cluster, not only for one with GPUs.",
)
@click.option("--gantt", is_flag=True, help="Draw jobs over nodes, or cores and queue where there are many.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="With --compare: draw the days by which differences are judged anew.",
)
@click.option("--by-job", is_flag=True, help="With --compare: whose wait changed most, and why.")
@click.option(
    "--against-log",
    is_flag=True,
    help="Show how far waits, priorities and reasons agree with those that the log recorded; --json has them, too.",
)
@click.option("--check-invariants", is_flag=True, help="Check after every step; slow.")
@click.option(
    "--world",
    metavar="NAME",
    help="Run in this world, such as world/local, in real time: its jobs are really run. Else all is simulated, "
    "whatever [world] says.",
)
@registry.one_look()
def replay(
    asked: Asked,
    json_file: str | None,
    log_file: str | None,
    report_file: str | None,
    rejected_file: str | None,
    allow_unusable: bool,
    queue_at: tuple[Seconds, ...],
    bjobs_at: tuple[Seconds, ...],
    showq_at: tuple[Seconds, ...],
    compared: tuple[str, ...],
    metrics: bool,
    gantt: bool,
    by_job: bool,
    seed: int,
    begin_file: Path | None,
    states_at: tuple[tuple[Seconds, str], ...],
    against_log: bool,
    check_invariants: bool,
    world: str | None,
    **of_vendors: tuple[Seconds, ...],
) -> None:
    """Replay WORKLOAD under CONFIG and show which jobs waited, which had to make way, and what it cost.

    CONFIG is TOML or a foreign file such as slurm.conf.  WORKLOAD is SWF, sacct -P or makeway's
    own format, compressed or not; it may be left out if CONFIG has [[job]] tables.  A FILE named -
    is standard output.

    The exit status is 3 if all was done but rows of WORKLOAD are faulty, or jobs can never run here or
    stay suspended for good; they are listed.  Rows of jobs that have not run, or of what the log does
    not know, do not change the exit status.
    """
    loaded, config = asked.load(), asked.config
    base = in_world(asked.changed(loaded.config), world)
    found = {CONFIGURED: attrs.evolve(loaded, config=base), **dict(_variants(base, compared, asked))}
    spoken = {
        label: registry.translated(with_actions(each.config, asked.actions), loaded.config.policy.preempt)
        for label, each in found.items()
    }
    variants = {label: each for label, (each, _) in spoken.items()}
    loose = load_files(asked.plugin_files)
    odd: list[str] = []
    shown = {"": queue_at, **status_instants(of_vendors), "bjobs": bjobs_at, "showq": showq_at}
    for label, each in variants.items():
        first, read = label == CONFIGURED, found[label]
        source = str(config) if first else f"--compare {label}"
        policies = check_plugins(each, source, loose, read.places)
        told = [*read.warnings, *filter(None, (in_short(read.unmodelled, read.path.name),))]
        odd += told if first else (f"{source}: {text}" for text in told if text not in odd)
        odd += (f"{source}: {text}" for text in refusals(each, policies))
        _check_commands(shown, policies.vocabulary(), source)
    _check_times(shown, asked.until)
    outputs = (
        ("--json", json_file),
        ("--log", log_file),
        ("--report", report_file),
        ("--rejected", rejected_file),
    )
    outputs_of_states = tuple(("--state-at", name) for _, name in states_at)
    inputs = (config, asked.workload, begin_file, *asked.accounting, *asked.warm_up, *asked.outages)
    check_names((*outputs, *outputs_of_states), [path for path in inputs if path is not None])
    if (begin_file is not None or states_at) and world is not None:
        option = "--from" if begin_file is not None else "--state-at"
        raise ConfigError(option, [Problem("", "is for the simulated world; leave out --world")])
    request = Request(
        begin=None if begin_file is None else _state_of(begin_file, asked.until),
        begin_from=str(begin_file or ""),
        states_at=states_at,
        loaded=loaded,
        workload=asked.workload,
        format=asked.format,
        limit=asked.limit,
        until=asked.until,
        queues=shown,
        check_invariants=check_invariants,
        all_rejected=rejected_file is not None,
        plugins=loose,
        warm_up=asked.warm_up,
        measures=metrics,
    )
    typed = [text for text in compared if not is_file(text)]
    vain = (told for text in typed for told in without_effect(base, found[text].config, "--compare", text))
    note("warning", (*odd, *vain))
    write = page_writer() if report_file is not None else None
    if by_job and not compared:
        raise ConfigError(
            "--by-job", [Problem("", "there is nothing to compare with; name it with --compare")]
        )
    views = views_named(name for name, wanted in (("gantt", gantt), ("by-job", by_job)) if wanted)
    against = registry.tool("against", "--against-log") if against_log else None
    seen: list[RenderableType] = []
    failures: list[OSError] = []
    with contextlib.ExitStack() as stack:
        files = {option: stack.enter_context(Output(name)) for option, name in outputs if name is not None}
        folder = files["--report"].folder if "--report" in files else None
        keepers = [Keeper(log=None if at else files.get("--log")) for at in range(len(variants))]
        upgrades = [label for label in typed if upgrade.release_of(label)[0] is not None]
        if upgrades and world is not None:
            raise ConfigError(f"--compare {upgrades[0]}", [Problem("", upgrade.ONLY_SIMULATED)])
        for at, keeper in enumerate(keepers):
            if (views or "--report" in files) or (at == 0 and "--json" in files):
                near = files["--json"].folder if at == 0 and "--json" in files else folder
                keeper.archive = stack.enter_context(JsonArchive(near))
            keeper.against = against.AgainstLog() if against is not None else None
            keeper.story = upgrade.Story() if upgrades else None
        records = _Records(stack, folder) if views or write is not None else None
        runs = _runs(request, variants, keepers, files, records)
        columns = [each.column for each in runs]
        _keeping(failures, "--json", files, lambda to: _write_json(to, runs, keepers[0]))
        _keeping(failures, "--rejected", files, lambda to: _write_rejected(to, columns[0]))
        if records is not None:
            names = [each.label for each in columns]
            if write is not None:
                _keeping(failures, "--report", files, lambda to: write(records.named(names), to.write, seed))
            seen = [each for view in views for each in view(records.named(names))]
        _keeping(failures, "--log", files, lambda to: None)
        for name, done in zip(letters(columns), runs, strict=True):
            if done.against is not None:
                seen += [Text(f"{name}: {done.column.label}")] if len(runs) > 1 else []
                seen += done.against.tables(done.column, loaded.matters)
    on_stderr = STDOUT in (json_file, log_file, report_file, rejected_file)
    note("note", dict.fromkeys(text for each in runs for text in each.notes))
    note("note", dict.fromkeys(text for each in columns for text in each.workload.notes))
    queues = [text for each in runs for text in each.queues]
    words = [
        table
        for name, (each, terms) in zip(letters(columns), spoken.values(), strict=True)
        for table in terms_table(terms, each.policy.preempt, name if len(runs) > 1 else "")
    ]
    show(
        [*queues, *summary(columns, seed), *words, *_about_the_sites(columns, [*found.values()]), *seen],
        err=on_stderr,
    )
    if upgrades:
        click.echo("", err=on_stderr)
        show(_upgrades(request, variants, runs, upgrades), err=on_stderr)
    for failure in failures[1:]:
        click.echo(f"makeway: {failure.filename}: {failure.strerror}", err=True)
    if failures:
        raise failures[0]
    lost = left_out(columns)
    if lost and not allow_unusable:
        click.echo(f"makeway: done, but {lost}; --allow-unusable takes that as it is", err=True)
        raise click.exceptions.Exit(UNUSABLE)


# ------------------------------------------------------------------------------------- the runs
class _Records:
    """Records of all runs, in a folder of their own for as long as they are needed."""

    def __init__(self, stack: contextlib.ExitStack, folder: str | None) -> None:
        """Make the folder.

        :param folder: where it is to lie; None: where the system has such folders.
        """
        place = tempfile.TemporaryDirectory(dir=folder, prefix=".records.", ignore_cleanup_errors=True)
        self.folder = Path(stack.enter_context(place))
        self.count = 0

    def path(self, at: int) -> Path:
        """Return where the record of a run lies."""
        self.count = max(self.count, at + 1)
        return self.folder / f"{at}.json"

    def named(self, names: Sequence[str]) -> list[tuple[Path, str]]:
        """Return the records with what their runs are called.

        :raises OSError: one of them could not be written.
        """
        for at in range(self.count):
            if not self.path(at).exists():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return [(self.path(at), name) for at, name in enumerate(names)]


def _runs(
    request: Request,
    variants: Mapping[str, Config],
    keepers: Sequence[Keeper],
    files: Mapping[str, Output],
    records: _Records | None,
) -> list[Ran]:
    """Do all runs: the first here, the others beside it, each in a process of its own.

    :raises click.exceptions.Exit: they were interrupted; what was written is kept.
    """
    labels = list(variants)
    several = len(labels) > 1
    titles = [f"{short_name(at)}: {label}" if several else "replaying" for at, label in enumerate(labels)]
    board = Board(titles, console(err=True))
    stop: list[int] = []

    def one(at: int) -> Ran:
        label = labels[at]
        name = short_name(at) if several else ""
        done = ran(request, label, variants[label], keepers[at], board.gauges[at], stop=stop, beside=name)
        if records is not None and done.run is not None:
            with contextlib.suppress(OSError):  # `named` tells
                path = records.path(at)
                part = path.with_suffix(".part")
                keepers[at].write_record(part, done.run, done.column.figures)
                part.replace(path)
        return done

    def other(at: int) -> Ran:
        try:
            done = one(at + 1)
        except ConfigError as error:
            raise ConfigError(f"--compare {labels[at + 1]}: {error.source}", error.problems) from None
        return attrs.evolve(done, run=None)

    real = any(each.world.real for each in variants.values())
    workers = 0 if real else cores()
    if records is not None:
        for at in range(len(labels)):
            records.path(at)
    with (
        _interruptible(stop, real=real) as wait,
        side_by_side(other, len(labels) - 1, workers, "--compare") as others,
    ):
        with board.shown():
            first = one(0)
            found = {} if stop else wait(lambda: dict(others))
        if found is None or stop:
            _interrupted(first, keepers[0], board, files)
    return [first, *(found[at] for at in range(len(labels) - 1))]


@contextlib.contextmanager
def _interruptible(stop: list[int], *, real: bool) -> Iterator[Callable[[Callable[[], T]], T | None]]:
    """Let the first Ctrl-C stop a run at its next instant, a second one end everything at once.

    What is yielded calls a function that waits for others; the first Ctrl-C breaks that off, and it returns None.

    :param real: jobs are really run, so that nothing stops at an instant.
    """
    waits = False

    def wait(call: Callable[[], T]) -> T | None:
        nonlocal waits
        waits = True
        try:
            return call()
        except KeyboardInterrupt:
            if not stop:
                raise
            return None

    def take(number: int, _: object) -> None:
        again = bool(stop)
        stop.append(number)
        if again or waits:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if real or not main or before is not signal.default_int_handler:
        yield wait
        return
    signal.signal(signal.SIGINT, take)
    try:
        yield wait
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupted(first: Ran, keeper: Keeper, board: Board, files: Mapping[str, Output]) -> NoReturn:
    """Say where the runs stopped, keep what was written, and leave.

    :raises click.exceptions.Exit: always.
    """
    lines = ["makeway: interrupted"]
    lines += [f"  {gauge.title}: stopped at {gauge.date}, {gauge.jobs} ended" for gauge in board.gauges]
    if "--json" in files:
        _write_json(files["--json"], [first], keeper)
    for option in ("--json", "--log"):
        kept = files[option].keep_part() if option in files else None
        if kept is not None:
            lines.append(f"  {kept} has what happened up to then")
    click.echo("\n".join(lines), err=True)
    raise click.exceptions.Exit(INTERRUPTED)


def _keeping(
    failures: list[OSError], option: str, files: Mapping[str, Output], write: Callable[[Output], None]
) -> None:
    """Write a file whole; where that fails, keep the reason, so that tables are shown all the same."""
    if option not in files:
        return
    target = files[option]
    try:
        write(target)
        target.close()
    except OSError as error:
        if isinstance(error, BrokenPipeError) or target.name == STDOUT:
            raise
        target.drop()
        error.filename = target.name
        failures.append(error)


def _variants(base: Config, compared: Sequence[str], asked: Asked) -> Iterator[tuple[str, Loaded]]:
    """Yield the configurations to run beside CONFIG, each with what its column is called.

    A file without jobs of its own is compared with those of CONFIG.
    """
    for text in compared:
        if is_file(text):
            read = asked.load(Path(text))
            config = in_world(asked.changed(read.config, read.path), base.world.name)
            yield text, attrs.evolve(read, config=attrs.evolve(config, job=config.job or base.job))
            continue
        release, keys = upgrade.release_of(text)
        read = Loaded(config=base, path=asked.config)
        if release is not None:
            on = asked.load(release=release)
            config = in_world(asked.changed(on.config), base.world.name)
            read = attrs.evolve(on, config=config, matters=())
        yield text, attrs.evolve(read, config=variant(read.config, keys) if keys else read.config)


def _upgrades(
    request: Request, variants: Mapping[str, Config], runs: Sequence[Ran], labels: Sequence[str]
) -> Iterator[RenderableType]:
    """Yield what each other release changes, and which of its rules do it.

    :param labels: of the runs under other releases.
    """
    quiet = attrs.evolve(request, queues={}, check_invariants=False, states_at=())
    for name, done in zip(letters([each.column for each in runs]), runs, strict=True):
        label = done.column.label
        if label in labels and runs[0].story is not None and done.story is not None:
            given = upgrade.Between(name, variants[CONFIGURED], variants[label], runs[0].story, done.story)
            yield given.told(functools.partial(_story, quiet, label))


def _story(request: Request, label: str, config: Config) -> upgrade.Story:
    """Replay a configuration for what it tells alone."""
    keeper = Keeper(story=upgrade.Story())
    done = ran(request, label, config, keeper, Board([label], console(err=True)).gauges[0])
    assert done.story is not None
    return done.story


def _about_the_sites(columns: Sequence[Column], read: Sequence[Loaded]) -> Iterator[Text]:
    """Yield what decides at each site and not here, for those who read the figures."""
    several = len(read) > 1
    for name, each in zip(letters(columns), read, strict=True):
        if each.matters:
            head = f"{f'{name}: ' if several else ''}what decides at this site and not in a replay"
            yield Text("\n".join([head, *(f"  {text}" for text in each.matters)]))


def _check_commands(shown: Mapping[str, Sequence[Seconds]], words: Vocabulary, source: str) -> None:
    """Refuse the status command of a scheduler that the policies of a site do not imitate."""
    own = status.name_of(words)
    for command, instants in shown.items():
        if instants and command not in ("", own, *status.commands()):
            text = f"got {command}, but {source} is of a site whose command is {own}; use --queue-at"
            raise ConfigError(f"--{command}-at", [Problem("", text)])


def _state_of(path: Path, until: Seconds | None) -> State:
    """Read the state to begin with.

    :raises ConfigError: it cannot be read, or lies after the end of the run.
    """
    state = read_state(read_text(path), str(path))
    if until is not None and until < state.at:
        raise ConfigError(
            "--until", [Problem("", f"got {until:g}, which is before the state, taken at {state.at:g}")]
        )
    return state


def _check_times(shown: Mapping[str, Sequence[Seconds]], until: Seconds | None) -> None:
    for command, instants in shown.items():
        late = [at for at in instants if until is not None and at > until]
        if late:
            problem = Problem("", f"got {late[0]:g}, which is after --until {until:g}")
            raise ConfigError(f"--{command or 'queue'}-at", [problem])


def _write_json(target: Output, runs: Sequence[Ran], keeper: Keeper) -> None:
    first, *others = runs
    if first.run is not None:
        compared = {each.column.label: each.column.figures for each in others}
        keeper.write_json(target.write, first.run, first.column.figures, compared)


def _write_rejected(target: Output, column: Column) -> None:
    lines = rejections(column.workload, column.unrunnable)
    target.write("".join(f"{line}\n" for line in lines))

"""``makeway tune``: what should a site change, what does that do to which users, and how sure is it?"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from makeway import registry
from makeway.errors import ConfigError, Problem, nearest
from makeway.model import JobSpec, Seconds
from makeway.plain import seconds_of
from makeway.readers.api import Loaded, ReadOptions
from makeway_app.archive import JsonArchive
from makeway_app.cli.asked import Asked
from makeway_app.cli.group import FAILED
from makeway_app.cli.inputs import open_jobs, with_actions
from makeway_app.cli.meter import Board
from makeway_app.cli.options import Duration, workload_options
from makeway_app.cli.outputs import STDOUT, Output, check_names
from makeway_app.cli.processes import cores
from makeway_app.cli.records import Keeper
from makeway_app.cli.request import CONFIGURED, in_world
from makeway_app.cli.running import ran
from makeway_app.cli.terminal import console, note, show
from makeway_engine.engine import Engine
from makeway_sweep.work import ByJob, Outcome, keep_jobs
from makeway_tune import tell
from makeway_tune.facts import Costs
from makeway_tune.files import site_of
from makeway_tune.goals import goals_of
from makeway_tune.log import KINDS, Group, Log, log_of
from makeway_tune.page import page
from makeway_tune.runs import Runner, no_warm_start
from makeway_tune.since import mail, news, read_last, since
from makeway_tune.sure import draws
from makeway_tune.work import ALL, Work


@click.command()
@workload_options
@click.option(
    "--minimise",
    multiple=True,
    metavar="MEASURE",
    help="What is to become less: lost-hours, wait, preempted or hit-twice, of all jobs or of some: "
    "'wait[urgent].p95'. Repeatable; else lost-hours and wait.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="LIMIT",
    help="What has to hold: 'wait[urgent].p95<=10min', 'lost-hours[batch]<=90%' of today's. Repeatable.",
)
@click.option(
    "--never",
    multiple=True,
    metavar="MEASURE",
    help="What must not happen at all: 'preempted[gold]'. Repeatable.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Change only settings with this in their name.")
@click.option(
    "--without", multiple=True, metavar="NAME", help="Leave settings with this in their name alone."
)
@click.option(
    "--trials", type=click.IntRange(1, 100_000), default=64, show_default=True, help="Candidates to try."
)
@click.option(
    "--within",
    type=Duration(),
    default="30min",
    show_default=True,
    help="Take no longer than this: fewer trials, on fewer days, and fewer finalists.",
)
@click.option(
    "--checkpoint-every",
    multiple=True,
    metavar="[GROUP=]TIME",
    help="Count lost work since the last checkpoint, of those that jobs of a partition or user write by themselves. "
    "Repeatable.",
)
@click.option(
    "--restart-cost",
    multiple=True,
    metavar="[GROUP=]TIME[/GiB]",
    help="Count so much more lost work each time that such a job begins again, or for each GiB of its memory. "
    "Repeatable.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Search and draw anew.")
@click.option("--workers", type=click.IntRange(1, 4096), help="Processes at once; else one per core.")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler listens there.")
@click.option("--json", "json_file", metavar="FILE", help="Write all figures.")
@click.option("--report", "report_file", metavar="FILE", help="Write a page for a browser.")
@click.option(
    "--since",
    "last_file",
    type=click.Path(path_type=Path),
    metavar="LAST",
    help="Take the jobs submitted since the run that left the file LAST, say what changed, and leave it anew.",
)
@click.option(
    "--mail", "mail_file", metavar="FILE", help="With --since: write that as a mail; empty: nothing changed."
)
@registry.one_look()
def tune(
    asked: Asked,
    minimise: tuple[str, ...],
    keep: tuple[str, ...],
    never: tuple[str, ...],
    only: tuple[str, ...],
    without: tuple[str, ...],
    trials: int,
    within: Seconds,
    checkpoint_every: tuple[str, ...],
    restart_cost: tuple[str, ...],
    seed: int,
    workers: int | None,
    dask: str | None,
    json_file: str | None,
    report_file: str | None,
    last_file: Path | None,
    mail_file: str | None,
) -> None:
    """Search the settings of the site's own scheduler for better ones, with what they do to which jobs, and how sure.

    CONFIG is slurm.conf, lsb.queues, moab.cfg, a manifest of Kueue or TOML, and WORKLOAD a log.  Candidates are
    edits of CONFIG, tried on the busiest week of the log, or on fewer days where time is short; the best are
    replayed over all of it.  The one that is recommended comes as a difference of CONFIG.
    """
    began = time.monotonic()
    left = None if last_file is None else str(last_file)
    if asked.workload is not None:
        check_names(
            [("--json", json_file), ("--report", report_file), ("--mail", mail_file), ("--since", left)],
            [asked.config, asked.workload, *asked.accounting, *asked.outages],
        )
    if mail_file is not None and last_file is None:
        raise ConfigError(
            "--mail", [Problem("", "says what changed since the last run; name its file with --since")]
        )
    last = None if last_file is None else read_last(last_file)
    named = filter(None, (json_file, report_file, mail_file, left))
    with contextlib.ExitStack() as stack:
        # What cannot be written is told now, and not when all is done.
        files = {name: stack.enter_context(Output(name)) for name in dict.fromkeys(named)}
        loaded = asked.load()
        note("warning", loaded.warnings)
        base = with_actions(in_world(asked.changed(loaded.config), None), asked.actions)
        no_warm_start(base, asked.config)
        opened = open_jobs(loaded, asked.workload, ReadOptions(config=base, limit=asked.limit), asked.format)
        jobs, until = tuple(opened.jobs), None
        if last_file is not None:
            jobs, until = since(jobs, opened.start_wall, last, opened.name)
        log = log_of(jobs, base, opened.name)
        note("note", opened.notes)
        goals = goals_of(minimise, keep, never, log)
        costs = Costs(
            every=_by_group(checkpoint_every, "--checkpoint-every", log),
            restart=_by_group(restart_cost, "--restart-cost", log),
        )
        site = site_of(asked.config, loaded.config, only, without, asked.accounting)
        runner = Runner(
            asked=asked,
            site=site,
            leader=loaded.config.policy.preempt,
            workers=workers or cores(),
            dask=dask,
        )
        work = Work(runner=runner, log=log, goals=goals, costs=costs, within=within, began=began)
        calibration, shown = _calibrated(work, loaded) if last_file is None else (None, [])
        with _progress() as phase:
            work.as_configured(opened.start_wall, seed, phase("as configured", None))
            tried = work.searched(trials, seed, phase("searching", trials))
            chosen = work.finalists(tried, phase("finalists", None))
        found = work.answered(chosen, draws(log, seed))
        head = tell.heading(log, len(tried), work.days, int(work.tried_on.sum()), len(chosen))
        changed = news(found, site, last) if last_file is not None else []
        news_of = Text("\n".join(changed) or "nothing has changed since the last advice")
        every = [*shown, *tell.tables(found)] if last_file is None else [news_of]
        show([head, *every], err=STDOUT in files)
        note("note", work.cut)
        if report_file is not None:
            title = f"{asked.config.name}: {', '.join(str(each) for each in goals.minimise)}"
            files[report_file].write(page(found, title, head.plain))
        if mail_file is not None:
            files[mail_file].write(mail(changed, found, asked.config.name))
        if json_file is not None or last_file is not None:
            about = {
                "jobs": len(log.jobs),
                "days": round(log.days, 6),
                "tried": len(tried),
                "refused": len(runner.refused),
                "settings": [each.name for each in site.knobs],
                "against_log": calibration,
                **({} if until is None else {"until": until}),
            }
            text = json.dumps(tell.as_dict(found, about), indent=1, ensure_ascii=False) + "\n"
            for name in (json_file, left):
                if name is not None:
                    files[name].write(text)
    if found.impossible:
        raise click.exceptions.Exit(FAILED)


# ------------------------------------------------------------------------------- calibration
class _Watching(Keeper):
    """Keeps what becomes of each job."""

    def started(self, engine: Engine) -> None:
        """The run begins."""
        super().started(engine)
        keep_jobs(engine)


def _calibrated(work: Work, loaded: Loaded) -> tuple[dict[str, Any] | None, list[RenderableType]]:
    """Replay the log as configured and hold it against what happened; nothing if the log does not say that."""
    if not any("wait" in spec.attributes for spec in work.log.jobs):
        return None, [Text("how near the replay is to what happened: the log does not say when jobs started")]
    against = registry.tool("against", "--against-log").AgainstLog()
    asked = work.runner.asked
    config = with_actions(in_world(asked.changed(loaded.config), None), asked.actions)
    config, _ = registry.translated(config, loaded.config.policy.preempt)
    stop: list[object] = []
    began = time.monotonic()
    timer = threading.Timer(work.began + work.within - began, stop.append, ["time is over"])
    timer.daemon = True
    timer.start()
    board = Board(["as configured"], console(err=True))
    with JsonArchive() as archive, board.shown():
        done = ran(
            asked.request(loaded),
            CONFIGURED,
            config,
            _Watching(archive=archive, against=against),
            board.gauges[0],
            stop=stop,
        )
    timer.cancel()
    if stop:
        raise work.too_long()
    work.one = time.monotonic() - began
    metrics = done.column.metrics
    work.runner.kept[(), ALL] = Outcome(identity="", metrics=done.column.figures, by_job=ByJob.of(metrics))
    # Partitions and the sentences; accounts and users are in --json.
    listed = list(against.tables(done.column, loaded.matters))
    return against.as_dict(), [*listed[:2], *listed[-2:-1]]


# ------------------------------------------------------------------------------------- options
def _gib(job: JobSpec) -> float:
    """Return the memory that a job asks for, in GiB."""
    asked = (job.memory_mb_per_node or 0) * job.min_nodes or (job.memory_mb_per_cpu or 0) * job.cpus
    return asked / 1024


def _by_group(texts: Sequence[str], option: str, log: Log) -> Callable[[int], Seconds]:
    """Read ``[GROUP=]TIME``, or ``[GROUP=]TIME/GiB`` of its memory; the last one that is about a job counts.

    :raises ConfigError: one cannot be read, or its group has no jobs.
    """
    values = [0.0] * len(log.jobs)
    for text in texts:
        name, _, length = text.strip().rpartition("=")
        length, _, unit = length.partition("/")
        seconds = seconds_of(length)
        if unit.lower() not in ("", "gib"):
            raise ConfigError(f"{option} {text}", [Problem("", f"got /{unit}; allowed: TIME or TIME/GiB")])
        try:
            seconds = float(length) if seconds is None else seconds
        except ValueError:
            allowed = "allowed: [GROUP=]TIME, such as batch=30min"
            raise ConfigError(f"{option} {text}", [Problem("", f"got {length!r}; {allowed}")]) from None
        if not 0 <= seconds < float("inf"):
            raise ConfigError(f"{option} {text}", [Problem("", f"got {length!r}; allowed: 0 or more")])
        kind = next((kind for kind in KINDS if not name or name in log.names(kind)), None)
        if kind is None:
            known = [each for kind in KINDS for each in log.names(kind)]
            said = f"no partition, QOS, account or user {name!r} has jobs in the log{nearest(name, known)}"
            raise ConfigError(f"{option} {text}", [Problem("", said)])
        mask = log.mask(Group(kind, name) if name else None)
        sizes = [_gib(job) if unit else 1.0 for job in log.jobs]
        values = [
            seconds * size if mine else value for mine, value, size in zip(mask, values, sizes, strict=True)
        ]
    return values.__getitem__


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int | None], Callable[[int], None]]]:
    """Show what is done, how much of it, and for how long; only on a terminal."""
    target = console(err=True)
    if not target.is_terminal:
        yield lambda phase, total: lambda number: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=target, transient=True) as shown:

        def phase(name: str, total: int | None) -> Callable[[int], None]:
            task = shown.add_task(name, total=total)
            return lambda number: shown.advance(task, number)

        yield phase

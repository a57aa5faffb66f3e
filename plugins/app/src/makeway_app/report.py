"""Show runs as tables: figures, who displaced whom, waits, what could not be used, and the queue.

Several runs are shown side by side, one column each.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from makeway.metrics import median
from makeway.model import Job, JobState, Seconds, Stay, SuspendedBy, Vocabulary
from makeway.readers.api import Rejected, Workload
from makeway.record import Recorder
from makeway_app import status
from makeway_app.replay import Run
from makeway_engine.engine import Engine

_SHOWN = 5
"""Rows of the workload that are named."""
_NOBODY = "(gang)"
"""In place of a preemptor's group when nobody in particular took the victim's place."""


@attrs.frozen(kw_only=True)
class Column:
    """One run and what it is called."""

    label: str
    run: Run
    workload: Workload
    figures: Mapping[str, Any]
    """Metrics of the summary."""
    cut_short: bool = False
    """Whether the replay was told to stop at some instant."""


# ----------------------------------------------------------------------------------- words
def clock(seconds: Seconds) -> str:
    """Return a length of time: 12.5 s, 0:02:00, 3-04:05:06."""
    if seconds < 60:
        return f"{round(seconds, 2):g} s"
    days, rest = divmod(round(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    shown = f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{hours:02}:{rest // 60:02}:{rest % 60:02}" if days else shown


def instant(seconds: Seconds) -> str:
    """Return an instant of the replay, to the microsecond."""
    return f"{seconds:,.6f}".rstrip("0").rstrip(".") + " s"


def count(number: float, word: str) -> str:
    """Return 1 job, 2 jobs."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def table(*headings: str, left: int = 1) -> Table:
    """Return an empty table; the first `left` columns hold words, the others numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for at, heading in enumerate(headings):
        made.add_column(
            Text(heading.replace("; ", ";\n")), justify="left" if at < left else "right", no_wrap=at >= left
        )
    return made


# ------------------------------------------------------------------------------- the summary
def summary(columns: Sequence[Column]) -> Iterator[RenderableType]:
    """Yield the tables of one run, or of several side by side."""
    first = columns[0]
    yield Text(_heading(first))
    yield _figures(columns)
    if any(column.run.recorder.metrics.pairs for column in columns):
        yield _preemptions(columns)
    yield from _young_victims(columns)
    yield _waits(first) if len(columns) == 1 else _waits_beside(columns)
    yield from _left_out(first)
    for other in columns[1:]:
        if _what_is_left_out(other) != _what_is_left_out(first):
            yield Text(f"{other.label}:")
            yield from _left_out(other)


def _heading(column: Column) -> str:
    jobs = count(column.figures["jobs"], "job")
    nodes = count(len(column.run.recorder.cluster.nodes), _words(column).noun("node"))
    return f"{jobs} of {column.workload.name} on {nodes}"


def _words(column: Column) -> Vocabulary:
    return column.run.engine.policies.vocabulary()


def _figures(columns: Sequence[Column]) -> Table:
    shown = table("", *(column.label for column in columns))
    shown.show_header = len(columns) > 1
    rows = [dict(_figures_of(column.figures)) for column in columns]
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        shown.add_row(name, *(row.get(name, "") for row in rows))
    return shown


def _figures_of(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "jobs", f"{figures['jobs']:,}"
    for name in ("mean_wait", "median_wait", "max_wait"):
        yield name.replace("_", " "), clock(figures[name])
    yield "mean bounded slowdown", f"{figures['mean_bounded_slowdown']:,.2f}"
    yield "utilisation", f"{figures['utilisation']:.1%}"
    yield "goodput", f"{figures['goodput']:.1%}"
    yield "makespan", clock(figures["makespan"])
    yield "preemptions", f"{figures['preemptions']:,}"
    yield "jobs preempted", f"{figures['jobs_preempted']:,}"
    yield "ended by preemption", f"{figures['jobs_ended_by_preemption']:,}"
    yield "core-hours lost", f"{figures['core_seconds_lost'] / 3600:,.1f}"
    if figures["core_seconds_to_submit_again"]:
        yield "to submit again", f"{figures['core_seconds_to_submit_again'] / 3600:,.1f}"
    yield "jobs unfinished", f"{figures['jobs_unfinished']:,}"
    yield "rows unusable", f"{figures['rows_unusable']:,}"
    if figures.get("checkpoints"):
        yield "checkpoints", f"{figures['checkpoints']:,}"
        for what in ("checkpointing", "restarting", "saved"):
            text = {"checkpointing": "writing them", "restarting": "reading them", "saved": "that they saved"}
            yield f"core-hours {text[what]}", f"{figures[f'core_seconds_{what}'] / 3600:,.1f}"
    for name, key, show in MEASURES:
        if key in figures:
            yield name, show(figures[key])


MEASURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("mean JCT", "jct_mean", clock),
    ("median JCT", "jct_median", clock),
    ("99th percentile JCT", "jct_p99", clock),
    ("evictions per job", "evictions_per_job", lambda x: f"{x:,.3f}"),
    ("worst finish-time fairness", "finish_time_fairness_worst", lambda x: f"{x:,.2f}"),
    ("Jain's index of fairness", "finish_time_fairness_jain", lambda x: f"{x:.3f}"),
    ("GPU utilisation", "gpu_utilisation", lambda x: f"{x:.1%}"),
    ("GPU allocation", "gpu_allocation", lambda x: f"{x:.1%}"),
    ("GPU-hours lost", "gpu_seconds_lost", lambda x: f"{x / 3600:,.1f}"),
    ("GPUs stranded", "gpus_stranded", lambda x: f"{x:,.1f}"),
    ("GPU fragmentation", "gpu_fragmentation", lambda x: f"{x:.1%}"),
)
"""Measures of GPU clusters as tables name and show them (`makeway.measures`)."""


def _preemptions(columns: Sequence[Column]) -> Table:
    pairs = [column.run.recorder.metrics.pairs for column in columns]
    labels = ["preemptions"] if len(columns) == 1 else [column.label for column in columns]
    nouns = dict.fromkeys(column.run.recorder.grouping.noun for column in columns)
    of = "" if list(nouns) == ["partition"] else f" ({' or '.join(nouns)})"
    shown = table(f"preemptor{of}", f"victim{of}", "mode", *labels, left=3)
    for key in sorted({key for each in pairs for key in each}):
        preemptor, victim, mode = key
        counts = (f"{each.get(key, 0):,}" for each in pairs)
        shown.add_row(preemptor or _NOBODY, victim, mode, *counts)
    return shown


def _young_victims(columns: Sequence[Column]) -> Iterator[RenderableType]:
    """Warn of victims that had just started, with the number of them."""
    for column in columns:
        metrics, engine = column.run.recorder.metrics, column.run.engine
        if metrics.young_victims:
            whose = f"{column.label}: " if len(columns) > 1 else ""
            of = count(metrics.preemptions, "preemption")
            age = f"less than {engine.config.scheduler.young_victim_age:g} s before"
            text = f"{whose}{metrics.young_victims:,} of {of} hit jobs that had started {age}"
            if not engine.clockwork.keep_freed:
                text += "; scheduler.clockwork.keep_freed = true keeps what victims leave for their preemptor"
            yield Text(text, style="yellow")


def _mean(waits: array[float]) -> Seconds:
    return math.fsum(waits) / len(waits)


_AVERAGES: Mapping[str, Callable[[array[float]], Seconds]] = {
    "mean wait": _mean,
    "median wait": median,
    "max wait": max,
}


_NO_WAITS = array("d")


def _waits(column: Column) -> Table:
    shown = table(_words(column).noun("partition"), "started", *_AVERAGES)
    for partition in column.run.recorder.cluster.partitions:
        waits = column.run.recorder.metrics.waits_in.get(partition.name, _NO_WAITS)
        shown.add_row(partition.name, f"{len(waits):,}", *_averages(waits))
    return shown


def _waits_beside(columns: Sequence[Column]) -> Table:
    noun = _words(columns[0]).noun("partition")
    shown = table(noun, "", *(column.label for column in columns), left=2)
    waits = [column.run.recorder.metrics.waits_in for column in columns]
    names = dict.fromkeys(p.name for c in columns for p in c.run.recorder.cluster.partitions)
    for name in names:
        cells = [
            [f"{len(each.get(name, _NO_WAITS)):,}", *_averages(each.get(name, _NO_WAITS))] for each in waits
        ]
        for at, heading in enumerate(("started", *_AVERAGES)):
            shown.add_row("" if at else name, heading, *(cell[at] for cell in cells))
    return shown


def _averages(waits: array[float]) -> list[str]:
    return [clock(average(waits)) if waits else "" for average in _AVERAGES.values()]


# -------------------------------------------------------------------------- what was left out
def rejections(workload: Workload, recorder: Recorder, *, worst_first: bool = False) -> Iterator[str]:
    """Yield a line for each row that cannot be used, and for each job that can never run here.

    :param worst_first: rows that are usual for the format come last; else all rows in their order, then the jobs.
    """
    rows = workload.rejected
    if worst_first:
        yield from (rejection(workload, row) for row in rows if not row.usual)
        rows = [row for row in rows if row.usual]
    else:
        yield from (rejection(workload, row) for row in rows)
        rows = []
    for job, source, reason in recorder.unrunnable:
        yield f"{source or workload.name}: job {job} can never run here: {reason}"
    yield from (rejection(workload, row) for row in rows)


def rejection(workload: Workload, row: Rejected) -> str:
    """Return place and reason of a row that cannot be used."""
    if row.line:
        return f"{workload.name}:{row.line}: {row.reason}"
    return f"{workload.name}: job {row.job}: {row.reason}" if row.job else row.reason


def left_out(columns: Sequence[Column]) -> str:
    """Say how much of the workload is lost to faults of rows and to the machine; empty: nothing.

    Of several runs the one that lost the most counts.
    """
    rows = max(column.workload.faulty_count for column in columns)
    jobs = max(len(column.run.recorder.unrunnable) for column in columns)
    parts = [f"{count(rows, 'row')} cannot be used"] if rows else []
    parts += [f"{count(jobs, 'job')} can never run here"] if jobs else []
    stopped = max(len(_left_suspended(column)) for column in columns)
    parts += (
        [f"{count(stopped, 'job')} {'stays' if stopped == 1 else 'stay'} suspended for good"]
        if stopped
        else []
    )
    return " and ".join(parts)


def _what_is_left_out(column: Column) -> tuple[object, ...]:
    recorder = column.run.recorder
    stuck = [job.id for jobs in _stuck(column).values() for job in jobs]
    stopped = [job.id for job, _ in _left_suspended(column)]
    return (column.workload.rejected_count, recorder.unrunnable, recorder.refusals, stuck, stopped)


def _left_suspended(column: Column) -> list[tuple[Job, Sequence[Stay]]]:
    """Return who is still suspended although nothing will happen any more, and why; not whom a person suspended."""
    engine = column.run.engine
    if column.cut_short:
        return []
    stopped = [job for job in engine.ledger.active if job.state is JobState.SUSPENDED]
    return [(job, engine.stays(job)) for job in stopped if job.suspended_by is not SuspendedBy.ADMIN]


def stay_told(stay: Stay) -> str:
    """Say in one line why a job stays suspended."""
    names = f": {', '.join(stay.holders)}" if stay.holders else ""
    until = f", until {instant(stay.until)}" if stay.until is not None else ""
    return f"{stay.why}{names}{until}"


def _stuck(column: Column) -> Mapping[str, Sequence[Job]]:
    """Return who still waits although nothing will happen any more, by the reason."""
    found: dict[str, list[Job]] = {}
    if not column.cut_short:
        for job in column.run.engine.queue.pending():
            found.setdefault(job.reason, []).append(job)
    return found


def _left_out(column: Column) -> Iterator[RenderableType]:
    recorder = column.run.recorder
    rows, jobs = column.workload.rejected_count, len(recorder.unrunnable)
    if rows or jobs:
        parts = [f"{count(rows, 'row')} unusable"] if rows else []
        parts += [f"{count(jobs, 'job')} that can never run here"] if jobs else []
        usual = column.workload.usual_count
        if 0 < usual < rows:
            parts[0] += f" ({usual:,} of them as usual: not run, or not known)"
        lines = list(rejections(column.workload, recorder, worst_first=True))
        more = _first(lines, rows + jobs, "--rejected FILE")
        yield Text("\n".join([", ".join(parts), *more]))
    stuck = _stuck(column)
    if stuck:
        words = _words(column)
        number = sum(map(len, stuck.values()))
        verb = "waits" if number == 1 else "wait"
        text = f"{count(number, 'job')} that still {verb} when nothing happens any more"
        told = (f"  {words.reason(reason)}: {_ids(jobs)}" for reason, jobs in stuck.items())
        yield Text("\n".join([text, *told]))
    stopped = _left_suspended(column)
    if stopped:
        verb = "is" if len(stopped) == 1 else "are"
        text = f"{count(len(stopped), 'job')} that {verb} still suspended when nothing happens any more"
        lines = [f"{job.id}: {'; '.join(map(stay_told, stays)) or 'not known why'}" for job, stays in stopped]
        yield Text("\n".join([text, *_first(lines, len(lines), "makeway explain")]))
    if recorder.refusals:
        lines = [
            f"{instant(at)}: {command.name} {command.job_id}: {reason}"
            for at, command, reason in recorder.refusals
        ]
        text = f"{count(len(lines), 'command')} refused"
        yield Text("\n".join([text, *_first(lines, len(lines), "--log FILE")]))


def _ids(jobs: Sequence[Job]) -> str:
    named = ", ".join(job.id for job in jobs[:_SHOWN])
    return f"{named} and {len(jobs) - _SHOWN:,} more" if len(jobs) > _SHOWN else named


def _first(lines: Sequence[str], total: int, where: str) -> Iterator[str]:
    for line in lines[:_SHOWN]:
        yield f"  {line}"
    if total > _SHOWN:
        yield f"  and {total - _SHOWN:,} more; {where} has all of them"


# ------------------------------------------------------------------------------------- queue
def queue(engine: Engine, at: Seconds, command: str = "") -> str:
    """Return what a status command would print at the instant `at`.

    :param command: name of the site's own, or of a vendor's; empty: the site's own.
    """
    words = engine.policies.vocabulary()
    shown = words.status or status.default(words)
    if command not in ("", shown.name):
        _, shown = status.commands()[command]
    return status.printed(shown, engine.ledger, at, instant(at))

"""Show runs as tables: figures, which jobs displaced which, waits, what could not be used, and the queue.

Several runs are shown side by side, one column each.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from makeway.foreign import Term, Way
from makeway.metrics import Metrics, median
from makeway.model import Job, JobState, Seconds, Stay, SuspendedBy
from makeway.obstacle import counted, length
from makeway.readers.api import Rejected, Workload
from makeway_app import status
from makeway_app.judged import LEAST, Judged, judge

if TYPE_CHECKING:
    from makeway_app.replay import Run
    from makeway_engine.engine import Engine

_SHOWN = 5
"""Rows of the workload that are named."""
_NAMED = 3
"""Jobs that are named as the cause of a difference."""
_USERS = 10
"""Users whose lost work is shown one by one."""
_NOTHING_TO_TELL = 1e-6
_ANY = 10_000
"""Columns of a terminal that holds everything."""
_MINUS = "\N{MINUS SIGN}"
_NO_PREEMPTOR = "(no job)"
"""In place of a preemptor's group: a gang's turn was over, or a person used the node."""


@attrs.frozen(kw_only=True)
class Column:
    """What tables show of one run: plain data, since the run may have been another process's."""

    label: str
    """What the run is called: ``as configured``, or what was changed."""
    workload: Workload
    """Name and rejected rows; its jobs were read."""
    figures: Mapping[str, Any]
    """Metrics of the summary."""
    metrics: Metrics
    nodes: int
    node_noun: str
    partition_noun: str
    partitions: tuple[str, ...]
    group_noun: str
    """By what the policy tells preemptors and victims apart."""
    young_age: Seconds
    keeps_freed: bool
    warm: bool
    """Whether it began with the jobs that ran when the log begins."""
    unrunnable: tuple[tuple[str, str, str], ...]
    stuck: tuple[tuple[str, tuple[str, ...]], ...]
    """Reason -> jobs that wait although nothing will happen any more."""
    stopped: tuple[tuple[str, str], ...]
    """Job -> why it is still suspended although nothing will happen any more; not those that a person suspended."""
    refusals: tuple[str, ...]


def column(
    label: str, run: Run, workload: Workload, figures: Mapping[str, Any], *, cut_short: bool
) -> Column:
    """Return what tables show of a run.

    :param cut_short: whether it stopped at some instant, so that what waits or is suspended then says nothing.
    """
    engine, recorder = run.engine, run.recorder
    words = engine.policies.vocabulary()
    stuck = {} if cut_short else _stuck(engine)
    stopped = [] if cut_short else _left_suspended(engine)
    return Column(
        label=label,
        workload=attrs.evolve(workload, jobs=iter(()), commands=None),
        figures=figures,
        metrics=recorder.metrics,
        nodes=len(recorder.cluster.nodes),
        node_noun=words.noun("node"),
        partition_noun=words.noun("partition"),
        partitions=tuple(each.name for each in recorder.cluster.partitions),
        group_noun=recorder.grouping.noun,
        young_age=engine.config.scheduler.young_victim_age,
        keeps_freed=engine.clockwork.keep_freed,
        warm=engine.config.workload.warm,
        unrunnable=tuple(recorder.unrunnable),
        stuck=tuple((words.reason(why), tuple(job.id for job in jobs)) for why, jobs in stuck.items()),
        stopped=tuple(
            (job.id, "; ".join(map(stay_told, stays)) or "not known why") for job, stays in stopped
        ),
        refusals=tuple(
            f"{instant(at)}: {command.name} {command.job_id}: {reason}"
            for at, command, reason in recorder.refusals
        ),
    )


# ----------------------------------------------------------------------------------- words
def clock(seconds: Seconds) -> str:
    """Return a length of time: 12.5 s, 0:02:00, 3-04:05:06."""
    return f"{round(seconds, 2):g} s" if seconds < 60 else length(seconds)


def instant(seconds: Seconds) -> str:
    """Return an instant of the replay, to the microsecond."""
    return f"{seconds:,.6f}".rstrip("0").rstrip(".") + " s"


def table(*headings: str, left: int = 1) -> Table:
    """Return an empty table; the first `left` columns hold words, the others numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for at, heading in enumerate(headings):
        made.add_column(
            Text(heading.replace("; ", ";\n")),
            justify="left" if at < left else "right",
            no_wrap=at >= left,
            overflow="fold" if at < left else "ellipsis",
        )
    return made


def terms_table(terms: Sequence[Term], policy: str, run: str = "") -> Iterator[RenderableType]:
    """Yield the table of what was put into the words of a policy; nothing if nothing was.

    :param run: short name of the run; empty: it stands alone.
    """
    if not terms:
        return
    made = table("as written", f"as {policy} reads it", "", left=3)
    for term in terms:
        made.add_row(term.said, term.becomes or "no equal", term.why)
    whose = f"{run}: " if run else ""
    yield Text(f"{whose}put into the words of {policy}")
    yield made


def ways_table(ways: Sequence[Way]) -> Iterator[RenderableType]:
    """Yield the table of which jobs make way for which, and how; nothing if none does."""
    if ways:
        made = table("jobs of", "are", "for jobs of", "why", left=4)
        for way in ways:
            made.add_row(way.victims, way.how, way.by, way.why)
        yield made


# ------------------------------------------------------------------------------- the summary
def letters(columns: Sequence[Column]) -> list[str]:
    """Return short names for runs that stand side by side: A, B, C."""
    return [short_name(at) for at in range(len(columns))]


def short_name(at: int) -> str:
    """Return A for 0, B for 1, AA for 26."""
    return (short_name(at // 26 - 1) if at >= 26 else "") + chr(ord("A") + at % 26)


def summary(columns: Sequence[Column], seed: int = 0) -> Iterator[RenderableType]:
    """Yield the tables of one run, or of several side by side.

    :param seed: of the days that are drawn to judge differences.
    """
    first = columns[0]
    yield Text(_heading(first))
    if len(columns) > 1:
        yield Text(
            "\n".join(f"{name}  {each.label}" for name, each in zip(letters(columns), columns, strict=True))
        )
    yield _figures(columns)
    if any(column.metrics.pairs for column in columns):
        yield _preemptions(columns)
    yield from _young_victims(columns)
    yield from _shared_cores(columns)
    yield _waits(first) if len(columns) == 1 else _waits_beside(columns)
    if len(columns) > 1:
        if any(column.metrics.lost_by_job for column in columns):
            yield _lost_by_user(columns)
        yield _judgements(columns, seed)
        yield from _why_worse(columns)
    yield from _left_out(first)
    for name, other in list(zip(letters(columns), columns, strict=True))[1:]:
        if _what_is_left_out(other) != _what_is_left_out(first):
            yield Text(f"{name}: {other.label}")
            yield from _left_out(other)


def _heading(column: Column) -> str:
    jobs = counted(column.figures["jobs"], "job")
    return f"{jobs} of {column.workload.name} on {counted(column.nodes, column.node_noun)}"


@attrs.frozen
class Beside:
    """A table with a column for each of several runs; where they do not fit, further runs stand below, each beside A.

    What is compared may be figures of runs. No figure is ever cut off:
    the first columns fold at blanks, and a terminal narrower than that wraps lines.
    """

    left: Sequence[str]
    """Headings of the first columns, which hold words."""
    runs: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[str]]]
    """What stands in the first columns, and what under each run."""
    first: int = 1
    """How many of what is compared stand beside the rest."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one table, or as many as it takes."""
        room = options.update(max_width=_ANY)

        def least(made: Table) -> int:
            return Measurement.get(console, room, made).minimum

        first = list(range(self.first))
        others = list(range(self.first, len(self.runs)))
        made = [self._table([*first, *others], 2)]
        if least(made[0]) > options.max_width:
            made = self._parts(first, others, lambda table: least(table) <= options.max_width)
        for at, each in enumerate(made):
            if at:
                yield Text("")
            yield from console.render(each, options.update(max_width=max(options.max_width, least(each))))

    def _parts(self, first: list[int], others: list[int], fits: Callable[[Table], bool]) -> list[Table]:
        """Return tables below one another, each with `first`, as few as fit; with one of `others` each if none do."""
        made = [self._table(first, 1, broken=True)]
        for size, gap in ((size, gap) for size in range(len(others), 0, -1) for gap in (2, 1)):
            of = math.ceil(len(others) / math.ceil(len(others) / size))
            of = min(size, of + of % 2)  # as many in each part, and pairs stay together
            parts = [others[at : at + of] for at in range(0, len(others), of)]
            made = [self._table([*first, *part], gap, broken=True) for part in parts]
            if all(map(fits, made)):
                break
        return made

    def _table(self, runs: Sequence[int], gap: int, *, broken: bool = False) -> Table:
        """Return a table of some of the runs.

        :param broken: whether the first headings are broken at dots: they may be keys.
        """
        left = [name.replace(".", ".\n") if broken else name for name in self.left]
        made = table(*left, *(self.runs[at] for at in runs), left=len(left))
        made.padding = (0, gap, 0, 0)
        for words, values in self.rows:
            made.add_row(*words, *(values[at] for at in runs))
        for column, at in zip(made.columns[len(self.left) :], runs, strict=True):
            lines = [
                *self.runs[at].replace("; ", ";\n").split("\n"),
                *(values[at] for _, values in self.rows),
            ]
            column.min_width = max(map(cell_len, lines))  # it wraps nowhere, of which rich takes no account
        return made


def _figures(columns: Sequence[Column]) -> RenderableType:
    again = any(column.figures["core_seconds_to_submit_again"] for column in columns)
    rows = [dict(_figures_of(column.figures, again=again)) for column in columns]
    names = dict.fromkeys(name for row in rows for name in row)
    if len(columns) > 1:
        return Beside(
            ("",), letters(columns), [((name,), [row.get(name, "") for row in rows]) for name in names]
        )
    shown = table("", "")
    shown.show_header = False
    for name in names:
        shown.add_row(name, rows[0][name])
    return shown


def slowdown(value: float) -> str:
    """Return a mean bounded slowdown as tables show it; of no job that ran there is none, since it is 1 at least."""
    return f"{value:,.2f}" if value else "-"


def _figures_of(figures: Mapping[str, Any], *, again: bool = False) -> Iterator[tuple[str, str]]:
    yield "jobs", f"{figures['jobs']:,}"
    for name in ("mean_wait", "median_wait", "max_wait"):
        yield name.replace("_", " "), clock(figures[name])
    yield "mean bounded slowdown", slowdown(figures["mean_bounded_slowdown"])
    yield "utilisation", f"{figures['utilisation']:.1%}"
    yield "goodput", f"{figures['goodput']:.1%}"
    yield "makespan", clock(figures["makespan"])
    yield "preemptions", f"{figures['preemptions']:,}"
    yield "jobs preempted", f"{figures['jobs_preempted']:,}"
    yield "ended by preemption", f"{figures['jobs_ended_by_preemption']:,}"
    yield "core-hours lost", hours(figures["core_seconds_lost"])
    if again:
        yield "to submit again", hours(figures["core_seconds_to_submit_again"])
    if figures.get("node_failures"):
        yield "node failures", f"{figures['node_failures']:,}"
        yield "ended by them", f"{figures['jobs_ended_by_node_failure']:,}"
    yield "jobs unfinished", f"{figures['jobs_unfinished']:,}"
    yield "rows unusable", f"{figures['rows_unusable']:,}"
    if figures.get("checkpoints"):
        yield "checkpoints", f"{figures['checkpoints']:,}"
        text = {"checkpointing": "writing them", "restarting": "reading them", "saved": "that they saved"}
        for what, words in text.items():
            yield f"core-hours {words}", hours(figures[f"core_seconds_{what}"])
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


def _preemptions(columns: Sequence[Column]) -> RenderableType:
    pairs = [column.metrics.pairs for column in columns]
    nouns = dict.fromkeys(column.group_noun for column in columns)
    of = "" if list(nouns) == ["partition"] else f" ({' or '.join(nouns)})"
    left = (f"preemptor{of}", f"victim{of}", "mode")
    rows = [
        (
            (preemptor or _NO_PREEMPTOR, victim, mode),
            [f"{each.get((preemptor, victim, mode), 0):,}" for each in pairs],
        )
        for preemptor, victim, mode in sorted({key for each in pairs for key in each})
    ]
    return Beside(left, ["preemptions"] if len(columns) == 1 else letters(columns), rows)


def _young_victims(columns: Sequence[Column]) -> Iterator[RenderableType]:
    """Warn of victims that had just started, with the number of them."""
    for name, column in zip(letters(columns), columns, strict=True):
        metrics = column.metrics
        if metrics.young_victims:
            whose = f"{name}: " if len(columns) > 1 else ""
            of = counted(metrics.preemptions, "preemption")
            age = f"less than {column.young_age:g} s before"
            text = f"{whose}{metrics.young_victims:,} of {of} hit jobs that had started {age}"
            if not column.keeps_freed:
                text += "; scheduler.clockwork.keep_freed = true keeps what victims leave for their preemptor"
            yield Text(text, style="yellow")


def _shared_cores(columns: Sequence[Column]) -> Iterator[RenderableType]:
    """Warn of cores that several jobs held at once."""
    over = [
        name
        for name, column in zip(letters(columns), columns, strict=True)
        if column.figures["utilisation"] > 1.0 + 1e-9
    ]
    if over:
        whose = f"{', '.join(over)}: " if len(columns) > 1 else ""
        yield Text(
            f"{whose}utilisation above 100%: jobs ran on the same cores at once, and their run times did not stretch",
            style="yellow",
        )


def _lost_by_user(columns: Sequence[Column]) -> RenderableType:
    """Show whose work was lost, those who lost the most in any run first."""
    lost = []
    for column in columns:
        of: dict[str, float] = {}
        for user, seconds in column.metrics.lost_by_job.values():
            of[user] = of.get(user, 0.0) + seconds
        lost.append(of)
    users = sorted(
        {user for of in lost for user in of}, key=lambda user: (-max(of.get(user, 0.0) for of in lost), user)
    )
    rows = [((user,), [hours(of.get(user, 0.0)) for of in lost]) for user in users[:_USERS]]
    if len(users) > _USERS:
        rest = [math.fsum(of.get(user, 0.0) for user in users[_USERS:]) for of in lost]
        rows.append(((f"{len(users) - _USERS:,} more",), [hours(each) for each in rest]))
    return Beside(("core-hours lost by",), letters(columns), rows)


def _judgements(columns: Sequence[Column], seed: int) -> Text:
    """Say of waits, lost hours and preemptions of each further run whether they differ by more than chance.

    Lost hours and preemptions are told where there are any.
    """
    first, lines = columns[0].metrics, []
    for name, other in list(zip(letters(columns), columns, strict=True))[1:]:
        judged = [each for each in _compared(first, other.metrics, seed) if each[1] is not None]
        found = [(figure, each) for figure, each in judged if each is not None]
        if not found:
            continue
        if all(each.unit or _is_nothing(each) for _, each in found):
            lines += [_judged(figure, name, each) for figure, each in found]
        else:
            (mean, wait), *more = found
            said = [f"{mean.name}, {name} less A: {signed(mean.show, wait.value)}"]
            said += [f"{figure.name} {signed(figure.show, each.value)}" for figure, each in more]
            parts = counted(wait.parts, "hour")
            lines.append(Text(f"{', '.join(said)}; not judged: {parts} with jobs, and {LEAST} are needed"))
    return Text("\n").join(lines)


@attrs.frozen
class _Figure:
    """A figure of a run, for people."""

    name: str
    show: Callable[[float], str]
    words: tuple[str, str]
    """What is said where it is larger, and where it is smaller, than in the first run."""


def _compared(first: Metrics, other: Metrics, seed: int) -> list[tuple[_Figure, Judged | None]]:
    waits = dict(_differences(first.wait_of or {}, other.wait_of or {}))
    found = [(_Figure("mean wait", clock, ("longer", "shorter")), judge(waits, first.submitted_of, seed))]
    submitted = {**other.submitted_of, **first.submitted_of}
    lost = [{job: seconds for job, (_, seconds) in each.lost_by_job.items()} for each in (first, other)]
    preemptions = [each.preemptions_of for each in (first, other)]
    for figure, (before, after) in (
        (_Figure("core-hours lost", hours, ("more", "fewer")), lost),
        (_Figure("preemptions", lambda number: f"{number:,.0f}", ("more", "fewer")), preemptions),
    ):
        if before or after:
            changes = {job: after.get(job, 0.0) - before.get(job, 0.0) for job in submitted}
            found.append((figure, judge(changes, submitted, seed, summed=True)))
    return found


def _is_nothing(found: Judged) -> bool:
    return not any((found.value, found.low, found.high))


def _judged(figure: _Figure, run: str, found: Judged) -> Text:
    what = f"{figure.name}, {run} less A: {signed(figure.show, found.value)}"
    if _is_nothing(found):
        return Text(f"{what}: the same")
    drawn = f"95% of logs drawn from its {counted(found.parts, found.unit)}"
    between = f"{drawn}: {signed(figure.show, found.low)} to {signed(figure.show, found.high)}"
    if not found.differs:
        return Text(f"{what}; {between}: no difference can be told")
    worse = found.low > 0
    return Text(f"{what}; {between}: ").append(figure.words[not worse], "red" if worse else "green")


def _why_worse(columns: Sequence[Column]) -> Iterator[RenderableType]:
    """Yield a line or two for each further run: which jobs waited longer, or lost more, than in the first."""
    first = columns[0]
    lines = []
    for name, other in list(zip(letters(columns), columns, strict=True))[1:]:
        waits = _differences(first.metrics.wait_of or {}, other.metrics.wait_of or {})
        if other.figures["mean_wait"] > first.figures["mean_wait"] and any(more > 0 for _, more in waits):
            lines.append(f"waited longer in {name}: {_which(waits, clock)}")
        before, after = first.metrics.lost_by_job, other.metrics.lost_by_job
        jobs = dict.fromkeys((*after, *before))
        lost = [(job, after.get(job, ("", 0.0))[1] - before.get(job, ("", 0.0))[1]) for job in jobs]
        if other.figures["core_seconds_lost"] > first.figures["core_seconds_lost"]:
            lines.append(f"lost more core-hours in {name}: {_which(lost, hours)}")
    if lines:
        yield Text("\n".join(lines))


def _differences(before: Mapping[str, Seconds], after: Mapping[str, Seconds]) -> list[tuple[str, Seconds]]:
    return [(job, wait - before[job]) for job, wait in after.items() if job in before]


def _which(changes: Sequence[tuple[str, float]], show: Callable[[float], str]) -> str:
    """Name the jobs with the largest increase, and say how many there are and how many decreased."""
    more = sorted((each for each in changes if each[1] > _NOTHING_TO_TELL), key=lambda each: -each[1])
    less = sum(change < -_NOTHING_TO_TELL for _, change in changes)
    named = ", ".join(f"{job} +{show(change)}" for job, change in more[:_NAMED])
    rest = f" and {len(more) - _NAMED:,} more" if len(more) > _NAMED else ""
    return f"{'job' if len(more) == 1 else 'jobs'} {named}{rest}" + (
        f"; {less:,} the other way" if less else ""
    )


def signed(show: Callable[[float], str], value: float) -> str:
    """Return a change with its sign; what is shown like zero has none.

    :param show: what writes a figure for people.
    """
    size = show(abs(value))
    return size if size == show(0) else f"{_MINUS if value < 0 else '+'}{size}"


def hours(seconds: float) -> str:
    """Return core-seconds as core-hours."""
    return f"{seconds / 3600:,.1f}"


def _mean(waits: array[float]) -> Seconds:
    return math.fsum(waits) / len(waits)


_AVERAGES: Mapping[str, Callable[[array[float]], Seconds]] = {
    "mean wait": _mean,
    "median wait": median,
    "max wait": max,
}


_NO_WAITS = array("d")


def _waits(column: Column) -> Table:
    shown = table(column.partition_noun, "started", *_AVERAGES)
    for partition in column.partitions:
        waits = column.metrics.waits_in.get(partition, _NO_WAITS)
        shown.add_row(partition, f"{len(waits):,}", *_averages(waits))
    return shown


def _waits_beside(columns: Sequence[Column]) -> RenderableType:
    waits = [column.metrics.waits_in for column in columns]
    rows: list[tuple[Sequence[str], Sequence[str]]] = []
    for name in dict.fromkeys(name for column in columns for name in column.partitions):
        cells = [
            [f"{len(each.get(name, _NO_WAITS)):,}", *_averages(each.get(name, _NO_WAITS))] for each in waits
        ]
        for at, heading in enumerate(("started", *_AVERAGES)):
            rows.append((("" if at else name, heading), [cell[at] for cell in cells]))
    return Beside((columns[0].partition_noun, ""), letters(columns), rows)


def _averages(waits: array[float]) -> list[str]:
    return [clock(average(waits)) if waits else "" for average in _AVERAGES.values()]


# -------------------------------------------------------------------------- what was left out
def rejections(
    workload: Workload, unrunnable: Sequence[tuple[str, str, str]], *, worst_first: bool = False
) -> Iterator[str]:
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
    for job, source, reason in unrunnable:
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
    jobs = max(len(column.unrunnable) for column in columns)
    parts = [f"{counted(rows, 'row')} cannot be used"] if rows else []
    parts += [f"{counted(jobs, 'job')} can never run here"] if jobs else []
    stopped = max(len(column.stopped) for column in columns)
    parts += (
        [f"{counted(stopped, 'job')} {'stays' if stopped == 1 else 'stay'} suspended for good"]
        if stopped
        else []
    )
    return " and ".join(parts)


def _what_is_left_out(column: Column) -> tuple[object, ...]:
    stuck = [job for _, jobs in column.stuck for job in jobs]
    stopped = [job for job, _ in column.stopped]
    return (column.workload.rejected_count, column.unrunnable, column.refusals, stuck, stopped)


def _left_suspended(engine: Engine) -> list[tuple[Job, Sequence[Stay]]]:
    """Return what is still suspended although nothing will happen any more, and why; not what a person suspended."""
    stopped = [job for job in engine.ledger.active if job.state is JobState.SUSPENDED]
    return [(job, engine.stays(job)) for job in stopped if job.suspended_by is not SuspendedBy.ADMIN]


def stay_told(stay: Stay) -> str:
    """Say in one line why a job stays suspended."""
    names = f": {', '.join(stay.holders)}" if stay.holders else ""
    until = f", until {instant(stay.until)}" if stay.until is not None else ""
    return f"{stay.why}{names}{until}"


def _stuck(engine: Engine) -> Mapping[str, Sequence[Job]]:
    """Return what still waits although nothing will happen any more, by the reason."""
    found: dict[str, list[Job]] = {}
    for job in engine.queue.pending():
        found.setdefault(job.reason, []).append(job)
    return found


def _left_out(column: Column) -> Iterator[RenderableType]:
    rows, jobs = column.workload.rejected_count, len(column.unrunnable)
    if rows or jobs:
        parts = [f"{counted(rows, 'row')} unusable"] if rows else []
        parts += [f"{counted(jobs, 'job')} that can never run here"] if jobs else []
        usual = column.workload.usual_count
        if 0 < usual < rows:
            parts[0] += f" ({usual:,} of them as usual: not run, or not known)"
        lines = list(rejections(column.workload, column.unrunnable, worst_first=True))
        more = _first(lines, rows + jobs, "--rejected FILE")
        yield Text("\n".join([", ".join(parts), *more]))
    if column.stuck:
        number = sum(len(ids) for _, ids in column.stuck)
        verb = "waits" if number == 1 else "wait"
        text = f"{counted(number, 'job')} that still {verb} when nothing happens any more"
        told = (f"  {reason}: {_ids(ids)}" for reason, ids in column.stuck)
        yield Text("\n".join([text, *told]))
    if column.stopped:
        verb = "is" if len(column.stopped) == 1 else "are"
        text = (
            f"{counted(len(column.stopped), 'job')} that {verb} still suspended when nothing happens any more"
        )
        lines = [f"{job}: {why}" for job, why in column.stopped]
        yield Text("\n".join([text, *_first(lines, len(lines), "makeway explain")]))
    if column.refusals:
        text = f"{counted(len(column.refusals), 'command')} refused"
        yield Text("\n".join([text, *_first(column.refusals, len(column.refusals), "--log FILE")]))


def _ids(jobs: Sequence[str]) -> str:
    named = ", ".join(jobs[:_SHOWN])
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

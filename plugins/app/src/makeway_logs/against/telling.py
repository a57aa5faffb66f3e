"""Show people how far a replay agrees with its log, how far it can be trusted, and which causes are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from makeway.obstacle import counted
from makeway_app.report import Beside, Column, clock, hours
from makeway_logs.against import figures
from makeway_logs.against.row import Count, Row

REQUEUED = "it was requeued: the log shows its last start only, which is held against the replay's last"
BY_HAND = "it was held, depended on another job, or had a later begin time"
_GOOD, _FAIR = 0.10, 0.25
_FEW = 100
"""Jobs below which no figure says much."""
_BOTH = ("log", "replay")
_SHOWN = 12
"""Groups shown of each kind; `--json` has all."""
_YARDSTICK = "the best published replay of a machine is 7.3% off, over four months"


def tables(
    rows: Sequence[Row],
    counts: Sequence[Count],
    missing: Counter[str],
    column: Column,
    matters: Sequence[str],
) -> Iterator[RenderableType]:
    """Yield the comparison."""
    yield Text(f"against the log: {counted(len(rows), 'job')} compared")
    if not rows:
        yield Text("\n".join(_left_out(missing)))
        return
    for group in figures.GROUPS:
        named = figures.by_group(rows, group)
        if group == "partition" or len(named) > 1:
            yield _waits(group, named, figures.figures_of(rows))
    whole = figures.counts_of(counts)
    for group in figures.COUNTED if _tells(whole) else ():
        by = figures.counts_by(counts, group)
        if group == "partition" or len(by) > 1:
            yield _counts(group, by, whole)
    told = [*verdicts(rows), *forecasts(whole, rows)]
    yield Text("\n".join(["how far it can be trusted here", *(f"  {text}" for text in told)]))
    causes = [*_left_out(missing), *_known(rows, column, matters)]
    if causes:
        yield Text("\n".join(["known causes of differences", *(f"  {text}" for text in causes)]))


def _waits(group: str, named: Mapping[str, figures.Figures], all_of_them: figures.Figures) -> RenderableType:
    headings = (
        *("jobs", "median wait; log", "median wait; replay", "mean wait; log", "mean wait; replay"),
        *("average; off", "within; 1 min", "within; 10 min", "within; 60 min"),
    )
    made: list[tuple[Sequence[str], Sequence[str]]] = []
    largest = sorted(named.items(), key=lambda each: (-each[1].jobs, each[0]))
    for name, each in [*largest[:_SHOWN], *([("(all)", all_of_them)] if group == "partition" else [])]:
        cells = (
            f"{each.jobs:,}",
            *(clock(value) for value in (*each.median, *each.mean)),
            "" if each.off is None else f"{each.off:.1%}",
            *(f"{share:.0%}" for share in each.within.values()),
        )
        made.append(((name or "(none)",), cells))
    return _side_by_side(group, headings, made, len(largest))


def _side_by_side(
    group: str, headings: Sequence[str], rows: list[tuple[Sequence[str], Sequence[str]]], groups: int
) -> RenderableType:
    """Return a table whose columns stand below one another where a terminal is too narrow, each beside the jobs."""
    if groups > _SHOWN:
        rows.append(((f"{groups - _SHOWN:,} more in --json",), [""] * len(headings)))
    return Beside((group,), headings, rows)


def _tells(counts: figures.Counts) -> bool:
    """Whether any job had to go in the log or in the replay."""
    return any(counts.requeues) or any(counts.preemptions)


def _counts(group: str, named: Mapping[str, figures.Counts], all_of_them: figures.Counts) -> RenderableType:
    pairs = [f"{what}; {whose}" for what in ("requeues", "preemptions", "core-hours lost") for whose in _BOTH]
    made: list[tuple[Sequence[str], Sequence[str]]] = []
    busiest = sorted(
        named.items(), key=lambda each: (-max(each[1].requeues[0] or 0, each[1].requeues[1]), each[0])
    )
    for name, each in [*busiest[:_SHOWN], *([("(all)", all_of_them)] if group == "partition" else [])]:
        numbers = (*each.requeues, *each.preemptions)
        lost = ("?" if value is None else hours(value) for value in each.lost)
        cells = (f"{each.jobs:,}", *("?" if number is None else f"{number:,}" for number in numbers), *lost)
        made.append(((name or "(none)",), cells))
    return _side_by_side(group, ("jobs", *pairs), made, len(busiest))


def forecasts(counts: figures.Counts, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the counts mean for forecasts of preemptions, requeues and lost hours."""
    for what, recorded, replayed in (
        ("requeues", *counts.requeues),
        ("preemptions", *counts.preemptions),
        ("core-hours lost", *counts.lost),
    ):
        show = hours if what == "core-hours lost" else lambda number: f"{number:,.0f}"
        if recorded is None:
            if replayed:
                yield f"{what}: the log does not say how many; sacct -D has a row for each run of a job"
        elif recorded:
            off = abs(replayed - recorded) / recorded
            than = f"{show(replayed)} here, {show(recorded)} in the log"
            if off <= _GOOD:
                yield f"{what}: {than}; a forecast for another policy can be taken as it is"
            else:
                side = "too low" if replayed < recorded else "too high"
                yield (
                    f"{what}: {than}, so a forecast for another policy is {side}, too; "
                    f"only differences of more than {off:.0%} say anything"
                )
        elif replayed and what == "requeues":
            yield f"requeues: {show(replayed)} here, none in the log; a forecast for another policy is too high, too"
    later = figures.later_runs(rows)
    if later is not None:
        number, recorded_wait, replayed_wait = later
        yield (
            f"runs after a requeue: {number:,} compared, mean wait {clock(recorded_wait)} in the log, "
            f"{clock(replayed_wait)} here"
        )


def verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """Yield sentences about what the figures allow to conclude."""
    found = figures.figures_of(rows)
    if found.off is None:
        yield "no job waited in the log, so that averages of waits cannot be compared"
    else:
        span = f"over {counted(found.days, 'day')}"
        text = f"the two-week moving average of waits is {found.off:.1%} off {span}; {_YARDSTICK}"
        yield text
        if found.off <= _GOOD:
            yield "averages over weeks can be compared between policies; single jobs cannot"
        elif found.off <= _FAIR:
            yield "only differences between policies that are larger than this error say anything"
        else:
            yield "waits here are not those of the site; look at the causes below before comparing policies"
    if len(rows) < _FEW:
        yield f"averages over {counted(len(rows), 'job')} say little"
    priority = figures.priorities(rows)
    if priority is not None:
        yield (
            f"priority at the start: {priority.equal:,} of {priority.compared:,} equal, "
            f"{priority.close:,} within 1%, median difference {priority.median_off or 0.0:.1%}"
        )
    reason = figures.reasons(rows)
    if reason is not None:
        yield f"why jobs last waited: the same for {reason.equal:,} of {reason.compared:,}"


def _left_out(missing: Counter[str]) -> Iterator[str]:
    for why, number in sorted(missing.items()):
        left = why not in (REQUEUED, BY_HAND)
        yield f"{counted(number, 'job')}{' left out' if left else ''}: {why}"


def _known(rows: Sequence[Row], column: Column, matters: Sequence[str]) -> Iterator[str]:
    """Yield what of the site a replay has not seen."""
    if column.workload.rejected_count:
        yield f"{counted(column.workload.rejected_count, 'row')} of the log cannot be used"
    if not column.warm:
        yield "the machine was empty at the start; --set workload.warm=true begins with the jobs that ran then"
    if all(row.priorities is None for row in rows):
        yield "the log has no column Priority: whether jobs stood in the right order cannot be seen"
    if all(row.reasons is None for row in rows):
        yield "the log has no column Reason, or no job waited: why jobs waited cannot be compared"
    yield "nodes that were down, limits and priorities that people changed, are not in a log of jobs"
    yield from matters

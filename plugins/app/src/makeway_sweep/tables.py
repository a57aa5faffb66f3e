"""Show a sweep in the terminal, and write it as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from makeway.obstacle import counted
from makeway_app.report import Beside
from makeway_sweep.plan import Axis
from makeway_sweep.summary import COLUMNS, Row, effects, shown

MOST = 40
"""Runs that are shown one by one."""


def tables(axes: Sequence[Axis], rows: Sequence[Row]) -> Iterator[RenderableType]:
    """Yield what each key does, the pareto front, and all runs if they are few."""
    for axis, told in effects(axes, rows):
        headings = ("runs", *(f"{each.name}; (mean)" for each in COLUMNS))
        lines = [
            ((each.value,), (f"{each.runs:,}", *(column.show(each.means[column.key]) for column in COLUMNS)))
            for each in told
        ]
        yield Beside((axis.key,), headings, lines)
    front = [row for row in rows if row.front]
    if len(rows) <= MOST:
        yield Text(
            f"{counted(len(rows), 'run')}; * is on the pareto front of mean wait against lost work{_own(rows)}"
        )
        yield _runs(axes, rows)
    else:
        yield Text(
            f"the pareto front of mean wait against lost work, {len(front):,} of {len(rows):,} runs{_own(front)}"
        )
        yield _runs(axes, front)


def _own(rows: Sequence[Row]) -> str:
    return "; = is the site as configured" if any(row.own for row in rows) else ""


def _runs(axes: Sequence[Axis], rows: Sequence[Row]) -> RenderableType:
    lines = [
        (
            ("*" * row.front + "=" * row.own, *map(shown, row.values)),
            [each.show(row.metrics[each.key]) for each in COLUMNS],
        )
        for row in rows
    ]
    return Beside(("", *(axis.key for axis in axes)), [each.name for each in COLUMNS], lines, first=0)


def as_csv(axes: Sequence[Axis], rows: Sequence[Row]) -> str:
    """Return all runs with all figures; waits and makespan in seconds, lost work in core-seconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    writer.writerow(["number", "run", *(axis.key for axis in axes), *names, "pareto"])
    for row in rows:
        figures = [row.metrics.get(name, "") for name in names]
        writer.writerow([row.number, row.identity, *row.values, *figures, int(row.front)])
    return text.getvalue()

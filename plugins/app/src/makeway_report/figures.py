"""Make the table of figures: a row per figure, a column per run, with differences to the first in signs.

Differences that can be judged come with the interval in which they lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway_app.judged import Judged
from makeway_app.report import MEASURES, clock, signed, slowdown
from makeway_report.interval import Show
from makeway_report.interval import change as drawn


@attrs.frozen
class Figure:
    """A row of the table."""

    name: str
    key: str
    show: Show
    always: bool = True
    """Whether every run has it."""


@attrs.frozen
class Cell:
    """A figure of one run."""

    value: str
    change: str = ""
    """Signed difference to the first run; empty: there is none."""
    between: str = ""
    """Markup of where that lies; empty: it cannot be judged."""


_NONE = "-"
"""Shown where there is no such figure."""
_SAME = "same"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f}"


FIGURES = (
    Figure("mean wait", "mean_wait", clock),
    Figure("median wait", "median_wait", clock),
    Figure("max wait", "max_wait", clock),
    Figure("mean bounded slowdown", "mean_bounded_slowdown", slowdown),
    Figure("utilisation", "utilisation", lambda x: f"{x:.1%}"),
    Figure("goodput", "goodput", lambda x: f"{x:.1%}", always=False),
    Figure("makespan", "makespan", clock),
    Figure("preemptions", "preemptions", lambda x: f"{x:,.0f}"),
    Figure("jobs preempted", "jobs_preempted", lambda x: f"{x:,.0f}"),
    Figure(
        "ended by preemption",
        "jobs_ended_by_preemption",
        lambda x: f"{x:,.0f}",
        always=False,
    ),
    Figure("core-hours lost", "core_seconds_lost", _hours),
    Figure("node failures", "node_failures", lambda x: f"{x:,.0f}", always=False),
    Figure("ended by them", "jobs_ended_by_node_failure", lambda x: f"{x:,.0f}", always=False),
    Figure("jobs unfinished", "jobs_unfinished", lambda x: f"{x:,.0f}"),
)
OF_GPUS = tuple(Figure(name, key, show, always=False) for name, key, show in MEASURES)
"""Further figures, of runs that have them (docs/gpus.md)."""


def figures_of(runs: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Return the rows of the table: figures that any of the runs has."""
    return [each for each in (*FIGURES, *OF_GPUS) if each.always or any(each.key in run for run in runs)]


def rows(
    runs: Sequence[Mapping[str, Any]], judged: Sequence[Mapping[str, Judged]] = ()
) -> list[tuple[Figure, list[Cell]]]:
    """Return each figure with a cell for each run.

    :param runs: metrics of each.
    :param judged: of each run but the first, how its metrics differ, for those that can be judged.
    """
    first = runs[0]
    found = []
    for figure in figures_of(runs):
        told = [each.get(figure.key) for each in judged]
        ends = [end for each in told if each is not None for end in (each.low, each.high)]
        most = max(map(abs, ends), default=0.0)
        cells = [_cell(figure, metrics, first if at else None) for at, metrics in enumerate(runs)]
        for at, each in enumerate(told, start=1):
            if each is not None and cells[at].change not in ("", _SAME):
                between = drawn(figure.show, each.value, each.low, each.high, most, differs=each.differs)
                cells[at] = attrs.evolve(cells[at], between=between)
        found.append((figure, cells))
    return found


def _cell(figure: Figure, metrics: Mapping[str, Any], first: Mapping[str, Any] | None) -> Cell:
    if not figure.always and figure.key not in metrics:
        return Cell("")
    value = metrics[figure.key]
    shown = figure.show(value)
    if first is None or (not figure.always and figure.key not in first):
        return Cell(shown)
    if shown == _NONE or figure.show(first[figure.key]) == _NONE:
        return Cell(shown)
    change = signed(figure.show, value - first[figure.key])
    return Cell(shown, _SAME if change == figure.show(0) else change)

"""Make the table of figures: a row per figure, a column per run, with differences to the first in signs.

A difference of two runs is one draw of a lottery: nobody knows its interval, so that nothing here calls it better or
worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from makeway_app.report import MEASURES, clock, slowdown

Show = Callable[[float], str]


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


_NONE = "-"
"""Shown where there is no such figure."""


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


def rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[Figure, list[Cell]]]:
    """Return each figure with a cell for each run, from their metrics."""
    first = runs[0]
    return [
        (figure, [_cell(figure, metrics, first if at else None) for at, metrics in enumerate(runs)])
        for figure in figures_of(runs)
    ]


def _cell(figure: Figure, metrics: Mapping[str, Any], first: Mapping[str, Any] | None) -> Cell:
    if not figure.always and figure.key not in metrics:
        return Cell("")
    value = metrics[figure.key]
    shown = figure.show(value)
    if first is None or (not figure.always and figure.key not in first):
        return Cell(shown)
    if shown == _NONE or figure.show(first[figure.key]) == _NONE:
        return Cell(shown)
    change = value - first[figure.key]
    size = figure.show(abs(change))
    if size == figure.show(0):
        return Cell(shown, "same")
    sign = "\N{MINUS SIGN}" if change < 0 else "+"
    return Cell(shown, f"{sign}{size}")

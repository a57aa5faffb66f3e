"""Make the table of figures: a row per run, with differences to the first in signs and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from makeway_app.report import MEASURES, clock

Show = Callable[[float], str]


@attrs.frozen
class Figure:
    """A column of the table."""

    name: str
    key: str
    show: Show
    lower_is_better: bool | None
    """None: neither is."""
    always: bool = True
    """Whether every run has it."""


@attrs.frozen
class Cell:
    """A figure of one run."""

    value: str
    change: str = ""
    """Signed difference to the first run; empty: there is none."""
    verdict: str = ""
    """better or worse; empty: neither."""


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f}"


FIGURES = (
    Figure("mean wait", "mean_wait", clock, lower_is_better=True),
    Figure("median wait", "median_wait", clock, lower_is_better=True),
    Figure("max wait", "max_wait", clock, lower_is_better=True),
    Figure("mean bounded slowdown", "mean_bounded_slowdown", lambda x: f"{x:,.2f}", lower_is_better=True),
    Figure("utilisation", "utilisation", lambda x: f"{x:.1%}", lower_is_better=False),
    Figure("goodput", "goodput", lambda x: f"{x:.1%}", lower_is_better=False, always=False),
    Figure("makespan", "makespan", clock, lower_is_better=True),
    Figure("preemptions", "preemptions", lambda x: f"{x:,.0f}", lower_is_better=True),
    Figure("jobs preempted", "jobs_preempted", lambda x: f"{x:,.0f}", lower_is_better=True),
    Figure(
        "ended by preemption",
        "jobs_ended_by_preemption",
        lambda x: f"{x:,.0f}",
        lower_is_better=True,
        always=False,
    ),
    Figure("core-hours lost", "core_seconds_lost", _hours, lower_is_better=True),
    Figure("jobs unfinished", "jobs_unfinished", lambda x: f"{x:,.0f}", lower_is_better=True),
)
_HIGHER_IS_BETTER = ("finish_time_fairness_jain", "gpu_utilisation", "gpu_allocation")
OF_GPUS = tuple(
    Figure(name, key, show, lower_is_better=key not in _HIGHER_IS_BETTER, always=False)
    for name, key, show in MEASURES
)
"""Further figures, of runs that have them (docs/gpus.md)."""


def columns(runs: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Return the columns of the table: figures that any of the runs has."""
    return [*FIGURES, *(each for each in OF_GPUS if any(each.key in metrics for metrics in runs))]


def rows(runs: Sequence[Mapping[str, Any]]) -> list[list[Cell]]:
    """Return a row of cells per run, from their metrics."""
    first, shown = runs[0], columns(runs)
    return [
        [_cell(figure, metrics, first if at else None) for figure in shown] for at, metrics in enumerate(runs)
    ]


def _cell(figure: Figure, metrics: Mapping[str, Any], first: Mapping[str, Any] | None) -> Cell:
    if not figure.always and figure.key not in metrics:
        return Cell("")
    value = metrics[figure.key]
    shown = figure.show(value)
    if first is None or (not figure.always and figure.key not in first):
        return Cell(shown)
    change = value - first[figure.key]
    size = figure.show(abs(change))
    if size == figure.show(0):
        return Cell(shown, "same")
    sign = "\N{MINUS SIGN}" if change < 0 else "+"
    better = figure.lower_is_better is (change < 0)
    return Cell(shown, f"{sign}{size}", "better" if better else "worse")

"""Say what a sweep found: what each key does, and what is on the pareto front of waiting against lost work."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway_report.figures import FIGURES, Figure
from makeway_sweep.plan import DEFAULT, Axis

SHORT = (
    "mean_wait",
    "median_wait",
    "max_wait",
    "utilisation",
    "goodput",
    "preemptions",
    "jobs_ended_by_preemption",
    "core_seconds_lost",
    "jobs_unfinished",
)
COLUMNS: tuple[Figure, ...] = tuple(figure for name in SHORT for figure in FIGURES if figure.key == name)
"""Figures of the tables."""


@attrs.frozen(kw_only=True)
class Row:
    """One run that is done."""

    number: int
    """Place in the product, from 1."""
    values: tuple[str, ...]
    identity: str
    metrics: Mapping[str, Any]
    front: bool = False
    own: bool = False
    """Whether it is the site as configured."""


@attrs.frozen(kw_only=True)
class Effect:
    """What came of the runs that share one value of a key, on average."""

    value: str
    runs: int
    means: Mapping[str, float]


def on_front(rows: Sequence[Row]) -> list[Row]:
    """Mark the runs that no other run beats in both mean wait and lost work.

    A run that leaves more jobs undone than another, unfinished or ended by preemption, is not compared: its figures are
    those of fewer jobs, and throwing work away is no merit.
    """
    fewest = min(map(_undone, rows), default=0)
    points = sorted(map(_point, (row for row in rows if _undone(row) == fewest)))
    front = set()
    least = float("inf")
    for wait, lost in points:
        if lost < least:
            front.add((wait, lost))
            least = lost
    return [attrs.evolve(row, front=_undone(row) == fewest and _point(row) in front) for row in rows]


def _undone(row: Row) -> int:
    undone: int = row.metrics["jobs_unfinished"] + row.metrics.get("jobs_ended_by_preemption", 0)
    return undone


def _point(row: Row) -> tuple[float, float]:
    return row.metrics["mean_wait"], row.metrics["core_seconds_lost"]


def effects(axes: Sequence[Axis], rows: Sequence[Row]) -> list[tuple[Axis, list[Effect]]]:
    """Return for each key what its values come to on average over all others."""
    found = []
    for at, axis in enumerate(axes):
        told = []
        for value in axis.values:
            mine = [row.metrics for row in rows if row.values[at] == value]
            if mine:
                means = {each.key: statistics.fmean(m[each.key] for m in mine) for each in COLUMNS}
                told.append(Effect(value=shown(value), runs=len(mine), means=means))
        found.append((axis, told))
    return found


def shown(value: str) -> str:
    """Return a value as tables have it."""
    return value or DEFAULT

"""Say what a sweep found: what each key does, and who is on the pareto front of waiting against lost work."""

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
    "preemptions",
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


@attrs.frozen(kw_only=True)
class Effect:
    """What came of the runs that share one value of a key, on average."""

    value: str
    runs: int
    means: Mapping[str, float]


def on_front(rows: Sequence[Row]) -> list[Row]:
    """Mark the runs that no other run beats in both mean wait and lost work.

    A run that leaves more jobs unfinished than another has its figures from fewer jobs, so it is not compared.
    """
    fewest = min((row.metrics["jobs_unfinished"] for row in rows), default=0)
    points = sorted(
        (row.metrics["mean_wait"], row.metrics["core_seconds_lost"])
        for row in rows
        if row.metrics["jobs_unfinished"] == fewest
    )
    front = set()
    least = float("inf")
    for wait, lost in points:
        if lost < least:
            front.add((wait, lost))
            least = lost
    return [
        attrs.evolve(
            row,
            front=row.metrics["jobs_unfinished"] == fewest
            and (row.metrics["mean_wait"], row.metrics["core_seconds_lost"]) in front,
        )
        for row in rows
    ]


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


__all__ = ["COLUMNS", "Effect", "Row", "effects", "on_front", "shown"]

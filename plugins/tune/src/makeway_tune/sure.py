"""Say between what a figure lies in a week like those of the log, and whether a change is more than chance.

Weeks are made of the log's own days, or hours where it is short: seven in a row, since a jam in one is often one in
the next, and load comes and goes for days. Each made week takes its days from one of several replays of the same log,
all but the first with run times that are a little off. What is told is wider than the spread of these weeks by as much
as the log itself is short: what one knows from few days is itself a draw. A change is judged by made logs, each as
long as the log, of two days in a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import attrs
import numpy as np

from makeway.model import JobSpec
from makeway_app.judged import DRAWS
from makeway_tune.facts import Facts, drawn, value
from makeway_tune.goals import Measure
from makeway_tune.log import Array, Log

T = TypeVar("T")

_IN_A_ROW = 7
"""Parts of the log that stay together in a made week."""
_TOGETHER = 2
"""And in a made log, both sides of which have the same days."""
_Z = 1.96
_OFF = 0.15
"""How far run times are off: the standard deviation of their logarithm."""


@attrs.frozen(kw_only=True)
class Told:
    """A figure, and between what it lies 95 times of 100."""

    value: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether all of it lies on one side of zero."""
        return self.low > 0 or self.high < 0


@attrs.frozen(eq=False)
class Drawn:
    """Weeks and logs that were drawn: a row for each, how often each part of the log is in it."""

    weeks: Array
    logs: Array


def draws(log: Log, seed: int) -> Drawn:
    """Draw weeks, and logs as long as the log."""
    chance = np.random.default_rng(seed)
    weeks = _draws(log, log.drawn, _IN_A_ROW, chance)
    return Drawn(weeks=weeks, logs=_draws(log, log.parts, _TOGETHER, chance))


def _draws(log: Log, length: int, block: int, chance: np.random.Generator) -> Array:
    counts = np.zeros((DRAWS, log.parts))
    for row in counts:
        left = length
        while left:
            start = int(chance.integers(log.parts))
            for step in range(min(block, left)):
                row[(start + step) % log.parts] += 1
                left -= 1
    return counts


def told(measure: Measure, log: Log, runs: Sequence[Facts], drawings: Drawn) -> Told:
    """Return a figure of a candidate, and between what it lies in a week.

    :param runs: its replays, the undisturbed one first.
    """
    spread = _over(runs, drawings.weeks, lambda facts, rows: drawn(measure, log, facts, rows))
    return _told(value(measure, log, runs[0]), spread, _wider(log), least=0.0)


def _wider(log: Log) -> float:
    """Return how much wider an interval is than the spread of what was drawn, since the log is but so long.

    The mean of a log is a draw as well; and few stretches tell little of their own spread, as Student's t says, here by
    the first terms of its expansion.
    """
    free = max(1.0, log.parts / _IN_A_ROW - 1)
    student = 1 + (_Z**2 + 1) / (4 * free) + (5 * _Z**4 + 16 * _Z**2 + 3) / (96 * free**2)
    return math.sqrt(1 + log.drawn / log.parts) * student


def change(
    measure: Measure, log: Log, before: Sequence[Facts], after: Sequence[Facts], drawings: Drawn
) -> Told:
    """Return by how much a figure changes, in the same days with the same run times."""
    pairs = list(zip(before, after, strict=True))

    def of(pair: tuple[Facts, Facts], rows: Array) -> Array:
        return drawn(measure, log, pair[1], rows) - drawn(measure, log, pair[0], rows)

    point = value(measure, log, after[0]) - value(measure, log, before[0])
    return _told(point, _over(pairs, drawings.logs, of), 1.0, least=-math.inf)


def _over(runs: Sequence[T], counts: Array, of: Callable[[T, Array], Array]) -> Array:
    """Return the figure of each draw, of which each run has its share."""
    found = np.full(len(counts), np.nan)
    for at, run in enumerate(runs):
        found[at :: len(runs)] = of(run, counts[at :: len(runs)])
    return found[~np.isnan(found)]


def _told(point: float, spread: Array, wider: float, *, least: float) -> Told:
    if not len(spread) or math.isnan(point):
        return Told(value=point, low=point, high=point)
    low, high = (point + (float(np.quantile(spread, at)) - point) * wider for at in (0.025, 0.975))
    return Told(value=point, low=max(least, min(low, point)), high=max(high, point))


def disturbed(jobs: Sequence[JobSpec], seed: int) -> tuple[JobSpec, ...]:
    """Return the jobs with run times that are a little off, none beyond its limit; the same for every candidate."""
    chance = Random(seed)
    made = []
    for spec in jobs:
        factor = math.exp(chance.gauss(0.0, _OFF))
        if spec.run_time is None:
            made.append(spec)
            continue
        length = spec.run_time * factor
        if spec.time_limit is not None and spec.run_time <= spec.time_limit:
            length = min(length, spec.time_limit)
        made.append(attrs.evolve(spec, run_time=length))
    return tuple(made)


__all__ = ["Drawn", "Told", "change", "disturbed", "draws", "told"]

"""Say between what a figure or a change lies in a week to come, and whether a change is more than chance.

A week to come is told as one more observation beside the weeks of the log (Hahn and Meeker, Statistical Intervals, on
prediction intervals): their mean, give or take their spread times Student's t, since they are few. All of it by cube
roots, by which figures that are never below zero and spread the more the larger they are come near a normal
distribution (Wilson and Hilferty 1931; Krishnamoorthy, Mathew and Mukherjee 2008 make prediction intervals so). Weeks
resemble their neighbours: those of a log spread less than all weeks do, and the next one lies further from their mean
than if each were drawn alone. By how much is known for self-similar loads, of whose Hurst parameter the upper end is
taken that has been measured (Feitelson, Workload Modeling, on self-similarity; Dinda 1999). Each week is taken from
several replays of the log, all but the first with run times that are a little off.

Whether a change is more than chance is judged by made logs, each as long as the log, of two days in a row.

Of a log shorter than three weeks a third takes the place of a week, as two say next to nothing of a third one.
"""

from __future__ import annotations

import functools
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

_TOGETHER = 2
"""Parts of the log that stay together in a made log, both sides of which have the same ones."""
_SURE = 0.9
"""Share of the weeks to come that lie within what is told."""
_HURST = 0.9
"""How much weeks resemble those before; 0.5: not at all."""
_STEPS = 100_000
"""Of Student's t."""
_OFF = 0.15
"""How far run times are off: the standard deviation of their logarithm."""


@attrs.frozen(kw_only=True)
class Told:
    """A figure or a change, and between what it lies in a week; these are nan: too few weeks have it."""

    value: float
    low: float
    high: float

    differs: bool = False
    """Of a change: whether it is more than chance."""


@attrs.frozen(eq=False)
class Drawn:
    """Weeks of the log, and logs that were drawn: a row for each, how often each part of the log is in it."""

    weeks: Array
    logs: Array


def draws(log: Log, seed: int) -> Drawn:
    """Return the whole weeks of the log, the last one first, and logs as long as the log."""
    weeks = np.zeros((log.parts // log.stretch, log.parts))
    for at, row in enumerate(weeks):
        row[log.parts - (at + 1) * log.stretch : log.parts - at * log.stretch] = 1
    return Drawn(weeks=weeks, logs=_draws(log, np.random.default_rng(seed)))


def _draws(log: Log, chance: np.random.Generator) -> Array:
    counts = np.zeros((DRAWS, log.parts))
    for row in counts:
        left = log.parts
        while left:
            start = int(chance.integers(log.parts))
            for step in range(min(_TOGETHER, left)):
                row[(start + step) % log.parts] += 1
                left -= 1
    return counts


def told(measure: Measure, log: Log, runs: Sequence[Facts], drawings: Drawn) -> Told:
    """Return a figure of a candidate, and between what it lies in a week.

    :param runs: its replays, the undisturbed one first.
    """
    point = value(measure, log, runs[0])
    low, high = _to_come(np.array([drawn(measure, log, facts, drawings.weeks) for facts in runs]))
    return Told(value=point, low=min(max(low, 0.0), point), high=max(high, point))


def _to_come(weeks: Array) -> tuple[float, float]:
    """Return between what another week lies.

    :param weeks: a row for each replay.
    """
    few = int((~np.isnan(weeks[0])).sum())
    if few < 2:
        return math.nan, math.nan
    roots = np.cbrt(weeks[~np.isnan(weeks)])
    by = student(_SURE, few - 1) * math.sqrt(float(roots.var()) * _farther(few))
    return (float(roots.mean()) - by) ** 3, (float(roots.mean()) + by) ** 3


def _farther(few: int) -> float:
    """Return how far another week lies from the mean of so many, over how far these do; both squared.

    With independent weeks that is (few + 1) / (few - 1).
    """
    power = 2 * _HURST
    mean: float = few ** (power - 2)
    """Of the mean the variance, where that of a week is 1."""
    together: float = ((few + 1) ** power - few**power - 1) / few
    """Twice the covariance of mean and week."""
    return (1 + mean - together) / (1 - mean)


@functools.cache
def student(sure: float, free: int) -> float:
    """Return between plus and minus what Student's t lies so surely.

    With t = sqrt(free) tan(angle) its density is cos(angle) ** (free - 1).
    """
    angles = (np.arange(_STEPS) + 0.5) * (math.pi / 2 / _STEPS)
    within = np.cumsum(np.cos(angles) ** (free - 1))
    return math.sqrt(free) * math.tan(angles[np.searchsorted(within, sure * within[-1])])


def change(
    measure: Measure, log: Log, before: Sequence[Facts], after: Sequence[Facts], drawings: Drawn
) -> Told:
    """Return by how much a figure changes, in the same days with the same run times.

    In no week that is more than what lies between the ends of both figures.
    """
    pairs = list(zip(before, after, strict=True))

    def of(pair: tuple[Facts, Facts], rows: Array) -> Array:
        return drawn(measure, log, pair[1], rows) - drawn(measure, log, pair[0], rows)

    here, there = (told(measure, log, runs, drawings) for runs in (before, after))
    point = there.value - here.value
    low, high = _to_come(np.array([of(pair, drawings.weeks) for pair in pairs]))
    spread = [*_over(pairs, drawings.logs, of), point]
    least, most = (float(np.quantile(spread, at)) for at in (0.025, 0.975))
    return Told(
        value=point,
        low=min(max(low, there.low - here.high), point),
        high=max(min(high, there.high - here.low), point),
        differs=point < 0 > most or point > 0 < least,
    )


def _over(runs: Sequence[T], counts: Array, of: Callable[[T, Array], Array]) -> Array:
    """Return the figure of each draw, of which each run has its share."""
    found = np.full(len(counts), np.nan)
    for at, run in enumerate(runs):
        found[at :: len(runs)] = of(run, counts[at :: len(runs)])
    return found[~np.isnan(found)]


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

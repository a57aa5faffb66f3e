"""Judge whether a difference between two replays of one log is more than chance.

The log is cut into days, or hours where it is short. From these as many are drawn at random as there are, with
repetition, a thousand times over. If 95% of these logs differ to the same side, the difference is told as one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

import attrs

from makeway.model import Seconds

DRAWS = 1000
"""Logs that are drawn."""
LEAST = 14
"""Days, or else hours, with jobs that a log must have."""
UNITS: tuple[tuple[str, Seconds], ...] = (("day", 86400.0), ("hour", 3600.0))


@attrs.frozen
class Judged:
    """How a figure of all jobs differs between two runs."""

    value: float
    """Second less first: the mean over jobs, or the sum."""
    low: float
    high: float
    """95% of the logs drawn lie between these."""
    unit: str
    """``day`` or ``hour``; empty: the log is too short to be judged."""
    parts: int
    """Days or hours with jobs."""

    @property
    def differs(self) -> bool:
        """Whether all of these lie on one side of zero."""
        return bool(self.unit) and (self.low > 0 or self.high < 0)


@attrs.define(eq=False)
class Tally:
    """Changes of jobs, summed by the days and by the hours on which they were submitted."""

    _sums: tuple[dict[int, tuple[float, int]], ...] = attrs.field(factory=lambda: tuple({} for _ in UNITS))

    def add(self, change: float, submitted: Seconds) -> None:
        """Take a job."""
        for sums, (_, length) in zip(self._sums, UNITS, strict=True):
            at = math.floor(submitted / length)
            total, count = sums.get(at, (0.0, 0))
            sums[at] = total + change, count + 1

    def judged(self, seed: int, *, summed: bool) -> Judged | None:
        """Judge how much they differ; None: there are no jobs.

        :param summed: whether it is their sum that counts; else their mean.
        """
        if not self._sums[0]:
            return None
        parts: list[tuple[float, int]] = []
        value = 0.0
        for sums, (unit, _) in zip(self._sums, UNITS, strict=True):
            parts = [sums[at] for at in sorted(sums)]
            value = math.fsum(total for total, _ in parts) / (
                1 if summed else sum(count for _, count in parts)
            )
            if len(parts) >= LEAST:
                low, high = _interval(parts, seed, summed=summed)
                return Judged(value, low, high, unit, len(parts))
        return Judged(value, value, value, "", len(parts))


def judge(
    changes: Mapping[str, float], submitted: Mapping[str, Seconds], seed: int, *, summed: bool = False
) -> Judged | None:
    """Judge how much jobs differ between two runs; None: no job is in both.

    :param changes: job -> second less first.
    :param summed: whether it is their sum that counts; else their mean.
    """
    tally = Tally()
    for job, change in changes.items():
        tally.add(change, submitted[job])
    return tally.judged(seed, summed=summed)


def _interval(parts: list[tuple[float, int]], seed: int, *, summed: bool) -> tuple[float, float]:
    """Return between which means, or sums, 95% of the logs lie that are drawn from the parts."""
    chance = Random(seed)
    values = []
    for _ in range(DRAWS):
        drawn = chance.choices(parts, k=len(parts))
        total = math.fsum(total for total, _ in drawn)
        values.append(total if summed else total / sum(count for _, count in drawn))
    values.sort()
    beyond = DRAWS // 40
    return values[beyond], values[DRAWS - 1 - beyond]

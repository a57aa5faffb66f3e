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
_UNITS: tuple[tuple[str, Seconds], ...] = (("day", 86400.0), ("hour", 3600.0))


@attrs.frozen
class Judged:
    """How the mean over all jobs differs between two runs."""

    mean: float
    """Second less first."""
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


def judge(changes: Mapping[str, float], submitted: Mapping[str, Seconds], seed: int) -> Judged | None:
    """Judge how much jobs differ between two runs; None: no job is in both.

    :param changes: job -> second less first.
    """
    if not changes:
        return None
    mean = math.fsum(changes.values()) / len(changes)
    for unit, length in _UNITS:
        parts = _parts(changes, submitted, length)
        if len(parts) >= LEAST:
            low, high = _interval(parts, seed)
            return Judged(mean, low, high, unit, len(parts))
    return Judged(mean, mean, mean, "", len(parts))


def _parts(
    changes: Mapping[str, float], submitted: Mapping[str, Seconds], length: Seconds
) -> list[tuple[float, int]]:
    """Return the sum and the number of changes of each part of the log that has any, in order."""
    sums: dict[int, tuple[float, int]] = {}
    for job, change in changes.items():
        at = math.floor(submitted[job] / length)
        total, count = sums.get(at, (0.0, 0))
        sums[at] = total + change, count + 1
    return [sums[at] for at in sorted(sums)]


def _interval(parts: list[tuple[float, int]], seed: int) -> tuple[float, float]:
    """Return between which means 95% of the logs lie that are drawn from the parts."""
    chance = Random(seed)
    means = []
    for _ in range(DRAWS):
        drawn = chance.choices(parts, k=len(parts))
        means.append(math.fsum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    beyond = DRAWS // 40
    return means[beyond], means[DRAWS - 1 - beyond]


__all__ = ["DRAWS", "LEAST", "Judged", "judge"]

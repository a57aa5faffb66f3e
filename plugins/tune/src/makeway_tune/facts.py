"""Hold what became of each job in a run, and work out figures of groups of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import numpy as np

from makeway.model import Seconds
from makeway_sweep.work import ByJob
from makeway_tune.goals import WAIT, Measure
from makeway_tune.log import DAY, Array, Log

_AT_ONCE = 4_000_000
"""Numbers in one array, so that memory stays small."""


@attrs.frozen(eq=False)
class Facts:
    """One run, an entry for each job of the log."""

    waits: Array
    """In seconds; nan: it never started."""
    lost: Array
    """Core-hours."""
    hits: Array
    """How often it had to make way."""


@attrs.frozen
class Costs:
    """What being hit costs a job, where its log does not say."""

    every: Callable[[int], Seconds] = lambda at: 0.0
    """Place of a job -> seconds between two checkpoints that it writes by itself; 0: it writes none."""
    restart: Callable[[int], Seconds] = lambda at: 0.0
    """Place of a job -> seconds that it needs to begin again."""

    def lost(self, at: int, seconds: Seconds) -> Seconds:
        """Return what a job loses that has run for so long."""
        every = self.every(at)
        return (seconds % every if every else seconds) + self.restart(at)


def facts_of(log: Log, found: ByJob, costs: Costs) -> Facts:
    """Return what became of the jobs of a run."""
    size = len(log.jobs)
    waits, lost, hits = np.full(size, np.nan), np.zeros(size), np.zeros(size)
    for job, wait in found.waits.items():
        waits[log.at[job]] = wait
    for job, seconds, cpus in found.losses:
        at = log.at[job]
        lost[at] += costs.lost(at, seconds) * cpus / 3600
    for job, times in found.preempted.items():
        hits[log.at[job]] = times
    return Facts(waits, lost, hits)


def value(measure: Measure, log: Log, facts: Facts, of: Array | None = None) -> float:
    """Return a figure over a whole run; nan: no such job started.

    :param of: which jobs count, such as those of a week; None: all.
    """
    mask = log.mask(measure.whose) if of is None else log.mask(measure.whose) & of
    if measure.what == WAIT:
        waits = facts.waits[mask]
        waits = waits[~np.isnan(waits)]
        if not len(waits):
            return float("nan")
        share = measure.share
        return float(waits.mean() if share is None else np.quantile(waits, share))
    days = log.days if of is None else len(np.unique(log.part[of])) * log.length / DAY
    return float(of_each(measure, facts)[mask].sum() / days)


def of_each(measure: Measure, facts: Facts) -> Array:
    """Return what a measure has of each job."""
    by_name: Mapping[str, Callable[[], Array]] = {
        WAIT: lambda: facts.waits,
        "lost-hours": lambda: facts.lost,
        "preempted": lambda: facts.hits,
        "hit-twice": lambda: (facts.hits >= 2).astype(float),
    }
    return by_name[measure.what]()


def drawn(measure: Measure, log: Log, facts: Facts, counts: Array) -> Array:
    """Return a figure for each of many logs that were drawn.

    :param counts: a row for each of them: how often each part of the log is in it.
    """
    mask = log.mask(measure.whose)
    parts = log.part
    if measure.what != WAIT:
        sums = np.bincount(parts[mask], weights=of_each(measure, facts)[mask], minlength=log.parts)
        return counts @ sums / (counts.sum(axis=1) * log.length / DAY)
    mask = mask & ~np.isnan(facts.waits)
    waits, parts = facts.waits[mask], parts[mask]
    share = measure.share
    if share is None:
        sums = np.bincount(parts, weights=waits, minlength=log.parts)
        jobs = np.bincount(parts, minlength=log.parts)
        with np.errstate(invalid="ignore", divide="ignore"):
            return (counts @ sums) / (counts @ jobs)
    return _quantiles(waits, parts, counts, share)


def _quantiles(waits: Array, parts: Array, counts: Array, share: float) -> Array:
    order = np.argsort(waits, kind="stable")
    waits, parts = waits[order], parts[order]
    found = np.full(len(counts), np.nan)
    if not len(waits):
        return found
    step = max(1, _AT_ONCE // len(waits))
    for at in range(0, len(counts), step):
        weights = np.cumsum(counts[at : at + step][:, parts], axis=1)
        totals = weights[:, -1]
        for row, total in enumerate(totals):
            if total:
                place = np.searchsorted(weights[row], max(share * total, 1e-9))
                found[at + row] = waits[min(place, len(waits) - 1)]
    return found

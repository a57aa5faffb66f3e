"""Say for how long jobs keep their places while nothing but age changes their priorities.

Sums are compared as real numbers, with room for the rounding of doubles: whatever is nearer than that is not sure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from makeway.model import Job, Seconds
from makeway_slurm.multifactor.known import Known, alike

_TINY = 1e-6
_ROUNDING = 1e-4
_MOST = 2.0**31
"""Sums beyond this are cut off before long."""


def order_stands_until(
    line: Sequence[tuple[Job, Known | None]], now: Seconds, weight: float, max_age: float
) -> Seconds:
    """Return until when jobs surely stand as they do, ranks being constant; before `now`: that is not known.

    :param line: the eligible jobs as they stand, with what the recalculation at `now` found; None: their priority
        was given, and stays as it is.
    :param weight: of age.
    :param max_age: seconds after which a job is as old as it can be.
    """
    found = _looked_at(line, weight)
    if found is None:
        return -math.inf
    sums, begun, ages = found
    second = math.floor(now + _TINY)
    until = math.inf
    for at, ((job, known), (other, behind)) in enumerate(itertools.pairwise(line)):
        if job.partition.priority_tier != other.partition.priority_tier:
            continue
        is_first = (job.submit_at, job.index) < (other.submit_at, other.index)
        if is_first and begun[at] <= begun[at + 1] and alike(known, behind):
            continue
        spare = sums[at] - sums[at + 1] - (_ROUNDING if is_first else 1.0 + _ROUNDING)
        if spare < 0.0:
            return -math.inf
        # The older one stops growing first; from then on the other one draws nearer.
        if weight and begun[at] < begun[at + 1] and spare < ages[at] - ages[at + 1]:
            until = min(until, max(second, begun[at] + max_age) + spare * max_age / weight)
    return until


def first_leads_until(
    line: Sequence[tuple[Job, Known | None]],
    now: Seconds,
    weight: float,
    max_age: float,
    *,
    given: bool = True,
) -> Seconds:
    """Return until when the first of these jobs surely stands before all others; parameters as above.

    Jobs may have become eligible since `now`: they count as so much younger than nothing.

    :param given: whether jobs have the priorities that were found.
    """
    second = math.floor(now + _TINY)
    job, known = line[0]
    first = _sum_of(job, known, second, weight, max_age, given=given)
    if first is None:
        return -math.inf
    sum_, begun, age = first
    tier, submit_at, index = job.partition.priority_tier, job.submit_at, job.index
    until, most, floor = math.inf, _MOST - weight, math.floor
    for at in range(1, len(line)):
        other, behind = line[at]
        if other.partition.priority_tier != tier:
            continue
        if behind is None:
            found, since, aged = float(other.priority), -math.inf, weight
        else:
            alone, eligible = behind.alone, other.eligible_since
            if alone is None or eligible is None or behind.later is not None:
                return -math.inf
            if given and behind.values.get(other.partition.name) != other.priority:
                return -math.inf
            since = floor(eligible + _TINY)
            aged = behind.age if since <= second else (second - since) / max_age * weight
            found = aged + alone.assoc + behind.fairshare + alone.rest
        if not 1.0 <= found < most:
            return -math.inf
        is_first = submit_at < other.submit_at or (submit_at == other.submit_at and index < other.index)
        if is_first and begun <= since and alike(known, behind):
            continue
        spare = sum_ - found - (_ROUNDING if is_first else 1.0 + _ROUNDING)
        if spare < 0.0:
            return -math.inf
        if weight and begun < since and spare < age - aged:
            ends = begun + max_age
            until = min(until, (ends if ends > second else second) + spare * max_age / weight)
    return until


def _sum_of(
    job: Job, known: Known | None, second: int, weight: float, max_age: float, *, given: bool
) -> tuple[float, float, float] | None:
    """Return the sum of a job, the second since when it ages, and the weighted age; None: it is not known."""
    if known is None:
        return float(job.priority), -math.inf, weight
    alone, eligible = known.alone, job.eligible_since
    if alone is None or eligible is None or known.later is not None:
        return None
    if given and job.priority != known.values.get(job.partition.name):
        return None
    since = math.floor(eligible + _TINY)
    age = known.age if since <= second else (second - since) / max_age * weight
    found = age + alone.assoc + known.fairshare + alone.rest
    return (found, since, age) if 1.0 <= found < _MOST - weight else None


def _looked_at(
    line: Sequence[tuple[Job, Known | None]], weight: float
) -> tuple[list[float], list[float], list[float]] | None:
    """Return of each job its sum, the second since when it ages, and the weighted age; None: it is not known."""
    sums: list[float] = []
    begun: list[float] = []
    ages: list[float] = []
    most, floor = _MOST - weight, math.floor
    for job, known in line:
        if known is None:
            found, since, age = float(job.priority), -math.inf, weight
        else:
            alone, eligible = known.alone, job.eligible_since
            if alone is None or eligible is None or known.later is not None:
                return None
            if job.priority != known.values.get(job.partition.name):
                return None
            age = known.age
            found, since = age + alone.assoc + known.fairshare + alone.rest, floor(eligible + _TINY)
        if not 1.0 <= found < most:
            return None
        sums.append(found)
        begun.append(since)
        ages.append(age)
    return sums, begun, ages


Until = Callable[[Sequence[tuple[Job, Known | None]], Seconds, float, float], Seconds]


__all__ = ["Until", "first_leads_until", "order_stands_until"]

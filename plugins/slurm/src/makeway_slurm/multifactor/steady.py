"""Say for how long jobs keep their places while nothing but age changes their priorities.

Sums are compared as real numbers, with room for the rounding of doubles: whatever is nearer than that is not sure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from makeway.model import Job, Seconds
from makeway_slurm.multifactor.known import Known

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
    sums: list[float] = []
    begun: list[float] = []
    ages: list[float] = []
    for job, known in line:
        if known is None:
            found, since, age = float(job.priority), -math.inf, weight
        elif (
            known.alone is None
            or job.eligible_since is None
            or job.priority != known.values.get(job.partition.name)
        ):
            return -math.inf
        else:
            found = known.age + known.alone.assoc + known.fairshare + sum(known.alone.after_fairshare)
            since, age = math.floor(job.eligible_since + _TINY), known.age
        if not 1.0 <= found < _MOST - weight:
            return -math.inf
        sums.append(found)
        begun.append(since)
        ages.append(age)
    second = math.floor(now + _TINY)
    until = math.inf
    for at, ((job, known), (other, behind)) in enumerate(itertools.pairwise(line)):
        if job.partition.priority_tier != other.partition.priority_tier:
            continue
        is_first = (job.submit_at, job.index) < (other.submit_at, other.index)
        if is_first and begun[at] <= begun[at + 1] and _alike(known, behind):
            continue
        spare = sums[at] - sums[at + 1] - (_ROUNDING if is_first else 1.0 + _ROUNDING)
        if spare < 0.0:
            return -math.inf
        # The older one stops growing first; from then on the other one draws nearer.
        if weight and begun[at] < begun[at + 1] and spare < ages[at] - ages[at + 1]:
            until = min(until, max(second, begun[at] + max_age) + spare * max_age / weight)
    return until


def _alike(one: Known | None, other: Known | None) -> bool:
    """Whether nothing but their age tells two jobs apart."""
    return (
        one is not None
        and other is not None
        and one.fairshare == other.fairshare
        and one.alone == other.alone
    )


__all__ = ["order_stands_until"]

"""Say about where a waiting job stands, in a way that age does not change while it grows (1.1).

All jobs that wait grow older by the same at each recalculation, from the first one after they became eligible until
they are as old as a job can be. Without that growth their sums stand still.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from makeway.model import Job, Seconds
from makeway_slurm.accounts.settings import Settings
from makeway_slurm.multifactor.known import Known

_TINY = 1e-6
_MOST = 2.0**31
"""Sums beyond this are cut off before long."""


def standing(
    job: Job,
    known: Known,
    factors: Sequence[float] | None,
    settings: Settings,
    last: Seconds,
    upcoming: Seconds,
) -> tuple[float, Seconds] | None:
    """Return the sum of a job of one partition less what all have grown by, and up to when it grows as all do.

    :param factors: of fair share, by association; None: it counts nothing.
    :param last: the last recalculation.
    :param upcoming: the next one.
    :returns: None: the sum may be cut off, or its size will count more.
    """
    fixed, node, since = known.alone, known.association, job.eligible_since
    if fixed is None or since is None or known.later is not None:
        return None
    found = fixed.assoc + fixed.rest
    if factors is not None and node is not None:
        found += factors[node.index] * settings.weight_fairshare
    weight, most = settings.weight_age, settings.max_age
    if not 1.0 <= found < _MOST - weight:
        return None
    if not weight:
        return found, math.inf
    second, begun = math.floor(last + _TINY), math.floor(since + _TINY)
    slope = weight / most
    if begun > second:
        return found - second * slope, upcoming
    if second - begun >= most:
        return found + weight - second * slope, upcoming
    return found - begun * slope, max(begun + most, upcoming)


__all__ = ["standing"]

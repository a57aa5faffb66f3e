"""Say how a partition keeps a pending job out: who may not use it, and its bounds (slurm-priority-and-limits 7)."""

from __future__ import annotations

from makeway.model import Blocked
from makeway.partition_bounds import BOUNDS
from makeway_slurm.limits.answers import LIMIT


def barred(shut: str, *, planned_for: bool) -> Blocked:
    """Say that a partition is shut to a job.

    :param shut: why, as `Door.shut` says it.
    :param planned_for: whether backfill keeps nodes for the job all the same.
    """
    return Blocked(
        reason=shut,
        resource=LIMIT,
        detail=shut,
        keeps_nothing=not planned_for,
        reserves=planned_for,
        before_nodes=True,
        at_submission=shut not in BOUNDS,
        at_submission_only=shut not in BOUNDS,
        stays=True,
    )


__all__ = ["barred"]

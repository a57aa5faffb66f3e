"""Say how a partition keeps a pending job out: who may not use it, and its bounds (slurm-priority-and-limits 7)."""

from __future__ import annotations

from makeway.model import Blocked
from makeway.partition_bounds import BOUNDS, CONFIG
from makeway_slurm.limits.answers import LIMIT


def barred(shut: str, *, planned_for: bool) -> Blocked:
    """Say that a partition is shut to a job.

    :param shut: why, as `Door.shut` says it, or the bound that stands for it.
    :param planned_for: whether backfill keeps nodes for the job all the same.
    """
    at_its_turn = shut in BOUNDS or shut == CONFIG
    return Blocked(
        reason=shut,
        resource=LIMIT,
        detail=shut,
        keeps_nothing=not planned_for,
        reserves=planned_for,
        before_nodes=True,
        at_submission=not at_its_turn,
        at_submission_only=not at_its_turn,
        stays=True,
    )

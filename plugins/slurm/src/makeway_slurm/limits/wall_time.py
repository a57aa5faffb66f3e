"""Hold jobs against limits on the wall time that several of them use up: GrpWall (6.2)."""

from __future__ import annotations

from makeway.model import Blocked
from makeway_slurm.accounts.usage import WALL, Entry, UsageBook
from makeway_slurm.limits.answers import asks_again_at, full
from makeway_slurm.limits.asked import Asked
from makeway_slurm.limits.kinds import Rule
from makeway_slurm.limits.settings import Settings


def used_up(
    rule: Rule, asked: Asked, entry: Entry | None, usage: UsageBook, settings: Settings
) -> Blocked | None:
    """Hold a job against GrpWall; with safe it has to last for the job's time limit as well.

    It holds for jobs with UsageFactor 0, too (recorded: limit_minutes_free_job), unlike limits on TRES-minutes.
    """
    used = int(entry.used(WALL) // 60) if entry is not None else 0
    over = used >= rule.most
    if settings.safe and not over:
        over = asked.booked is None or used + asked.booked > rule.most
    return full(rule, asked.minutes or 0, used, asks_again_at(rule, usage)) if over else None

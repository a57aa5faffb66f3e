"""Hold jobs against limits on TRES-minutes: what is used up, and what running jobs may still use (6.2)."""

from __future__ import annotations

import math

from makeway.model import Blocked
from makeway_slurm.accounts.usage import Entry, UsageBook
from makeway_slurm.limits.answers import asks_again_at, full, full_of_minutes
from makeway_slurm.limits.asked import Asked
from makeway_slurm.limits.kinds import Rule
from makeway_slurm.limits.settings import Settings


def minutes_of(asked: Asked, wanted: int) -> float:
    """Return the TRES-minutes that a job asks for: of what it wants nothing, none, however long it may run."""
    if not wanted:
        return 0.0
    return math.inf if asked.booked is None else float(asked.booked * wanted)


def used_up(
    rule: Rule, asked: Asked, wanted: int, entry: Entry | None, usage: UsageBook, settings: Settings
) -> Blocked | None:
    """Hold a job against GrpTRESMins; with safe it has to last for the job's time limit as well."""
    if entry is None or not wanted:
        return None
    used = int(entry.used(rule.name) // 60) if asked.factor else 0
    over = used >= rule.most
    if settings.safe and not over:
        running = int(entry.may_use(rule.name) // 60) if asked.factor else 0
        minutes = minutes_of(asked, wanted)
        over = minutes > rule.most or minutes + running > rule.most - used
    return full(rule, wanted, used, asks_again_at(rule, usage)) if over else None


def running(rule: Rule, asked: Asked, wanted: int, entry: Entry | None, usage: UsageBook) -> Blocked | None:
    """Hold a job against GrpTRESRunMins, and against the same of its user or account in a QOS."""
    if not wanted:
        return None
    taken = int(entry.may_use(rule.name) // 60) if asked.factor and entry is not None else 0
    minutes = minutes_of(asked, wanted)
    if taken + minutes <= rule.most:
        return None
    again = asks_again_at(rule, usage) if minutes <= rule.most else None
    return full_of_minutes(rule, minutes, taken, again)

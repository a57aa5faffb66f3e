"""Hold the fair-share factor of a job against its QOS' UsageThreshold (6.3 no. 4)."""

from __future__ import annotations

from makeway.model import Blocked, Job
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.limits.answers import LIMIT
from makeway_slurm.limits.kinds import Rule


def too_greedy(rule: Rule, job: Job, usage: UsageBook) -> Blocked | None:
    """Keep a job out whose factor is below the threshold, up to the next recalculation."""
    factor = usage.factor_of(job)
    if factor is None or factor >= rule.least:
        return None
    return Blocked(
        reason=rule.reason,
        resource=LIMIT,
        detail=f"{rule.reason}: fair share {factor:.6f}, {rule.least:g} wanted (QOS {rule.whose})",
        keeps_nothing=True,
        ask_again_at=usage.next_at,
        before_nodes=True,
        at_submission=True,
        stays=True,
    )

"""Hold jobs against limits on the number of running jobs: GrpJobs, MaxJobs, MaxJobsPU, MaxJobsPA (6.2)."""

from __future__ import annotations

from makeway.model import Blocked, ClusterView
from makeway_slurm.limits.answers import full
from makeway_slurm.limits.asked import Listed
from makeway_slurm.limits.lifting import Lifting


def running(listed: Listed, view: ClusterView, lifting: Lifting) -> Blocked | None:
    """Hold a job against such a limit."""
    rule, key = listed.rule, listed.key
    have = listed.holds.jobs
    if have >= rule.most and lifting.allowed:
        have -= sum(1 for _ in lifting.gone(key, view))
    return lifting.lifted(full(rule, 1, have), rule, key) if have >= rule.most else None


__all__ = ["running"]

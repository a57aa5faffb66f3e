"""Hold jobs against limits on the number of running jobs: GrpJobs, MaxJobs, MaxJobsPU, MaxJobsPA (6.2)."""

from __future__ import annotations

import attrs

from makeway.model import Blocked, ClusterView
from makeway_slurm.limits.answers import full
from makeway_slurm.limits.asked import Listed
from makeway_slurm.limits.lifting import Lifting


def running(listed: Listed, view: ClusterView, lifting: Lifting) -> Blocked | None:
    """Hold a job against such a limit.

    Of all limits that are looked at before nodes, only MaxJobsPA lets the main scheduler look whether nodes are left to
    a job first, before 24.11 (recorded: limit_jobs_without_nodes).
    """
    rule, key = listed.rule, listed.key
    have = listed.holds.jobs
    if have >= rule.most and lifting.allowed:
        have -= sum(1 for _ in lifting.gone(key, view))
    if have < rule.most:
        return None
    blocked = lifting.lifted(full(rule, 1, have), rule, key)
    late = rule.key == "pa" and view.rule("max_jobs_per_account_late")
    return attrs.evolve(blocked, at_submission_only=True) if late else blocked

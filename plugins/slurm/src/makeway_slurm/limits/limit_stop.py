"""Say what a job holds up that a limit keeps out: ``assoc_limit_stop`` (11.1 no. 2)."""

from __future__ import annotations

import attrs

from makeway.model import Blocked, Job
from makeway_slurm.limits.asked import Listed
from makeway_slurm.limits.kinds import Kind
from makeway_slurm.limits.node_cap import caps_nodes
from makeway_slurm.limits.settings import Settings


def held_up_by(blocked: Blocked, listed: Listed, job: Job, settings: Settings) -> Blocked:
    """Return the same answer with what it holds up.

    In the main loop those that are looked at first hold up no other, but for MaxJobsPerAccount before 24.11 (recorded:
    limit_stop_numbers).
    Backfill keeps no nodes for one that may never have as many as it asks for (recorded: limit_stop_nodes).
    """
    of_account = listed.kind is Kind.JOBS and blocked.at_submission_only
    holds_up = of_account or not blocked.before_nodes
    blocked = attrs.evolve(blocked, holds_up=holds_up, at_submission_only=False)
    if caps_nodes(listed.rule, job.size):
        return blocked
    return attrs.evolve(
        blocked,
        keeps_nothing=False,
        reserves=True,
        retry_after=settings.limit_retry,
        qos=listed.rule.qos_of_all,
    )

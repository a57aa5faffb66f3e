"""Let any job displace those of lower priority tiers, the youngest first, in the cluster-wide mode."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.hookspecs import hookimpl
from makeway.model import Candidates, ClusterView, Job, PreemptMode

NAME = "testing/lower_tiers"


@hookimpl
def makeway_preempt_candidates(preemptor: Job, active: Sequence[Job], view: ClusterView) -> Candidates:
    """Name the jobs of lower tiers."""
    mode = view.preempt_mode.action or PreemptMode.OFF
    tier = preemptor.partition.priority_tier
    lower = [job for job in active if job.partition.priority_tier < tier and mode is not PreemptMode.OFF]
    lower.sort(key=lambda job: (-(job.started_at or 0.0), -job.index))
    return Candidates(jobs=tuple(lower), modes=(mode,) * len(lower))

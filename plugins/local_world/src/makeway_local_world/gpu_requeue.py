"""Let a job that wants GPUs have lower jobs requeued that hold some (``preempt/gpu_requeue``).

A suspended process keeps the memory of its GPU, so suspension frees none (local-world 2.3). Listed in
``policy.plugins``, this is asked before the preempt plugin, and speaks only for preemptors that ask for GPUs: jobs with
GPUs in partitions of a lower tier are requeued, those that started last first. All other preemptors, and all other
victims, are the preempt plugin's own affair.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway.devices import holds_gpus, is_gpu
from makeway.hookspecs import hookimpl
from makeway.model import Candidates, ClusterView, Job, PreemptMode


@hookimpl
def makeway_preempt_candidates(preemptor: Job, active: Sequence[Job], view: ClusterView) -> Candidates | None:
    """Name the jobs of lower tiers that hold GPUs; None if the preemptor wants none."""
    if not wants_gpus(preemptor):
        return None
    tier = preemptor.partition.priority_tier
    holders = [job for job in active if job.partition.priority_tier < tier and holds_gpus(job)]
    victims = [job for job in holders if may_go(job)]
    if not victims:
        return None
    # 1. the lowest tier  2. the least lost: the last to start  3. the job table
    victims.sort(key=lambda job: (job.partition.priority_tier, -(job.started_at or 0.0), job.index))
    kept = {job.id: "it may not be requeued, or its partition is off" for job in holders if not may_go(job)}
    return Candidates(jobs=tuple(victims), modes=(PreemptMode.REQUEUE,) * len(victims), protected=kept)


def wants_gpus(job: Job) -> bool:
    """Say whether a job asks for GPUs."""
    spec = job.spec
    return any(is_gpu(name) for table in (spec.gres, spec.gres_total) for name in table)


def may_go(job: Job) -> bool:
    """Say whether a job may be requeued for another."""
    mode = job.partition.preempt_mode
    return job.requeueable and not (mode is not None and mode.action is PreemptMode.OFF)

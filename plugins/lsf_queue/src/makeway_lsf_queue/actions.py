"""Plan how each victim makes way (lsf 6.1)."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Job, Plan, PreemptMode
from makeway_lsf_queue.jobs import gpus
from makeway_lsf_queue.site import Site

SUSPENDED = "SUSP_MBD_PREEMPT (0x00000080), suspended by the master for a higher-priority job"
TERMINATED = "TERM_PREEMPT (1), killed after preemption"


def plans(victims: Sequence[Job], modes: Sequence[PreemptMode], site: Site) -> list[Plan]:
    """Return one plan per victim: at once, as its queue says."""
    return [
        Plan(job=job, mode=mode, why=f"{_effect(mode)}; {_cause(job, mode, site)}")
        for job, mode in zip(victims, modes, strict=True)
    ]


def _effect(mode: PreemptMode) -> str:
    if mode is PreemptMode.SUSPEND:
        return SUSPENDED
    if mode is PreemptMode.CANCEL:
        return TERMINATED
    if mode is PreemptMode.CHECKPOINT:
        return "PEND_JOB_MIG (5), checkpointed, killed and put back to pending"
    return "PEND_JOB_REQUEUED (23), killed and put behind the jobs of its priority"


def _cause(job: Job, mode: PreemptMode, site: Site) -> str:
    manner = site.queue_of(job).manner
    if mode is manner.mode or manner.migrates:
        return f"queue {job.partition.name}: {manner.why}"
    if gpus(job):
        return "it gives its GPUs back by migrating"
    return "an interactive job is not requeued"

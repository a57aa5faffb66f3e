"""Share GPUs by least attained service in two dimensions, with discretised queues (``preempt/las``).

The service that a job has attained is its GPUs times the time that it has run so far, in all its starts. Thresholds
divide jobs into queues: a job begins in the first one, and goes down one queue with each threshold that it passes.
A job that waits in a higher queue displaces jobs of lower queues; within a queue the first submitted comes first, and
no job displaces another, so that long jobs do not take turns for ever.

After Gu and others, "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019: Discretized 2D-LAS.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import attrs

from makeway.hookspecs import hookimpl
from makeway.model import Candidates, ClusterView, Job, JobState, Plan, PreemptMode, QueueOrder, Seconds

_TINY = 1e-6
"""GPU-seconds that rounding may take away at the instant at which a job passes a threshold."""


def _ascending(_: object, field: attrs.Attribute[tuple[float, ...]], value: tuple[float, ...]) -> None:
    if not value or any(a >= b for a, b in zip((0.0, *value), value, strict=False)):
        raise ValueError(f"{field.name}: got {list(value)}; allowed: one or more numbers above 0 that ascend")


@attrs.frozen(kw_only=True)
class Settings:
    """``[policy.settings."preempt/las"]``."""

    thresholds: tuple[float, ...] = attrs.field(default=(3600.0,), validator=_ascending)
    """Service at which a job leaves the first queue, the second, ...: seconds times GPUs."""
    resource: str = "gpu"
    """Counted resource whose amount is the size of a job; one that asks for none counts its CPUs."""


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


def size(job: Job, resource: str) -> int:
    """Return how many GPUs `job` asks for: ``gpu:a100`` counts as ``gpu``."""
    spec = job.spec
    each = sum(count for name, count in spec.gres.items() if name.partition(":")[0] == resource)
    whole = sum(count for name, count in spec.gres_total.items() if name.partition(":")[0] == resource)
    return each * max(1, spec.min_nodes) + whole or spec.cpus


def attained(job: Job, settings: Settings, now: Seconds) -> float:
    """Return the service of `job` so far: running time of all starts, kept or lost, times its size."""
    return size(job, settings.resource) * (job.lost + job.begun_with + job.ran_until(now))


def queue(job: Job, settings: Settings, now: Seconds) -> int:
    """Return the queue of `job`; 0 is the first."""
    return bisect_right(settings.thresholds, attained(job, settings, now) + _TINY)


class LeastAttained(QueueOrder):
    """Orders by queue, then by first submission: a job that made way does not lose its place."""

    def sort(self, pending: Sequence[Job], view: ClusterView) -> list[Job]:
        """Put jobs of the first queue first."""
        settings, now = view.settings(Settings), view.now
        return sorted(pending, key=lambda job: (queue(job, settings, now), job.spec.submit_at, job.index))


@hookimpl
def makeway_queue() -> QueueOrder:
    """Order by attained service."""
    return LeastAttained()


@hookimpl
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds
) -> Candidates:
    """Name running jobs of lower queues, the lowest queue first, in it the last to come."""
    settings, mode = view.settings(Settings), mode_of(view)
    own = queue(preemptor, settings, now)
    running = [job for job in active if job.state is JobState.RUNNING]
    lower = [job for job in running if queue(job, settings, now) > own]
    lower.sort(key=lambda job: (-queue(job, settings, now), -job.spec.submit_at, -job.index))
    return Candidates(
        jobs=tuple(lower),
        modes=(mode,) * len(lower),
        reasons=tuple(f"queue {queue(job, settings, now) + 1} is below queue {own + 1}" for job in lower),
        note="the lowest queue first" if lower else f"no job runs in a queue below {own + 1}",
        ask_again_at=_sinks_at(running, own, settings, now),
    )


def _sinks_at(running: Sequence[Job], own: int, settings: Settings, now: Seconds) -> Seconds | None:
    """Return when the next job falls below queue `own` if all run on; None: none will."""
    if own >= len(settings.thresholds):
        return None
    missing = [
        (settings.thresholds[own] - attained(job, settings, now)) / size(job, settings.resource)
        for job in running
        if queue(job, settings, now) <= own
    ]
    return now + min(missing) if missing else None


def mode_of(view: ClusterView) -> PreemptMode:
    """Return how each job makes way: the cluster's mode."""
    return view.preempt_mode.action or PreemptMode.OFF


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Let each job make way in the same mode."""
    return [mode_of(view)] * len(jobs)


@hookimpl
def makeway_preempt_action(victims: Sequence[Job], modes: Sequence[PreemptMode]) -> list[Plan]:
    """Let victims make way at once."""
    return [Plan(job=job, mode=mode) for job, mode in zip(victims, modes, strict=True)]

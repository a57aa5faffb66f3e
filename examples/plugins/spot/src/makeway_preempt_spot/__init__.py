"""Let high-priority jobs evict spot jobs where that costs least (``preempt/spot``).

Spot jobs run on GPUs that no other job wants now. A high-priority job that does not fit evicts some of them.
An eviction throws away the GPU time since the victim's last checkpoint, and costs its GPUs the time that it takes to
begin again. Of several ways to make room the cheapest is taken.

After "GFS: A Preemption-aware Scheduling Framework for GPU Clusters with Predictive Spot Instance Management",
ASPLOS 2026, whose trace says of each job whether it is high-priority (HP) or spot. What GFS predicts is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from makeway.hookspecs import hookimpl
from makeway.model import (
    Attempt,
    Candidates,
    Choice,
    ClusterView,
    Job,
    JobState,
    Plan,
    PreemptMode,
    QueueOrder,
    Seconds,
)
from makeway.searching import in_order


@attrs.frozen(kw_only=True)
class Settings:
    """``[policy.settings."preempt/spot"]``."""

    spot: tuple[str, ...] = ("Spot",)
    """QOS whose jobs may be evicted; jobs of these evict none."""
    restart_cost: float = attrs.field(default=60.0, validator=attrs.validators.ge(0))
    """Seconds that a job needs to begin again."""
    resource: str = "gpu"
    """Counted resource whose amount is the size of a job; one that holds none counts its CPUs."""


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


def is_spot(job: Job, settings: Settings) -> bool:
    """Whether a job may be evicted, and evicts none."""
    return job.qos is not None and job.qos.name in settings.spot


def size(job: Job, settings: Settings) -> int:
    """Return the GPUs that a job holds: ``gpu:a100`` counts as ``gpu``."""
    held = job.allocation.gres if job.allocation is not None else {}
    kinds = {name: sum(each) for name, each in held.items() if name.partition(":")[0] == settings.resource}
    return kinds.get(settings.resource) or sum(kinds.values()) or job.spec.cpus


def cost(job: Job, settings: Settings, now: Seconds) -> float:
    """Return what an eviction costs: the GPU-seconds that are thrown away, and those of beginning again."""
    return size(job, settings) * (max(0.0, job.ran_until(now) - job.checkpointed) + settings.restart_cost)


class SpotLast(QueueOrder):
    """Orders by class, then by first submission."""

    def sort(self, pending: Sequence[Job], view: ClusterView) -> list[Job]:
        """Put spot jobs last."""
        settings = view.settings(Settings)
        return sorted(pending, key=lambda job: (is_spot(job, settings), job.spec.submit_at, job.index))


@hookimpl
def makeway_queue() -> QueueOrder:
    """Order by class."""
    return SpotLast()


@hookimpl
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds
) -> Candidates:
    """Name running spot jobs for a high-priority job, the cheapest first."""
    settings = view.settings(Settings)
    if is_spot(preemptor, settings):
        return Candidates(note="spot jobs evict no other")
    spot = [job for job in active if job.state is JobState.RUNNING and is_spot(job, settings)]
    spot.sort(key=lambda job: (cost(job, settings, now), -job.index))
    return Candidates(
        jobs=tuple(spot),
        modes=tuple(makeway_preempt_mode(spot, view)),
        reasons=tuple(f"costs {cost(job, settings, now):g} GPU-seconds" for job in spot),
        note="the cheapest eviction first" if spot else "no spot job may be evicted",
    )


@hookimpl
def makeway_search(
    attempt: Attempt, candidates: Candidates, view: ClusterView, now: Seconds
) -> Choice | None:
    """Go by victims, and by nodes, the cheapest first; of the two ways to make room take the cheaper one."""
    settings, jobs = view.settings(Settings), candidates.jobs
    price = [cost(job, settings, now) for job in jobs]
    nodes = [job.allocation.node_indices if job.allocation is not None else () for job in jobs]
    on_node: dict[int, float] = {}
    for each, held in zip(price, nodes, strict=True):
        for node in held:
            on_node[node] = on_node.get(node, 0.0) + each
    by_victim = range(len(jobs))
    by_node = sorted(
        by_victim, key=lambda at: min(((on_node[node], node) for node in nodes[at]), default=(0.0, 0))
    )
    ways = (in_order(attempt.fresh(), candidates, order) for order in (by_victim, by_node))
    found = [way for way in ways if way is not None]
    if not found:
        return None
    cheapest = min(found, key=lambda way: sum(price[at] for at in way.victims))
    method = "the cheaper way: by victims or by nodes"
    return attrs.evolve(cheapest, victims=tuple(sorted(cheapest.victims)), method=method)


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Let each job make way in the cluster's mode."""
    return [view.preempt_mode.action or PreemptMode.OFF] * len(jobs)


@hookimpl
def makeway_preempt_action(victims: Sequence[Job], modes: Sequence[PreemptMode]) -> list[Plan]:
    """Let victims make way at once."""
    return [Plan(job=job, mode=mode) for job, mode in zip(victims, modes, strict=True)]

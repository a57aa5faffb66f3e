"""Let jobs of a partition with a higher PriorityTier displace jobs of a lower one (``preempt/partition_prio``).

A victim's partition decides how it makes way, and a partition that is OFF protects its jobs. With the PRIORITY
modifier the preemptor's priority must not be lower than the victim's. slurm-preemption 1.3, 2.1, 3.1.
All that Slurm's preempt plugins have in common is in `makeway_slurm_rules.preemption`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter

from makeway.hookspecs import alike_by, based_on, hookimpl
from makeway.model import (
    Candidates,
    ClusterView,
    Job,
    ModeFlag,
    Partition,
    Plan,
    PreemptBasis,
    PreemptMode,
    Seconds,
)
from makeway_slurm_rules.preemption import Policy, action_of, candidates, has_flag, plans

__makeway_vendor__ = "slurm"

_partition_of = attrgetter("partition")


def may_preempt(preemptor: Job, jobs: Sequence[Job], view: ClusterView) -> list[Job]:
    """Return those of `jobs` that `preemptor` may displace (section 1.3)."""
    lower = lower_than(preemptor.partition, view)
    there = partitions_of(jobs)
    allowed = list(jobs)
    if not all(partition.name in lower for partition in there):
        allowed = [job for job in jobs if job.partition.name in lower] if len(there) > 1 else []
    if looks_at_priority(preemptor.partition, view):
        return [job for job in allowed if preemptor.priority >= job.priority]
    return allowed


def partitions_of(jobs: Sequence[Job]) -> list[Partition]:
    """Return the partitions that jobs run in, each once."""
    partitions = list(map(_partition_of, jobs))
    return list(dict(zip(map(id, partitions), partitions, strict=True)).values())


def lower_than(partition: Partition, view: ClusterView) -> set[str]:
    """Return the partitions whose jobs may be displaced by those of a partition (section 1.3)."""
    tier = partition.priority_tier
    return {
        other.name for other in view.cluster.partitions if other.priority_tier < tier and not is_off(other)
    }


def looks_at_priority(partition: Partition, view: ClusterView) -> bool:
    """Whether jobs of a partition displace only those of no higher priority (section 1.3)."""
    return view.rule("priority_modifier") and has_flag(ModeFlag.PRIORITY, partition.preempt_mode, view)


def is_off(partition: Partition) -> bool:
    """Whether the partition's own mode is literally OFF; one without a mode of its own never is."""
    mode = partition.preempt_mode
    return mode is not None and mode.action is PreemptMode.OFF


def modes_of(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Return how each of `jobs` makes way: its partition's mode, or the cluster's (section 3.1)."""
    mode = {
        partition.name: action_of(partition.preempt_mode, view, strip_within=False)
        for partition in view.cluster.partitions
    }
    there = partitions_of(jobs)
    if len(there) == 1:
        return [mode[there[0].name]] * len(jobs)
    return [mode[job.partition.name] for job in jobs]


def tiers_of(jobs: Sequence[Job]) -> list[int]:
    """Return the tier of the partition that each job runs in (section 2.1)."""
    there = partitions_of(jobs)
    if len(there) == 1:
        return [there[0].priority_tier] * len(jobs)
    return [job.partition.priority_tier for job in jobs]


def grace_of(job: Job) -> Seconds:
    """Return the grace time of the partition that `job` runs in (section 4.3)."""
    return job.partition.grace_time


POLICY = Policy(
    name="preempt/partition_prio",
    may=may_preempt,
    ranks=tiers_of,
    modes=modes_of,
    grace=grace_of,
)


def kinds_of(view: ClusterView) -> Callable[[Job], Hashable | None]:
    """Let the partition say it, where neither priorities nor licences count (sections 1.2 no. 8 and 1.3)."""
    known = {each.name for each in view.cluster.partitions if not looks_at_priority(each, view)}
    return lambda job: job.partition.name if job.partition.name in known and not job.spec.licenses else None


@hookimpl
@based_on(PreemptBasis.PARTITION)
@alike_by(kinds_of)
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds
) -> Candidates:
    """Name the jobs of lower tiers, lowest tier and fewest nodes first."""
    return candidates(preemptor, active, view, now, POLICY)


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Say how each job would make way."""
    return modes_of(jobs, view)


@hookimpl
def makeway_preempt_action(
    victims: Sequence[Job], modes: Sequence[PreemptMode], view: ClusterView
) -> list[Plan]:
    """Suspend, requeue or cancel, after the partition's grace time."""
    return plans(victims, modes, view, POLICY)

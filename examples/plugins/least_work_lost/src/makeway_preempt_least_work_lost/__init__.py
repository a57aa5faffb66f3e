"""Displace the jobs that lose the least work, and none of them too often (``preempt/least_work_lost``).

Which jobs may displace which is Slurm's affair: by the tiers of partitions, by the lists of QOS, or by both. Among
those that may be displaced, the job goes first that loses the fewest core-seconds: those since its last
checkpoint, or since its start. A job that had to make way so many times within so long a time is protected
until the window has moved on: the loop guard.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from makeway.clockwork import Clockwork
from makeway.hookspecs import hookimpl
from makeway.model import PREEMPTIONS_KEPT, Candidates, ClusterView, Job, Plan, PreemptMode, Seconds
from makeway_slurm_rules.preemption import Policy, action_of, candidates, plans

NAME = "preempt/least_work_lost"


class By(enum.Enum):
    """What lets a job displace another."""

    TIER = "tier"
    """Its partition has the higher tier."""
    QOS = "qos"
    """Its QOS lists the other's."""
    TIER_OR_QOS = "tier_or_qos"
    TIER_AND_QOS = "tier_and_qos"


class Suspension(enum.Enum):
    """What a job loses that is suspended."""

    COUNTS = "counts"
    """As much as if it were requeued: it may never come back."""
    FREE = "free"
    """Nothing: it goes on later."""


@attrs.frozen(kw_only=True)
class Settings:
    """``[policy.settings."preempt/least_work_lost"]``."""

    by: By = By.TIER
    suspension: Suspension = Suspension.COUNTS
    guard_count: int = attrs.field(
        default=3, validator=[attrs.validators.ge(0), attrs.validators.le(PREEMPTIONS_KEPT)]
    )
    """A job that had to make way so many times within `guard_window` is protected; 0: no guard."""
    guard_window: float = attrs.field(default=86400.0, validator=attrs.validators.gt(0))
    """Seconds."""


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


# ----------------------------------------------------------------------------- which, and how
def may_preempt(preemptor: Job, jobs: Sequence[Job], view: ClusterView) -> list[Job]:
    """Return those of `jobs` that `preemptor` may displace, order kept."""
    tier = preemptor.partition.priority_tier
    listed: frozenset[str] = preemptor.qos.preempt if preemptor.qos is not None else frozenset()
    by = view.settings(Settings).by

    def allowed(job: Job) -> bool:
        by_tier = job.partition.priority_tier < tier
        by_qos = job.qos is not None and job.qos.name in listed
        if by is By.TIER_AND_QOS:
            return by_tier and by_qos
        return (by_tier and by is not By.QOS) or (by_qos and by is not By.TIER)

    return [job for job in jobs if allowed(job)]


def modes_of(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Return how each of `jobs` makes way: as its QOS says, else its partition, else the cluster.

    With ``by = "tier"`` QOS have no say.
    """
    ask_qos = view.settings(Settings).by is not By.TIER
    modes = []
    for job in jobs:
        own = job.qos.preempt_mode if ask_qos and job.qos is not None else None
        setting = own if own is not None else job.partition.preempt_mode
        modes.append(action_of(setting, view, strip_within=True))
    return modes


def grace_of(job: Job) -> Seconds:
    """Return the longer of the grace times of the job's partition and QOS."""
    return max(job.partition.grace_time, job.qos.grace_time if job.qos is not None else 0.0)


POLICY = Policy(
    name=NAME, may=may_preempt, ranks=lambda jobs: [0] * len(jobs), modes=modes_of, grace=grace_of
)
"""What `makeway_slurm_rules.preemption` asks for; the ranks do not matter, for the order is our own."""


# ----------------------------------------------------------------------------- what it costs
def cores_of(job: Job, view: ClusterView) -> int:
    """Return how many CPUs `job` holds."""
    held = job.allocation
    if held is None:
        return 0
    if held.cpus is not None:
        return sum(held.cpus)
    return sum(view.cluster.nodes[index].cpus for index in held.node_indices)


def seconds_lost(job: Job, mode: PreemptMode, view: ClusterView, now: Seconds) -> Seconds:
    """Return the running time that `job` loses by making way in `mode`.

    Requeued or cancelled: all since its start, with what it took over from checkpoints of earlier runs, less
    what a checkpoint has saved in this one. Checkpointed: what it did since it last saved its state by itself
    (`checkpoint_interval` of the clockwork; 0: its state is saved as it leaves), and the time it took to read
    the state that it began with.
    """
    ran, mode = job.ran_until(now), job.way(mode)
    if mode is PreemptMode.SUSPEND and view.settings(Settings).suspension is Suspension.FREE:
        return 0.0
    if mode is PreemptMode.CHECKPOINT:
        clock = view.settings(Clockwork)
        read = min(ran, clock.restart_time) if job.begun_with else 0.0
        return read + ((ran - read) % clock.checkpoint_interval if clock.checkpoint_interval else 0.0)
    return max(0.0, ran - job.checkpointed) + (0.0 if job.marked_saved else job.begun_with)


def work_lost(job: Job, mode: PreemptMode, view: ClusterView, now: Seconds) -> float:
    """Return the core-seconds that `job` loses by making way in `mode`, with all its components."""
    return sum(
        cores_of(part, view) * seconds_lost(part, mode, view, now)
        for part in view.components(job)
        if part.state.active
    )


# ----------------------------------------------------------------------------- the loop guard
def guarded_until(job: Job, settings: Settings, now: Seconds) -> Seconds | None:
    """Return when the loop guard lets go of `job`; None: it does not hold it.

    It holds while `guard_count` preemptions are less than `guard_window` seconds old.
    """
    count = settings.guard_count
    if not count or len(job.preempted_at) < count:
        return None
    until = job.preempted_at[-count] + settings.guard_window
    return until if now < until else None


# ----------------------------------------------------------------------------- the hooks
@hookimpl
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds
) -> Candidates:
    """Name what may be displaced, least work lost first; ties: the latest start, then the latest submission.

    Exempt times, partitions that do not overlap, licences and heterogeneous jobs are dealt with by
    `makeway_slurm_rules.preemption`, as in Slurm.
    """
    settings = view.settings(Settings)
    found = candidates(preemptor, active, view, now, POLICY)
    protected = dict(found.protected)
    again = [found.ask_again_at] if found.ask_again_at is not None else []
    kept: list[tuple[Job, PreemptMode]] = []
    for job, mode in zip(found.jobs, found.modes, strict=True):
        until = guarded_until(job, settings, now)
        if until is None:
            kept.append((job, mode))
            continue
        again.append(until)
        protected[job.id] = (
            f"loop guard: had to make way {settings.guard_count} times within {settings.guard_window:g} s, "
            f"safe until {until:g} s"
        )
    kept.sort(key=lambda pair: _place(pair[0], pair[1], view, now))
    return attrs.evolve(
        found,
        jobs=tuple(job for job, _ in kept),
        modes=tuple(mode for _, mode in kept),
        protected=protected,
        note=found.note or ("least work lost first" if kept else ""),
        ask_again_at=min(again, default=None),
    )


def _place(job: Job, mode: PreemptMode, view: ClusterView, now: Seconds) -> tuple[float, Seconds, int]:
    return work_lost(job, mode, view, now), -(job.started_at or 0.0), -job.index


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Say how each job would make way."""
    return modes_of(jobs, view)


@hookimpl
def makeway_preempt_action(
    victims: Sequence[Job], modes: Sequence[PreemptMode], view: ClusterView, now: Seconds
) -> list[Plan]:
    """Make way in the mode asked for, after the grace time; say what is lost."""
    return [
        attrs.evolve(plan, why=f"{plan.why}; {work_lost(plan.job, plan.mode, view, now):g} core-seconds lost")
        for plan in plans(victims, modes, view, POLICY)
    ]

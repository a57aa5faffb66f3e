"""Let jobs of a QOS displace jobs of the QOS that it lists (``preempt/qos``).

A victim's QOS decides how it makes way; partitions play no role, not even one that is OFF. Jobs of one QOS
displace each other only with the WITHIN modifier, by priority. All that Slurm's preempt plugins have in common
is in `makeway_slurm_rules.preemption`. slurm-preemption 1.4, 1.5, 1.13, 2.1, 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from makeway.hookspecs import alike_by, based_on, hookimpl
from makeway.model import (
    Candidates,
    ClusterView,
    Grouping,
    Job,
    ModeFlag,
    Plan,
    PreemptBasis,
    PreemptMode,
    Qos,
    QueueOrder,
    Seconds,
)
from makeway_slurm_rules.preemption import (
    Policy,
    action_of,
    candidates,
    has_flag,
    plans,
    preemptors_first,
)

__makeway_vendor__ = "slurm"

PRIORITY_CAP = 65535
"""Highest QOS priority that counts in the order key (section 2.1)."""


def may_preempt(preemptor: Job, jobs: Sequence[Job], view: ClusterView) -> list[Job]:
    """Return those of `jobs` that `preemptor` may displace (section 1.4)."""
    mine = preemptor.qos
    if mine is None:
        return []
    listed = mine.preempt
    within = has_flag(ModeFlag.WITHIN, mine.preempt_mode, view)
    by_priority = view.rule("priority_modifier") and has_flag(ModeFlag.PRIORITY, mine.preempt_mode, view)
    if not listed and not within:
        return []
    if not within and not by_priority:
        others = {name for name in listed if name != mine.name}
        return [job for job in jobs if (other := job.qos) is not None and other.name in others]
    priority = preemptor.priority
    return [
        job
        for job in jobs
        if (other := job.qos) is not None
        and (
            (within and priority > job.priority)
            if other.name == mine.name
            else (other.name in listed and (not by_priority or priority > job.priority))
        )
    ]


def modes_of(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Return how each of `jobs` makes way: its QOS's mode, or the cluster's (section 3.1)."""
    kinds = {job.qos.name: job.qos for job in jobs if job.qos is not None}
    mode = {name: mode_in(qos, view) for name, qos in kinds.items()}
    without = mode_in(None, view)
    return [mode[job.qos.name] if job.qos is not None else without for job in jobs]


def mode_in(qos: Qos | None, view: ClusterView) -> PreemptMode:
    """Return the mode of jobs of `qos`.

    A QOS cannot be switched off: OFF and "nothing" are one value, "as the cluster". Modifiers alone are OFF.
    """
    setting = qos.preempt_mode if qos is not None else None
    if setting is not None and setting.action in (None, PreemptMode.OFF) and not setting.flags:
        setting = None
    return action_of(setting, view, strip_within=True)


def priorities_of(jobs: Sequence[Job]) -> list[int]:
    """Return the priority of each job's QOS, capped (section 2.1)."""
    return [min(job.qos.priority, PRIORITY_CAP) if job.qos is not None else 0 for job in jobs]


def grace_of(job: Job) -> Seconds:
    """Return the grace time of the QOS of `job` (section 4.3)."""
    return job.qos.grace_time if job.qos is not None else 0.0


def looks_at_priority(qos: Qos | None, view: ClusterView) -> bool:
    """Whether a job's own priority has a say in what jobs of `qos` may displace (section 1.5)."""
    setting = qos.preempt_mode if qos is not None else None
    return has_flag(ModeFlag.WITHIN, setting, view) or (
        view.rule("priority_modifier") and has_flag(ModeFlag.PRIORITY, setting, view)
    )


def source_of(job: Job) -> str:
    """Return what the mode of `job` comes from, in words."""
    return f"QOS {job.qos.name}" if job.qos is not None else f"partition {job.partition.name}"


POLICY = Policy(
    name="preempt/qos",
    may=may_preempt,
    ranks=priorities_of,
    modes=modes_of,
    grace=grace_of,
    source=source_of,
)


def ranks_of(view: ClusterView) -> Callable[[Job], int | None] | None:
    """Let the number of QOS that may displace a job's QOS be its rank, where that amounts to the same."""
    kinds = view.cluster.qos
    if any(looks_at_priority(qos, view) for qos in (None, *kinds)):
        return None
    ranks = {qos.name: sum(qos.name in other.preempt for other in kinds if other is not qos) for qos in kinds}
    for one in kinds:
        for other in kinds:
            if one is not other and (ranks[one.name] < ranks[other.name]) is not (other.name in one.preempt):
                return None
    return lambda job: ranks.get(job.qos.name) if job.qos is not None else None


class PreemptorsFirst(QueueOrder):
    """Puts jobs that could preempt others before those (sections 1.13 and 7.1)."""

    def __init__(self, view: ClusterView) -> None:
        """Rank QOS, where that says all."""
        self.rank = ranks_of(view)

    def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job]:
        """Compare each with each."""
        kinds = {job.qos.name if job.qos is not None else None: job.qos for job in pending}
        alike = not any(looks_at_priority(qos, view) for qos in kinds.values())
        return preemptors_first(pending, view, POLICY, by_qos=alike)


@hookimpl
def makeway_queue(view: ClusterView) -> QueueOrder:
    """Order the queue by what may displace what."""
    return PreemptorsFirst(view)


@hookimpl
def makeway_displaces_by() -> Grouping:
    """Let tables of preemptions be grouped by QOS."""
    return Grouping("QOS", lambda job: job.qos.name if job.qos is not None else "(none)")


def kinds_of(view: ClusterView) -> Callable[[Job], Hashable | None]:
    """Let the QOS say it, where neither priorities nor licences count (sections 1.2 no. 8 and 1.5)."""
    known = {qos.name for qos in view.cluster.qos if not looks_at_priority(qos, view)}

    def kind(job: Job) -> Hashable | None:
        qos = job.qos
        return qos.name if qos is not None and qos.name in known and not job.spec.licenses else None

    return kind


@hookimpl
@based_on(PreemptBasis.QOS)
@alike_by(kinds_of)
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds
) -> Candidates:
    """Name the jobs of listed QOS, lowest QOS priority and fewest nodes first."""
    return candidates(preemptor, active, view, now, POLICY)


@hookimpl
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView) -> list[PreemptMode]:
    """Say how each job would make way."""
    return modes_of(jobs, view)


@hookimpl
def makeway_preempt_action(
    victims: Sequence[Job], modes: Sequence[PreemptMode], view: ClusterView
) -> list[Plan]:
    """Suspend, requeue or cancel, after the QOS's grace time."""
    return plans(victims, modes, view, POLICY)

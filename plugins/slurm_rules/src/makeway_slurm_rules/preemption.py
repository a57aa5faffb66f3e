"""Share what Slurm keeps common to its preempt plugins (slurm-preemption 1 to 4).

A Slurm-like policy supplies three small functions over a whole list of jobs: which may go, key, mode. This module
adds exempt time, overlap, licences, heterogeneous jobs, order and the plan of steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from makeway.clockwork import Clockwork
from makeway.job_table import JobTable, turn_of
from makeway.licences import LICENCES
from makeway.model import (
    NOTHING,
    Candidates,
    ClusterView,
    Job,
    ModeFlag,
    ModeSetting,
    Plan,
    PreemptMode,
    Qos,
    Seconds,
    Signal,
)
from makeway.preemption import PreemptionTable

NODE_CAP = 65535
"""Most nodes that count in the order key (section 2.1)."""


def _partition_of(job: Job) -> str:
    return f"partition {job.partition.name}"


@attrs.frozen(kw_only=True)
class Policy:
    """The four things in which Slurm's preempt plugins differ, each over whole lists."""

    name: str
    may: Callable[[Job, Sequence[Job], ClusterView], Sequence[Job]]
    """Those of the jobs that the preemptor may displace, order kept."""
    ranks: Callable[[Sequence[Job]], list[int]]
    """First part of each job's order key: tier, or QOS priority."""
    modes: Callable[[Sequence[Job], ClusterView], list[PreemptMode]]
    """How each job (each component of a heterogeneous one) makes way."""
    grace: Callable[[Job], Seconds]
    """Its grace time."""
    source: Callable[[Job], str] = _partition_of
    """What the mode of a job comes from, in words."""


# ----------------------------------------------------------------------------------- candidates
def candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: Seconds, policy: Policy
) -> Candidates:
    """Filter and order the candidates (sections 1.2 and 2).

    :param active: running and suspended jobs in job-table order; non-leader components of heterogeneous
        jobs are judged through their leader.
    """
    settings = view.settings(PreemptionTable)
    allowed = policy.may(preemptor, active, view)
    if not allowed:
        return _no_candidates(policy.name)
    protected: dict[str, str] = {}
    ask_again: list[Seconds] = []
    kept = _leaders(allowed, active, view, policy, preemptor)
    if settings.min_exempt_priority is not None and view.rule("min_exempt_priority"):
        kept = _low_enough(kept, view, settings.min_exempt_priority, protected)
    kept = _not_exempt(kept, view, now, settings, protected, ask_again)
    kept = _overlapping(kept, preemptor, view)
    kept = ordered(kept, settings, policy.ranks)
    kept, modes = _removable(kept, modes_of(kept, view, policy), protected)
    if not modes and not protected:
        return _no_candidates(policy.name)
    return Candidates(
        jobs=tuple(kept),
        modes=tuple(modes),
        protected=protected,
        ask_again_at=min(ask_again, default=None),
        not_for=_not_for(settings, view),
    )


@functools.cache
def _no_candidates(policy: str) -> Candidates:
    return Candidates(note=f"no active job is one that {policy} lets it displace")


_NO_RECLAIM = {LICENCES: "licences are no reason to preempt without reclaim_licenses"}


def _not_for(settings: PreemptionTable, view: ClusterView) -> Mapping[str, str]:
    """Name what no job is displaced for (section 1.11)."""
    reclaims = settings.reclaim_licenses and view.rule("reclaim_licenses")
    return NOTHING if reclaims else _NO_RECLAIM


def _leaders(
    allowed: Sequence[Job],
    active: Sequence[Job],
    view: ClusterView,
    policy: Policy,
    preemptor: Job,
) -> list[Job]:
    """Keep ordinary jobs, and leaders all of whose components may go (section 1.2 no. 1 and 7)."""
    if not view.heterogeneous:
        return list(allowed)
    kept = []
    for job in allowed:
        if job.spec.het_id is not None:
            if job.spec.het_offset:
                continue
            parts = view.components(job)
            if any(not part.state.active for part in parts):
                continue
            if len(policy.may(preemptor, parts, view)) < len(parts):
                continue
        kept.append(job)
    return kept


def _low_enough(jobs: Sequence[Job], view: ClusterView, limit: int, protected: dict[str, str]) -> list[Job]:
    """Drop jobs above min_exempt_priority; an equal one may go (section 1.7)."""
    kept = []
    for job in jobs:
        highest = max(part.priority for part in view.components(job))
        if highest > limit:
            protected[job.id] = f"priority {highest} is above min_exempt_priority {limit}"
        else:
            kept.append(job)
    return kept


def exempt_time(job: Job, view: ClusterView, default: Seconds | None) -> Seconds:
    """Return the least run time of `job` before it may be displaced (section 1.6).

    The first value set counts: partition QOS, job QOS, cluster-wide; with OverPartQOS the job's QOS first.
    """
    partition_qos = view.cluster.qos_named(job.partition.qos)
    order: list[Qos | None] = [partition_qos, job.qos]
    if job.qos is not None and "OverPartQOS" in job.qos.flags:
        order.reverse()
    for qos in order:
        if qos is not None and qos.exempt_time is not None:
            return qos.exempt_time
    return default if default is not None and default > 0 else 0.0


def exempt_until(job: Job, view: ClusterView, default: Seconds | None) -> Seconds:
    """Return until when `job` may not be displaced; it counts from the full second in which the job started."""
    started = view.settings(Clockwork).whole_second(job.started_at or 0.0)
    return started + exempt_time(job, view, default)


def _not_exempt(
    jobs: list[Job],
    view: ClusterView,
    now: Seconds,
    settings: PreemptionTable,
    protected: dict[str, str],
    ask_again: list[Seconds],
) -> list[Job]:
    if not settings.exempt_time and not any(qos.exempt_time for qos in view.cluster.qos):
        return jobs
    kept = []
    for job in jobs:
        until = max(exempt_until(part, view, settings.exempt_time) for part in view.components(job))
        if now < until:
            protected[job.id] = f"exempt for {until - now:g} s more (PreemptExemptTime)"
            ask_again.append(until)
        else:
            kept.append(job)
    return kept


def _overlapping(jobs: list[Job], preemptor: Job, view: ClusterView) -> list[Job]:
    """Keep jobs on the preemptor's partition's nodes, or with a licence that it wants (section 1.2 no. 8)."""
    nodes = preemptor.partition.nodes
    outside = {part.name for part in view.cluster.partitions if part.nodes & ~nodes}
    if not outside:
        return jobs
    wanted = preemptor.spec.licenses if view.rule("licence_overlap") else ()
    return [
        job
        for job in jobs
        if (job.partition.name not in outside and job.spec.het_id is None)
        or any(part.nodes & nodes for part in view.components(job))
        or (wanted and any(_holds(part, wanted) for part in view.components(job)))
    ]


def _removable(
    jobs: list[Job], modes: list[PreemptMode], protected: dict[str, str]
) -> tuple[list[Job], list[PreemptMode]]:
    """Drop jobs whose mode comes out as OFF: nothing would be done to them (section 3.1, traps)."""
    if PreemptMode.OFF not in modes:
        return jobs, modes
    for job, mode in zip(jobs, modes, strict=True):
        if mode is PreemptMode.OFF:
            protected[job.id] = "its preempt mode comes out as off"
    pairs = [pair for pair in zip(jobs, modes, strict=True) if pair[1] is not PreemptMode.OFF]
    return [job for job, _ in pairs], [mode for _, mode in pairs]


def _holds(job: Job, wanted: Iterable[str]) -> bool:
    held = job.allocation.licenses if job.allocation is not None else {}
    return any(name in held for name in wanted)


def ordered(
    jobs: list[Job], settings: PreemptionTable, ranks: Callable[[Sequence[Job]], list[int]]
) -> list[Job]:
    """Order candidates: by rank and number of nodes, or the latest start first; ties in table order (section 2)."""
    if settings.youngest_first:
        return sorted(jobs, key=lambda job: -(job.started_at or 0.0))
    by_rank, by_size = ranks(jobs), sizes(jobs)
    if not jobs or (min(by_rank) == max(by_rank) and min(by_size) == max(by_size)):
        return jobs
    keys = [
        rank * 65536 + (size if size < NODE_CAP else NODE_CAP)
        for rank, size in zip(by_rank, by_size, strict=True)
    ]
    return [jobs[at] for at in sorted(range(len(jobs)), key=keys.__getitem__)]


def sizes(jobs: Sequence[Job]) -> list[int]:
    """Return how many nodes each active job holds."""
    return [len(job.allocation.node_indices) if job.allocation is not None else 0 for job in jobs]


# ----------------------------------------------------------------------------------- the queue
def preemptors_first(pending: Sequence[Job], view: ClusterView, policy: Policy, *, by_qos: bool) -> list[Job]:
    """Order the queue: a job that may displace another comes before it, else as they stand (sections 1.13 and 7.1).

    "May displace" need not be transitive, so the outcome depends on how one sorts: a merge sort of the records in
    job-table order, as Slurm's. Tasks of an array that have not started are one record.

    :param pending: in the default order.
    :param by_qos: whether all jobs of one QOS may displace the same jobs.
    """
    table = view.book(JobTable)  # it has to see every start, needed now or not
    if by_qos:
        ranks = _ranks(pending, view, policy)
        if ranks is not None:
            if len(set(ranks.values())) < 2:
                return list(pending)
            return sorted(pending, key=lambda job: ranks[_qos_name(job)])
    places = {id(job): at for at, job in enumerate(pending)}

    def before(one: Job, other: Job) -> bool:
        if policy.may(one, (other,), view):
            return True
        return not policy.may(other, (one,), view) and places[id(one)] < places[id(other)]

    records: list[Job] = []
    behind: dict[tuple[str, int], list[Job]] = {}
    for job in sorted(pending, key=lambda job: (table.place(job), *_place_among_its_own(job), job.index)):
        array = table.shares(job)
        if array is None:
            records.append(job)
        elif (array, job.partition.index) in behind:
            behind[array, job.partition.index].append(job)
        else:
            records.append(job)
            behind[array, job.partition.index] = []
    found = _merge_sorted(records, before)
    if not behind:
        return found
    return [
        each
        for job in found
        for each in (job, *behind.get((table.shares(job) or "", job.partition.index), ()))
    ]


def _place_among_its_own(job: Job) -> tuple[int, int]:
    """Return where a job's record in the partition shown stands among those in its others.

    Higher tiers come first, then those named first (recorded: preempt_order_partitions and part_named_order).
    """
    return -job.partition.priority_tier, turn_of(job, job.partition)


def _ranks(pending: Sequence[Job], view: ClusterView, policy: Policy) -> dict[str | None, int] | None:
    """Return QOS name -> how many QOS may displace it; None if that does not say all."""
    of_kind = {_qos_name(job): job for job in pending}
    kinds = tuple(of_kind.values())
    beats = {name: {_qos_name(job) for job in policy.may(of_kind[name], kinds, view)} for name in of_kind}
    ranks = {name: sum(name in beaten for beaten in beats.values()) for name in of_kind}
    for name, beaten in beats.items():
        if any((ranks[name] < ranks[other]) is not (other in beaten) for other in of_kind):
            return None
    return ranks


def _qos_name(job: Job) -> str | None:
    return job.qos.name if job.qos is not None else None


def _merge_sorted(jobs: list[Job], before: Callable[[Job, Job], bool]) -> list[Job]:
    """Sort by halves; of two that meet, the first stays first unless the second is `before` it."""
    if len(jobs) < 2:
        return jobs
    middle = len(jobs) // 2
    left = _merge_sorted(jobs[:middle], before)
    right = _merge_sorted(jobs[middle:], before)
    merged: list[Job] = []
    at = 0
    for job in right:
        while at < len(left) and not before(job, left[at]):
            merged.append(left[at])
            at += 1
        merged.append(job)
    return merged + left[at:]


# ------------------------------------------------------------------------------------------ modes
def action_of(setting: ModeSetting | None, view: ClusterView, *, strip_within: bool) -> PreemptMode:
    """Return the action of a mode, the cluster's where `setting` is None (section 3.1).

    A mode of modifiers alone leaves OFF, as in Slurm.
    """
    chosen = setting if setting is not None else view.preempt_mode
    if ModeFlag.WITHIN in chosen.flags and not strip_within:
        return PreemptMode.OFF
    return chosen.action if chosen.action is not None else PreemptMode.OFF


def has_flag(flag: ModeFlag, setting: ModeSetting | None, view: ClusterView) -> bool:
    """Whether a modifier is in force: in `setting` or cluster-wide (section 1.5)."""
    if flag in view.preempt_mode.flags:
        return True
    return setting is not None and flag in setting.flags


def modes_of(jobs: Sequence[Job], view: ClusterView, policy: Policy) -> list[PreemptMode]:
    """Return how each of `jobs` makes way, heterogeneous ones as a whole."""
    modes = policy.modes(jobs, view)
    if view.heterogeneous:
        for at, job in enumerate(jobs):
            if job.spec.het_id is not None:
                modes[at] = het_mode(policy.modes(view.components(job), view))
    return modes


def het_mode(modes: Sequence[PreemptMode]) -> PreemptMode:
    """Return the mode of a heterogeneous victim: a suspending component decides, then a requeueing one (3.2)."""
    for mode in (PreemptMode.SUSPEND, PreemptMode.REQUEUE):
        if mode in modes:
            return mode
    return modes[0]


# ------------------------------------------------------------------------------------------ plans
def plans(
    victims: Sequence[Job],
    modes: Sequence[PreemptMode],
    view: ClusterView,
    policy: Policy,
) -> list[Plan]:
    """Return how each victim makes way (sections 3.3, 4.2 and 4.3)."""
    settings = view.settings(PreemptionTable)
    return [_plan(job, mode, view, policy, settings) for job, mode in zip(victims, modes, strict=True)]


def _plan(job: Job, mode: PreemptMode, view: ClusterView, policy: Policy, settings: PreemptionTable) -> Plan:
    gang = ModeFlag.GANG in view.preempt_mode.flags
    why = f"mode of {policy.source(job)}"
    if mode is PreemptMode.SUSPEND and gang:
        return Plan(job=job, mode=mode, why=why)
    if mode is PreemptMode.SUSPEND:
        mode, why = PreemptMode.CANCEL, f"{why}; suspend without gang means cancel"
    if mode is PreemptMode.REQUEUE:
        stuck = [part.id for part in view.components(job) if not part.requeueable]
        if stuck:
            mode, why = PreemptMode.CANCEL, f"{why}; {', '.join(stuck)} may not be requeued"
    asked = job.spec.signal if settings.send_user_signal else None
    grace = policy.grace(job)
    if asked is not None:
        own = (Signal(name="CONT"), Signal(name=asked.name, steps_only=not asked.batch_only))
        notice, farewell = own, own if grace == 0 else ()
    else:
        notice, farewell = (Signal(name="CONT"), Signal(name="TERM")), ()
    return Plan(
        job=job, mode=mode, notice=notice if grace else (), farewell=farewell, grace_time=grace, why=why
    )

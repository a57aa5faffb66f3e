"""Check that nothing is held twice: cores, memory, licences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from makeway import bitmap, licences
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import (
    Allocation,
    Job,
    JobState,
    SuspendedBy,
)
from makeway_engine.engine import Engine
from makeway_testing.broken import Excused, broken


def check_cores(engine: Engine, resumed: frozenset[str]) -> Iterator[Excused]:
    """Check that no two running jobs have a core (rule 1); yield what is excused."""
    ledger = engine.ledger
    seen: NodeBits = 0
    double: NodeBits = 0
    for job in ledger.active:
        if job.state is JobState.RUNNING and job.allocation is not None:
            double |= seen & job.allocation.nodes
            seen |= job.allocation.nodes
    if not double:
        return
    running = [j for j in ledger.active if j.state is JobState.RUNNING and j.nodes & double]
    on: defaultdict[int, list[int]] = defaultdict(list)
    for at, job in enumerate(running):
        for node in bitmap.indices(job.nodes & double):
            on[node].append(at)
    for one, two in sorted({pair for node, there in on.items() for pair in _sharing(running, there, node)}):
        job, other = running[one], running[two]
        excuse = _overlap_excuse(engine, job, other, resumed)
        if not excuse:
            raise broken(engine, 1, "two active jobs on one core", job.id, other.id)
        yield Excused(ledger.now, excuse, (job.id, other.id))


def _sharing(jobs: Sequence[Job], there: Sequence[int], node: int) -> Iterator[tuple[int, int]]:
    """Yield the places of those jobs on a node, `there`, two by two, that hold one core of it."""
    held: CoreBits = 0
    for number, at in enumerate(there):
        cores = _cores_or_all(jobs[at], node)
        if cores & held:
            for before in there[:number]:
                if cores & _cores_or_all(jobs[before], node):
                    yield before, at
        held |= cores


def _cores_or_all(job: Job, node: int) -> CoreBits:
    allocation = job.allocation
    return -1 if allocation is None or allocation.cores is None else _cores_on(allocation, node)


def share_a_core(job: Job, other: Job) -> bool:
    """Whether two jobs hold one core; without lists of cores a common node is enough."""
    common = job.nodes & other.nodes
    if not common:
        return False
    one, two = job.allocation, other.allocation
    if one is None or two is None or one.cores is None or two.cores is None:
        return True
    return any(_cores_on(one, at) & _cores_on(two, at) for at in bitmap.indices(common))


def _cores_on(allocation: Allocation, node: int) -> CoreBits:
    assert allocation.cores is not None
    return allocation.cores[allocation.node_indices.index(node)]


def _overlap_excuse(engine: Engine, job: Job, other: Job, resumed: frozenset[str]) -> str:
    """Return the excuse; empty: there is none."""
    ledger = engine.ledger
    if job.id in resumed or other.id in resumed:
        return "resumed by a person"
    if engine.gang is None:
        return "oversubscribed" if _oversubscribed(engine, job, other) else ""
    if job.spec.het_id is not None or other.spec.het_id is not None:
        return "heterogeneous"
    words = {word.upper() for word in ledger.select_parameters}
    if words & {"CR_CPU", "CR_CPU_MEMORY"} and ledger.rule("gang_counts_cpus"):
        return "cpus are counted"
    if job.partition is other.partition:
        return ""
    if job.partition.priority_tier == other.partition.priority_tier:
        return "equal tiers"
    lower, upper = sorted((job, other), key=lambda one: one.partition.priority_tier)
    if ledger.mode_of(lower).frees_all and lower.id in _doomed(engine):
        return "waits to be killed"
    if lower.id in engine.transitions.graces and not ledger.rule("gang_skips_grace"):
        return "in its grace time"
    if ledger.rule("stale_shadows") and _is_sliced(engine, upper):
        return "stale shadow"
    return ""


def _oversubscribed(engine: Engine, job: Job, other: Job) -> bool:
    """Whether all jobs in common places share them, no more than partitions allow.

    Some selectors count the jobs of a node, over all partitions; others the jobs of one partition on a core
    (slurm-gang-and-select 4.5).
    """
    for index in bitmap.indices(job.nodes & other.nodes):
        there = [
            one for one in engine.ledger.active if one.nodes >> index & 1 and one.state is JobState.RUNNING
        ]
        if getattr(engine.selector, "shares_whole_nodes", False):
            most = max(one.partition.oversubscribe.count for one in there)
            if len(there) > most or not all(map(_is_shared, there)):
                return False
        elif not _rows_allow(there, index, _core_bits(job, index) & _core_bits(other, index)):
            return False
    return True


def _rows_allow(there: Sequence[Job], node: int, cores: CoreBits) -> bool:
    """Whether no partition has more jobs on one of `cores` than it allows."""
    for core in bitmap.each(cores):
        counts: dict[str, int] = {}
        for job in there:
            if _core_bits(job, node) & core:
                name = job.partition.name
                counts[name] = counts.get(name, 0) + 1
                if not _is_shared(job) or counts[name] > job.partition.oversubscribe.count:
                    return False
    return True


def _is_shared(job: Job) -> bool:
    return job.allocation is not None and job.allocation.shared


_ALL_CORES = bitmap.full(64)
"""Stands for the cores of a whole node, where only those that another job holds are looked at."""


def _core_bits(job: Job, node: int) -> CoreBits:
    allocation = job.allocation
    if allocation is None or allocation.cores is None:
        return _ALL_CORES
    return _cores_on(allocation, node)


def _is_sliced(engine: Engine, job: Job) -> bool:
    """Whether `job` takes turns with another job of its partition, if only with one that is leaving."""
    ledger = engine.ledger
    leaving = [ledger.jobs[job_id] for job_id in engine.transitions._leaving]
    return any(
        other is not job and other.partition is job.partition and share_a_core(job, other)
        for other in (*ledger.active, *leaving)
    )


def _doomed(engine: Engine) -> set[str]:
    """Return the jobs that the built-in arbiter will kill or requeue when it acts next."""
    return {member.job.id for member in getattr(engine.gang, "_doomed", ())}


def check_memory(engine: Engine, resumed: frozenset[str]) -> Iterator[Excused]:
    """Check that no node gives out more memory than it has (rule 2); yield what is excused."""
    ledger = engine.ledger
    used: dict[int, int] = {}
    given_back = bool(getattr(engine.selector, "suspension_frees_memory", False))
    for job in ledger.active:
        if given_back and job.state is JobState.SUSPENDED:
            continue
        allocation = job.allocation
        if allocation is not None and allocation.memory_mb is not None:
            for index, amount in zip(allocation.node_indices, allocation.memory_mb, strict=True):
                used[index] = used.get(index, 0) + amount
    for index, amount in used.items():
        node = ledger.cluster.nodes[index]
        if amount <= node.memory_mb:
            continue
        there = [job for job in ledger.active if job.nodes >> index & 1]
        names = tuple(job.id for job in there)
        if getattr(engine.selector, "shares_whole_nodes", False) and _was_forgotten(engine, there):
            yield Excused(ledger.now, "suspension frees memory", names)
            continue
        if resumed.intersection(names):
            yield Excused(ledger.now, "resumed by a person", names)
            continue
        if engine.gang is not None and any(job.spec.het_id is not None for job in there):
            yield Excused(ledger.now, "heterogeneous", names)  # removed in a simulation, never stopped
            continue
        text = f"{amount} MB on {node.name}, which has {node.memory_mb} MB"
        raise broken(engine, 2, text, *names)


def check_licences(engine: Engine) -> None:
    """Check that no more licences are held than there are; suspended jobs keep theirs (slurm-preemption 4.6 and 5.3).

    Components of heterogeneous jobs may take more together, as in Slurm.
    """
    ledger = engine.ledger
    if not ledger.license_holders:
        return
    used: dict[str, int] = {}
    for job in ledger.active:
        for name, count in licences.held(job).items():
            used[name] = used.get(name, 0) + count
    for name, count in used.items():
        there = ledger.cluster.licenses.get(name, 0)
        if count > there:
            holders = [job for job in ledger.active if name in licences.held(job)]
            if ledger.rule("het_starts_without_licences") and any(job.spec.het_id for job in holders):
                continue
            text = f"{count} of licence {name} in use, of which there are {there}"
            raise broken(engine, 2, text, *(job.id for job in holders))


def _was_forgotten(engine: Engine, jobs: Sequence[Job]) -> bool:
    """Whether select/linear may have taken the memory of one of `jobs` for free (slurm-gang-and-select 4.2.6)."""
    if any(job.suspended_by is SuspendedBy.ADMIN for job in jobs):
        return True
    if not engine.ledger.rule("linear_suspend_frees_memory") or engine.gang is None:
        return False
    # What was to be suspended may still run, where gang stopped the newcomer or a shadow is stale.
    tiers = {job.partition.priority_tier for job in jobs}
    return len(tiers) > 1 or any(job.state is JobState.SUSPENDED for job in jobs)

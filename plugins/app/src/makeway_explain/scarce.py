"""Say what a job that waits for resources is short of, node by node, what holds it, and what to try."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.model import Exclusive, Job, JobState, Node
from makeway.obstacle import counted
from makeway.record import Decision
from makeway_engine.engine import Engine
from makeway_engine.ledger import Ledger

_MOST_NODES = 3
_MOST_HOLDERS = 6
_WHOLE, _CPUS, _MEMORY = "whole node", "CPUs", "memory"


@attrs.frozen
class _Short:
    """What one node lacks for a job."""

    what: str
    wanted: int
    free: int
    total: int
    holders: Mapping[str, int]
    """Job id -> how much of it."""

    def told(self, notes: Mapping[str, str]) -> str:
        """Return it in words."""
        unit = " MB" if self.what == _MEMORY else ""
        if self.what == _WHOLE:
            want = "the whole node is wanted"
        elif self.what == _MEMORY and self.wanted >= self.total:
            want = f"all of its memory is wanted, {self.free:,} of {self.total:,} MB free"
        else:
            thing = {_CPUS: "CPU" if self.wanted == 1 else "CPUs", _MEMORY: "MB of memory"}.get(
                self.what, self.what
            )
            want = f"{self.wanted:,} {thing} wanted, {self.free:,} of {self.total:,} free"
        amounts = {
            job: "" if self.what == _WHOLE else f" ({amount:,}{unit})" for job, amount in self.holders.items()
        }
        return want + (f"; {_held_by(amounts, notes)}" if amounts else "")


def _held_by(amounts: Mapping[str, str], notes: Mapping[str, str]) -> str:
    """Name what holds something.

    :param amounts: job id -> how much of it, in words; empty: all.
    """
    shown = [f"{job}{amount}{notes.get(job, '')}" for job, amount in list(amounts.items())[:_MOST_HOLDERS]]
    more = f" and {len(amounts) - _MOST_HOLDERS:,} more" if len(amounts) > _MOST_HOLDERS else ""
    return f"held by {', '.join(shown)}{more}"


def scarce(engine: Engine, job: Job, decision: Decision, *, native: bool) -> list[str]:
    """Return what a job lacks that waits, a line each, with what to try."""
    ledger = engine.ledger
    if decision.reason == "Licenses":
        return [*_licences(ledger, job), *_plan_licences(engine, native=native)]
    if decision.reason != "Resources":
        return list(_partition_qos(job, decision))
    stopping = {each for each, mode in decision.candidates if mode == "suspend"}
    shares = engine.config.policy.select == "select/cons_tres"
    asked = math.ceil(job.spec.cpus / job.size)
    more = _cpus_for_memory(engine, job, asked)
    every = (
        (node, list(_lacks(ledger, job, node, asked, more, shares=shares))) for node in _nodes(ledger, job)
    )
    short = [(node, found) for node, found in every if found]
    if not short:
        return []
    fewest = min(len(found) for _, found in short)
    near = sorted(short, key=lambda each: (len(each[1]) > fewest, each[1][0].what == _CPUS, each[0].index))
    lines = []
    for node, found in near[:_MOST_NODES]:
        lines.append(
            f"{node.name}: " + "; ".join(each.told(_notes(ledger, each, stopping)) for each in found)
        )
    if len(near) > _MOST_NODES:
        rest = len(near) - _MOST_NODES
        lines.append(f"and {counted(rest, 'more node')} {'lacks' if rest == 1 else 'lack'} something")
    seen = [each for _, found in near for each in found]
    return [*lines, *_leaders(ledger, seen, decision), *_to_try(engine, job, seen, stopping, native=native)]


def _nodes(ledger: Ledger, job: Job) -> Iterator[Node]:
    nodes = job.required or job.partition.nodes & ~job.excluded
    for at in bitmap.indices(nodes & ledger.up):
        yield ledger.cluster.nodes[at]


def _lacks(ledger: Ledger, job: Job, node: Node, asked: int, given: int, *, shares: bool) -> Iterator[_Short]:
    """Yield what a node lacks for its share of a job.

    :param asked: CPUs that the job asks for.
    :param given: CPUs that it gets, which may be more for its memory.
    :param shares: whether the selector hands out less than whole nodes.
    """
    here = [each for each in ledger.active if each.nodes >> node.index & 1]
    if ledger.completing >> node.index & 1:
        yield _Short(_WHOLE, 1, 0, 1, {"a job that is leaving": 1})
        return
    whole = [] if shares else [each for each in here if each.allocation and each.allocation.whole_nodes]
    if whole or (here and job.spec.exclusive is Exclusive.NODE):
        yield _Short(_WHOLE, 1, 0, 1, {each.id: 1 for each in whole or here})
        return
    running = [each for each in here if each.state is not JobState.SUSPENDED]
    yield from _of(_CPUS, min(given, node.cpus), node.cpus, {each.id: _cpus(each, node) for each in running})
    tracked = [each for each in here if each.allocation is not None and each.allocation.memory_mb is not None]
    if tracked:
        held = {each.id: _at(each, node, each.allocation.memory_mb) for each in tracked if each.allocation}
        yield from _of(
            _MEMORY, _memory(ledger, job, node, min(asked, node.cpus)), node.usable_memory_mb, held
        )
    for name, count in {**job.spec.gres_total, **job.spec.gres}.items():
        each_node = count if name in job.spec.gres else math.ceil(count / job.size)
        held = {
            each.id: _at(each, node, each.allocation.gres.get(name))
            for each in here
            if each.allocation is not None and name in each.allocation.gres
        }
        yield from _of(name, each_node, node.gres.get(name, 0), held)


def _of(what: str, wanted: int, total: int, held: Mapping[str, int]) -> Iterator[_Short]:
    free = total - sum(held.values())
    if free < wanted:
        yield _Short(what, wanted, max(0, free), total, {job: each for job, each in held.items() if each})


def _at(job: Job, node: Node, amounts: Sequence[int] | None) -> int:
    """Return how much of something a job holds on a node."""
    if job.allocation is None or amounts is None or node.index not in job.allocation.node_indices:
        return 0
    return amounts[job.allocation.node_indices.index(node.index)]


def _cpus(job: Job, node: Node) -> int:
    return (
        node.cpus
        if job.allocation is None or job.allocation.cpus is None
        else _at(job, node, job.allocation.cpus)
    )


def _memory(ledger: Ledger, job: Job, node: Node, cpus: int) -> int:
    """Return the memory that a job wants of a node where memory is handed out."""
    per_cpu, per_node = _asked_memory(ledger, job)
    return per_node or per_cpu * cpus or node.usable_memory_mb


def _asked_memory(ledger: Ledger, job: Job) -> tuple[int, int]:
    """Return the memory of each CPU and of each node that a job asks for, or gets by default; 0: not so."""
    spec = job.spec
    if spec.memory_mb_per_cpu or spec.memory_mb_per_node is not None:
        return spec.memory_mb_per_cpu or 0, spec.memory_mb_per_node or 0
    for place in (job.partition, ledger.cluster):
        if place.def_mem_per_node:
            return 0, place.def_mem_per_node
        if place.def_mem_per_cpu:
            return place.def_mem_per_cpu, 0
    return 0, 0


def _cpus_for_memory(engine: Engine, job: Job, asked: int) -> int:
    """Return the CPUs of each node that a job gets which asks for `asked`: memory above MaxMemPerCPU costs more."""
    policy, limit = engine.config.policy, _most_memory(engine.ledger, job)
    words = [word.upper() for word in policy.select_parameters if word.upper().startswith("CR_")]
    counted_out = any("MEMORY" in word for word in words) or not words
    if policy.select != "select/cons_tres" or not counted_out or not limit:
        return asked
    per_cpu, per_node = _asked_memory(engine.ledger, job)
    return asked * math.ceil(per_cpu / limit) if per_cpu > limit else max(asked, math.ceil(per_node / limit))


def _most_memory(ledger: Ledger, job: Job) -> int:
    """Return the MaxMemPerCPU that counts for a job; 0: none does."""
    for place in (job.partition, ledger.cluster):
        if place.max_mem_per_node:
            return 0
        if place.max_mem_per_cpu:
            return place.max_mem_per_cpu
    return 0


def more_cpus(engine: Engine, job: Job) -> str:
    """Say that a job gets more CPUs than it asks for, since it asks for much memory; empty: it does not."""
    asked = math.ceil(job.spec.cpus / job.size)
    given = _cpus_for_memory(engine, job, asked)
    if given == asked:
        return ""
    per_cpu, per_node = _asked_memory(engine.ledger, job)
    wants = f"{per_cpu:,} MB for each CPU" if per_cpu else f"{per_node:,} MB of each node"
    where = " on each node" if job.size > 1 else ""
    return (
        f"it wants {wants}, and MaxMemPerCPU is {_most_memory(engine.ledger, job):,} MB: "
        f"it gets {counted(given, 'CPU')} instead of {asked:,}{where}"
    )


# ------------------------------------------------------------------------------ what holds it, and what to try
def _notes(ledger: Ledger, short: _Short, stopping: set[str]) -> Mapping[str, str]:
    return {} if short.what in (_CPUS, _WHOLE) else _keepers(ledger, short.holders, stopping)


def _keepers(ledger: Ledger, holders: Iterable[str], stopping: set[str]) -> Mapping[str, str]:
    """Return what is to be said of holders of something that suspended jobs keep."""
    found = {}
    for job_id in holders:
        if _is_stopped(ledger, job_id):
            found[job_id] = ", suspended, which keeps it"
        elif job_id in stopping:
            found[job_id] = ", which would keep it while suspended"
    return found


def _leaders(ledger: Ledger, seen: Sequence[_Short], decision: Decision) -> Iterator[str]:
    """Yield that only a leader's nodes count as freed where its other components are in the way."""
    holders = {job for each in seen for job in each.holders}
    for job_id, _ in decision.candidates:
        leader = ledger.jobs.get(job_id)
        if leader is None or leader.spec.het_id is None:
            continue
        parts = [each.id for each in ledger.components(leader) if each.id in holders and each.spec.het_offset]
        if parts:
            yield (
                f"{job_id} stands for its whole heterogeneous job, but only the nodes of this leader count as freed: "
                f"those of {', '.join(parts)} do not"
            )


def _proposed(words: str, change: str, *, native: bool) -> str:
    """Return what to try, in the words of the site's file.

    :param words: of slurm.conf.
    :param native: whether the file is makeway's own.
    """
    return f"try --compare {change}" if native else f"try {words} (--compare {change})"


def _to_try(
    engine: Engine, job: Job, seen: Sequence[_Short], stopping: set[str], *, native: bool
) -> Iterator[str]:
    ledger, policy = engine.ledger, engine.config.policy
    if policy.select not in ("select/linear", "select/cons_tres"):
        return
    bare = job.spec.memory_mb_per_node is None and job.spec.memory_mb_per_cpu is None
    nodes = [node for node in ledger.cluster.nodes if job.partition.nodes >> node.index & 1]
    if bare and any(each.what == _MEMORY and each.wanted >= each.total for each in seen):
        share = min(node.usable_memory_mb // node.cpus for node in nodes)
        yield (
            "it asks for no memory, and no default gives it any, so that it wants all of a node: "
            + _proposed(f"DefMemPerCPU={share}", f"cluster.def_mem_per_cpu={share}", native=native)
        )
    if (
        policy.select == "select/linear"
        and job.spec.exclusive is None
        and any(each.what == _WHOLE for each in seen)
    ):
        most = max(node.cpus for node in nodes)
        if job.spec.cpus < job.size * most:
            yield (
                f"select/linear hands out whole nodes, and it wants {job.spec.cpus:,} of {job.size * most:,} CPUs: "
                + _proposed(
                    "SelectType=select/cons_tres with SelectTypeParameters=CR_CPU, or with DefMemPerCPU",
                    "'policy.select=select/cons_tres; policy.select_parameters=CR_CPU'",
                    native=native,
                )
            )
    kept = [
        ledger.jobs[holder].partition.name
        for each in seen
        if each.what not in (_CPUS, _WHOLE)
        for holder in each.holders
        if holder in ledger.jobs and (holder in stopping or _is_stopped(ledger, holder))
    ]
    for name in dict.fromkeys(kept):
        yield (
            "suspended jobs keep all but their CPUs: "
            + _proposed(
                f"PreemptMode=REQUEUE for partition {name}",
                f"partition.{name}.preempt_mode=requeue",
                native=native,
            )
        )


def _licences(ledger: Ledger, job: Job) -> Iterator[str]:
    for name, wanted in job.spec.licenses.items():
        free, holders = ledger.licenses_free.get(name, 0), ledger.license_holders.get(name, {})
        if free < wanted and holders:
            amounts = {each: f" ({amount:,})" for each, amount in holders.items()}
            yield f"licence {name}: {_held_by(amounts, _keepers(ledger, holders, set()))}"


def _is_stopped(ledger: Ledger, job_id: str) -> bool:
    job = ledger.jobs.get(job_id)
    return job is not None and job.state is JobState.SUSPENDED


def _plan_licences(engine: Engine, *, native: bool) -> Iterator[str]:
    if engine.config.scheduler.type == "backfill" and not engine.clockwork.bf_licenses:
        yield (
            "backfill keeps no licences for it, so that jobs that want fewer may overtake it: "
            + _proposed(
                "SchedulerParameters=bf_licenses", "scheduler.clockwork.bf_licenses=true", native=native
            )
        )


def _partition_qos(job: Job, decision: Decision) -> Iterator[str]:
    """Yield that a limit is that of the partition's QOS, which a job with OverPartQOS may take for lifted."""
    name = job.partition.qos
    if name and job.qos is not None and "OverPartQOS" in job.qos.flags and f"(QOS {name})" in decision.detail:
        yield (
            f"QOS {name} is that of partition {job.partition.name}: OverPartQOS of QOS {job.qos.name} overrides only "
            "limits that it sets itself"
        )

"""Check memory as a consumable.

slurm-gang-and-select 4.1.5, 4.2.5 and 4.2.6; slurm-preemption 5.1.3, 5.2.4 and 6.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from makeway.model import Cluster, Partition, PreemptMode, Sharing
from makeway_slurm.check.facts import Facts, Finding, names, path_of

SUSPEND = PreemptMode.SUSPEND


def untracked(facts: Facts) -> Iterator[Finding]:
    """Recommend to track memory where jobs share nodes by turns."""
    if facts.gang and facts.select and not facts.memory:
        yield Finding(
            level="warning",
            where="policy.select_parameters",
            message="GANG without memory tracking: suspended jobs stay in memory that nothing "
            "counts; add CR_Memory or CR_..._Memory",
            section="slurm-preemption 6.6",
        )


def no_default(facts: Facts) -> Iterator[Finding]:
    """Warn where a job that asks for no memory gets that of whole nodes."""
    if not facts.memory or not _shares_nodes(facts):
        return
    bare = [each for each in facts.partitions if not _has(facts.cluster, each, "def")]
    if bare:
        why = (
            f"for partition {names(bare)}: a job that asks for no memory "
            "gets all of its nodes, so that no other can share them or be laid over it; "
        )
        share = _share_of_a_cpu(facts)
        given = f"={share} gives each CPU its share" if share else " would give it some"
        change = f" (--compare cluster.def_mem_per_cpu={share})" if share else ""
        yield Finding(
            level="warning",
            where="policy.select_parameters",
            message=f"no def_mem_per_... {why}def_mem_per_cpu{given}{change}",
            foreign=f"no DefMemPer... {why}DefMemPerCPU{given}{change}",
            section="slurm-gang-and-select 4.1.5",
        )


def _share_of_a_cpu(facts: Facts) -> int:
    """Return the memory that each CPU of the node with the least for each has; 0: it is not known."""
    return min((node.memory_mb // node.cpus for node in facts.cluster.nodes if node.memory_mb > 1), default=0)


def whole_nodes(facts: Facts) -> Iterator[Finding]:
    """Say that select/linear gives a job of one CPU all of a node, where nodes have several."""
    shared = any(partition.oversubscribe.sharing is not Sharing.NO for partition in facts.partitions)
    if facts.select != "linear" or shared or all(node.cpus < 2 for node in facts.cluster.nodes):
        return
    most = max(node.cpus for node in facts.cluster.nodes)
    why = f"a job gets whole nodes, though it may want one of {most} CPUs; for small jobs try "
    change = "--compare 'policy.select=select/cons_tres; policy.select_parameters=CR_CPU'"
    yield Finding(
        level="note",
        where="policy.select",
        message=f"{why}{change}",
        foreign=f"{why}SelectType=select/cons_tres with SelectTypeParameters=CR_CPU ({change})",
        section="slurm-gang-and-select 4.1",
    )


def no_maximum(facts: Facts) -> Iterator[Finding]:
    """Advise to cap memory where it decides which jobs can share."""
    if not (facts.memory and facts.gang and _shares_nodes(facts)):
        return
    bare = [each for each in facts.partitions if not _has(facts.cluster, each, "max")]
    if bare:
        why = f"for partition {names(bare)}: one job may ask for so much that no other can share its nodes"
        yield Finding(
            level="note",
            where="policy.select_parameters",
            message=f"no max_mem_per_... {why}",
            foreign=f"no MaxMemPer... {why}",
            section="slurm-gang-and-select 4.1.5",
        )


def _shares_nodes(facts: Facts) -> bool:
    """Say whether a second job could come to a node at all."""
    shares = any(partition.oversubscribe.count > 1 for partition in facts.partitions)
    return facts.select == "cons_tres" or (facts.select == "linear" and shares)


def _has(cluster: Cluster, partition: Partition, stem: str) -> bool:
    keys = (f"{stem}_mem_per_cpu", f"{stem}_mem_per_node")
    return any(getattr(where, key) is not None for where in (partition, cluster) for key in keys)


def both_units(facts: Facts) -> Iterator[Finding]:
    """Warn of limits per CPU and per node side by side."""
    for path, holder in _holders(facts):
        for stem, word in (("def", "DefMemPer"), ("max", "MaxMemPer")):
            cpu = getattr(holder, f"{stem}_mem_per_cpu")
            if cpu is not None and getattr(holder, f"{stem}_mem_per_node") is not None:
                yield Finding(
                    level="warning",
                    where=f"{path}.{stem}_mem_per_cpu",
                    message=f"{word}CPU and {word}Node exclude each other; the one per node counts",
                    section="slurm-gang-and-select 4.1.5",
                )


def default_over_maximum(facts: Facts) -> Iterator[Finding]:
    """Warn of defaults that their own maximum forbids."""
    for path, holder in _holders(facts):
        for unit in ("cpu", "node"):
            default = _effective(facts, holder, f"def_mem_per_{unit}")
            most = _effective(facts, holder, f"max_mem_per_{unit}")
            if default is not None and most is not None and default > most:
                yield Finding(
                    level="warning",
                    where=f"{path}.def_mem_per_{unit}",
                    message=f"the default of {default} MB is more than the maximum of {most} MB: "
                    "jobs that ask for no memory get more CPUs, or are refused",
                    section="slurm-gang-and-select 4.1.5",
                )


def _holders(facts: Facts) -> Iterator[tuple[str, Cluster | Partition]]:
    yield "cluster", facts.cluster
    for partition in facts.partitions:
        keys = ("def_mem_per_cpu", "def_mem_per_node", "max_mem_per_cpu", "max_mem_per_node")
        if any(getattr(partition, key) is not None for key in keys):
            yield path_of(partition), partition


def _effective(facts: Facts, holder: Cluster | Partition, key: str) -> int | None:
    own: int | None = getattr(holder, key)
    inherited: int | None = getattr(facts.cluster, key)
    return own if own is not None else inherited


def suspended_memory(facts: Facts) -> Iterator[Finding]:
    """Say that suspension gives no memory back, and what select/linear makes of it."""
    if not (facts.gang and facts.preempts and facts.memory and SUSPEND in facts.actions()):
        return
    if facts.select == "linear":
        yield Finding(
            level="warning",
            where="policy.select_parameters",
            message="select/linear counts the memory of suspended victims as free: more is handed "
            "out than nodes have",
            section="slurm-preemption 5.1.3, 10.1 no. 4",
        )
    elif facts.select == "cons_tres":
        why = "suspended victims keep their memory and GRES: a preemptor that needs these waits"
        other = _other_mode(facts)
        change = f"--compare partition.{other}.preempt_mode=requeue"
        yield Finding(
            level="note",
            where="policy.preempt_mode",
            message=f"{why}; {change} frees them" if other else why,
            foreign=f"{why}; PreemptMode=REQUEUE for partition {other!r} frees them ({change})"
            if other
            else why,
            section="slurm-preemption 5.2.4",
        )


def _other_mode(facts: Facts) -> str:
    """Return the partition whose jobs to requeue where suspended ones keep GRES; empty: no node of theirs has any."""
    counted = sum(1 << node.index for node in facts.cluster.nodes if node.gres)
    named = [
        partition.name
        for partition in facts.partitions
        if partition.nodes & counted
        and partition.preempt_mode is not None
        and partition.preempt_mode.action is SUSPEND
    ]
    return named[0] if named else ""


def suspended_deadline(facts: Facts) -> Iterator[Finding]:
    """Warn that select/linear lets suspension eat into the time limit."""
    suspends = facts.gang and facts.preempts and SUSPEND in facts.actions()
    if facts.select == "linear" and suspends:
        yield Finding(
            level="warning",
            where="policy.preempt_mode",
            message="under select/linear a suspended victim keeps its deadline and is killed at "
            "it, although it has not had its time",
            section="slurm-preemption 4.6, 10.1 no. 4",
        )


def linear_requests(facts: Facts) -> Iterator[Finding]:
    """Warn of nodes on which select/linear misjudges jobs that ask for no memory."""
    bare = [each for each in facts.partitions if not _has(facts.cluster, each, "def")]
    if facts.select != "linear" or not facts.memory or not bare:
        return
    if any(node.mem_spec_limit_mb for node in facts.cluster.nodes):
        yield Finding(
            level="warning",
            where="policy.select_parameters",
            message="MemSpecLimit without DefMemPer...: under select/linear a job that asks for no "
            "memory never fits on such a node",
            section="slurm-gang-and-select 4.2.5",
        )
    if len({node.memory_mb for node in facts.cluster.nodes}) > 1:
        yield Finding(
            level="note",
            where="policy.select_parameters",
            message="nodes differ in RealMemory: what a job that asks for no memory gets is fixed "
            "by the first node looked at",
            section="slurm-gang-and-select 4.2.5",
        )


MEMORY: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    untracked,
    no_default,
    whole_nodes,
    no_maximum,
    both_units,
    default_over_maximum,
    suspended_memory,
    suspended_deadline,
    linear_requests,
)

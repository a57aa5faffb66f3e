"""Check OverSubscribe, gang and select together.

slurm-preemption 5.2 and 6.6; slurm-gang-and-select 0.3, 1.2, 1.5, 4.1.2, 4.3.3, 4.3.4, 4.3.9, 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from makeway.model import Partition, PreemptMode, Sharing
from makeway_slurm.check.facts import (
    KILL,
    Facts,
    Finding,
    Level,
    by_second,
    names,
    partition_select_is_ignored,
    path_of,
    row_kind,
)

SUSPEND, OFF = PreemptMode.SUSPEND, PreemptMode.OFF

MAY_OVERLAY: Mapping[str, frozenset[str]] = {
    "NO": frozenset(("NO", "YES")),
    "YES": frozenset(("NO", "YES")),
    "FORCE:1": frozenset(("NO", "YES", "FORCE:1", "FORCE:n")),
    "FORCE:n": frozenset(("FORCE:1", "FORCE:n")),
    "EXCLUSIVE": frozenset(),
}
"""OverSubscribe of a running job's partition -> that of jobs that may be laid over it (5.2.4)."""


# ------------------------------------------------------------------------------- select parameters
def select_parameters(facts: Facts) -> Iterator[Finding]:
    """Hold SelectTypeParameters against SelectType."""
    given = facts.config.policy.select_parameters
    if facts.select == "cons_tres" and facts.unit is None:
        yield Finding(
            level="error",
            where="policy.select_parameters",
            message="select/cons_tres needs CR_CPU, CR_Core or CR_Socket, alone or with _Memory",
            section="slurm-preemption 6.6",
        )
    elif facts.select == "cons_tres" and not given:
        yield Finding(
            level="note",
            where="policy.select_parameters",
            message="none given; Slurm takes CR_Core_Memory",
            section="slurm-gang-and-select 0.3",
        )
    elif facts.select == "linear" and facts.unit is not None:
        yield Finding(
            level="warning",
            where="policy.select_parameters",
            message="select/linear hands out whole nodes; only CR_Memory has a meaning for it",
            section="slurm-gang-and-select 4.6",
        )


def partition_parameters(facts: Facts) -> Iterator[Finding]:
    """Notice SelectTypeParameters of partitions that have no effect (slurm-gang-and-select 0.3 no. 7)."""
    for partition in facts.partitions:
        words = partition.select_parameters
        if not words or not facts.select:
            continue
        reason = partition_select_is_ignored(facts.config.policy.select_parameters, words)
        if reason is not None:
            yield Finding(
                level="warning",
                where=path_of(partition, "select_parameters"),
                message=f"ignored: {reason}",
                section="slurm-gang-and-select 0.3 no. 7",
            )


def counted_cpus(facts: Facts) -> Iterator[Finding]:
    """Say what CR_CPU means to gang in this release."""
    if not (facts.gang and facts.select == "cons_tres" and facts.unit == "cpu"):
        return
    task = facts.cluster.attributes.get("task_plugin", "task/none")
    counts = facts.rule["gang_counts_cpus"] and task == "task/none"
    how = "adds up CPUs per node" if counts else "compares cores, as with CR_Core"
    yield Finding(
        level="note",
        where="policy.select_parameters",
        message=f"with CR_CPU gang {how} here; it depends on release (23.11) and TaskPlugin",
        section="slurm-gang-and-select 1.2, slurm-preemption 11 no. 3",
    )


# -------------------------------------------------------------------------- suspension across tiers
def cannot_overlay(facts: Facts) -> Iterator[Finding]:
    """Find preemptors that wait instead of suspending: OverSubscribe stands in the way (5.2.4)."""
    if not facts.overlays:
        return
    stuck = (
        (low, high)
        for low, high in facts.below
        if facts.action(low) is SUSPEND and not _may_overlay(facts, low, high)
    )
    for high, lows in by_second(stuck):
        yield Finding(
            level="warning",
            where=path_of(high, "oversubscribe"),
            message=f"jobs of {high.name!r} ({row_kind(high)}) {_why_stuck(high)} while jobs of "
            f"{names(lows)} ({_kinds(lows)}) are there; use FORCE:1 everywhere",
            section="slurm-preemption 5.2.4, slurm-gang-and-select 4.3.3",
        )


def _may_overlay(facts: Facts, low: Partition, high: Partition) -> bool:
    if row_kind(low) == "YES" and facts.before("24.05"):
        return False
    return row_kind(high) in MAY_OVERLAY[row_kind(low)]


def _why_stuck(high: Partition) -> str:
    if row_kind(high) == "EXCLUSIVE":
        return "cannot preempt by suspension and wait"
    return "never start"


def _kinds(partitions: list[Partition]) -> str:
    return ", ".join(dict.fromkeys(row_kind(partition) for partition in partitions))


def shares_instead(facts: Facts) -> Iterator[Finding]:
    """Find preemptors that start on cores in use: jobs of FORCE partitions are available to share (5.2.2)."""
    if facts.gang or facts.kind != "partition_prio" or facts.select != "cons_tres":
        return
    shared = (
        (low, high)
        for low, high in facts.below
        if low.oversubscribe.sharing is high.oversubscribe.sharing is Sharing.FORCE
        and facts.action(low) is not OFF
    )
    for high, lows in by_second(shared):
        yield Finding(
            level="warning",
            where=path_of(high, "oversubscribe"),
            message=f"jobs of {high.name!r} start on the cores of {names(lows)} and displace none: "
            "FORCE shares them, and without GANG no jobs take turns; use NO",
            section="slurm-preemption 5.2.2",
        )


def het_beside(facts: Facts) -> Iterator[Finding]:
    """Say that gang leaves heterogeneous jobs alone: others are laid over them, and both run.

    The rule is slurm-gang-and-select 1.1.
    """
    if not facts.overlays:
        return
    overlaid = [(low, high) for low, high in facts.below if _may_overlay(facts, low, high)]
    for low, high in overlaid[:1]:
        yield Finding(
            level="note",
            where="policy.preempt_mode",
            message=f"jobs of {high.name!r} start on the cores of heterogeneous jobs of {low.name!r} and displace "
            "none: gang keeps no account of them, so both run at once",
            section="slurm-gang-and-select 1.1",
        )


def no_over_no(facts: Facts) -> Iterator[Finding]:
    """Contradict the documentation: NO does not disable preemption (10.1 no. 3)."""
    if not facts.overlays:
        return
    pairs = [
        (low, high)
        for low, high in facts.below
        if facts.action(low) is SUSPEND and row_kind(low) == row_kind(high) == "NO"
    ]
    for low, high in pairs[:1]:
        yield Finding(
            level="note",
            where=path_of(low, "oversubscribe"),
            message=f"jobs of {high.name!r} do suspend jobs of {low.name!r}, although the "
            "documentation says that OverSubscribe=NO disables preemption",
            section="slurm-preemption 5.2.4, 10.1 no. 3",
        )


# ------------------------------------------------------------------------- partitions of one tier
def same_tier(facts: Facts) -> Iterator[Finding]:
    """Find partitions of one tier whose jobs run at once: no turns are taken between them."""
    if not facts.gang or not facts.select:
        return
    pairs = [(one, other) for one, other in facts.beside if _run_at_once(facts, one, other)]
    for other, ones in by_second(pairs):
        yield Finding(
            level="warning",
            where=path_of(other),
            message=f"same tier and common nodes as {names(ones)}: with GANG their jobs run on the "
            "same resources at the same time, as turns are taken inside one partition only",
            section="slurm-gang-and-select 4.3.9, slurm-preemption 4.6",
        )


def _run_at_once(facts: Facts, one: Partition, other: Partition) -> bool:
    """Say whether select lets jobs of two partitions of one tier onto the same resources."""
    kinds = {row_kind(one), row_kind(other)}
    if facts.select == "linear":  # running jobs of all partitions count there (slurm-gang-and-select 4.2.2)
        return kinds == {"FORCE:n"}
    return kinds <= {"NO", "YES"} or kinds <= {"FORCE:1", "FORCE:n"}


def shut_out(facts: Facts) -> Iterator[Finding]:
    """Find partitions of one tier whose jobs do not mix on a node under cons_tres."""
    if facts.select != "cons_tres":
        return
    pairs = [(one, other) for one, other in facts.beside if _do_not_mix(one, other)]
    for other, ones in by_second(pairs):
        yield Finding(
            level="warning",
            where=path_of(other),
            message=f"same tier and common nodes as {names(ones)}: FORCE jobs wait for nodes with "
            "a job of a NO or YES partition, and such jobs wait where FORCE:n jobs run",
            section="slurm-gang-and-select 4.3.3",
        )


def _do_not_mix(one: Partition, other: Partition) -> bool:
    kinds = {row_kind(one), row_kind(other)}
    return bool(kinds & {"NO", "YES"}) and bool(kinds & {"FORCE:1", "FORCE:n"})


# ------------------------------------------------------------------------------ single partitions
@attrs.frozen
class _Row:
    """One surprise that a partition's OverSubscribe has in store."""

    applies: Callable[[Facts, Partition], bool]
    level: Level
    message: str
    section: str


def _shares(partition: Partition) -> bool:
    return partition.oversubscribe.count > 1


def _forces(partition: Partition) -> bool:
    return row_kind(partition) == "FORCE:n"


def _has_higher(facts: Facts, partition: Partition) -> bool:
    return any(low is partition for low, _ in facts.below)


PARTITION_ROWS = (
    _Row(
        lambda f, p: f.gang and f.select == "cons_tres" and row_kind(p) == "YES",
        "warning",
        "with GANG, YES:n works as FORCE:n: jobs share without having asked for it",
        "slurm-gang-and-select 4.3.4",
    ),
    _Row(
        lambda f, p: not f.gang and bool(f.select) and _forces(p),
        "warning",
        "without GANG no jobs take turns: up to n jobs run on the same resources at the same time",
        "slurm-gang-and-select 4.3.4",
    ),
    _Row(
        lambda f, p: bool(f.select) and _forces(p),
        "note",
        "FORCE:n shares even jobs that ask for --exclusive",
        "slurm-gang-and-select 4.1.2",
    ),
    _Row(
        lambda f, p: f.select == "linear" and row_kind(p) in ("YES", "FORCE:1"),
        "note",
        "under select/linear these jobs have their nodes to themselves unless they ask to share",
        "slurm-gang-and-select 4.1.2",
    ),
    _Row(
        lambda f, p: f.overlays and _shares(p) and f.action(p) in KILL and _has_higher(f, p),
        "warning",
        "a job that merely loses its time slice is requeued or cancelled while any job of a higher "
        "tier runs, even on other nodes",
        "slurm-gang-and-select 1.5",
    ),
    _Row(
        lambda f, p: (
            f.overlays and _shares(p) and f.action(p) is OFF and not f.rule["off_partition_keeps_rows"]
        ),
        "warning",
        "PreemptMode=OFF takes the partition's own rows away before 23.11.2: its jobs wait instead "
        "of taking turns",
        "slurm-preemption 5.2.2 step 4; 11 no. 6",
    ),
    _Row(
        lambda f, p: (
            f.gang
            and f.kind == "partition_prio"
            and f.select == "linear"
            and _forces(p)
            and f.action(p) is OFF
            and any(low is p and _forces(high) for low, high in f.below)
        ),
        "warning",
        "PreemptMode=OFF does not protect here: select/linear places jobs of a higher FORCE:n "
        "partition on these nodes, and gang suspends the lower ones",
        "slurm-gang-and-select 4.4.6",
    ),
)


def partition_sharing(facts: Facts) -> Iterator[Finding]:
    """Look at the partitions' OverSubscribe; those with the same surprise share a finding."""
    for row in PARTITION_ROWS:
        found = [partition for partition in facts.partitions if row.applies(facts, partition)]
        if found:
            yield Finding(
                level=row.level,
                where=path_of(found[0], "oversubscribe"),
                message=f"{names(found)}: {row.message}",
                section=row.section,
            )


def counts_too_low(facts: Facts) -> Iterator[Finding]:
    """Notice a YES that lets no jobs share."""
    for partition, table in zip(facts.partitions, facts.config.partition, strict=True):
        if table.oversubscribe.upper().startswith("YES") and not _shares(partition):
            yield Finding(
                level="warning",
                where=path_of(partition, "oversubscribe"),
                message=f"{table.oversubscribe} is taken as NO; the least number for YES is 2",
                section="slurm-preemption 6.3",
            )


# ---------------------------------------------------------------------------------- gang by itself
def gang_without_plugin(facts: Facts) -> Iterator[Finding]:
    """Warn of suspension across tiers although there is no PreemptType (slurm-gang-and-select 4.4.7)."""
    if not (facts.gang and facts.kind == "none"):
        return
    for high, lows in by_second(facts.below):
        yield Finding(
            level="warning",
            where=path_of(high, "priority_tier"),
            message=f"GANG alone: jobs of {high.name!r} suspend those of {names(lows)} on common "
            "nodes although there is no PreemptType",
            section="slurm-gang-and-select 4.4.7, slurm-preemption 1.1",
        )


def gang_without_work(facts: Facts) -> Iterator[Finding]:
    """Notice GANG where no jobs ever take turns."""
    if not facts.gang or not facts.select or any(_shares(p) for p in facts.partitions):
        return
    if facts.preempts or facts.below or facts.beside:
        return
    yield Finding(
        level="note",
        where="policy.preempt_mode",
        message="GANG has nothing to do: no partition lets more than one job onto a resource",
        section="slurm-gang-and-select 4.5",
    )


# -------------------------------------------------------------------------------- suspension by QOS
def _qos_suspends(facts: Facts) -> bool:
    actions = facts.actions() or {facts.mode.action}
    return facts.kind == "qos" and facts.gang and SUSPEND in actions


def qos_suspend(facts: Facts) -> Iterator[Finding]:
    """Say what preempt/qos with SUSPEND,GANG does to partitions (4.6, 5.2.5, 6.6)."""
    if not _qos_suspends(facts):
        return
    if facts.select == "linear":
        yield Finding(
            level="warning",
            where="policy.preempt_mode",
            message="preempt/qos with SUSPEND,GANG is documented as unsupported by select/linear",
            section="slurm-preemption 6.6",
        )
    if facts.select == "cons_tres":
        yield from _unreachable_rows(facts)
    yield Finding(
        level="note",
        where="policy.preempt_mode",
        message="inside one partition preemptor and victim take turns, the victim first; the "
        "preemptor does not simply run",
        section="slurm-preemption 4.6",
    )
    yield from _qos_across(facts)


def _unreachable_rows(facts: Facts) -> Iterator[Finding]:
    for partition in facts.partitions:
        if partition.oversubscribe.sharing is not Sharing.FORCE:
            yield Finding(
                level="warning",
                where=path_of(partition, "oversubscribe"),
                message=f"{row_kind(partition)}: jobs of this partition cannot suspend one another "
                "by QOS, as the extra row is for FORCE only; use FORCE:1",
                section="slurm-preemption 5.2.5, slurm-gang-and-select 4.3.7",
            )


def _qos_across(facts: Facts) -> Iterator[Finding]:
    for high, lows in by_second(facts.below):
        yield Finding(
            level="note",
            where=path_of(high, "priority_tier"),
            message=f"a preemptor in {names(lows)} is placed and then suspended under jobs of the "
            f"higher tier in {high.name!r}",
            section="slurm-preemption 4.6",
        )


SHARING = (
    select_parameters,
    partition_parameters,
    counted_cpus,
    cannot_overlay,
    shares_instead,
    het_beside,
    no_over_no,
    same_tier,
    shut_out,
    partition_sharing,
    counts_too_low,
    gang_without_plugin,
    gang_without_work,
    qos_suspend,
)

"""Check preempt types and modes: slurm-preemption 6.1 to 6.4 with the traps of 3.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from makeway.model import ModeFlag, ModeSetting, Partition, PreemptMode, Qos
from makeway_slurm.check.facts import (
    KILL,
    Facts,
    Finding,
    Level,
    action_of,
    names,
    path_of,
    qos_path,
)

OFF, SUSPEND, CHECKPOINT = PreemptMode.OFF, PreemptMode.SUSPEND, PreemptMode.CHECKPOINT
GANG, WITHIN, PRIORITY = ModeFlag.GANG, ModeFlag.WITHIN, ModeFlag.PRIORITY


# ---------------------------------------------------------------------------------- the cluster
@attrs.frozen
class _Row:
    """One row of 6.2."""

    applies: Callable[[Facts], bool]
    level: Level
    message: str
    """``{mode}`` and ``{preempt}`` stand for what is configured."""
    section: str = "slurm-preemption 6.2"


def _off(facts: Facts) -> bool:
    return action_of(facts.mode) is OFF


CLUSTER_ROWS = (
    _Row(
        lambda f: bool(f.kind) and f.mode == ModeSetting(action=SUSPEND),
        "error",
        "SUSPEND needs GANG, which resumes the victims: write SUSPEND,GANG",
    ),
    _Row(
        lambda f: f.kind == "none" and not (_off(f) and f.mode.flags <= {GANG}),
        "error",
        "PreemptMode={mode} without a PreemptType: type and mode are incompatible; "
        "only OFF or GANG can stand alone",
    ),
    _Row(
        lambda f: f.preempts and _off(f),
        "error",
        "{preempt} with PreemptMode={mode}: type and mode are incompatible; "
        "add SUSPEND,GANG, REQUEUE or CANCEL",
    ),
    _Row(
        lambda f: bool(f.kind) and PRIORITY in f.mode.flags and f.before("25.05"),
        "error",
        "PRIORITY is unknown before Slurm 25.05",
        "slurm-preemption 6.1",
    ),
    _Row(
        lambda f: bool(f.kind) and f.mode.action is CHECKPOINT,
        "error",
        "Slurm 20.02 dropped CHECKPOINT; use REQUEUE or CANCEL",
        "slurm-preemption 6.1",
    ),
    _Row(
        lambda f: f.preempts and f.mode.action is SUSPEND and GANG not in f.mode.flags,
        "warning",
        "PreemptMode={mode} is accepted although SUSPEND lacks GANG: victims are killed by "
        "select/linear and out of reach for cons_tres",
        "slurm-preemption 6.2, 10.1 no. 11",
    ),
    _Row(
        lambda f: f.kind == "partition_prio" and f.mode.action in KILL and WITHIN in f.mode.flags,
        "warning",
        "WITHIN is not stripped by preempt/partition_prio, so PreemptMode={mode} matches no mode: "
        "cons_tres never removes such victims",
        "slurm-preemption 6.2, 3.1",
    ),
)


def cluster_mode(facts: Facts) -> Iterator[Finding]:
    """Hold PreemptType against PreemptMode; of several errors the first says enough."""
    refused = False
    for row in CLUSTER_ROWS:
        if row.applies(facts) and not (refused and row.level == "error"):
            refused = refused or row.level == "error"
            message = row.message.format(mode=_spelled(facts.mode), preempt=_type(facts))
            yield Finding(
                level=row.level,
                where="policy.preempt_mode",
                message=message,
                section=row.section,
            )


def _type(facts: Facts) -> str:
    return f"PreemptType={facts.config.policy.preempt}"


def _spelled(mode: ModeSetting) -> str:
    """Write a mode as slurm.conf does."""
    return ",".join(mode.words()).upper() or "OFF"


def gang_plugin(facts: Facts) -> Iterator[Finding]:
    """Compare the gang plugin with the GANG flag, which alone counts for Slurm."""
    if facts.kind and facts.config.policy.gang and not facts.gang:
        yield Finding(
            level="warning",
            where="policy.gang",
            message="Slurm takes turns only with GANG among the preempt modes",
            section="slurm-gang-and-select 0.3",
        )


# -------------------------------------------------------------------------------- the partitions
@attrs.frozen
class _PartitionRow:
    """One row of 6.3 (or a trap of 3.1) about a partition's own PreemptMode."""

    applies: Callable[[Facts, Partition, ModeSetting], bool]
    level: Level
    message: str
    section: str = "slurm-preemption 6.3"


def _by_partition(facts: Facts) -> bool:
    return facts.kind == "partition_prio"


PARTITION_ROWS = (
    _PartitionRow(
        lambda f, p, m: f.kind in ("qos", "none"),
        "warning",
        "the partition's PreemptMode is ignored: only preempt/partition_prio looks at it",
    ),
    _PartitionRow(
        lambda f, p, m: bool(f.kind) and GANG in m.flags,
        "warning",
        "GANG is an option of the cluster: on a partition it is dropped since 24.11 and has no effect before",
        "slurm-preemption 6.3, slurm-gang-and-select 0.3 no. 3",
    ),
    _PartitionRow(
        lambda f, p, m: bool(f.kind) and m.action is CHECKPOINT,
        "error",
        "Slurm 20.02 dropped CHECKPOINT; use REQUEUE or CANCEL",
        "slurm-preemption 6.1",
    ),
    _PartitionRow(
        lambda f, p, m: bool(f.kind) and PRIORITY in m.flags and f.before("25.05"),
        "error",
        "PRIORITY is unknown before Slurm 25.05",
        "slurm-preemption 6.1",
    ),
    _PartitionRow(
        lambda f, p, m: _by_partition(f) and m.action is SUSPEND and not f.gang,
        "warning",
        "SUSPEND without GANG at cluster level: victims are killed by select/linear and out of "
        "reach for cons_tres",
        "slurm-preemption 6.3, 3.3",
    ),
    _PartitionRow(
        lambda f, p, m: _by_partition(f) and m.action is OFF and not m.flags,
        "note",
        "jobs of this partition are never preempted (CLUSTER means the same here; leave "
        "PreemptMode out to inherit); they may still preempt others",
        "slurm-preemption 6.3, 3.1",
    ),
    _PartitionRow(
        lambda f, p, m: _by_partition(f) and action_of(m) is OFF and bool(m.flags - {GANG}),
        "warning",
        "a mode of flags alone does not inherit the cluster's action: the jobs become candidates "
        "that nothing can remove",
        "slurm-preemption 3.1, 10.1 no. 10",
    ),
    _PartitionRow(
        lambda f, p, m: _by_partition(f) and m.action in (*KILL, SUSPEND) and WITHIN in m.flags,
        "warning",
        "WITHIN belongs to preempt/qos and is not stripped here, so the mode matches none: "
        "cons_tres never removes such victims",
        "slurm-preemption 3.1, 10.1 no. 10",
    ),
)


def partition_modes(facts: Facts) -> Iterator[Finding]:
    """Look at each partition that has a mode of its own."""
    for partition in facts.partitions:
        mode = partition.preempt_mode
        if mode is None:
            continue
        for row in PARTITION_ROWS:
            if row.applies(facts, partition, mode):
                yield Finding(
                    level=row.level,
                    where=path_of(partition, "preempt_mode"),
                    message=row.message,
                    section=row.section,
                )


def no_tiers(facts: Facts) -> Iterator[Finding]:
    """Notice that partition_prio has nothing to preempt."""
    if facts.kind != "partition_prio":
        return
    if any(facts.action(low) is not OFF for low, _ in facts.below):
        return
    yield Finding(
        level="warning",
        where="policy.preempt",
        message="no job can preempt: that takes two partitions on common nodes with different "
        "PriorityTier, the lower one not OFF",
        section="slurm-preemption 1.3",
    )


# ----------------------------------------------------------------------------------------- the QOS
@attrs.frozen
class _QosRow:
    """One row of 6.4 (or a trap of 3.1) about a QOS's own PreemptMode."""

    applies: Callable[[Facts, Qos, ModeSetting], bool]
    level: Level
    message: str
    section: str = "slurm-preemption 6.4"


QOS_ROWS = (
    _QosRow(
        lambda f, q, m: f.kind == "qos" and m.action is OFF and not m.flags,
        "warning",
        "OFF on a QOS means the cluster's mode, it protects no job; leave the QOS out of all "
        "Preempt lists instead",
        "slurm-preemption 6.4, 3.1",
    ),
    _QosRow(
        lambda f, q, m: f.kind == "qos" and action_of(m) is OFF and bool(m.flags - {GANG}),
        "warning",
        "a mode of flags alone does not inherit the cluster's action: the jobs become candidates "
        "that nothing can remove; write WITHIN,REQUEUE or the like",
        "slurm-preemption 3.1, 10.1 no. 10",
    ),
    _QosRow(
        lambda f, q, m: f.kind == "qos" and GANG in m.flags,
        "warning",
        "GANG is an option of the cluster and has no effect on a QOS",
        "slurm-preemption 3.1, slurm-gang-and-select 0.3 no. 3",
    ),
    _QosRow(
        lambda f, q, m: f.kind == "qos" and m.action is SUSPEND and not f.gang,
        "warning",
        "SUSPEND without GANG at cluster level: victims are killed or out of reach",
        "slurm-preemption 3.3",
    ),
    _QosRow(
        lambda f, q, m: bool(f.kind) and PRIORITY in m.flags and f.before("25.05"),
        "error",
        "PRIORITY is unknown before Slurm 25.05",
        "slurm-preemption 6.1",
    ),
    _QosRow(
        lambda f, q, m: bool(f.kind) and m.action is CHECKPOINT,
        "error",
        "Slurm 20.02 dropped CHECKPOINT; use REQUEUE or CANCEL",
        "slurm-preemption 6.1",
    ),
)


def qos_modes(facts: Facts) -> Iterator[Finding]:
    """Look at each QOS that has a mode of its own."""
    for qos in facts.cluster.qos:
        mode = qos.preempt_mode
        if mode is None:
            continue
        for row in QOS_ROWS:
            if row.applies(facts, qos, mode):
                yield Finding(
                    level=row.level,
                    where=qos_path(qos, "preempt_mode"),
                    message=row.message,
                    section=row.section,
                )


def idle_qos_rules(facts: Facts) -> Iterator[Finding]:
    """Notice QOS rules that no plugin reads, and a plugin that has none to read."""
    ruled = [qos for qos in facts.cluster.qos if qos.preempt or qos.preempt_mode]
    if facts.kind in ("none", "partition_prio") and ruled:
        yield Finding(
            level="warning",
            where=qos_path(ruled[0], "preempt"),
            message=f"preempt rules of QOS {names(ruled)} are ignored: only preempt/qos reads them",
            section="slurm-preemption 1.3",
        )
    if facts.kind == "qos" and not any(q.preempt for q in ruled) and not _within(facts):
        yield Finding(
            level="warning",
            where="policy.preempt",
            message="no job can preempt: no QOS lists another one, and WITHIN is nowhere in force",
            section="slurm-preemption 1.4",
        )


def _within(facts: Facts) -> bool:
    modes = [facts.mode, *(q.preempt_mode for q in facts.cluster.qos if q.preempt_mode)]
    return any(WITHIN in mode.flags for mode in modes)


def capped_qos_priority(facts: Facts) -> Iterator[Finding]:
    """Notice QOS priorities that the order of candidates cannot tell apart."""
    capped = [qos for qos in facts.cluster.qos if qos.priority > 65535]
    if facts.kind == "qos" and capped:
        yield Finding(
            level="note",
            where=qos_path(capped[0], "priority"),
            message=f"priorities of QOS {names(capped)} count as 65535 where victims are put in order",
            section="slurm-preemption 2.1",
        )


MODES = (
    cluster_mode,
    gang_plugin,
    partition_modes,
    no_tiers,
    qos_modes,
    idle_qos_rules,
    capped_qos_priority,
)

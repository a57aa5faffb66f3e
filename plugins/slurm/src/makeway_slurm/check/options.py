"""Check grace and exempt times, PreemptParameters, requeue and the clock of gang.

slurm-preemption 1.6, 1.7, 1.11, 4.3, 5.4, 6.5, 6.6 and 10.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from makeway.config import build_clockwork
from makeway.model import PreemptMode
from makeway.preemption import PreemptionTable
from makeway.vendors import clockworks
from makeway_slurm.check.facts import (
    GANG_SETTINGS,
    KILL,
    MIN_TIMESLICE,
    TIMESLICE,
    Facts,
    Finding,
    Level,
    names,
    path_of,
    qos_path,
)
from makeway_slurm_rules import rules
from makeway_slurm_rules.vendor import release_of

SUSPEND, REQUEUE = PreemptMode.SUSPEND, PreemptMode.REQUEUE


# ------------------------------------------------------------------------------ PreemptParameters
@attrs.frozen
class _Row:
    """One rule about one key of ``[policy.preemption]`` that is set."""

    key: str
    applies: Callable[[Facts], bool]
    level: Level
    message: str
    section: str


def _is_none(facts: Facts) -> bool:
    return facts.kind == "none"


def _is_overlaid(facts: Facts) -> bool:
    return facts.overlays


_GANG_DECIDES = (
    "ignored under GANG with partition_prio and cons_tres: the preemptor is laid over lower tiers "
    "and no candidates are put in order"
)

OPTION_ROWS = (
    *(
        _Row(key, _is_none, "warning", "ignored: there is no PreemptType", "slurm-preemption 1.1")
        for key in attrs.fields_dict(PreemptionTable)
    ),
    *(
        _Row(key, _is_overlaid, "warning", _GANG_DECIDES, "slurm-preemption 5.2.4, 10.1 no. 8")
        for key in ("youngest_first", "reorder_count", "strict_order", "min_exempt_priority")
    ),
    *(
        _Row(
            key,
            lambda f: f.preempts and f.select == "linear",
            "warning",
            "select/linear ignores it: it reorders exactly once",
            "slurm-preemption 5.1.3, 5.4",
        )
        for key in ("reorder_count", "strict_order")
    ),
    _Row(
        "reclaim_licenses",
        lambda f: f.preempts and f.select == "linear",
        "warning",
        "select/linear never preempts for a licence",
        "slurm-preemption 1.11, 5.4",
    ),
    _Row(
        "reclaim_licenses",
        lambda f: f.preempts and f.actions() == {SUSPEND},
        "warning",
        "suspended jobs keep their licences: only REQUEUE and CANCEL victims give them back",
        "slurm-preemption 1.11",
    ),
    _Row(
        "reclaim_licenses",
        lambda f: not f.rule["reclaim_licenses"],
        "warning",
        "unknown before Slurm 23.02, where licences are never a reason to preempt",
        "slurm-preemption 1.11",
    ),
    _Row(
        "min_exempt_priority",
        lambda f: not f.rule["min_exempt_priority"],
        "warning",
        "unknown before Slurm 23.02",
        "slurm-preemption 1.7, 6.5",
    ),
    _Row(
        "min_exempt_priority",
        lambda f: f.preempts and f.rule["min_exempt_priority"],
        "note",
        "a job of exactly this priority can be preempted, though the documentation says lower only",
        "slurm-preemption 1.7, 10.1 no. 1",
    ),
    _Row(
        "reorder_count",
        lambda f: f.preempts and f.select == "cons_tres",
        "note",
        "there is one reorder more than the number says",
        "slurm-preemption 5.2.3, 10.1 no. 2",
    ),
)


def preempt_options(facts: Facts) -> Iterator[Finding]:
    """Look at each option that differs from its default."""
    table = facts.config.policy.preemption
    default = PreemptionTable()
    for row in OPTION_ROWS:
        if getattr(table, row.key) != getattr(default, row.key) and row.applies(facts):
            yield Finding(
                level=row.level,
                where=f"policy.preemption.{row.key}",
                message=f"{row.key}: {row.message}",
                section=row.section,
            )


# -------------------------------------------------------------------------------------- exempt time
def exempt_time(facts: Facts) -> Iterator[Finding]:
    """Say where PreemptExemptTime does not protect: under GANG the candidates are not asked."""
    if facts.gang and facts.kind == "partition_prio" and facts.select == "linear":
        if facts.config.policy.preemption.exempt_time:
            yield Finding(
                level="note",
                where="policy.preemption.exempt_time",
                message="select/linear keeps to it under SUSPEND,GANG, although the documentation "
                "says that it is ignored",
                section="slurm-preemption 1.6",
            )
        return
    if not facts.overlays:
        return
    globally = bool(facts.config.policy.preemption.exempt_time)
    by_qos = [qos for qos in facts.cluster.qos if qos.exempt_time]
    if not globally and not by_qos:
        return
    where = "policy.preemption.exempt_time" if globally else qos_path(by_qos[0], "exempt_time")
    yield from _exempt_suspend(facts, where, globally)
    if facts.actions() & set(KILL):
        yield Finding(
            level="warning",
            where=where,
            message="no exempt time where gang requeues or cancels: such victims go at once",
            section="slurm-preemption 4.7",
        )


def _exempt_suspend(facts: Facts, where: str, globally: bool) -> Iterator[Finding]:
    if facts.rule["exempt_time_guards_overlay"]:
        if not globally:
            yield Finding(
                level="warning",
                where=where,
                message="under SUSPEND,GANG the exempt time of a QOS counts only if the cluster's "
                "PreemptExemptTime is set too",
                section="slurm-preemption 1.6, 11 no. 5",
            )
    else:
        seen = ", as recorded on 22.05.8" if facts.before("23.02") else ""
        yield Finding(
            level="warning",
            where=where,
            message="under SUSPEND,GANG it protects only --exclusive jobs before Slurm 26.05; others are "
            f"suspended at once{seen}",
            section="slurm-preemption 1.6, 9",
        )


# --------------------------------------------------------------------------------------- grace time
def unused_grace(facts: Facts) -> Iterator[Finding]:
    """Notice grace times that the preempt plugin does not look at."""
    partitions = [each for each in facts.partitions if each.grace_time]
    if facts.kind in ("qos", "none") and partitions:
        yield Finding(
            level="warning",
            where=path_of(partitions[0], "grace_time"),
            message=f"GraceTime of partition {names(partitions)} is ignored: only "
            "preempt/partition_prio looks at it",
            section="slurm-preemption 6.3",
        )
    qos = [each for each in facts.cluster.qos if each.grace_time]
    if facts.kind in ("partition_prio", "none") and qos:
        yield Finding(
            level="warning",
            where=qos_path(qos[0], "grace_time"),
            message=f"GraceTime of QOS {names(qos)} is ignored: only preempt/qos looks at it",
            section="slurm-preemption 4.3",
        )


def grace_under_gang(facts: Facts) -> Iterator[Finding]:
    """Notice grace times that gang passes over."""
    if not facts.gang:
        return
    for where, action in _graced(facts):
        if action is SUSPEND:
            message = "GraceTime is never applied to SUSPEND: the victim stops at once"
            yield Finding(level="warning", where=where, message=message, section="slurm-preemption 4.3")
        elif action in KILL and facts.overlays:
            yield Finding(
                level="warning",
                where=where,
                message="with GANG on, gang requeues and cancels without any GraceTime",
                section="slurm-preemption 4.7, 10.1 no. 5",
            )


def grace_and_requeue(facts: Facts) -> Iterator[Finding]:
    """Say what becomes of work that is finished during the grace time."""
    if not facts.rule["grace_exit_is_preemption"]:
        return
    for where, action in _graced(facts):
        if action is REQUEUE:
            yield Finding(
                level="note",
                where=where,
                message="since 24.05 a job that finishes during its GraceTime is requeued all the same; "
                "one that outlives it is requeued once more after its next run "
                "(a defect, off by default here)",
                section="slurm-preemption 4.3, 10.1 no. 12",
            )


def _graced(facts: Facts) -> Iterator[tuple[str, PreemptMode]]:
    """Yield path and mode of all whose grace time the plugin looks at."""
    if facts.kind == "partition_prio":
        for partition in facts.partitions:
            if partition.grace_time:
                yield path_of(partition, "grace_time"), facts.action(partition)
    elif facts.kind == "qos":
        for qos in facts.cluster.qos:
            if qos.grace_time:
                yield qos_path(qos, "grace_time"), facts.qos_action(qos)


# ----------------------------------------------------------------------------------------- the rest
def release(facts: Facts) -> Iterator[Finding]:
    """Say which rules count if nothing is known of the release that is stated."""
    stated = release_of(facts.config.scheduler)
    message = rules.doubt(stated) if stated is not None else ""
    if message:
        yield Finding(
            level="warning",
            where="scheduler.slurm_release",
            message=message,
            section="slurm-preemption 9",
            always=True,
        )


def requeue_switched_off(facts: Facts) -> Iterator[Finding]:
    """Notice REQUEUE where jobs are not requeueable unless they ask for it."""
    if REQUEUE in facts.actions() and not facts.config.scheduler.requeue:
        yield Finding(
            level="warning",
            where="scheduler.requeue",
            message="JobRequeue=0: REQUEUE victims that did not ask for --requeue are killed",
            section="slurm-preemption 6.6, 3.3",
        )


def timeslice(facts: Facts) -> Iterator[Finding]:
    """Notice a time slice that Slurm replaces."""
    value = facts.config.policy.settings.get(GANG_SETTINGS, {}).get("timeslice", TIMESLICE)
    if isinstance(value, int | float) and value < MIN_TIMESLICE and facts.kind:
        yield Finding(
            level="warning",
            where=f"policy.settings.{GANG_SETTINGS}.timeslice",
            message=f"got {value:g}; Slurm takes {TIMESLICE:g} s in place of anything below "
            f"{MIN_TIMESLICE:g}",
            section="slurm-gang-and-select 0.3",
        )


def user_borders(facts: Facts) -> Iterator[Finding]:
    """Say that nodes kept for one user or one label are beyond preemption."""
    if not facts.preempts:
        return
    for partition in facts.partitions:
        if partition.exclusive_user:
            yield Finding(
                level="note",
                where=path_of(partition, "exclusive_user"),
                message="jobs of other users are out of reach on these nodes, save --exclusive ones",
                section="slurm-preemption 1.10",
            )
    mcs = facts.config.policy.mcs
    if mcs.label != "none" and mcs.select == "select":
        yield Finding(
            level="note",
            where="policy.mcs.select",
            message="jobs of another security label are out of reach, save --exclusive ones",
            section="slurm-preemption 1.10, 10.1 no. 9",
        )


def suspend_grace(facts: Facts) -> Iterator[Finding]:
    """Say that a time between SIGTSTP and SIGSTOP changes nothing in a replay, if one is set."""
    clock = facts.config.scheduler.clockwork
    value = build_clockwork(clock).suspend_grace_time
    if value not in {preset.suspend_grace_time for preset in clockworks().values()}:
        yield Finding(
            level="warning",
            where="scheduler.clockwork.suspend_grace_time",
            message=f"{value:g} s between SIGTSTP and SIGSTOP change nothing in a replay, where jobs stop at SIGTSTP",
            section="slurm-gang-and-select 3.2",
            always=True,
        )


def unplanned_licences(facts: Facts) -> Iterator[Finding]:
    """Say that backfill keeps no licences for a job that lacks them, unless it is told to."""
    clockwork = facts.config.scheduler.clockwork
    planned = isinstance(clockwork, Mapping) and clockwork.get("bf_licenses")
    if facts.config.scheduler.type != "backfill" or not facts.cluster.licenses or planned:
        return
    yield Finding(
        level="note",
        where="cluster.licenses",
        message="backfill keeps no licences for a job that lacks them: those that want fewer overtake it, perhaps for "
        "good; SchedulerParameters=bf_licenses plans them (--compare scheduler.clockwork.bf_licenses=true)",
        section="slurm-preemption 1.11",
    )


OPTIONS = (
    release,
    suspend_grace,
    preempt_options,
    exempt_time,
    unused_grace,
    grace_under_gang,
    grace_and_requeue,
    requeue_switched_off,
    timeslice,
    user_borders,
    unplanned_licences,
)

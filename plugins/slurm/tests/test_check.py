"""The validation matrix: what Slurm refuses, ignores, or does unexpectedly.

Each row is one row of slurm-preemption 6.1 to 6.6, a trap of 3.1, a contradiction of 10.1, or a
rule of slurm-gang-and-select 0.3, 4.1.5, 4.3.3, 4.3.4; its id is a phrase and the section. Left out
are rows about running daemons (`scontrol update`, reconfiguration) and about single jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from makeway.config import (
    ClusterTable,
    Config,
    McsTable,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    validate,
)
from makeway.errors import ConfigError
from makeway.preemption import PreemptionTable
from makeway_slurm.check import FAMILIES, Facts, Finding, check, modes, options, sharing

Words = tuple[str, ...]
Kwargs = dict[str, Any]

GANGED: Kwargs = {"mode": ("suspend", "gang")}
ONLY_GANG: Kwargs = {"preempt": "none", "mode": ("gang",)}
QOS: Kwargs = {"preempt": "qos", "qos": ({"name": "a", "preempt": ("b",)}, {"name": "b"})}
QOS_GANGED: Kwargs = QOS | GANGED
APART: Kwargs = {"low": {"nodes": "n1"}, "hi": {"nodes": "n2"}}
LINEAR: Kwargs = {"select": "linear", "parameters": ("CR_Memory",)}
MEMORY: Kwargs = {"parameters": ("CR_Core_Memory",)}


def site(
    *,
    preempt: str = "partition_prio",
    mode: Words = ("cancel",),
    select: str = "cons_tres",
    parameters: Words = ("CR_Core",),
    low: Mapping[str, Any] | None = None,
    hi: Mapping[str, Any] | None = None,
    tiers: tuple[int, int] = (1, 2),
    qos: Sequence[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
    node: Mapping[str, Any] | None = None,
    cluster: Mapping[str, Any] | None = None,
    scheduler: Mapping[str, Any] | None = None,
    release: str | None = None,
    **policy: Any,
) -> Config:
    """Return a sound site of two nodes, `low` under `hi` on both, except for what is given."""
    partitions = (
        PartitionTable(name="low", priority_tier=tiers[0], default=True, **(low or {})),
        PartitionTable(name="hi", priority_tier=tiers[1], **(hi or {})),
    )
    return Config(
        cluster=ClusterTable(**(cluster or {})),
        node=(
            NodeTable(name="n1", cpus=4, memory_mb=1000),
            NodeTable(**{"name": "n2", "cpus": 4, "memory_mb": 1000, **(node or {})}),
        ),
        partition=partitions,
        qos=tuple(QosTable(**each) for each in qos),
        policy=PolicyTable(
            select=f"select/{select}",
            select_parameters=parameters,
            preempt=preempt if "/" in preempt else f"preempt/{preempt}",
            preempt_mode=mode,
            preemption=PreemptionTable(**(options or {})),
            **policy,
        ),
        scheduler=SchedulerTable(**{"slurm_release": release, **(scheduler or {})}),
    )


def row(phrase: str, kwargs: Kwargs, level: str, section: str, message: str) -> Any:
    """Return one row of a matrix; `message` is a part of what must be said."""
    return pytest.param(kwargs, level, section, message, id=f"{phrase}-{section}")


PREEMPTION, SELECT = "slurm-preemption", "slurm-gang-and-select"
NEEDS_GANG = "SUSPEND needs GANG"
INCOMPATIBLE = "type and mode are incompatible"

VALUES = [
    row("unknown word", {"mode": ("kill",)}, "error", "6.1", "got 'kill'"),
    row("two actions", {"mode": ("requeue", "cancel")}, "error", "6.1", "two actions"),
    row("one action twice", {"mode": ("cancel", "cancel")}, "error", "6.1", "two actions"),
    row("off and another", {"mode": ("off", "cancel")}, "error", "6.1", "two actions"),
    row("gang with within", {"mode": ("gang", "within", "cancel")}, "error", "6.1", "exclude"),
    row("gang with priority", {"mode": ("gang", "priority")}, "error", "6.1", "exclude"),
    row(
        "priority before 25.05",
        {"mode": ("cancel", "priority"), "release": "24.11"},
        "error", "6.1", "unknown before Slurm 25.05",
    ),
    row(
        "partition: priority before 25.05",
        {"low": {"preempt_mode": ("cancel", "priority")}, "release": "24.11"},
        "error", "6.1", "unknown before Slurm 25.05",
    ),
    row(
        "QOS: priority before 25.05",
        QOS | {"qos": ({"name": "a", "preempt_mode": ("priority",)},), "release": "24.11"},
        "error", "6.1", "unknown before Slurm 25.05",
    ),
    row("checkpoint", {"mode": ("checkpoint",)}, "error", "6.1", "dropped CHECKPOINT"),
    row(
        "partition: checkpoint",
        {"low": {"preempt_mode": ("checkpoint",)}},
        "error", "6.1", "dropped CHECKPOINT",
    ),
    row(
        "QOS: checkpoint",
        QOS | {"qos": ({"name": "a", "preempt_mode": ("checkpoint",)},)},
        "error", "6.1", "dropped CHECKPOINT",
    ),
    row(
        "partition: bad mode", {"low": {"preempt_mode": ("kil",)}}, "error", "6.1", "got 'kil'"
    ),
    row("QOS: bad mode", {"qos": ({"name": "a", "preempt_mode": ("x",)},)}, "error", "6.1", "'x'"),
]  # fmt: skip

CLUSTER = [
    *(
        row(f"none with {mode}", {"preempt": "none", "mode": mode}, "error", "6.2", INCOMPATIBLE)
        for mode in (("suspend", "gang"), ("requeue",), ("cancel",), ("priority",), ("within",))
    ),
    *(
        row(f"{name} with {mode}", {"preempt": name, "mode": mode}, "error", "6.2", INCOMPATIBLE)
        for name in ("partition_prio", "qos")
        for mode in (("off",), (), ("gang",), ("off", "gang"), ("within",), ("within", "priority"))
    ),
    *(
        row(f"{name} with suspend", {"preempt": name, "mode": ("suspend",)}, "error", "6.2", word)
        for name, word in (
            ("none", NEEDS_GANG), ("partition_prio", NEEDS_GANG), ("qos", NEEDS_GANG),
        )
    ),
    *(
        row(
            f"{name}: suspend with {flag} slips through",
            {"preempt": name, "mode": ("suspend", flag)},
            "warning", "6.2, 10.1 no. 11", "accepted although SUSPEND lacks GANG",
        )
        for name in ("partition_prio", "qos")
        for flag in ("priority", "within")
    ),
    *(
        row(
            f"partition_prio: within with {mode}",
            {"mode": (mode, "within")}, "warning", "6.2, 3.1", "WITHIN is not stripped",
        )
        for mode in ("cancel", "requeue")
    ),
    row("gang plugin without flag", {"gang": "gang/timeslice"}, "warning", "0.3", "only with GANG"),
    row("one tier", {"tiers": (3, 3)}, "warning", "1.3", "no job can preempt"),
    row("lower tier off", {"low": {"preempt_mode": ("off",)}}, "warning", "1.3", "no job can"),
    row("no common nodes", APART, "warning", "1.3", "no job can preempt"),
    row(
        "no QOS lists another",
        {"preempt": "qos", "qos": ({"name": "a"},)}, "warning", "1.4", "no job can preempt",
    ),
]  # fmt: skip

PARTITIONS = [
    *(
        row(
            f"mode under {name} is ignored",
            base | {"low": {"preempt_mode": ("requeue",)}},
            "warning", "6.3", "PreemptMode is ignored",
        )
        for name, base in (("qos", QOS), ("none", ONLY_GANG))
    ),
    row(
        "gang on a partition",
        GANGED | {"low": {"preempt_mode": ("suspend", "gang")}},
        "warning", "6.3, slurm-gang-and-select 0.3 no. 3", "option of the cluster",
    ),
    row(
        "suspend without gang",
        {"low": {"preempt_mode": ("suspend",)}}, "warning", "6.3, 3.3", "SUSPEND without GANG",
    ),
    row("off protects", {"low": {"preempt_mode": ("off",)}}, "note", "6.3, 3.1", "never preempted"),
    *(
        row(
            f"{flag} alone does not inherit",
            {"low": {"preempt_mode": (flag,)}}, "warning", "10.1 no. 10", "does not inherit",
        )
        for flag in ("priority", "within")
    ),
    row(
        "within with an action",
        {"low": {"preempt_mode": ("requeue", "within")}},
        "warning", "10.1 no. 10", "WITHIN belongs to preempt/qos",
    ),
    row(
        "select word mistyped", {"parameters": ("CR_Cores",)},
        "error", "4.6", "got 'CR_Cores'; allowed: CR_CPU, CR_CPU_Memory, CR_Core,",
    ),
    row(
        "partition: select word", {"low": {"select_parameters": ("CR_Bogus",)}}, "error", "4.6", "got 'CR_Bogus'",
    ),
    row("tier too high", {"tiers": (1, 65534)}, "error", "6.3", "allowed: 0 to 65533"),
    row("grace below 0", {"low": {"grace_time": -1.0}}, "error", "6.3", "allowed: 0 or more"),
    *(
        row(f"{text} is refused", {"low": {"oversubscribe": text}}, "error", "6.3", "allowed")
        for text in ("MAYBE", "FORCE:0", "YES:0", "YES:x")
    ),
    row("YES:1 is NO", {"low": {"oversubscribe": "YES:1"}}, "warning", "6.3", "taken as NO"),
    *(
        row(
            f"grace time under {name}",
            base | {"low": {"grace_time": 60.0}}, "warning", "6.3", "GraceTime of partition 'low'",
        )
        for name, base in (("qos", QOS), ("none", ONLY_GANG))
    ),
]  # fmt: skip

QOS_LEVEL = [
    row(
        "off means the cluster's mode",
        QOS | {"qos": ({"name": "a", "preempt": ("b",)}, {"name": "b", "preempt_mode": ("off",)})},
        "warning", "6.4, 3.1", "protects no job",
    ),
    row(
        "within alone does not inherit (S20)",
        QOS | {"qos": ({"name": "a", "preempt_mode": ("within",)},)},
        "warning", "3.1, 10.1 no. 10", "does not inherit",
    ),
    row(
        "gang on a QOS",
        QOS_GANGED | {"qos": ({"name": "a", "preempt_mode": ("suspend", "gang")},)},
        "warning", "0.3 no. 3", "no effect on a QOS",
    ),
    row(
        "suspend without gang",
        QOS | {"qos": ({"name": "a", "preempt_mode": ("suspend", "within")},)},
        "warning", "3.3", "SUSPEND without GANG",
    ),
    row(
        "loop of one",
        QOS | {"qos": ({"name": "a", "preempt": ("a",)},)}, "error", "6.4", "preemption loop",
    ),
    row(
        "loop of two",
        QOS | {"qos": ({"name": "a", "preempt": ("b",)}, {"name": "b", "preempt": ("a",)})},
        "error", "6.4", "preemption loop",
    ),
    row(
        "unknown QOS listed",
        QOS | {"qos": ({"name": "a", "preempt": ("c",)},)}, "error", "6.4", "no QOS named 'c'",
    ),
    row("rules that nothing reads", {"qos": QOS["qos"]}, "warning", "1.3", "only preempt/qos reads"),
    row(
        "grace time that nothing reads",
        {"qos": ({"name": "a", "grace_time": 60.0},)},
        "warning", "4.3", "GraceTime of QOS 'a' is ignored",
    ),
    row(
        "priority beyond 65535",
        QOS | {"qos": ({"name": "a", "preempt": ("b",), "priority": 70000}, {"name": "b"})},
        "note", "2.1", "count as 65535",
    ),
]  # fmt: skip

OPTIONS = [
    *(
        row(
            f"{key} without a type",
            {"preempt": "none", "mode": ("off",), "options": {key: value}},
            "warning", "1.1", f"{key}: ignored",
        )
        for key, value in (
            ("exempt_time", 60.0), ("min_exempt_priority", 1), ("youngest_first", True),
            ("reorder_count", 2), ("strict_order", True), ("send_user_signal", True),
            ("reclaim_licenses", True),
        )
    ),
    *(
        row(
            f"{key} under gang",
            GANGED | {"options": {key: value}},
            "warning", "5.2.4, 10.1 no. 8", f"{key}: ignored under GANG",
        )
        for key, value in (
            ("youngest_first", True), ("reorder_count", 2), ("strict_order", True),
            ("min_exempt_priority", 1),
        )
    ),
    *(
        row(
            f"{key} with linear",
            LINEAR | {"options": {key: value}}, "warning", "5.4", f"{key}: select/linear ignores",
        )
        for key, value in (("reorder_count", 2), ("strict_order", True))
    ),
    row(
        "reclaim_licenses with linear",
        LINEAR | {"options": {"reclaim_licenses": True}}, "warning", "1.11", "never preempts for",
    ),
    row(
        "reclaim_licenses with suspend",
        GANGED | {"options": {"reclaim_licenses": True}}, "warning", "1.11", "keep their licences",
    ),
    row(
        "reclaim_licenses in 22.05",
        {"options": {"reclaim_licenses": True}, "release": "22.05.8"},
        "warning", "1.11", "unknown before Slurm 23.02",
    ),
    row(
        "min_exempt_priority in 22.05",
        {"options": {"min_exempt_priority": 5}, "release": "22.05.8"},
        "warning", "6.5", "unknown before Slurm 23.02",
    ),
    row(
        "min_exempt_priority includes equal",
        {"options": {"min_exempt_priority": 5}}, "note", "10.1 no. 1", "exactly this priority",
    ),
    row(
        "one reorder more",
        {"options": {"reorder_count": 0}}, "note", "10.1 no. 2", "one reorder more",
    ),
    row(
        "suspend_grace_time",
        GANGED | {"scheduler": {"clockwork": {"preset": "slurm", "suspend_grace_time": 9.0}}},
        "warning", "3.2", "9 s between SIGTSTP and SIGSTOP change nothing in a replay",
    ),
    row(
        "a release before the recorded ones",
        {"release": "19.05"}, "warning", "slurm-preemption 9", "the rules of 22.05 count",
    ),
    row(
        "a release after the recorded ones",
        {"release": "27.05"}, "warning", "slurm-preemption 9", "the rules of 26.11 count",
    ),
    row(
        "exempt time under suspend before 26.05",
        GANGED | {"options": {"exempt_time": 60.0}, "release": "25.11"},
        "warning", "1.6, 9", "protects only --exclusive jobs before Slurm 26.05; others are suspended at once",
    ),
    row(
        "exempt time under suspend in 22.05",
        GANGED | {"options": {"exempt_time": 60.0}, "release": "22.05.8"},
        "warning", "1.6, 9", "others are suspended at once, as recorded on 22.05.8",
    ),
    row(
        "exempt time of a QOS alone",
        GANGED | {"qos": ({"name": "a", "exempt_time": 60.0},)},
        "warning", "11 no. 5", "counts only if the cluster's",
    ),
    row(
        "exempt time where gang kills",
        GANGED | {"options": {"exempt_time": 60.0}, "low": {"preempt_mode": ("requeue",)}},
        "warning", "4.7", "such victims go at once",
    ),
    row(
        "grace time with suspend",
        GANGED | {"low": {"grace_time": 60.0}}, "warning", "4.3", "never applied to SUSPEND",
    ),
    row(
        "QOS: grace time with suspend",
        QOS_GANGED | {"qos": ({"name": "a", "grace_time": 60.0},)},
        "warning", "4.3", "never applied to SUSPEND",
    ),
    row(
        "grace time where gang kills (S44)",
        {"mode": ("requeue", "gang"), "low": {"grace_time": 60.0}},
        "warning", "4.7, 10.1 no. 5", "without any GraceTime",
    ),
    row(
        "work finished in the grace time",
        {"mode": ("requeue",), "low": {"grace_time": 60.0}},
        "note", "4.3, 10.1 no. 12", "requeued all the same",
    ),
    row(
        "requeue with JobRequeue=0",
        {"mode": ("requeue",), "scheduler": {"requeue": False}},
        "warning", "6.6", "victims that did not ask for --requeue are killed",
    ),
    row(
        "timeslice of 3",
        GANGED | {"settings": {"gang/timeslice": {"timeslice": 3.0}}},
        "warning", "0.3", "Slurm takes 30 s",
    ),
    row("one user's nodes", {"low": {"exclusive_user": True}}, "note", "1.10", "other users"),
]  # fmt: skip

SELECTION = [
    row("cons_tres with CR_Memory", {"parameters": ("CR_Memory",)}, "error", "6.6", "needs CR_CPU"),
    row("cons_tres with CR_LLN", {"parameters": ("CR_LLN",)}, "error", "6.6", "needs CR_CPU"),
    row(
        "cons_tres without any in 22.05",
        {"parameters": (), "release": "22.05"}, "note", "0.3", "CR_Core_Memory",
    ),
    row("cons_tres without any", {"parameters": ()}, "note", "0.3", "CR_Core_Memory"),
    row("linear with CR_Core", {"select": "linear"}, "warning", "4.6", "hands out whole nodes"),
    row(
        "partition: CR_CPU",
        {"low": {"select_parameters": ("CR_CPU",)}}, "warning", "0.3 no. 7", "ignored: a partition",
    ),
    row(
        "partition: CR_Core under CR_CPU",
        {"low": {"select_parameters": ("CR_Core",)}, "parameters": ("CR_CPU",)},
        "warning", "0.3 no. 7", "ignored: the cluster's own",
    ),
    row("CR_CPU counts", GANGED | {"parameters": ("CR_CPU",)}, "note", "1.2", "adds up CPUs"),
    row(
        "CR_CPU compares since 23.11",
        GANGED | {"parameters": ("CR_CPU",), "release": "23.11"}, "note", "1.2", "compares cores",
    ),
    row(
        "CR_CPU compares with task/affinity",
        GANGED
        | {"parameters": ("CR_CPU",), "cluster": {"attributes": {"task_plugin": "task/affinity"}}},
        "note", "1.2", "compares cores",
    ),
    row(
        "qos and suspend with linear",
        QOS_GANGED | LINEAR, "warning", "6.6", "unsupported by select/linear",
    ),
]  # fmt: skip


def share(low: str, hi: str, base: Kwargs | None = None, **more: Any) -> Kwargs:
    """Return arguments of `site` with OverSubscribe of both partitions."""
    return {
        **(GANGED if base is None else base),
        "low": {"oversubscribe": low},
        "hi": {"oversubscribe": hi},
        **more,
    }


SAME: Kwargs = {"preempt": "none", "mode": ("gang",), "tiers": (1, 1)}
STUCK = "while jobs of 'low'"

SHARING = [
    *(
        row(f"{low} under {hi}", share(low, hi), "warning", "5.2.4", STUCK)
        for low, hi in (
            ("NO", "FORCE:1"), ("NO", "FORCE:2"), ("YES:2", "FORCE:1"), ("YES:2", "FORCE:2"),
            ("FORCE:2", "NO"), ("FORCE:2", "YES:2"), ("EXCLUSIVE", "NO"), ("EXCLUSIVE", "FORCE:1"),
        )
    ),
    *(
        row(
            f"{low} under EXCLUSIVE",
            share(low, "EXCLUSIVE"), "warning", "5.2.4", "cannot preempt by suspension",
        )
        for low in ("NO", "YES:2", "FORCE:1", "FORCE:2", "EXCLUSIVE")
    ),
    row(
        "YES under NO before 24.05",
        share("YES:2", "NO", release="23.11"), "warning", "5.2.4", STUCK,
    ),
    row("NO under NO works", share("NO", "NO"), "note", "10.1 no. 3", "do suspend jobs"),
    *(
        row(f"same tier {a} and {b}", share(a, b, SAME), "warning", "4.3.9", "at the same time")
        for a, b in (("NO", "NO"), ("FORCE:2", "FORCE:2"), ("NO", "YES:2"), ("FORCE:1", "FORCE:2"))
    ),
    row(
        "same tier under linear",
        share("FORCE:2", "FORCE:2", SAME, **LINEAR), "warning", "4.3.9", "at the same time",
    ),
    row("same tier, not mixing", share("NO", "FORCE:2", SAME), "warning", "4.3.3", "wait for"),
    row("YES:n under gang", share("YES:2", "NO"), "warning", "4.3.4", "YES:n works as FORCE:n"),
    row(
        "FORCE:n without gang",
        share("FORCE:2", "FORCE:2", {}), "warning", "4.3.4", "no jobs take turns",
    ),
    row("FORCE:n and --exclusive", share("FORCE:2", "NO"), "note", "4.1.2", "ask for --exclusive"),
    row(
        "linear: FORCE:1", share("FORCE:1", "NO", LINEAR), "note", "4.1.2", "nodes to themselves"
    ),
    row("linear: YES:n", share("YES:2", "NO", LINEAR), "note", "4.1.2", "nodes to themselves"),
    row(
        "losing a slice is deadly",
        GANGED | {"low": {"oversubscribe": "FORCE:2", "preempt_mode": ("cancel",)}},
        "warning", "1.5", "merely loses its time slice",
    ),
    row(
        "off without rows before 23.11.2",
        GANGED
        | {"low": {"oversubscribe": "FORCE:2", "preempt_mode": ("off",)}, "release": "22.05"},
        "warning", "11 no. 6", "its jobs wait instead",
    ),
    row(
        "linear suspends off",
        GANGED
        | LINEAR
        | {
            "low": {"oversubscribe": "FORCE:2", "preempt_mode": ("off",)},
            "hi": {"oversubscribe": "FORCE:2"},
        },
        "warning", "4.4.6", "does not protect here",
    ),
    row("gang alone, two tiers", ONLY_GANG, "warning", "4.4.7", "GANG alone"),
    row(
        "gang alone, nothing to do",
        ONLY_GANG | APART, "note", "4.5", "GANG has nothing to do",
    ),
    row("qos suspend in NO", QOS_GANGED, "warning", "5.2.5", "extra row is for FORCE only"),
    row("qos suspend takes turns", QOS_GANGED, "note", "4.6", "the victim first"),
    row("qos suspend from below", QOS_GANGED, "note", "4.6", "suspended under jobs"),
    row("qos suspend, same tier", QOS_GANGED | {"tiers": (1, 1)}, "warning", "4.6", "same time"),
]  # fmt: skip

MEMORIES = [
    row("linear", LINEAR | {"mode": ("off",), "preempt": "none"}, "note", "4.1", "one of 4 CPUs"),
    row("a share of memory", MEMORY, "warning", "4.1.5", "def_mem_per_cpu=250 gives each CPU its share"),
    row(
        "suspended jobs keep GPUs",
        GANGED | MEMORY | {"node": {"gres": {"gpu": 4}}, "low": {"preempt_mode": ("suspend",)}},
        "note", "5.2.4", "--compare partition.low.preempt_mode=requeue",
    ),
    row(
        "licences without bf_licenses",
        {"cluster": {"licenses": {"vcs": 2}}, "scheduler": {"type": "backfill"}},
        "note", "1.11", "bf_licenses=true",
    ),
    row("gang without memory", GANGED, "warning", "6.6", "GANG without memory tracking"),
    row("no default", MEMORY, "warning", "4.1.5", "no def_mem_per_... for partition 'low', 'hi'"),
    row(
        "no default in one partition",
        MEMORY | {"hi": {"def_mem_per_cpu": 100}}, "warning", "4.1.5", "for partition 'low':",
    ),
    row("no maximum", GANGED | MEMORY, "note", "4.1.5", "no max_mem_per_..."),
    row(
        "both defaults",
        {"cluster": {"def_mem_per_cpu": 1, "def_mem_per_node": 1}},
        "warning", "4.1.5", "DefMemPerCPU and DefMemPerNode exclude each other",
    ),
    row(
        "both maxima",
        {"low": {"max_mem_per_cpu": 1, "max_mem_per_node": 1}},
        "warning", "4.1.5", "MaxMemPerCPU and MaxMemPerNode exclude each other",
    ),
    row(
        "default over maximum",
        {"cluster": {"def_mem_per_cpu": 200}, "hi": {"max_mem_per_cpu": 100}},
        "warning", "4.1.5", "the default of 200 MB is more than the maximum of 100 MB",
    ),
    row("suspended memory, cons_tres", GANGED | MEMORY, "note", "5.2.4", "keep their memory"),
    row(
        "suspended memory, linear",
        GANGED | LINEAR, "warning", "5.1.3, 10.1 no. 4", "memory of suspended victims as free",
    ),
    row(
        "suspended deadline, linear",
        GANGED | LINEAR, "warning", "4.6, 10.1 no. 4", "keeps its deadline",
    ),
    row(
        "MemSpecLimit, linear",
        LINEAR | {"node": {"mem_spec_limit_mb": 10}}, "warning", "4.2.5", "never fits",
    ),
    row(
        "unlike nodes, linear",
        LINEAR | {"node": {"memory_mb": 2000}}, "note", "4.2.5", "nodes differ in RealMemory",
    ),
    row(
        "security labels",
        {"mcs": {"label": "user", "enforced": True, "select": "select"}},
        "note", "10.1 no. 9", "security label",
    ),
]  # fmt: skip

MATRIX = [
    *VALUES, *CLUSTER, *PARTITIONS, *QOS_LEVEL, *OPTIONS, *SELECTION, *SHARING, *MEMORIES,
]  # fmt: skip


def built(kwargs: Kwargs) -> Config:
    """Return the site of a row; the table of MCS is written as one."""
    given = dict(kwargs)
    if "mcs" in given:
        given["mcs"] = McsTable(**given["mcs"])
    return site(**given)


@pytest.mark.parametrize(("kwargs", "level", "section", "message"), MATRIX)
def test_matrix(kwargs: Kwargs, level: str, section: str, message: str) -> None:
    """The row is found, with its level, its section and its reason."""
    found = check(built(kwargs))
    hits = [each for each in found if message in each.message and section in each.section]
    assert hits, "\n".join(map(str, found))
    assert {each.level for each in hits} == {level}
    assert all(each.where for each in hits)


@pytest.mark.parametrize(
    "kwargs",
    [
        pytest.param({"preempt": "none", "mode": ("off",)}, id="none, off-6.2"),
        pytest.param({"preempt": "none", "mode": ()}, id="none, unset-6.2"),
        pytest.param({"preempt": "none", "mode": ("gang",)}, id="none, gang-6.2"),
        pytest.param({"preempt": "none", "mode": ("off", "gang")}, id="none, off and gang-0.3"),
        *(
            pytest.param({"preempt": name, "mode": mode}, id=f"{name}, {','.join(mode)}-6.2")
            for name in ("partition_prio", "qos")
            for mode in (
                ("cancel",), ("requeue",), ("suspend", "gang"), ("cancel", "gang"),
                ("requeue", "gang"), ("cancel", "priority"), ("requeue", "priority"),
            )
        ),
        *(
            pytest.param(QOS | {"mode": mode}, id=f"qos, {','.join(mode)}-6.2")
            for mode in (("cancel", "within"), ("requeue", "within", "priority"))
        ),
        pytest.param(
            QOS_GANGED | {"qos": ({"name": "a", "preempt_mode": ("suspend", "within")},)},
            id="within with suspend on the QOS-6.2",
        ),
        pytest.param({"preempt": "lsf/queue", "mode": ("suspend",)}, id="not Slurm's plugin"),
        pytest.param({"select": "mine/own", "parameters": ()}, id="not Slurm's select"),
    ],
)  # fmt: skip
def test_accepted(kwargs: Kwargs) -> None:
    """Slurm starts with it."""
    assert [each for each in check(site(**kwargs)) if each.level == "error"] == []


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        pytest.param({}, "", id="a sound site: nothing at all"),
        *(
            pytest.param(share(low, hi), STUCK, id=f"{low} under {hi}-5.2.4")
            for low, hi in (
                ("NO", "NO"), ("NO", "YES:2"), ("YES:2", "NO"), ("FORCE:1", "NO"),
                ("FORCE:1", "YES:2"), ("FORCE:1", "FORCE:1"), ("FORCE:1", "FORCE:2"),
                ("FORCE:2", "FORCE:1"), ("FORCE:2", "FORCE:2"),
            )
        ),
        pytest.param(
            share("NO", "FORCE:1", {"mode": ("requeue", "gang")}), STUCK,
            id="NO under FORCE:1 with requeue works-4.3.3",
        ),
        pytest.param(share("NO", "FORCE:1", LINEAR | GANGED), STUCK, id="linear is free-5.1.5"),
        pytest.param(share("NO", "NO", SAME, **LINEAR), "same time", id="linear, NO: no sharing"),
        pytest.param({"options": {"youngest_first": True}}, "youngest", id="kill modes order-2.2"),
        pytest.param(
            GANGED | {"options": {"exempt_time": 60.0}}, "exempt", id="honoured since 26.05-1.6"
        ),
        pytest.param({"low": {"grace_time": 60.0}}, "GraceTime", id="grace time with cancel-4.3"),
        pytest.param(
            {"mode": ("requeue",), "low": {"grace_time": 60.0}, "release": "22.05"}, "GraceTime",
            id="exit in grace is an exit in 22.05-4.3",
        ),
        pytest.param(
            QOS | {"qos": ({"name": "a", "preempt_mode": ("cancel", "within")},)}, "no job can preempt",
            id="within is enough-1.4",
        ),
        pytest.param(
            GANGED | MEMORY | {"cluster": {"def_mem_per_cpu": 5, "max_mem_per_cpu": 9}}, "MemPer",
            id="default and maximum are given-4.1.5",
        ),
    ],
)  # fmt: skip
def test_silent(kwargs: Kwargs, message: str) -> None:
    """Nothing is said where there is nothing to say."""
    assert [each for each in check(site(**kwargs)) if message in each.message] == []


def test_wrong_values_come_alone() -> None:
    """Conclusions from a configuration that is wrong by itself would only confuse."""
    config = site(mode=("kill",), low={"preempt_mode": ("gang",)})
    assert {each.level for each in check(config)} == {"error"}


def test_imported_notes_come_first() -> None:
    found = check(site(), ["slurm.conf: not modelled: X"])
    assert found == (Finding(level="warning", where="", message="slurm.conf: not modelled: X"),)


def test_places_replace_paths() -> None:
    """The nearest table counts where the key itself has no line."""
    config = site(mode=("off",), low={"grace_time": -1.0})
    places = {"policy": "s.conf:1", "partition[0]": "s.conf:7 PartitionName=low"}
    assert [each.where for each in check(config, (), places)] == ["s.conf:7 PartitionName=low"]
    found = check(site(mode=("off",)), (), places)
    assert found[0].where == "s.conf:1"


def test_many_partitions_share_findings() -> None:
    """One finding per partition, not one per pair."""
    partitions = tuple(
        PartitionTable(name=f"p{at}", oversubscribe="FORCE:2", priority_tier=at % 2) for at in range(60)
    )
    config = attrs.evolve(site(**ONLY_GANG), partition=partitions)
    assert len(check(config)) < 200


def test_finding_reads_as_one_line() -> None:
    found = check(site(mode=("suspend",)))[0]
    assert str(found) == (
        "error: policy.preempt_mode: SUSPEND needs GANG, which resumes the victims: write SUSPEND,GANG"
    )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: str(family.__name__))
def test_every_family_has_a_row(family: Any) -> None:
    sites = [built(param.values[0]) for param in MATRIX if "6.1" not in str(param.values[2])]
    assert any(list(family(Facts.of(each))) for each in sites if not _is_wrong(each))


def _is_wrong(config: Config) -> bool:
    try:
        validate(config, "config")
    except ConfigError:
        return True
    return False


@pytest.mark.parametrize(
    "table",
    [
        modes.CLUSTER_ROWS,
        modes.PARTITION_ROWS,
        modes.QOS_ROWS,
        options.OPTION_ROWS,
        sharing.PARTITION_ROWS,
    ],
)
def test_every_row_is_tested(table: Sequence[Any]) -> None:
    """A row of the tables in the code without a row here is a gap."""
    said = " ".join(each.message for param in MATRIX for each in check(built(param.values[0])))
    missing = [each.message for each in table if each.message.partition("{")[0] not in said]
    assert missing == []


def test_proposals_are_in_the_words_of_the_file() -> None:
    """A line of slurm.conf names SelectType, a key that TOML does not have."""
    placed = check(built(MEMORY), (), {"policy.select_parameters": "slurm.conf:5 SelectTypeParameters"})
    plain = check(built(MEMORY))
    assert [each.message[:19] for each in plain if "4.1.5" in each.section] == ["no def_mem_per_... "]
    assert [each.message[:17] for each in placed if "4.1.5" in each.section] == ["no DefMemPer... f"]

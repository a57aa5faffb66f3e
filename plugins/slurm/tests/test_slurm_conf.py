"""slurm.conf to configuration: what is taken over, what is refused and where, and the way back."""

from __future__ import annotations

import contextlib
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makeway.config import (
    SELECT_WORDS,
    ClusterTable,
    Config,
    MappingRule,
    McsTable,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    WorkloadTable,
    build_clockwork,
    build_cluster,
    dump_toml,
    parse_toml,
)
from makeway.errors import ConfigError
from makeway.foreign import LeftOut
from makeway.preemption import PreemptionTable
from makeway.readers.api import Loaded
from makeway_slurm.check import check
from makeway_slurm.readers import names as slurm_names
from makeway_slurm.readers.conf import SlurmConfReader, config_from_entries
from makeway_slurm.readers.grammar import parse_conf

DATA = Path(__file__).parent / "data" / "slurm"
MACHINES = "NodeName=n[1-4] CPUs=4\nPartitionName=all Nodes=ALL\n"


def imported(text: str, release: str | None = None, rest: str = MACHINES) -> Loaded:
    """Translate some lines, on a site of four nodes and one partition."""
    return config_from_entries(parse_conf(text + "\n" + rest).entries, release=release)


def at(config: Config, path: str) -> Any:
    """Return what is at a path such as ``partition.0.nodes``."""
    value: Any = config
    for word in path.split("."):
        if isinstance(value, dict):
            value = value[word]
        else:
            value = value[int(word)] if word.isdigit() else getattr(value, word)
    return value


# ------------------------------------------------------------------------------- simple parameters
@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("ClusterName=pine", "cluster.name", "pine"),
        ("Licenses=a:2,b", "cluster.licenses", {"a": 2, "b": 1}),
        ("DefMemPerCPU=2G", "cluster.def_mem_per_cpu", 2048),
        ("DefMemPerNode=900", "cluster.def_mem_per_node", 900),
        ("MaxMemPerCPU=0", "cluster.max_mem_per_cpu", None),
        ("MaxMemPerNode=900", "cluster.max_mem_per_node", 900),
        ("TaskPlugin=none", "cluster.attributes.task_plugin", "task/none"),
        ("TaskPlugin=affinity,task/cgroup", "cluster.attributes.task_plugin",
         "task/affinity,task/cgroup"),
        ("PriorityType=priority/basic", "cluster.attributes.priority_type", "priority/basic"),
        ("CompleteWait=32", "cluster.attributes.complete_wait", 32),
        ("EnforcePartLimits=all", "cluster.attributes.enforce_part_limits", "ALL"),
        ("AccountingStorageEnforce=limits,QOS", "cluster.attributes.accounting_storage_enforce",
         ["limits", "qos"]),
        ("SelectType=select/linear", "policy.select", "select/linear"),
        ("SelectType=select/cons_res\nSelectTypeParameters=CR_Core", "policy.select",
         "select/cons_tres"),
        ("SelectTypeParameters=cr_cpu,cr_lln", "policy.select_parameters", ("CR_CPU", "CR_LLN")),
        ("PreemptType=preempt/qos\nPreemptMode=REQUEUE", "policy.preempt", "preempt/qos"),
        ("PreemptType=PREEMPT/NONE", "policy.preempt", "preempt/none"),
        ("PreemptMode=GANG", "policy.preempt_mode", ("gang",)),
        ("PreemptMode=GANG", "policy.gang", "gang/timeslice"),
        ("PreemptMode=GANG", "policy.settings", {"gang/timeslice": {"timeslice": 30.0}}),
        ("PreemptMode=GANG\nSchedulerTimeSlice=6", "policy.settings.gang/timeslice.timeslice", 6.0),
        ("PreemptMode=GANG\nSchedulerTimeSlice=4", "policy.settings.gang/timeslice.timeslice",
         30.0),
        ("SchedulerTimeSlice=6", "policy.settings", {}),
        ("PreemptType=preempt/partition_prio\nPreemptMode=gang,Suspend", "policy.preempt_mode",
         ("suspend", "gang")),
        ("PreemptExemptTime=5", "policy.preemption.exempt_time", 300.0),
        ("PreemptExemptTime=-1", "policy.preemption.exempt_time", None),
        ("PreemptParameters=youngest_first", "policy.preemption.youngest_first", True),
        ("PreemptParameters=min_exempt_priority=7", "policy.preemption.min_exempt_priority", 7),
        ("PreemptParameters=reorder_count=-3", "policy.preemption.reorder_count", 1),
        ("PreemptParameters=reorder_count=many", "policy.preemption.reorder_count", 0),
        ("PreemptParameters=reclaim_licenses", "policy.preemption.reclaim_licenses", True),
        ("PreemptParameters=strict_order", "policy.preemption.strict_order", True),
        ("SchedulerParameters=preempt_youngest_first", "policy.preemption.youngest_first", True),
        ("SchedulerParameters=preempt_strict_order", "policy.preemption.strict_order", True),
        ("SchedulerParameters=preempt_reorder_count=4", "policy.preemption.reorder_count", 4),
        ("SlurmctldParameters=a,preempt_send_user_signal", "policy.preemption.send_user_signal",
         True),
        ("PreemptParameters=reorder_count=2\nSchedulerParameters=preempt_reorder_count=4",
         "policy.preemption.reorder_count", 2),
        ("MCSPlugin=mcs/user", "policy.mcs.label", "user"),
        ("MCSPlugin=mcs/group\nMCSParameters=enforced,noselect:a|b", "policy.mcs",
         McsTable(label="group", enforced=True, select="noselect")),
        ("SchedulerType=sched/builtin", "scheduler.type", "builtin"),
        ("", "scheduler.type", "backfill"),
        ("JobRequeue=0", "scheduler.requeue", False),
        ("MaxBatchRequeue=3", "scheduler.max_requeues", 3),
        ("OverTimeLimit=2", "scheduler.over_time_limit", 120.0),
        ("OverTimeLimit=UNLIMITED", "scheduler.enforce_time_limits", False),
        ("", "scheduler.clockwork", {"preset": "slurm"}),
        ("KillWait=5", "scheduler.clockwork.kill_wait", 5.0),
        ("MessageTimeout=9", "scheduler.clockwork.message_timeout", 9.0),
        ("MinJobAge=20", "scheduler.clockwork.min_job_age", 20.0),
        ("DependencyParameters=max_depend_depth=5,kill_invalid_depend", "scheduler.kill_invalid_depend", True),
        ("DependencyParameters=disable_remote_singleton", "scheduler.kill_invalid_depend", False),
        ("JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherParams=NoShared,OverMemoryKill",
         "workload.over_memory_kill", True),
        ("JobAcctGatherType=jobacct_gather/linux", "workload.over_memory_kill", False),
        ("JobAcctGatherParams=OverMemoryKill", "workload.over_memory_kill", False),
        ("JobAcctGatherType=jobacct_gather/none\nJobAcctGatherParams=OverMemoryKill",
         "workload.over_memory_kill", False),
        ("JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherParams=OverMemoryKill\nJobAcctGatherFrequency=task=0",
         "workload.over_memory_kill", False),
        ("AuthInfo=socket=/x,cred_expire=5", "scheduler.clockwork.requeue_delay", 6.0),
        ("SchedulerParameters=requeue_delay=5\nAuthInfo=cred_expire=9",
         "scheduler.clockwork.requeue_delay", 6.0),
        ("SchedulerParameters=bf_window=60", "scheduler.clockwork.bf_window", 3600.0),
        ("SchedulerParameters=bf_resolution=600", "scheduler.clockwork.bf_resolution", 600.0),
        ("SchedulerParameters=bf_max_job_test=9", "scheduler.clockwork.bf_max_job_test", 9),
        ("SchedulerParameters=bf_min_prio_reserve=9", "scheduler.clockwork.bf_min_prio_reserve", 9),
        ("AccountingStorageEnforce=limits\nSchedulerParameters=assoc_limit_stop",
         "policy.settings.limits/slurm.limit_stop", True),
        ("SchedulerParameters=default_queue_depth=9", "scheduler.clockwork.default_queue_depth",
         9),
        ("SchedulerParameters=sched_interval=1", "scheduler.clockwork.sched_interval", 1.0),
        ("SchedulerParameters=batch_sched_delay=0", "scheduler.clockwork.submit_delay", 0.0),
        ("SchedulerParameters=bf_interval=0", "scheduler.clockwork", {"preset": "slurm"}),
        ("SchedulerParameters=bf_interval=-1", "scheduler.type", "builtin"),
        ("SchedulerParameters=sched_interval=-1", "scheduler.clockwork.pass_on_submit", False),
        ("PreemptParameters=suspend_grace_time=7", "scheduler.clockwork.suspend_grace_time", 7.0),
    ],
    ids=lambda value: None if isinstance(value, int | float) else str(value).replace("\n", " "),
)  # fmt: skip
def test_parameter(text: str, path: str, value: Any) -> None:
    assert at(imported(text).config, path) == value


@pytest.mark.parametrize(
    ("release", "path", "value"),
    [
        (None, "policy.select", "select/cons_tres"),
        ("23.11", "policy.select", "select/cons_tres"),
        ("23.02", "policy.select", "select/linear"),
        (None, "policy.select_parameters", ("CR_Core_Memory",)),
        ("23.02", "policy.select_parameters", ()),
        ("22.05.8", "cluster.attributes", {"task_plugin": "task/none",
                                           "priority_type": "priority/basic"}),
        ("24.05", "cluster.attributes", {"priority_type": "priority/multifactor"}),
        (None, "cluster.attributes", {}),
        ("24.05", "scheduler.slurm_release", "24.05"),
    ],
)  # fmt: skip
def test_defaults_by_release(release: str | None, path: str, value: Any) -> None:
    """slurm-preemption 4.12, slurm-gang-and-select 0.3; an unknown release is the newest."""
    assert at(imported("", release).config, path) == value


def test_clockwork_can_be_built() -> None:
    text = "SchedulerParameters=bf_max_job_test=7,bf_interval=5,sched_interval=-1\nKillWait=4"
    clockwork = build_clockwork(imported(text).config.scheduler.clockwork)
    assert (clockwork.bf_max_job_test, clockwork.kill_wait) == (7, 4.0)
    assert clockwork.requeue_delay == 121.0
    assert clockwork.message_timeout == 10.0


# --------------------------------------------------------------------------------------- the nodes
@pytest.mark.parametrize(
    ("text", "cpus", "sockets", "cores", "threads"),
    [
        pytest.param("CPUs=8", 8, 8, 1, 1, id="CPUs alone are sockets"),
        pytest.param("Procs=2", 2, 2, 1, 1, id="Procs is CPUs"),
        pytest.param("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 16, 2, 4, 2, id="product"),
        pytest.param("CPUs=16 CoresPerSocket=4 ThreadsPerCore=2", 16, 2, 4, 2, id="sockets follow"),
        pytest.param("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 8, 2, 4, 2, id="cores"),
        pytest.param("CPUs=9 Sockets=2 CoresPerSocket=4", 8, 2, 4, 1, id="CPUs corrected"),
        pytest.param("CPUs=8 Sockets=2", 8, 8, 1, 1, id="Sockets corrected"),
        pytest.param("Boards=2 SocketsPerBoard=2 CoresPerSocket=3", 12, 4, 3, 1, id="boards"),
        pytest.param("RealMemory=5", 1, 1, 1, 1, id="nothing"),
    ],
)
def test_geometry(text: str, cpus: int, sockets: int, cores: int, threads: int) -> None:
    """slurm.conf(5), NODE CONFIGURATION."""
    rest = f"NodeName=n1 {text}\nPartitionName=p Nodes=n1\n"
    node = build_cluster(imported("", rest=rest).config).nodes[0]
    assert (node.cpus, node.sockets, node.cores_per_socket) == (cpus, sockets, cores)
    assert node.threads_per_core == threads


def test_node_settings() -> None:
    rest = """
    NodeName=DEFAULT Weight=5 RealMemory=1G
    NodeName=n[1-2] MemSpecLimit=24 Features=a,b,a Gres=gpu:tesla:2,gpu:1 Weight=7
    NodeName=m1 Feature=c
    PartitionName=p Nodes=ALL
    """
    first, second = imported("", rest=rest).config.node
    assert first == NodeTable(
        name="n[1-2]", cpus=1, cores_per_socket=1, memory_mb=1024, mem_spec_limit_mb=24, weight=7,
        features=("a", "b"), gres={"gpu": 3, "gpu:tesla": 2},
    )  # fmt: skip
    assert (second.features, second.weight) == (("c",), 5)


@pytest.mark.parametrize(
    ("state", "up"),
    [
        ("UNKNOWN", True), ("idle", True), ("CLOUD", True),
        ("DOWN", False), ("drain", False), ("FAIL", False), ("FUTURE", False),
    ],
)  # fmt: skip
def test_node_state(state: str, up: bool) -> None:
    rest = f"NodeName=n1 State={state}\nPartitionName=p Nodes=n1"
    result = imported("", rest=rest)
    assert result.config.node[0].up is up
    assert any("out of service" in each for each in result.warnings) is not up


def test_down_nodes_split_a_line() -> None:
    rest = "NodeName=n[1-4] CPUs=2\nDownNodes=n2,n4 State=DOWN\nPartitionName=p Nodes=n[1-4]"
    tables = imported("", rest=rest).config.node
    assert [(each.name, each.up) for each in tables] == [("n[1,3]", True), ("n[2,4]", False)]
    assert {each.cpus for each in tables} == {2}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param("ALL", "ALL", id="ALL"),
        pytest.param("all", "ALL", id="all"),
        pytest.param("n[1-2],m1", "n[1-2],m1", id="as written"),
        pytest.param("some", "m1,n[2-3]", id="node set of nodes"),
        pytest.param("big", "m1,n1", id="node set of a feature"),
        pytest.param("both", "m1,n[1-2]", id="node set of both"),
        pytest.param("big,n3", "m1,n[1,3]", id="node set and nodes"),
        pytest.param("every", "m1,n[1-3]", id="node set of ALL"),
        pytest.param('""', "", id="none"),
    ],
)
def test_partition_nodes(nodes: str, expected: str) -> None:
    rest = f"""
    NodeName=n1 Features=big,x
    NodeName=n[2-3]
    NodeName=m1 Features=big
    NodeSet=some Nodes=n[2-3],m1
    NodeSet=big Feature=big
    NodeSet=both Feature=big Nodes=n2
    NodeSet=every Nodes=ALL
    PartitionName=p Nodes={nodes}
    """
    assert imported("", rest=rest).config.partition[0].nodes == expected


# ---------------------------------------------------------------------------------- the partitions
@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("PriorityTier=7", "priority_tier", 7),
        ("Priority=7", "priority_tier", 7),
        ("Priority=7", "priority_job_factor", 7),
        ("Priority=7 PriorityTier=3", "priority_tier", 3),
        ("PriorityJobFactor=9", "priority_job_factor", 9),
        ("OverSubscribe=yes", "oversubscribe", "YES:4"),
        ("Shared=FORCE", "oversubscribe", "FORCE:4"),
        ("OverSubscribe=FORCE:1", "oversubscribe", "FORCE:1"),
        ("OverSubscribe=YES:1", "oversubscribe", "NO"),
        ("OverSubscribe=FORCE:0", "oversubscribe", "NO"),
        ("OverSubscribe=EXCLUSIVE", "oversubscribe", "EXCLUSIVE"),
        ("Exclusive=NODE", "oversubscribe", "EXCLUSIVE"),
        ("Exclusive=TOPO OverSubscribe=FORCE:2", "oversubscribe", "EXCLUSIVE"),
        ("Exclusive=USER", "exclusive_user", True),
        ("Exclusive=USER OverSubscribe=FORCE:2", "oversubscribe", "FORCE:2"),
        ("Exclusive=NO", "exclusive_user", False),
        ("ExclusiveUser=YES", "exclusive_user", True),
        ("PreemptMode=requeue", "preempt_mode", ("requeue",)),
        ("PreemptMode=OFF", "preempt_mode", ("off",)),
        ("PreemptMode=CLUSTER", "preempt_mode", ("off",)),
        ("PreemptMode=ON", "preempt_mode", ("suspend",)),
        ("PreemptMode=GANG,SUSPEND", "preempt_mode", ("suspend",)),
        ("PreemptMode=GANG", "preempt_mode", ("off",)),
        ("PreemptMode=PRIORITY,CANCEL", "preempt_mode", ("cancel", "priority")),
        ("GraceTime=90", "grace_time", 90.0),
        ("QOS=q", "qos", "q"),
        ("Default=yes", "default", True),
        ("MaxTime=1:00:00", "max_time", 3600.0),
        ("MaxTime=UNLIMITED", "max_time", None),
        ("DefaultTime=30", "default_time", 1800.0),
        ("MaxTime=10 DefaultTime=30", "default_time", 600.0),
        ("MinNodes=2", "min_nodes", 2),
        ("MaxNodes=3", "max_nodes", 3),
        ("MaxNodes=UNLIMITED", "max_nodes", None),
        ("DefMemPerCPU=10", "def_mem_per_cpu", 10),
        ("MaxMemPerNode=1G", "max_mem_per_node", 1024),
        ("DefMemPerCPU=10 DefMemPerNode=20", "def_mem_per_node", 20),
        ("DefMemPerCPU=10 DefMemPerNode=20", "def_mem_per_cpu", None),
        ("MaxMemPerNode=0 MaxMemPerCPU=20", "max_mem_per_cpu", None),
        ("DefMemPerNode=UNLIMITED", "def_mem_per_node", None),
        ("MaxCPUsPerNode=2", "max_cpus_per_node", 2),
        ("LLN=YES", "lln", True),
        ("State=DRAIN", "up", True),
        ("State=DRAIN", "accepts", False),
        ("State=down", "up", False),
        ("State=down", "accepts", True),
        ("State=inactive", "up", False),
        ("State=inactive", "accepts", False),
        ("State=up", "up", True),
        ("State=up", "accepts", True),
        ("SelectTypeParameters=CR_Core", "select_parameters", ("CR_Core",)),
        ("SelectTypeParameters=CR_LLN", "select_parameters", ()),
        ("OverTimeLimit=5", "attributes", {"over_time_limit": 300.0}),
        ("OverTimeLimit=UNLIMITED", "attributes", {"over_time_limit": math.inf}),
    ],
)
def test_partition_setting(text: str, field: str, value: Any) -> None:
    rest = f"NodeName=n1\nPartitionName=p Nodes=n1 {text}"
    result = imported("SelectTypeParameters=CR_Core", rest=rest)
    assert getattr(result.config.partition[0], field) == value


@pytest.mark.parametrize(
    ("state", "warning"),
    [
        ("UP", ""),
        ("DOWN", "slurm.conf:3 State: jobs are taken by partition p, but none starts there"),
        (
            "DRAIN",
            "slurm.conf:3 State: partition p takes no new jobs, so all that a replay sends there are refused",
        ),
    ],
)
def test_a_partition_out_of_service_is_named(state: str, warning: str) -> None:
    """What a replay would otherwise show as jobs that wait or fail."""
    result = imported("", rest=f"NodeName=n1\nPartitionName=p Nodes=n1 State={state}")
    assert [each for each in result.warnings if " State: " in each] == ([warning] if warning else [])


def test_partition_select_needs_cores_in_the_cluster() -> None:
    """slurm-gang-and-select 0.3 no. 7."""
    rest = "NodeName=n1\nPartitionName=p Nodes=n1 SelectTypeParameters=CR_Core"
    result = imported("SelectTypeParameters=CR_CPU", rest=rest)
    assert result.config.partition[0].select_parameters == ()
    assert any("ignored: the cluster's own" in each for each in result.warnings)


def test_last_default_partition_counts() -> None:
    rest = "NodeName=n1\n" + "".join(f"PartitionName={name} Nodes=n1 Default=YES\n" for name in ("a", "b"))
    result = imported("", rest=rest)
    assert [each.default for each in result.config.partition] == [False, True]
    assert "Default=YES on a, b: the last one counts, 'b'" in result.warnings


# ---------------------------------------------------------------------------------------- problems
PRIO = "PreemptType=preempt/partition_prio\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PRIO, id="partition_prio, mode unset"),
        pytest.param(PRIO + "PreemptMode=GANG", id="partition_prio, gang only"),
        pytest.param("PreemptMode=SUSPEND", id="suspend, no type"),
        pytest.param(PRIO + "PreemptMode=SUSPEND", id="suspend, partition_prio"),
        pytest.param("PreemptType=preempt/qos\nPreemptMode=SUSPEND", id="suspend, qos"),
        pytest.param("PreemptMode=CANCEL", id="cancel, no type"),
        pytest.param(PRIO + "PreemptMode=REQUEUE,CANCEL", id="two actions"),
        pytest.param(PRIO + "PreemptMode=GANG,WITHIN,CANCEL", id="gang with within"),
        pytest.param(PRIO + 'PreemptMode="SUSPEND, GANG"', id="quoted blank"),
        pytest.param(PRIO + "PreemptMode=SUSPEND, GANG", id="blank"),
        pytest.param(PRIO + "PreemptMode=CANCEL\nPreemptExemptTime=abc", id="exempt time"),
        pytest.param("PreemptType=preempt/qso\nPreemptMode=CANCEL", id="unknown type-6.2"),
        pytest.param("SelectTypeParameters=CR_Memory", id="no unit for cons_tres-6.6"),
        pytest.param(
            PRIO + "PreemptMode=CANCEL\nPreemptParameters=min_exempt_priority=x",
            id="min_exempt_priority-6.5",
        ),
    ],
)
def test_s59_refused(text: str) -> None:
    """S59 and section 6: each must be refused, with file and line."""
    with pytest.raises(ConfigError) as caught:
        imported(text)
    lines = {problem.where.partition(" ")[0] for problem in caught.value.problems}
    assert lines <= {"slurm.conf:1", "slurm.conf:2", "slurm.conf:3"}
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("text", ["PreemptMode=GANG", PRIO + "PreemptMode=SUSPEND,GANG"])
def test_s59_accepted(text: str) -> None:
    assert imported(text).config.policy.gang == "gang/timeslice"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("PremptMode=CANCEL", "slurm.conf:1 PremptMode",
         "no such parameter in slurm.conf; did you mean 'PreemptMode'?"),
        ("zzz=1", "slurm.conf:1 zzz", "no such parameter in slurm.conf"),
        ("NodeName=x1 CPU=3", "slurm.conf:1 CPU",
         "no such parameter on a NodeName line; did you mean 'CPUs'?"),
        ("PartitionName=x prioritytear=3", "slurm.conf:1 prioritytear",
         "no such parameter on a PartitionName line; did you mean 'PriorityTier'?"),
        ("PartitionName=x Nodes=n[1-2],n9", "slurm.conf:1 Nodes", "no node or node set named 'n9'"),
        ("PartitionName=x Nodes=n[1-", "slurm.conf:1 Nodes", "host list 'n[1-'"),
        ("PartitionName=x PriorityTier=65534", "slurm.conf:1 PriorityTier", "from 0 to 65533"),
        ("PartitionName=x OverSubscribe=MAYBE", "slurm.conf:1 OverSubscribe", "allowed: NO, "),
        ("PartitionName=x Exclusive=CORE", "slurm.conf:1 Exclusive", "allowed: NO, NODE"),
        ("PartitionName=x PreemptMode=KILL", "slurm.conf:1 PreemptMode", "got 'KILL'"),
        ("PartitionName=x PreemptMode=CANCEL,REQUEUE", "slurm.conf:1 PreemptMode", "one action"),
        ("PartitionName=x State=OPEN", "slurm.conf:1 State", "allowed: UP, DOWN"),
        ("PartitionName=x GraceTime=1:00", "slurm.conf:1 GraceTime", "whole number"),
        ("NodeName=n[3-5]", "slurm.conf:2 NodeName=n[1-4]", "'n3' is there already: slurm.conf:1"),
        ("NodeName=m1 Gres=gpu:-3", "slurm.conf:1 Gres", "expected name, name:count"),
        ("NodeNam=m1", "slurm.conf:1 NodeNam", "in slurm.conf; did you mean 'NodeName'?"),
        ("NodeName=m1 State=BROKEN", "slurm.conf:1 State", "allowed: DOWN, DRAIN"),
        ("NodeName=m1 Sockets=70000", "slurm.conf:1 Sockets", "from 0 to 65535"),
        ("NodeName=m1 RealMemory=lots", "slurm.conf:1 RealMemory", "expected megabytes"),
        ("NodeSet=n1 Nodes=n2", "slurm.conf:1 NodeSet=n1", "'n1' is taken already"),
        ("NodeSet=s Nodes=n7", "slurm.conf:1 NodeSet=s", "no node named 'n7'"),
        ("PartitionName=all", "slurm.conf:3 PartitionName=all", "there already: slurm.conf:1"),
        ("SelectType=select/serail", "slurm.conf:1 SelectType", "allowed: select/cons_tres"),
        ("SelectTypeParameters=CR_Corr", "slurm.conf:1 SelectTypeParameters", "mean 'CR_Core'?"),
        ("SchedulerType=sched/wiki", "slurm.conf:1 SchedulerType", "allowed: sched/backfill"),
        ("SchedulerTimeSlice=70000\nPreemptMode=GANG", "slurm.conf:1 SchedulerTimeSlice", "65533"),
        ("MCSPlugin=mcs/usr", "slurm.conf:1 MCSPlugin", "did you mean 'mcs/user'?"),
        ("Licenses=a:b:c", "slurm.conf:1 Licenses", "expected name"),
        ("AuthInfo=cred_expire=soon", "slurm.conf:1 AuthInfo", "whole number"),
    ],
)  # fmt: skip
def test_problem(text: str, where: str, message: str) -> None:
    """Where, what was given, what is allowed, and a guess."""
    with pytest.raises(ConfigError) as caught:
        imported(text)
    problem = caught.value.problems[0]
    assert problem.where == where
    assert message in problem.message
    assert len(caught.value.problems) == 1


def test_all_problems_at_once_in_file_order() -> None:
    text = """\
    PreemptMode=KILL
    Foo=1
    NodeName=m1 Weight=x
    KillWait=soon
    PartitionName=p Nodes=nowhere MaxTime=x
    """
    with pytest.raises(ConfigError) as caught:
        imported(text)
    assert [problem.where for problem in caught.value.problems] == [
        "slurm.conf:1 PreemptMode",
        "slurm.conf:2 Foo",
        "slurm.conf:3 Weight",
        "slurm.conf:4 KillWait",
        "slurm.conf:5 Nodes",
        "slurm.conf:5 MaxTime",
    ]
    assert str(caught.value).startswith("slurm.conf: 6 problems\n  slurm.conf:1 PreemptMode: got")


def test_nothing_is_concluded_from_a_wrong_value() -> None:
    """A bad mode is one problem, not also a type without a mode."""
    with pytest.raises(ConfigError) as caught:
        imported(PRIO + "PreemptMode=KILL")
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [("PartitionName=p", "no nodes"), ("NodeName=n1", "no partitions")],
)
def test_half_a_site(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        imported(text, rest="")


def test_release_must_be_one() -> None:
    with pytest.raises(ConfigError, match=r"allowed: a Slurm release, '22.05' to"):
        imported("", "newest")


# ---------------------------------------------------------------------------------------- warnings
@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("PreemptMode=GANG\nSchedulerTimeSlice=3",
         "slurm.conf:2 SchedulerTimeSlice: got 3; the least is 5, Slurm uses 30 instead"),
        ("PreemptType=preempt/qos\nPreemptMode=CANCEL", "slurm.conf does not hold QOS"),
        ("PartitionName=x QOS=q", "QOS q: named by partitions, described only in accounting"),
        ("PartitionName=x PreemptMode=CLUSTER", "CLUSTER means OFF on a partition"),
        ("PartitionName=x PreemptMode=GANG,REQUEUE", "GANG is for the cluster only and is dropped"),
        ("PartitionName=x PreemptMode=GANG", "nothing is left, which means OFF"),
        ("PartitionName=x OverSubscribe=YES:1", "'YES:1' is taken as NO"),
        ("PartitionName=x DefaultTime=9 MaxTime=8", "DefaultTime: partition x: longer than MaxTime"),
        ("PreemptParameters=youngest_frist", "'youngest_frist' is unknown; Slurm ignores it "
         "silently; did you mean 'youngest_first'?"),
        ("PreemptParameters=not_youngest_first", "counts as youngest_first"),
        ("PreemptParameters=reorder_count=-1", "reorder_count '-1' is taken as 1"),
        ("SchedulerParameters=bf_interval=0", "bf_interval=0 is out of range"),
        ("SchedulerParameters=bf_interval=-1", "switches backfill off"),
        ("SchedulerParameters=sched_interval=-1", "switches the main scheduler off"),
        ("DefMemPerNode=3\nDefMemPerCPU=3", "DefMemPerCPU: ignored, as DefMemPerNode is given as well"),
        ("DownNodes=n9", "no node named 'n9', which Slurm logs and passes over"),
        ("SchedulerParameters=bf_window=long", "bf_window 'long' is taken as 0"),
        ("GresTypes=gpu\nNodeName=m1 Gres=gpu:2,gpuu:a100:3",
         "Gres: 'gpuu' is not in GresTypes=gpu, so that Slurm knows no such resource; did you mean 'gpu'?"),
        ("NodeName=m1 Sockets=0", "got '0'; Slurm takes 1"),
        ("KillWait=3\nKillWait=4", "given again at slurm.conf:2, which wins with '4'"),
        ("NodeName=m1 CPUs=9 Sockets=2 CoresPerSocket=4", "CPUs is set to 8"),
        ("MCSPlugin=mcs/user\nMCSParameters=enforce", "'enforce' is unknown; did you mean"),
    ],
)  # fmt: skip
def test_warning(text: str, warning: str) -> None:
    found = [each for each in imported(text).warnings if warning in each]
    assert len(found) == 1, imported(text).warnings


@pytest.mark.parametrize(
    "text",
    [
        "MCSPlugin=mcs/user\nMCSParameters=enforced,noselect",
        "MCSPlugin=mcs/group\nMCSParameters=enforced,noselect:red|blue",
        "MCSPlugin=mcs/group\nMCSParameters=red|blue",
    ],
)
def test_words_of_mcs_that_are_known(text: str) -> None:
    """Options of every source, and the groups of mcs/group, are no mistake."""
    assert not [each for each in imported(text).warnings if "is unknown" in each]


@pytest.mark.parametrize(("words", "warned"), [("CR_Core", False), ("CR_Core,CR_Memory", True)])
def test_a_partition_takes_one_word(words: str, warned: bool) -> None:
    """Only if there are several is it said that one counts (slurm-gang-and-select 0.3)."""
    rest = f"NodeName=n[1-4] CPUs=4\nPartitionName=all Nodes=ALL SelectTypeParameters={words}\n"
    found = imported("SelectType=select/cons_tres\nSelectTypeParameters=CR_Core", rest=rest).warnings
    assert any("as a partition takes a single word" in each for each in found) is warned


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("PreemptParameters=suspend_grace_time=9", "fixed at 2 s in Slurm 22.05"),
        ("SelectType=select/cons_res\nSelectTypeParameters=CR_Core", "is taken as select/cons_tres"),
    ],
)
def test_warning_of_an_older_release(text: str, warning: str) -> None:
    assert any(warning in each for each in imported(text, "22.05").warnings)
    assert not any(warning in each for each in imported(text).warnings)


def names_of(found: tuple[LeftOut, ...]) -> list[str]:
    """Return parameters with their lines."""
    return [f"{each.name} {' '.join(each.places)}" for each in found]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("PrioritySiteFactorPlugin=site_factor/none", False),
        ("PrioritySiteFactorPlugin=site_factor/ours", True),
        ("SchedulerParameters=assoc_limit_stop,bf_min_prio_reserve=9", False),
        ("PriorityFlags=MAX_TRES", False),
        ("PriorityWeightTRES=CPU=10", False),
    ],
)
def test_what_makes_up_an_order_may_matter_only_if_not_modelled(line: str, named: bool) -> None:
    """A site factor of the site's own is named; what is modelled, and a plugin that does nothing, is not."""
    text = f"PriorityType=priority/multifactor\nAccountingStorageEnforce=limits\n{line}"
    found = imported(text)
    assert bool(names_of(found.unmodelled)) is named


def test_what_is_not_modelled_is_named_with_its_lines() -> None:
    """Sorted; what may matter apart from what does not."""
    text = """\
    VSizeFactor=110
    slurmctldport=6817
    SchedulerParameters=bf_continue,bf_intervall=3
    AuthType=auth/munge
    PartitionName=x RootOnly=YES Hidden=YES
    PartitionName=y RootOnly=YES
    """
    found = imported(text)
    assert found.warnings == ()
    assert names_of(found.unmodelled) == [
        "PartitionName RootOnly slurm.conf:5 slurm.conf:6",
        "SchedulerParameters=bf_continue slurm.conf:3",
        "SchedulerParameters=bf_intervall - did you mean 'bf_interval'? slurm.conf:3",
        "VSizeFactor slurm.conf:1",
    ]
    assert names_of(found.idle) == [
        "AuthType slurm.conf:4",
        "PartitionName Hidden slurm.conf:5",
        "SlurmctldPort slurm.conf:2",
    ]


# ----------------------------------------------------------------------------------- a fragment
def test_nodes_described_elsewhere() -> None:
    """As in the oracle's scenarios: policy and partition lines here, machines and QOS there."""
    text = """
    SchedulerType=sched/builtin
    SelectType=select/cons_tres
    SelectTypeParameters=CR_Core
    PreemptType=preempt/qos
    PreemptMode=REQUEUE
    PartitionName=DEFAULT OverSubscribe=FORCE:1 Nodes=ALL
    PartitionName=std Default=YES QOS=high
    PartitionName=some Nodes=n[2-3]
    """
    result = config_from_entries(
        parse_conf(text).entries,
        [NodeTable(name="n[1-3]", cpus=8, sockets=2, cores_per_socket=4)],
        "pp.toml",
        "22.05.8",
        qos=[QosTable(name="low"), QosTable(name="high", preempt=("low",))],
        licenses={"foo": 2},
    )
    cluster = build_cluster(result.config)
    assert [each.nodes for each in cluster.partitions] == [0b111, 0b110]
    assert [each.name for each in cluster.qos] == ["low", "high"]
    assert cluster.licenses == {"foo": 2}
    assert result.warnings == ()
    assert [each.level for each in check(result.config) if each.level != "note"] == []


def test_places_lead_back_to_the_file() -> None:
    rest = "NodeName=n1\nPartitionName=p Nodes=n1 GraceTime=9"
    result = imported("", rest=rest)
    found = check(result.config, (), result.places)
    graced = [each for each in found if "GraceTime" in each.message]
    assert [each.where for each in graced] == ["slurm.conf:3 GraceTime"]


# ------------------------------------------------------------------------------------ whole files
def test_site_file() -> None:
    """Include, DEFAULT lines, continuation, keys in odd case."""
    result = SlurmConfReader().read(DATA / "site.conf")
    cluster = build_cluster(result.config)
    assert cluster.name == "pine"
    assert len(cluster.nodes) == 47
    assert [each.name for each in cluster.nodes if not each.up] == [
        "fat4", "old7", "thin011", "thin012",
    ]  # fmt: skip
    thin = cluster.node("thin001")
    assert thin is not None
    assert (thin.cpus, thin.cores, thin.usable_memory_mb) == (64, 32, 251904)
    sizes = {each.name: each.nodes.bit_count() for each in cluster.partitions}
    assert sizes == {"batch": 40, "scavenger": 47, "urgent": 42, "gpu": 2, "drained": 0}
    scavenger = cluster.partition("scavenger")
    assert scavenger is not None
    assert (scavenger.max_time, scavenger.grace_time) == (None, 120.0)
    assert str(scavenger.oversubscribe) == "FORCE:1"
    assert build_clockwork(result.config.scheduler.clockwork).requeue_delay == 301.0
    assert [text.partition(" (")[0] for text in result.matters] == [
        "fair share weighs in Slurm's order of jobs",
        "Slurm enforces limits of associations and QOS",
    ]
    assert [each for each in check(result.config) if each.level == "error"] == []


def test_old_file() -> None:
    """Older words: Shared, Priority, Procs, select/cons_res, preempt options in other places."""
    config = SlurmConfReader(release="22.05").read(DATA / "old.conf").config
    assert config.policy.select == "select/cons_tres"
    assert config.policy.preemption == PreemptionTable(
        reorder_count=3, strict_order=True, send_user_signal=True
    )
    assert [each.priority_tier for each in config.partition] == [10, 20]
    assert config.partition[1].oversubscribe == "FORCE:2"


def test_errors_name_the_included_file(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("PreemptMode=GANG\nInclude parts.conf\n")
    (tmp_path / "parts.conf").write_text("NodeName=n1\nPartitionName=p Nodes=n2\n")
    with pytest.raises(ConfigError) as caught:
        SlurmConfReader().read(tmp_path / "slurm.conf")
    assert [problem.where for problem in caught.value.problems] == [f"{tmp_path / 'parts.conf'}:2 Nodes"]


@pytest.mark.parametrize(
    ("name", "head", "claimed"),
    [
        ("slurm.conf", "", True),
        ("slurm-test.conf", "", True),
        ("site.conf", "# x\n clustername = a\n", True),
        ("my.txt", "PartitionName=a Nodes=ALL", True),
        ("moab.cfg", "RMCFG[base] TYPE=PBS\n", False),
        ("slurm.toml", "ClusterName=x", False),
        ("lsb.queues", "Begin Queue\nQUEUE_NAME = a\n", False),
        pytest.param(
            "cluster.conf", "# all of it\nInclude /etc/slurm/site.conf\n", True, id="an include alone"
        ),
        pytest.param(
            "cluster.conf", "include a.conf\nSlurmctldDebug=info\n", True, id="an include and a parameter"
        ),
        pytest.param("httpd.conf", "Include a.conf\n<VirtualHost *>\n", False, id="an include of others"),
        pytest.param("x.toml", "Include a.conf\n", False, id="TOML by name"),
    ],
)
def test_claims(name: str, head: str, claimed: bool) -> None:
    """By name, by a parameter that no other has, or by including all the rest."""
    assert SlurmConfReader().claims(name, head) is claimed


# ------------------------------------------------------------------------------------ the way back
@pytest.mark.parametrize("name", ["site.conf", "old.conf", "qos.conf"])
@pytest.mark.parametrize("release", [None, "22.05.8", "26.11"])
def test_files_come_back_from_toml(name: str, release: str | None) -> None:
    config = SlurmConfReader(release=release).read(DATA / name).config
    assert parse_toml(dump_toml(config), "x.toml") == config


SCENARIOS = sorted((DATA.parent / "oracle" / "scenarios").glob("*.toml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.stem))
def test_recorded_scenarios_are_taken_and_come_back(path: Path) -> None:
    """Real Slurm started with each of them, so nothing in them is an error."""
    cluster = tomllib.loads(path.read_text())["cluster"]
    nodes = [NodeTable(name=each["name"], cpus=each["cpus"]) for each in cluster["nodes"]]
    qos = [QosTable(name=each["name"]) for each in cluster.get("qos", [])]
    entries = parse_conf(cluster["slurm_conf"]).entries
    config = config_from_entries(entries, nodes, path.name, qos=qos).config
    assert parse_toml(dump_toml(config), "x.toml") == config
    assert [each for each in check(config) if each.level == "error"] == []


NAMES = st.text("abcdefgh0123456789", min_size=1, max_size=5)
COUNTS = st.integers(0, 10**6)
SIZES = st.integers(1, 64)
TIMES = st.floats(0, 1e9)
MEMORY = st.none() | COUNTS
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FREE = st.dictionaries(TEXT, VALUES, max_size=3)
MODES = st.sampled_from(
    [(), ("off",), ("cancel",), ("suspend", "gang"), ("requeue", "within", "priority"), ("gang",)]
)
WORDS = st.lists(NAMES, max_size=3).map(tuple)
SELECT = st.lists(st.sampled_from(SELECT_WORDS)).map(tuple)
MEMORY_LIMITS: dict[str, Any] = {
    f"{stem}_mem_per_{unit}": MEMORY for stem in ("def", "max") for unit in ("cpu", "node")
}


def _node(index: int) -> st.SearchStrategy[NodeTable]:
    return st.builds(
        NodeTable,
        name=st.sampled_from([f"n{index}", f"m{index}x[1-3,7]"]),
        cpus=st.none() | SIZES, sockets=SIZES, cores_per_socket=st.none() | SIZES,
        threads_per_core=SIZES, memory_mb=COUNTS, mem_spec_limit_mb=COUNTS, weight=COUNTS,
        features=WORDS, gres=st.dictionaries(TEXT, COUNTS, max_size=2), up=st.booleans(),
        load=TIMES, attributes=FREE,
    )  # fmt: skip


def _partition(index: int, qos: list[str]) -> st.SearchStrategy[PartitionTable]:
    return st.builds(
        PartitionTable,
        name=st.just(f"p{index}"), nodes=st.sampled_from(["ALL", ""]),
        priority_tier=st.integers(0, 65533), priority_job_factor=COUNTS,
        oversubscribe=st.sampled_from(["NO", "EXCLUSIVE", "YES", "YES:3", "FORCE", "FORCE:1"]),
        exclusive_user=st.booleans(), preempt_mode=st.none() | MODES, grace_time=TIMES,
        qos=st.sampled_from([None, *qos]), default=st.just(index == 1),
        max_time=st.none() | TIMES, default_time=st.none() | TIMES, min_nodes=COUNTS,
        max_nodes=MEMORY, max_cpus_per_node=MEMORY, select_parameters=SELECT, lln=st.booleans(),
        up=st.booleans(), attributes=FREE, **MEMORY_LIMITS,
    )  # fmt: skip


def _qos(index: int) -> st.SearchStrategy[QosTable]:
    lower = st.just(tuple(f"q{each}" for each in range(index)))
    return st.builds(
        QosTable,
        name=st.just(f"q{index}"), priority=COUNTS, preempt=st.just(()) | lower,
        preempt_mode=st.none() | MODES, grace_time=TIMES, exempt_time=st.none() | TIMES,
        flags=WORDS, attributes=FREE,
    )  # fmt: skip


POLICIES = st.builds(
    PolicyTable,
    select=TEXT, select_parameters=SELECT, preempt=TEXT, preempt_mode=MODES, gang=st.none() | TEXT,
    search=st.none() | TEXT, protect=WORDS, plugins=WORDS,
    preemption=st.builds(
        PreemptionTable,
        exempt_time=st.none() | TIMES, min_exempt_priority=MEMORY, youngest_first=st.booleans(),
        reorder_count=COUNTS, strict_order=st.booleans(), send_user_signal=st.booleans(),
        reclaim_licenses=st.booleans(),
    ),
    mcs=st.builds(
        McsTable,
        label=st.sampled_from(["none", "user", "label"]), enforced=st.booleans(),
        select=st.sampled_from(["noselect", "select"]),
    ),
    settings=st.dictionaries(TEXT, FREE, max_size=2),
)  # fmt: skip

SCHEDULERS = st.builds(
    SchedulerTable,
    type=st.sampled_from(["builtin", "easy", "backfill"]),
    clockwork=st.sampled_from(["ideal", "slurm"])
    | st.fixed_dictionaries({"preset": st.just("slurm")}, optional={"kill_wait": TIMES}),
    slurm_release=st.sampled_from([None, "22.05.8", "26.11"]),
    rules=st.dictionaries(st.just("reclaim_licenses"), st.booleans()),
    enforce_time_limits=st.booleans(), requeue=st.booleans(), max_requeues=MEMORY,
    over_time_limit=TIMES,
)  # fmt: skip

WORKLOADS = st.builds(
    WorkloadTable,
    map=st.lists(st.builds(MappingRule, user=WORDS, qos=WORDS, to_qos=st.none() | TEXT), max_size=2).map(
        tuple
    ),
    partition=st.none() | TEXT,
    cpus_per_node=st.none() | SIZES,
)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Return any configuration that is sound by itself."""
    qos = [draw(_qos(index)) for index in range(draw(st.integers(0, 2)))]
    names = [each.name for each in qos]
    return Config(
        cluster=draw(
            st.builds(
                ClusterTable,
                name=TEXT,
                licenses=st.dictionaries(TEXT, COUNTS, max_size=2),
                attributes=FREE,
                **MEMORY_LIMITS,
            )
        ),
        node=tuple(draw(_node(index)) for index in range(1, 1 + draw(st.integers(1, 2)))),
        partition=tuple(draw(_partition(i, names)) for i in range(1, 1 + draw(st.integers(1, 2)))),
        qos=tuple(qos),
        policy=draw(POLICIES),
        scheduler=draw(SCHEDULERS),
        workload=draw(WORKLOADS),
        job=tuple(draw(st.lists(FREE, max_size=2))),
        action=tuple(draw(st.lists(FREE, max_size=2))),
    )


@settings(deadline=None)
@given(configs())
def test_any_config_comes_back_from_toml(config: Config) -> None:
    assert parse_toml(dump_toml(config), "x.toml") == config


# --------------------------------------------------------------------------------------- properties
LINES = [
    "PreemptType=preempt/partition_prio",
    "PreemptMode=SUSPEND,GANG",
    "SelectTypeParameters=CR_Core_Memory",
    "SchedulerTimeSlice=7",
    "AuthInfo=cred_expire=9",
    "PreemptParameters=strict_order,reorder_count=2",
    "SchedulerParameters=bf_interval=9",
]


@given(st.permutations(LINES))
def test_order_of_parameters_changes_nothing(lines: list[str]) -> None:
    assert imported("\n".join(lines)).config == imported("\n".join(LINES)).config


@given(st.permutations(["Nodes=n1", "PriorityTier=3", "PreemptMode=OFF", "QOS=q", "LLN=YES"]))
def test_order_of_keys_changes_nothing(words: list[str]) -> None:
    rest = "NodeName=n1\nPartitionName=p " + " ".join(words)
    (partition,) = imported("", rest=rest).config.partition
    assert partition == PartitionTable(
        name="p", nodes="n1", priority_tier=3, preempt_mode=("off",), qos="q", lln=True
    )


KEYS = st.sampled_from(sorted(slurm_names.MODELLED))
ODD = st.sampled_from(
    """-1 0 1 5 65534 99999999999999999999 x YES NO FORCE:0 SUSPEND,GANG ALL n[1-2] n[2-1] , =
    a,,b preempt/qos select/linear UNLIMITED 1-2:3:4 INFINITE 1T cred_expire=1 a:1,a:2
    reorder_count= bf_interval=-5,sched_interval=x FORCE:99999 YES:2 EXCLUSIVE""".split()
) | st.text(st.characters(codec="ascii", exclude_characters='"#\\', min_codepoint=32), max_size=12)


@given(
    st.lists(st.tuples(KEYS, ODD), max_size=6),
    st.lists(st.tuples(st.sampled_from(sorted(slurm_names.NODE_MODELLED)), ODD), max_size=3),
    st.lists(st.tuples(st.sampled_from(sorted(slurm_names.PARTITION_MODELLED)), ODD), max_size=3),
)
def test_any_value_is_taken_or_refused(
    simple: list[tuple[str, str]], node: list[tuple[str, str]], partition: list[tuple[str, str]]
) -> None:
    """Only ConfigError comes out, and what is taken survives the way back."""
    lines = [f'{key}="{value}"' for key, value in simple]
    for head, pairs in (("NodeName=n1", node), ("PartitionName=p", partition)):
        lines.append(" ".join([head, *(f'{key}="{value}"' for key, value in pairs)]))
    config: Config | None = None
    with contextlib.suppress(ConfigError):
        config = imported("\n".join(lines), rest="").config
    assert config is None or parse_toml(dump_toml(config), "x.toml") == config


def test_default_lines_are_merged() -> None:
    """Later DEFAULT lines add to earlier ones, and lines above them are not touched."""
    rest = """
    NodeName=n1
    PartitionName=a Nodes=n1
    PartitionName=DEFAULT Nodes=ALL PriorityTier=5
    PartitionName=DEFAULT GraceTime=7
    PartitionName=b PriorityTier=6
    """
    a, b = imported("", rest=rest).config.partition
    assert (a.priority_tier, a.grace_time) == (1, 0.0)
    assert (b.priority_tier, b.grace_time) == (6, 7.0)


_SITE = (
    "ClusterName=x\nSelectType=select/cons_tres\nNodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"
)


def _of(line: str, release: str) -> Loaded:
    return config_from_entries(parse_conf(f"{_SITE}{line}\n").entries, release=release)


@pytest.mark.parametrize(
    ("line", "last", "first"),
    [
        ("HealthCheckTimeout=5", "24.11", "25.05"),
        ("CliFilterParameters=cli_filter_lua_path=/x", "25.05", "25.11"),
        ("MetricsAuthUsers=ann", "25.11", "26.05"),
        ("DataParserParameters=x", "24.05", "24.11"),
        ("PowerAction=a Location=slurmd Program=/bin/true", "25.11", "26.05"),
        ("NodeName=n2 CPUs=4 RestrictedCoresPerGPU=2", "23.11", "24.05"),
        ("PartitionName=q Nodes=ALL ExclusiveTopo=NO", "23.11", "24.05"),
        ("NodeName=n2 CPUs=4 SuspendTime=60", "25.11", "26.05"),
    ],
)
def test_parameters_by_release(line: str, last: str, first: str) -> None:
    """As slurmctld 22.05.8, 24.11.5 and 26.05.5 have it, and the release notes between."""
    before = _of(line, last)
    assert any(
        f"Slurm {last} does not know it yet (since {first}) and does not start" in each
        for each in before.refused
    )
    assert _of(line, first).refused == ()


@pytest.mark.parametrize(
    ("line", "last", "first"),
    [
        ("FrontendName=f", "24.11", "25.05"),
        ("SelectType=select/cons_res", "23.02", "23.11"),
    ],
)
def test_what_later_releases_refuse(line: str, last: str, first: str) -> None:
    """24.11.5 finds no such plugin; 26.05.5 knows no such line."""
    assert _of(line, last).refused == ()
    (told,) = _of(line, first).refused
    assert f"gone since Slurm {first}, which does not start with it" in told


@pytest.mark.parametrize(
    ("line", "last", "first"),
    [("GetEnvTimeout=2", "24.11", "25.05"), ("PowerPlugin=power/none", "23.11", "24.11")],
)
def test_what_later_releases_call_defunct(line: str, last: str, first: str) -> None:
    """They start all the same (24.11.5, 26.05.5), so it is a warning."""
    assert _of(line, last).warnings == ()
    found = _of(line, first)
    assert found.refused == ()
    assert f"gone since Slurm {first}; slurmctld calls it defunct and ignores it" in found.warnings[0]

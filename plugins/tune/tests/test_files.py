"""Candidates of each scheduler: what may be changed, and the edited files as a person would have written them."""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway.config import Config
from makeway.errors import ConfigError
from makeway_app.cli.inputs import load_config
from makeway_tune.files import Site, site_of

ROOT = Path(__file__).parents[3]


def site(path: Path) -> Site:
    """Return the site of a configuration; what it says counts for TOML alone."""
    config = load_config(path).config if path.suffix == ".toml" else Config()
    return site_of(path, config)


def changed(found: Site, *chosen: tuple[str, str]) -> list[str]:
    """Return the lines that a candidate takes out and puts in."""
    lines = found.diff(tuple(chosen)).splitlines()
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


def test_slurm(conf: Path) -> None:
    """A parameter of its own, words of one parameter, and keys of a partition; comments and the rest stay."""
    found = site(conf)
    names = {each.name: (each.now, each.values) for each in found.knobs}
    assert names["PreemptMode"] == ("REQUEUE", ("CANCEL", "SUSPEND,GANG"))
    assert names["PartitionName=batch GraceTime"] == ("", ("60", "300", "900"))
    assert names["PartitionName=batch PriorityTier"] == ("1", ("10",))
    assert "PartitionName=urgent PreemptMode" not in names
    assert "SchedulerTimeSlice" not in names
    chosen = (
        ("PreemptMode", "CANCEL"),
        ("PreemptParameters=youngest_first", "yes"),
        ("PreemptParameters=reorder_count", "4"),
        ("PartitionName=batch PriorityTier", "10"),
        ("PartitionName=batch GraceTime", "300"),
    )
    line = "PartitionName=batch Nodes=n1 PriorityTier={}  # everybody"
    assert changed(found, *chosen) == [
        "-PreemptMode=REQUEUE",
        "+PreemptMode=CANCEL",
        "+PreemptParameters=youngest_first,reorder_count=4",
        "-" + line.format("1 Default=YES MaxTime=INFINITE"),
        "+" + line.format("10 Default=YES MaxTime=INFINITE GraceTime=300"),
    ]


def test_slurm_priorities(conf: Path) -> None:
    """Where weights say how far priorities go, thresholds are tried at its quarters; 8000 + 4000 are 12000."""
    weights = "PriorityWeightAge=8000\nPriorityWeightQOS=4000\n"
    text = conf.read_text().replace("sched/builtin", "sched/backfill")
    conf.write_text(
        text.replace("PriorityType=priority/basic\n", f"PriorityType=priority/multifactor\n{weights}")
    )
    names = {each.name: each.values for each in site(conf).knobs}
    levels = ("3000", "6000", "9000")
    assert names["PreemptParameters=min_exempt_priority"] == levels
    assert names["SchedulerParameters=bf_min_prio_reserve"] == levels
    chosen = (
        ("PreemptParameters=min_exempt_priority", "6000"),
        ("SchedulerParameters=bf_min_prio_reserve", "3000"),
    )
    with site(conf).placed(chosen) as (path, _):
        read = load_config(path).config
    assert read.policy.preemption.min_exempt_priority == 6000
    assert read.scheduler.clockwork["bf_min_prio_reserve"] == 3000  # type: ignore[index]


def test_slurm_includes_and_continued_lines(tmp_path: Path) -> None:
    """A setting is changed in the file that holds it, and a record in the part of its line that has the key."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nSlurmctldHost=h\npreempttype=preempt/partition_prio\nPreemptMode=suspend,gang\n"
        "PreemptParameters=reorder_count=2,strict_order\nNodeName=n1\nInclude parts/all.conf\n"
    )
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/all.conf").write_text(
        "PartitionName=low Nodes=n1 \\\n  GraceTime=60 PreemptMode=requeue\n"
        'PartitionName="high" Nodes=n1 PriorityTier=2\n'
    )
    found = site(tmp_path / "slurm.conf")
    chosen = (("PreemptParameters=strict_order", ""), ("PartitionName=low GraceTime", "900"))
    assert changed(found, *chosen) == [
        "-PreemptParameters=reorder_count=2,strict_order",
        "+PreemptParameters=reorder_count=2",
        "-  GraceTime=60 PreemptMode=requeue",
        "+  GraceTime=900 PreemptMode=requeue",
    ]
    with found.placed(chosen) as (path, _):
        read = load_config(path).config
    assert read.partition[0].grace_time == 900
    assert not read.policy.preemption.strict_order
    assert read.policy.preemption.reorder_count == 2
    added = (("PartitionName=high OverSubscribe", "FORCE:2"),)
    assert changed(found, *added) == [
        '-PartitionName="high" Nodes=n1 PriorityTier=2',
        '+PartitionName="high" Nodes=n1 PriorityTier=2 OverSubscribe=FORCE:2',
    ]


def test_lsf() -> None:
    """Keywords of lsb.params and of a queue, each in its own file."""
    found = site(ROOT / "examples/lsf/lsb.queues")
    of_queues = {each.name for each in found.knobs if each.name.startswith("queue ")}
    assert {"queue long MAX_TOTAL_TIME_PREEMPT", "queue short PREEMPT_DELAY"} <= of_queues
    assert not {"queue long PREEMPT_DELAY", "queue short MAX_JOB_PREEMPT"} & of_queues
    chosen = (("PREEMPT_FOR", ""), ("MAX_JOB_PREEMPT", "2"), ("queue normal MAX_JOB_PREEMPT", "1"))
    assert changed(found, *chosen) == [
        "-PREEMPT_FOR            = LEAST_RUN_TIME MINI_JOB",
        "+MAX_JOB_PREEMPT = 2",
        "-MAX_JOB_PREEMPT = 4",
        "+MAX_JOB_PREEMPT = 1",
    ]


def test_lsf_without_lsb_params(tmp_path: Path) -> None:
    """A file that is not there yet is made."""
    (tmp_path / "lsb.queues").write_text(
        "Begin Queue\nQUEUE_NAME = low\nPREEMPTION = PREEMPTABLE\nHOSTS = n1\nEnd Queue\n"
    )
    found = site(tmp_path / "lsb.queues")
    chosen = (("NO_PREEMPT_RUN_TIME", "30"), ("MAX_JOB_PREEMPT", "1"))
    assert found.diff(chosen) == (
        "--- /dev/null\n+++ lsb.params\n@@ -0,0 +1,4 @@\n"
        "+Begin Parameters\n+NO_PREEMPT_RUN_TIME = 30\n+MAX_JOB_PREEMPT = 1\n+End Parameters\n"
    )


def test_moab() -> None:
    """Plain parameters, new ones at the end, and the priority of a QoS within its line."""
    found = site(ROOT / "examples/moab/moab.cfg")
    chosen = (
        ("PREEMPTPOLICY", "SUSPEND"),
        ("JOBPREEMPTMINACTIVETIME", "00:30:00"),
        ("QOSCFG[low] PRIORITY", "1"),
    )
    policies = next(each for each in found.knobs if each.name == "PREEMPTPOLICY")
    assert set(policies.values) == {"SUSPEND", "CHECKPOINT", "CANCEL"}
    assert changed(found, *chosen) == [
        "-PREEMPTPOLICY        REQUEUE",
        "+PREEMPTPOLICY        SUSPEND",
        "-QOSCFG[low]  QFLAGS=PREEMPTEE PRIORITY=100 JOBFLAGS=RESTARTABLE",
        "+QOSCFG[low]  QFLAGS=PREEMPTEE PRIORITY=1 JOBFLAGS=RESTARTABLE",
        "+JOBPREEMPTMINACTIVETIME 00:30:00",
    ]


def test_moab_priorities_of_classes(tmp_path: Path) -> None:
    """Each credential that has a priority has another one to try."""
    (tmp_path / "moab.cfg").write_text(
        "PREEMPTPOLICY REQUEUE\nCLASSCFG[long] PRIORITY=10 MAXPROC=8\nUSERCFG[ada] MAXJOB=1\n"
    )
    found = site(tmp_path / "moab.cfg")
    assert [each.name for each in found.knobs if "PRIORITY" in each.name] == ["CLASSCFG[long] PRIORITY"]
    assert changed(found, ("CLASSCFG[long] PRIORITY", "1000")) == [
        "-CLASSCFG[long] PRIORITY=10 MAXPROC=8",
        "+CLASSCFG[long] PRIORITY=1000 MAXPROC=8",
    ]


def test_maui_has_fewer(tmp_path: Path) -> None:
    """What Maui does not know is not tried."""
    (tmp_path / "maui.cfg").write_text("PREEMPTPOLICY REQUEUE\n")
    names = [each.name for each in site(tmp_path / "maui.cfg").knobs]
    assert "PREEMPTPOLICY" in names
    assert "JOBPREEMPTMINACTIVETIME" not in names


def test_kueue(tmp_path: Path) -> None:
    """A word of a stanza, and a stanza where a queue has none."""
    found = site(ROOT / "examples/kueue/kueue.yaml")
    assert changed(found, ("ClusterQueue product reclaimWithinCohort", "Never")) == [
        "-    reclaimWithinCohort: Any",
        "+    reclaimWithinCohort: Never",
    ]
    text = (ROOT / "examples/kueue/kueue.yaml").read_text()
    without = text.replace(
        "  preemption:\n    withinClusterQueue: LowerPriority\n    reclaimWithinCohort: Any\n", ""
    )
    (tmp_path / "kueue.yaml").write_text(without)
    found = site(tmp_path / "kueue.yaml")
    chosen = (
        ("ClusterQueue research withinClusterQueue", "LowerPriority"),
        ("ClusterQueue research reclaimWithinCohort", "Any"),
        ("ClusterQueue research borrowWithinCohort.policy", "LowerPriority"),
    )
    assert sorted(changed(found, *chosen)) == [
        "+      policy: LowerPriority",
        "+    borrowWithinCohort:",
        "+    reclaimWithinCohort: Any",
        "+    withinClusterQueue: LowerPriority",
        "+  preemption:",
    ]
    borrowing = chosen[2:]
    assert changed(found, *borrowing) == [
        "+  preemption:",
        "+    borrowWithinCohort:",
        "+      policy: LowerPriority",
    ]
    with found.placed(chosen) as (path, _):
        assert load_config(path).config.policy.preempt == "kueue/cohort"


def test_toml() -> None:
    """Keys of makeway's own file; comments stay."""
    found = site(ROOT / "examples/kth/cluster.toml")
    names = [each.name for each in found.knobs]
    assert "policy.preemption.exempt_time" in names
    chosen = (("policy.preemption.exempt_time", "3600"), ("partition.low.grace_time", "300"))
    assert {"+[policy.preemption]", "+exempt_time = 3600"} <= set(changed(found, *chosen))
    with found.placed(chosen) as (path, _):
        read = load_config(path).config
    assert read.policy.preemption.exempt_time == 3600
    assert {each.name: each.grace_time for each in read.partition}["low"] == 300


def test_a_reader_that_names_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which files cannot be tuned is said."""
    from makeway_slurm.readers.conf import SlurmConfReader

    monkeypatch.delattr(SlurmConfReader, "knobs")
    (tmp_path / "slurm.conf").write_text("ClusterName=c\n")
    with pytest.raises(ConfigError, match="does not say which settings may be changed"):
        site(tmp_path / "slurm.conf")


def test_qos_are_changed_by_commands(tmp_path: Path) -> None:
    """Of QOS that make way for others: what a person types, and what the candidate's accounting then says."""
    conf, qos = tmp_path / "slurm.conf", tmp_path / "qos.txt"
    conf.write_text(
        "ClusterName=c\nSlurmctldHost=h\nPreemptType=preempt/qos\nPreemptMode=REQUEUE\nNodeName=n1\n"
        "PartitionName=p Nodes=n1 Default=YES\n"
    )
    qos.write_text(
        "Name|Priority|GraceTime|Preempt|PreemptMode|PreemptExemptTime|Flags\n"
        "low|0|00:00:00||cluster||\nhigh|9|00:00:00|low|cluster||\n"
    )
    conf.write_text(f"PriorityType=priority/multifactor\nPriorityWeightQOS=800\n{conf.read_text()}")
    config = load_config(conf, accounting=[qos]).config
    found = site_of(conf, config, ["QOS="], accounting=(qos,))
    assert {each.name: each.values for each in found.knobs} == {
        "QOS=low PreemptMode": ("requeue", "cancel"),
        "QOS=low GraceTime": ("00:01:00", "00:05:00", "00:15:00"),
        "QOS=low PreemptExemptTime": ("00:10:00", "00:30:00", "01:00:00", "04:00:00"),
        "QOS=low MinPrioThreshold": ("200", "400", "600"),
    }
    chosen = (
        ("QOS=low PreemptMode", "cancel"),
        ("QOS=low GraceTime", "00:05:00"),
        ("QOS=low MinPrioThreshold", "400"),
    )
    assert found.diff(chosen).splitlines() == [
        "sacctmgr modify qos low set PreemptMode=cancel",
        "sacctmgr modify qos low set GraceTime=300",
        "sacctmgr modify qos low set MinPrioThreshold=400",
    ]
    with found.placed(chosen) as (path, accounting):
        (low, _) = load_config(path, accounting=accounting).config.qos
    assert (low.preempt_mode, low.grace_time) == (("cancel",), 300.0)
    assert low.attributes["MinPrioThreshold"] in ("400", 400)
    assert "cluster" in qos.read_text()

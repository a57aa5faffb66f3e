"""Outages from ``sacctmgr -P show event``, and nodes that Slurm switches off."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from makeway.errors import ConfigError
from makeway_app.cli import cli
from makeway_app.cli.inputs import load_config
from makeway_slurm.readers.events import outages_in

# The columns that sacctmgr(1) lists for events, in their usual order.
EVENTS = """\
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
lab||2025-06-01T00:00:00|Unknown||Cluster Registered TRES|
lab|n3|2025-06-02T08:00:00|2025-06-03T08:00:00|DOWN*|Not responding|slurm(64030)
lab|n1|2025-06-02T08:00:00|2025-06-03T08:00:00|DOWN|power|root(0)
lab|n2|2025-06-04T00:00:00|Unknown|IDLE+DRAIN|disk|root(0)
lab|n2|2025-06-04T00:00:00|Unknown|MIXED+PLANNED||
"""


def test_rows_about_nodes_are_outages(tmp_path: Path) -> None:
    """Rows of one time together; the row of the cluster is none, and what is in service is left out."""
    path = tmp_path / "events.txt"
    path.write_text(EVENTS)
    tables, odd = outages_in(path)
    assert [(each.nodes, each.state, each.at, each.until) for each in tables] == [
        ("n[1,3]", "down", "2025-06-02T08:00:00+00:00", "2025-06-03T08:00:00+00:00"),
        ("n2", "drain", "2025-06-04T00:00:00+00:00", None),
    ]
    assert odd == ["1 rows left out: state MIXED+PLANNED"]


def test_another_file_is_refused(tmp_path: Path) -> None:
    """With what is allowed."""
    path = tmp_path / "events.txt"
    path.write_text("JobID|State\n1|COMPLETED\n")
    with pytest.raises(ConfigError, match="no column nodename, timestart, timeend"):
        outages_in(path)


def test_power_saving_is_read(tmp_path: Path) -> None:
    """slurm.conf(5): all of SuspendTime, SuspendProgram and ResumeProgram are needed; SuspendExcNodes stay on."""
    text = """\
ClusterName=lab
SlurmctldHost=head
SuspendTime=600
SuspendProgram=/sbin/off
ResumeProgram=/sbin/on
ResumeTimeout=300
SuspendExcNodes=n1
NodeName=n[1-3] CPUs=4 RealMemory=1000
NodeName=c[1-2] CPUs=4 RealMemory=1000 State=CLOUD
PartitionName=p Nodes=ALL Default=YES
"""
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    loaded = load_config(path)
    assert [(each.name, each.off, each.boot_time, each.off_after) for each in loaded.config.node] == [
        ("n1", False, 0.0, None),
        ("n[2-3]", False, 300.0, 600.0),
        ("c[1-2]", True, 300.0, 600.0),
    ]
    assert any("ResumeTimeout=300" in text for text in loaded.warnings)
    path.write_text(text.replace("ResumeProgram=/sbin/on\n", ""))
    assert all(each.off_after is None for each in load_config(path).config.node)


def test_power_saving_by_partition(tmp_path: Path) -> None:
    """The longest time of a node's partitions counts, else the cluster's; nodes of SuspendExcParts stay on."""
    path = tmp_path / "slurm.conf"
    path.write_text("""\
ClusterName=lab
SlurmctldHost=head
SuspendProgram=/sbin/off
ResumeProgram=/sbin/on
SuspendExcParts=login,gone
NodeName=n[1-4] CPUs=4 RealMemory=1000
NodeName=c[1-4] CPUs=4 RealMemory=1000 State=CLOUD
NodeSet=far Nodes=c[1-3]
PartitionName=all Nodes=ALL Default=YES
PartitionName=cloud Nodes=far SuspendTime=600 ResumeTimeout=300
PartitionName=late Nodes=c3,n[1-2] SuspendTime=900
PartitionName=kept Nodes=n3 SuspendTime=INFINITE
PartitionName=login Nodes=n1
""")
    loaded = load_config(path)
    assert [(each.name, each.off, each.boot_time, each.off_after) for each in loaded.config.node] == [
        ("n1", False, 0.0, None),
        ("n2", False, 60.0, 900.0),
        ("n[3-4]", False, 0.0, None),
        ("c[1-2]", True, 300.0, 600.0),
        ("c3", True, 300.0, 900.0),
        ("c4", True, 60.0, None),
    ]
    assert any("no partition named 'gone'; it is passed over" in text for text in loaded.warnings)
    assert any("ResumeTimeout=60, 300" in text for text in loaded.warnings)


def test_some_of_a_list_stay_on(tmp_path: Path) -> None:
    """slurm.conf(5): with a colon and a count, so many idle nodes of the list before it; others stay on as they are."""
    path = tmp_path / "slurm.conf"
    text = """\
ClusterName=lab
SlurmctldHost=head
SuspendTime=600
SuspendProgram=/sbin/off
ResumeProgram=/sbin/on
SuspendExcNodes=n1,n[2-4,6]:2,c[1-2]:1
NodeName=n[1-6] CPUs=4 RealMemory=1000
NodeName=c[1-2] CPUs=4 RealMemory=1000 State=CLOUD
PartitionName=p Nodes=ALL Default=YES
"""
    path.write_text(text)
    loaded = load_config(path)
    assert [(each.nodes, each.count) for each in loaded.config.stay_on] == [("n[2-4,6]", 2), ("c[1-2]", 1)]
    assert [(each.name, each.off_after) for each in loaded.config.node] == [
        ("n1", None),
        ("n[2-6]", 600.0),
        ("c[1-2]", 600.0),
    ]
    for wrong, said in (
        ("n[2-4]:x", "got n[2-4]:x; allowed: nodes, a colon"),
        ("m[1-2]:1", "no node named 'm1'"),
    ):
        path.write_text(text.replace("n[2-4,6]:2", wrong))
        with pytest.raises(ConfigError, match=re.escape(f"slurm.conf:6 SuspendExcNodes: {said}")):
            load_config(path)


@pytest.mark.parametrize(("requeue", "end"), [("1", "COMPLETED"), ("0", "NODE_FAIL")])
def test_job_requeue_decides_what_a_failed_node_does(tmp_path: Path, requeue: str, end: str) -> None:
    """slurm.conf(5), JobRequeue: by default batch jobs may be requeued, after node failure too."""
    (tmp_path / "slurm.conf").write_text(
        f"ClusterName=lab\nSlurmctldHost=head\nJobRequeue={requeue}\nSelectType=select/linear\n"
        "NodeName=n1 CPUs=4 RealMemory=1000\nPartitionName=p Nodes=n1 Default=YES MaxTime=INFINITE\n"
    )
    (tmp_path / "jobs.sacct").write_text(
        "JobID|User|Partition|Submit|Start|End|Elapsed|NNodes|NCPUS|State\n"
        "1|ann|p|2025-06-02T00:00:00|2025-06-02T00:00:00|2025-06-02T01:00:00|01:00:00|1|4|COMPLETED\n"
    )
    (tmp_path / "events.txt").write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        "lab|n1|2025-06-02T00:30:00|2025-06-02T00:40:00|DOWN*|Not responding|slurm(64030)\n"
    )
    given = [str(tmp_path / name) for name in ("slurm.conf", "jobs.sacct")]
    target = tmp_path / "record.json"
    outages = str(tmp_path / "events.txt")
    done = CliRunner().invoke(cli, ["replay", *given, "--outages", outages, "--json", str(target)])
    assert done.exit_code == 0, done.output
    job = json.loads(target.read_text())["jobs"]["1"]
    assert job["final_state"] == end
    assert job["core_seconds_lost"] == pytest.approx(4 * 1800, abs=4 * 61)  # a pass a minute

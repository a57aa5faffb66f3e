"""GrpTRES=node: distinct nodes count, of those that are chosen, and by release of those that victims leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

SITE = """\
ClusterName=c
SlurmctldHost=head
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations,limits,qos
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PreemptType=preempt/qos
PreemptMode=REQUEUE
NodeName=n[1-3] CPUs=4 CoresPerSocket=4 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes=n[1-{nodes}] State=UP DefMemPerCPU=1000 Default=YES MaxTime=7-0
"""
QOS = """\
Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|GrpTRES
low|0|00:00:00|||cluster||
high|10|00:00:00|low||cluster||node={most}
"""
HOUR = '"run_time": 3600, "time_limit": 7200}\n'
FULL = (
    '{"id": 1, "user": "a", "qos": "high", "cpus": 2, "nodes": 1, "required_nodes": "n1", ' + HOUR,
    '{"id": 2, "user": "b", "qos": "low", "cpus": 2, "nodes": 1, "required_nodes": "n1", ' + HOUR,
    '{"id": 3, "user": "b", "qos": "low", "cpus": 4, "nodes": 1, "required_nodes": "n2", ' + HOUR,
    '{"id": 4, "user": "a", "qos": "high", "submit": 600, "cpus": 2, "nodes": 1, "run_time": 600, "time_limit": 1200}',
)


def played(tmp_path: Path, *jobs: str, release: str, nodes: int, most: int) -> dict[str, Any]:
    """Replay jobs on nodes of 4 CPUs, of which the QOS high may have `most`."""
    (tmp_path / "slurm.conf").write_text(SITE.format(nodes=nodes))
    (tmp_path / "qos.txt").write_text(QOS.format(most=most))
    (tmp_path / "jobs.jsonl").write_text("".join(jobs))
    paths = [str(tmp_path / name) for name in ("slurm.conf", "jobs.jsonl")]
    out = tmp_path / "out.json"
    options = ["--accounting", str(tmp_path / "qos.txt"), "--release", release, "--json", str(out)]
    done = CliRunner().invoke(cli, ["replay", *paths, *options])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_before_24_11_4_no_job_makes_way_for_one_at_its_node_limit(tmp_path: Path) -> None:
    """As Slurm 22.05.8 was recorded: job 4 waits with QOSGrpNodeLimit until job 1 ends, and starts at once then."""
    found = played(tmp_path, *FULL, release="22.05", nodes=2, most=1)
    assert found["preemptions"] == []
    first = next(each for each in found["jobs"]["4"]["intervals"] if each["state"] == "RUNNING")
    assert first["start"] == pytest.approx(3600, abs=60)
    assert [each["reason"] for each in found["jobs"]["4"]["waits"]] == ["QOSGrpNodeLimit"]


def test_later_it_takes_the_node_that_its_qos_has_and_says_only_what_happened(tmp_path: Path) -> None:
    """Ticket 20890: the limit counts distinct nodes, and job 1 is on n1 already."""
    found = played(tmp_path, *FULL, release="24.11.4", nodes=2, most=1)
    assert [(each["preemptor"], each["victim"]) for each in found["preemptions"]] == [("4", "2")]
    told = [each.get("reason", "") for each in found["jobs"]["4"]["decisions"] if each["outcome"] == "waits"]
    assert "QOSGrpNodeLimit" not in told


def test_a_limit_counts_the_nodes_that_are_chosen(tmp_path: Path) -> None:
    """Six tasks on nodes of four CPUs take two nodes; with n1 that makes three, and two are allowed."""
    one = '{"id": 1, "user": "a", "qos": "high", "cpus": 4, "nodes": 1, "required_nodes": "n1", ' + HOUR
    six = '{"id": 2, "user": "a", "qos": "high", "submit": 60, "tasks": 6, "run_time": 600, "time_limit": 1200}\n'
    found = played(tmp_path, one, six, release="26.05", nodes=3, most=2)
    (wait,) = found["jobs"]["2"]["waits"]
    assert (wait["reason"], wait["start"]) == ("QOSGrpNodeLimit", 60.0)
    assert wait["end"] == pytest.approx(3600, abs=60)
    allowed = played(tmp_path, one, six, release="26.05", nodes=3, most=3)
    assert allowed["jobs"]["2"]["waits"] == []


def test_a_job_that_its_limit_allows_waits_for_resources(tmp_path: Path) -> None:
    low = (
        '{"id": 1, "user": "b", "qos": "high", "cpus": 12, "nodes": 3, "run_time": 600, "time_limit": 7200}\n'
    )
    six = '{"id": 2, "user": "a", "qos": "high", "submit": 60, "tasks": 6, "run_time": 600, "time_limit": 1200}\n'
    found = played(tmp_path, low, six, release="26.05", nodes=3, most=5)
    assert [each["reason"] for each in found["jobs"]["2"]["waits"]] == ["Resources"]

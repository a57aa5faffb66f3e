"""What people ask about Slurm: help pages of sites and manuals, each made a small input, answered by hand.

Each row names the page that it is about. Instants are those of a scheduler without delays of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

DESY = "confluence.desy.de/display/MXW/Preemption_214364444.html"
LYON = "perso.ens-lyon.fr/lois.taulelle/Documentation/clusters_usage/preemption.html"
CAPE = "ucthpc.uct.ac.za: SLURM job preemption"
FLORIDA = "wiki.rc.usf.edu/index.php/SLURM_Preemption"
WYOMING = "arccwiki.atlassian.net: Job Preemption, Slurm Queue Messages"
OREGON = "hpcrcf.atlassian.net: How-to Use the preempt Partition"
USC = "hpcc.usc.edu/support/documentation/scavenge/"
YALE = "docs.ycrc.yale.edu/clusters-at-yale/job-scheduling/fairshare/"
LOUISVILLE = "ularc.github.io/zurada: guides/slurm/preemption"
REASONS = "slurm.schedmd.com/job_reason_codes.html"
PREEMPT = "slurm.schedmd.com/preempt.html"
GANG = "slurm.schedmd.com/gang_scheduling.html"
LIMITS = "slurm.schedmd.com/resource_limits.html"

HEAD = "ClusterName=c\nSlurmctldHost=head\nSchedulerType=sched/backfill\n"
CPUS = "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n"
NODES = "NodeName=n[1-2] CPUs=4 RealMemory=4000\n"
PLAIN = HEAD + CPUS + NODES + "PartitionName=all Nodes=n[1-2] Default=YES\n"
BY_PARTITION = HEAD + CPUS + "PreemptType=preempt/partition_prio\n"
LOW_HIGH = (
    "PartitionName=low Nodes=n[1-2] PriorityTier=1 Default=YES\n"
    "PartitionName=high Nodes=n[1-2] PriorityTier=10\n"
)
REQUEUE = BY_PARTITION + "PreemptMode=REQUEUE\n" + NODES + LOW_HIGH
ENFORCED = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=limits,qos\n"
BY_QOS = HEAD + ENFORCED + CPUS + "PreemptType=preempt/qos\nPreemptMode=CANCEL\n" + NODES
LIMITED = HEAD + ENFORCED + CPUS + NODES + "PartitionName=all Nodes=n[1-2] Default=YES\n"
QOS_HEAD = "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|GrpTRES|MaxTRESPU|MaxJobsPU\n"


def job(number: int, submit: int = 0, **keys: Any) -> dict[str, Any]:
    """Return a job of all CPUs of a node, 100 s long with a limit of 200 s."""
    return {"id": number, "submit": submit, "cpus": 4, "nodes": 1, "run_time": 100, "time_limit": 200, **keys}


def wide(number: int, submit: int = 0, **keys: Any) -> dict[str, Any]:
    """Return a job of both nodes."""
    return job(number, submit, cpus=8, nodes=2, **keys)


@attrs.frozen
class Question:
    """One question: a site, jobs, and what becomes of them."""

    page: str
    asks: str
    site: str
    jobs: tuple[dict[str, Any], ...]
    starts: dict[str, list[float]] = attrs.field(factory=dict)
    """Job -> each instant from which it runs, resumptions included."""
    states: dict[str, str] = attrs.field(factory=dict)
    victims: list[str] | None = None
    reasons: dict[str, str] = attrs.field(factory=dict)
    """Job -> why it waits first."""
    qos: str = ""


LOW: dict[str, Any] = {"partition": "low"}
HIGH: dict[str, Any] = {"partition": "high"}
QUESTIONS = [
    Question(
        DESY,
        "does a job of a higher partition requeue mine?",
        REQUEUE,
        (wide(1, **LOW), job(2, 50, **HIGH)),
        {"1": [0, 150], "2": [50]},
        {"1": "COMPLETED"},
        ["1"],
    ),
    Question(
        DESY,
        "--no-requeue",
        REQUEUE,
        (wide(1, requeue=False, **LOW), job(2, 50, **HIGH)),
        {"1": [0], "2": [50]},
        {"1": "PREEMPTED"},
        ["1"],
    ),
    Question(
        DESY,
        "a partition whose mode is cancel",
        REQUEUE.replace("PriorityTier=1 ", "PriorityTier=1 PreemptMode=CANCEL "),
        (wide(1, **LOW), job(2, 50, **HIGH)),
        {"1": [0], "2": [50]},
        {"1": "PREEMPTED"},
        ["1"],
    ),
    Question(
        DESY,
        "only partitions that contain the same nodes matter",
        REQUEUE.replace("high Nodes=n[1-2]", "high Nodes=n2"),
        (job(1, required_nodes="n1", **LOW), job(2, 50, **HIGH)),
        {"1": [0], "2": [50]},
        {},
        [],
    ),
    Question(
        DESY,
        "who has to go first of two lower partitions",
        REQUEUE + "PartitionName=middle Nodes=n[1-2] PriorityTier=5\n",
        (job(1, partition="middle"), job(2, **LOW), job(3, 50, **HIGH)),
        {"1": [0], "3": [50]},
        {},
        ["2"],
    ),
    Question(
        DESY,
        "idle nodes are taken before anybody has to go",
        REQUEUE,
        (job(1, **LOW), job(2, 50, **HIGH)),
        {"1": [0], "2": [50]},
        {},
        [],
    ),
    Question(
        LYON,
        "a requeued job starts from its beginning",
        REQUEUE,
        (wide(1, run_time=80, **LOW), job(2, 50, run_time=10, **HIGH)),
        {"1": [0, 60]},
        {"1": "COMPLETED"},
        ["1"],
    ),
    Question(
        CAPE,
        "a suspended job goes on where it was",
        BY_PARTITION + "PreemptMode=SUSPEND,GANG\n" + NODES + LOW_HIGH,
        (wide(1, **LOW), wide(2, 50, run_time=30, **HIGH)),
        {"1": [0, 80], "2": [50]},
        {"1": "COMPLETED"},
        ["1"],
    ),
    Question(
        CAPE,
        "jobs of the low partition wait while one of the high partition has all",
        REQUEUE,
        (wide(1, **HIGH), job(2, 10, **LOW)),
        {"2": [100]},
        {},
        [],
        {"2": "Resources"},
    ),
    Question(
        FLORIDA,
        "a grace time of two hours",
        BY_PARTITION
        + "PreemptMode=CANCEL\n"
        + NODES
        + LOW_HIGH.replace("PriorityTier=1 ", "PriorityTier=1 GraceTime=7200 "),
        (wide(1, run_time=90000, time_limit=90000, on_term="ignore", **LOW), job(2, 50, **HIGH)),
        {"2": [7250]},
        {},
        ["1"],
    ),
    Question(
        FLORIDA,
        "a job that ends in its grace time goes in peace",
        BY_PARTITION
        + "PreemptMode=CANCEL\n"
        + NODES
        + LOW_HIGH.replace("PriorityTier=1 ", "PriorityTier=1 GraceTime=7200 "),
        (wide(1, run_time=200, time_limit=90000, on_term="ignore", **LOW), job(2, 50, **HIGH)),
        {"2": [200]},
        {},
        ["1"],
    ),
    Question(
        WYOMING,
        "a job has five minutes before it can be terminated",
        REQUEUE.replace("PreemptMode=REQUEUE\n", "PreemptMode=REQUEUE\nPreemptExemptTime=00:05:00\n"),
        (wide(1, run_time=900, time_limit=900, **LOW), job(2, 50, **HIGH)),
        {"2": [300]},
        {},
        ["1"],
    ),
    Question(
        OREGON,
        "by default preempted jobs are not requeued",
        REQUEUE.replace("PreemptMode=", "JobRequeue=0\nPreemptMode="),
        (wide(1, **LOW), job(2, 50, **HIGH)),
        {"1": [0]},
        {"1": "PREEMPTED"},
        ["1"],
    ),
    Question(
        OREGON,
        "--requeue where JobRequeue=0",
        REQUEUE.replace("PreemptMode=", "JobRequeue=0\nPreemptMode="),
        (wide(1, requeue=True, **LOW), job(2, 50, **HIGH)),
        {"1": [0, 150]},
        {"1": "COMPLETED"},
        ["1"],
    ),
    Question(
        OREGON,
        "an interactive job is not requeued",
        REQUEUE,
        (wide(1, batch=False, **LOW), job(2, 50, **HIGH)),
        {"1": [0]},
        {"1": "PREEMPTED"},
        ["1"],
    ),
    Question(
        OREGON,
        "it might happen several times, but the job is run to completion",
        REQUEUE,
        (wide(1, **LOW), job(2, 50, run_time=10, **HIGH), job(3, 100, run_time=10, **HIGH)),
        {"1": [0, 60, 110]},
        {"1": "COMPLETED"},
        ["1", "1"],
    ),
    Question(
        USC,
        "jobs share a node by cores and memory, 1 GB for each core",
        PLAIN.replace("CR_CPU", "CR_CPU_Memory").replace("Default=YES", "Default=YES DefMemPerCPU=1000"),
        tuple(job(number, cpus=1) for number in range(1, 10)),
        {"8": [0], "9": [100]},
        {},
        [],
        {"9": "Resources"},
    ),
    Question(
        USC,
        "a job of all memory has a node for itself",
        PLAIN.replace("CR_CPU", "CR_CPU_Memory").replace("Default=YES", "Default=YES DefMemPerCPU=1000"),
        (job(1, cpus=1, memory_mb=4000), job(2, cpus=1, memory_mb=4000), job(3, cpus=1)),
        {"1": [0], "2": [0], "3": [100]},
        {},
        [],
        {"3": "Resources"},
    ),
    Question(
        YALE,
        "a short job runs before one of higher priority that waits",
        PLAIN,
        (job(1, run_time=200), wide(2, 10), job(3, 20, run_time=50, time_limit=60)),
        {"2": [200], "3": [20]},
    ),
    Question(
        YALE,
        "one that asks for too long is not backfilled",
        PLAIN,
        (job(1, run_time=200), wide(2, 10), job(3, 20, run_time=50, time_limit=86400)),
        {"2": [200], "3": [300]},
    ),
    Question(
        WYOMING,
        "QOSGrpCpuLimit although cores are free",
        LIMITED,
        (job(1, qos="project"), job(2, 10, qos="project")),
        {"2": [100]},
        {},
        [],
        {"2": "QOSGrpCpuLimit"},
        "project|0|00:00:00|||cluster||cpu=4||\n",
    ),
    Question(
        LIMITS,
        "MaxTRESPU limits each user of a QOS, not all of them",
        LIMITED,
        (job(1, qos="fair", user="a"), job(2, 10, qos="fair", user="a"), job(3, 20, qos="fair", user="b")),
        {"2": [100], "3": [20]},
        {},
        [],
        {"2": "QOSMaxCpuPerUserLimit"},
        "fair|0|00:00:00|||cluster|||cpu=4|\n",
    ),
    Question(
        LIMITS,
        "MaxJobsPerUser",
        LIMITED,
        (job(1, cpus=1, qos="one", user="a"), job(2, 10, cpus=1, qos="one", user="a")),
        {"2": [100]},
        {},
        [],
        {"2": "QOSMaxJobsPerUserLimit"},
        "one|0|00:00:00|||cluster||||1\n",
    ),
    Question(
        LIMITS,
        "a preemptor at its limit displaces nobody",
        BY_QOS + "PartitionName=all Nodes=n[1-2] Default=YES\n",
        (job(1, qos="high"), job(2, qos="low"), job(3, 50, qos="high")),
        {"3": [100]},
        {},
        [],
        {"3": "QOSGrpCpuLimit"},
        "low|0|00:00:00|||cluster||||\nhigh|10|00:00:00|low||cluster||cpu=4||\n",
    ),
    Question(
        LOUISVILLE,
        "--qos=preemptable is ended by a regular job",
        BY_QOS + "PartitionName=all Nodes=n[1-2] Default=YES\n",
        (wide(1, qos="preemptable"), job(2, 50, qos="normal")),
        {"1": [0], "2": [50]},
        {"1": "PREEMPTED"},
        ["1"],
        {},
        "preemptable|0|00:00:00|||cluster||||\nnormal|10|00:00:00|preemptable||cluster||||\n",
    ),
    Question(
        PREEMPT,
        "youngest_first",
        REQUEUE.replace("PreemptMode=", "PreemptParameters=youngest_first\nPreemptMode="),
        (job(1, **LOW), job(2, 20, **LOW), job(3, 50, **HIGH)),
        {"3": [50]},
        {},
        ["2"],
    ),
    Question(
        GANG,
        "two jobs take turns of 30 s on the same cores",
        HEAD + CPUS + "PreemptMode=GANG\nSchedulerTimeSlice=30\nNodeName=n1 CPUs=4\n"
        "PartitionName=all Nodes=n1 OverSubscribe=FORCE:2 Default=YES\n",
        (job(1, run_time=60), job(2, run_time=60)),
        {},
        {"1": "COMPLETED", "2": "COMPLETED"},
        None,
    ),
    Question(
        REASONS,
        "Dependency",
        PLAIN,
        (job(1), job(2, depends_on="1")),
        {"2": [100]},
        {},
        [],
        {"2": "Dependency"},
    ),
    Question(REASONS, "BeginTime", PLAIN, (job(1, begin=70),), {"1": [70]}, {}, [], {"1": "BeginTime"}),
    Question(REASONS, "JobHeldUser", PLAIN, (job(1, priority=0),), {"1": []}, {}, []),
    Question(
        REASONS,
        "Priority",
        PLAIN,
        (wide(1), wide(2, 10), wide(3, 20)),
        {"2": [100], "3": [200]},
        {},
        [],
        {"2": "Resources", "3": "Priority"},
    ),
    Question(
        REASONS,
        "Licenses",
        "Licenses=vcs:1\n" + PLAIN,
        (job(1, licenses={"vcs": 1}), job(2, 10, licenses={"vcs": 1})),
        {"2": [100]},
        {},
        [],
        {"2": "Licenses"},
    ),
    Question(
        REASONS,
        "a fifth GPU is not there though CPUs are",
        HEAD
        + CPUS
        + "GresTypes=gpu\nNodeName=n1 CPUs=32 Gres=gpu:4\nPartitionName=all Nodes=n1 Default=YES\n",
        tuple(job(number, cpus=1, gres={"gpu": 1}) for number in range(1, 6)),
        {"4": [0], "5": [100]},
        {},
        [],
        {"5": "Resources"},
    ),
    Question(
        REASONS,
        "an array of which two tasks run at a time",
        PLAIN,
        (job(1, cpus=1, array="0-3%2"),),
        {"1_0": [0], "1_1": [0], "1_2": [100], "1_3": [100]},
    ),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: f"{each.asks} [{each.page}]")
def test_what_people_ask(tmp_path: Path, question: Question) -> None:
    conf, jobs, out = (tmp_path / name for name in ("slurm.conf", "jobs.jsonl", "out.json"))
    conf.write_text(question.site)
    jobs.write_text("".join(json.dumps(each) + "\n" for each in question.jobs))
    options = ["--set", "scheduler.clockwork=ideal"]
    if question.qos:
        (tmp_path / "qos.txt").write_text(QOS_HEAD + question.qos)
        options += ["--accounting", str(tmp_path / "qos.txt")]
    done = CliRunner().invoke(cli, ["replay", str(conf), str(jobs), "--json", str(out), *options])
    assert done.exit_code == 0, done.output
    record = json.loads(out.read_text())
    told = record["jobs"]
    running = {
        name: [each["start"] for each in told[name]["intervals"] if each["state"] == "RUNNING"]
        for name in question.starts
    }
    assert running == question.starts
    assert {name: told[name]["final_state"] for name in question.states} == question.states
    if question.victims is not None:
        assert [each["victim"] for each in record["preemptions"]] == question.victims
    assert {name: told[name]["waits"][0]["reason"] for name in question.reasons} == question.reasons

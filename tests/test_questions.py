"""What people ask about Slurm: help pages of sites, manuals and trackers, each made a small input, answered by hand.

Each row names the page or thread that it is about. Instants are those of a scheduler without delays of its own.
`replay` says what becomes of the jobs, `explain` why, and `check` what the site would do.
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
    never: dict[str, str] = attrs.field(factory=dict)
    """Job that can never run here -> why; Slurm keeps it pending."""
    says: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Job -> what `explain` has to say of it, beside its reasons, its starts and which job displaced it."""
    check: tuple[str, ...] = ()
    """What `check` has to say."""


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
        "which has to go first of two lower partitions",
        REQUEUE + "PartitionName=middle Nodes=n[1-2] PriorityTier=5\n",
        (job(1, partition="middle"), job(2, **LOW), job(3, 50, **HIGH)),
        {"1": [0], "3": [50]},
        {},
        ["2"],
    ),
    Question(
        DESY,
        "idle nodes are taken before any job has to go",
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
        "a preemptor at its limit displaces none",
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

# ---------------------------------------------------------------- public trackers, and help pages of other sites
TRACKER = "github.com/"
MSU = "docs.icer.msu.edu/Scavenger_Queue/"
OHIO = "www.osc.edu/supercomputing/computing/pitzer/special_schedulings"
ARIZONA = "docs.rc.asu.edu/jobstates"
VIENNA = "docs.vsc.ac.at/running_jobs/scheduling/scheduling_policy/"
CODES = "wiki.vsc.ac.at/doku.php?id=doku:slurm_job_reason_codes&rev=1652087973"
ILLINOIS = "docs.ncsa.illinois.edu/en/latest/common/slurm/prioritization-reservations.html"
PAWSEY = "support.pawsey.org.au/documentation/display/US/Defining+wallclock+time+in+the+jobscript"
STANFORD = "www.sherlock.stanford.edu/docs/advanced-topics/scheduling"
CYPRUS = "hpcf.cyi.ac.cy/documentation/running_jobs.html"
TALLAHASSEE = "www.hpc.fsu.edu/docs/hpc-job-queue-policy"
PITTSBURGH = "crc.pitt.edu/resources/resources/job-scheduling-policy"

MEMORY = HEAD + "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\n"
SUSPEND = BY_PARTITION + "PreemptMode=SUSPEND,GANG\n" + NODES + LOW_HIGH
ONE = "NodeName=n1 CPUs=4 RealMemory=4000\n"
TRACKERS = [
    Question(
        TRACKER + "SchedMD/slurm/issues/111",
        "why does one task of an array run on each node, and not one on each core?",
        MEMORY + "NodeName=comp1 CPUs=12 RealMemory=48000\nNodeName=comp2 CPUs=16 RealMemory=64000\n"
        "PartitionName=test Nodes=comp[1-2] Default=YES\n",
        (job(1, cpus=1, array="0-2"),),
        {"1_0": [0], "1_1": [0], "1_2": [100]},
        {},
        [],
        {"1_2": "Resources"},
        says={"1_2": ("comp1: all of its memory is wanted", "try DefMemPerCPU=4000")},
        check=("no DefMemPer... for partition 'test'",),
    ),
    Question(
        TRACKER + "rcgsheffield/sheffield_hpc/pull/1421",
        "is a job that is stopped for a higher partition killed?",
        BY_PARTITION + "PreemptMode=CANCEL\n" + NODES + LOW_HIGH,
        (wide(1, **LOW), job(2, 50, **HIGH)),
        {"1": [0], "2": [50]},
        {"1": "PREEMPTED"},
        ["1"],
        says={"1": ("50 s: job 2 (partition high) by cancel",)},
        check=("killed",),
    ),
    Question(
        TRACKER + "SchedMD/slurm/pull/124",
        "GANG in the mode of a partition",
        SUSPEND.replace("PriorityTier=1 ", "PriorityTier=1 PreemptMode=SUSPEND,GANG "),
        (wide(1, **LOW), job(2, 50, **HIGH)),
        {"1": [0, 150], "2": [50]},
        {"1": "COMPLETED"},
        ["1"],
        says={"1": ("50 s to 150 s: SUSPENDED on n[1-2]",)},
        check=("GANG is for the cluster only and is dropped",),
    ),
    Question(
        TRACKER + "aws-samples/aws-eda-slurm-cluster/issues/95",
        "a job of a higher partition that lacks a licence displaces none",
        "Licenses=vcs:1\n" + REQUEUE,
        (job(1, licenses={"vcs": 1}, **LOW), job(2, 50, licenses={"vcs": 1}, **HIGH)),
        {"1": [0], "2": [100]},
        {},
        [],
        {"2": "Licenses"},
        says={"2": ("licence vcs: held by 1 (1)",)},
    ),
    Question(
        TRACKER + "NCATSTranslator/Babel/issues/842",
        "does the time for which a job is suspended count for its limit?",
        SUSPEND,
        (wide(1, time_limit=120, **LOW), job(2, 50, **HIGH)),
        {"1": [0, 150], "2": [50]},
        {"1": "COMPLETED"},
        ["1"],
        says={"1": ("COMPLETED at 200 s", "its time limit moves by as much")},
    ),
    Question(
        TRACKER + "PrincetonUniversity/prsonpipe/issues/7",
        "--mem-per-cpu=30G where MaxMemPerCPU is 10G gives three CPUs",
        MEMORY + "MaxMemPerCPU=10000\nNodeName=n1 CPUs=4 RealMemory=120000\n"
        "PartitionName=all Nodes=n1 Default=YES\n",
        (job(1, cpus=1, memory_mb_per_cpu=30000), job(2, 10, cpus=2, memory_mb=1000)),
        {"1": [0], "2": [100]},
        {},
        [],
        {"2": "Resources"},
        says={
            "1": ("MaxMemPerCPU is 10,000 MB: it gets 3 CPUs instead of 1",),
            "2": ("n1: 2 CPUs wanted, 1 of 4 free; held by 1 (3)",),
        },
    ),
    Question(
        TRACKER + "bessagroup/f3dasm/issues/352",
        "--mem=8G where MaxMemPerCPU is 3968",
        MEMORY + "MaxMemPerCPU=3968\nNodeName=n1 CPUs=4 RealMemory=16000\n"
        "PartitionName=all Nodes=n1 Default=YES\n",
        (job(1, cpus=1, memory_mb=8192), job(2, 10, cpus=2, memory_mb=100)),
        {"1": [0], "2": [100]},
        {},
        [],
        {"2": "Resources"},
        says={
            "1": (
                "it wants 8,192 MB of each node, and MaxMemPerCPU is 3,968 MB: it gets 3 CPUs instead of 1",
            )
        },
    ),
    Question(
        MSU,
        "a scavenging job runs for a minute before it has to go, and is requeued",
        BY_QOS.replace("CANCEL", "REQUEUE") + "PartitionName=all Nodes=n[1-2] Default=YES\n",
        (wide(1, qos="scavenger"), job(2, 20, qos="normal")),
        {"1": [0, 160], "2": [60]},
        {"1": "COMPLETED"},
        ["1"],
        {"2": "Resources"},
        "scavenger|0|00:00:00||00:01:00|cluster||||\nnormal|10|00:00:00|scavenger||cluster||||\n",
        says={"2": ("protected: 1:",)},
        check=("requeued",),
    ),
    Question(
        MSU,
        "--no-requeue ends it instead",
        BY_QOS.replace("CANCEL", "REQUEUE") + "PartitionName=all Nodes=n[1-2] Default=YES\n",
        (wide(1, requeue=False, qos="scavenger"), job(2, 70, qos="normal")),
        {"1": [0], "2": [70]},
        {"1": "PREEMPTED"},
        ["1"],
        {},
        "scavenger|0|00:00:00||00:01:00|cluster||||\nnormal|10|00:00:00|scavenger||cluster||||\n",
        says={"1": ("1 may not be requeued",)},
    ),
    Question(
        OHIO,
        "a minimum of 15 minutes before preemption",
        BY_QOS + "PartitionName=all Nodes=n[1-2] Default=YES\n",
        (wide(1, run_time=2000, time_limit=3000, qos="preemptible"), job(2, 100, qos="condo")),
        {"1": [0], "2": [900]},
        {"1": "PREEMPTED"},
        ["1"],
        {},
        "preemptible|0|00:00:00||00:15:00|cluster||||\ncondo|10|00:00:00|preemptible||cluster||||\n",
        check=("killed",),
    ),
    Question(
        ARIZONA,
        "Priority: which job is before mine?",
        PLAIN,
        (wide(1), wide(2, 10), wide(3, 20)),
        {"3": [200]},
        {},
        [],
        {"3": "Priority"},
        says={"3": ("Priority, behind job 2 of priority", "which waits for Resources")},
    ),
    Question(
        TRACKER + "SckyzO/slurm_exporter/issues/146",
        "a limit above that of the partition waits for ever",
        HEAD + CPUS + ONE + "PartitionName=debug Nodes=n1 MaxTime=30 Default=YES\n",
        (job(1, time_limit=3600), job(2, 10)),
        {"2": [10]},
        {},
        [],
        never={"1": "PartitionTimeLimit: asks for a time limit of 1:00:00; partition debug allows 0:30:00"},
    ),
    Question(
        TRACKER + "metrumresearchgroup/bbi/issues/345",
        "--time comes before DefaultTime",
        HEAD + CPUS + NODES + "PartitionName=all Nodes=n[1-2] DefaultTime=1 Default=YES\n",
        (job(1, time_limit=None), job(2)),
        {"1": [0], "2": [0]},
        {"1": "TIMEOUT", "2": "COMPLETED"},
        [],
        says={"1": ("limit 0:01:00", "TIMEOUT at 60 s")},
    ),
    Question(
        VIENNA,
        "DefaultTime is all that a job without a limit gets in the plan, too",
        HEAD + CPUS + NODES + "PartitionName=all Nodes=n[1-2] DefaultTime=2 Default=YES\n",
        (job(1), wide(2, 10), job(3, 20, run_time=90, time_limit=None)),
        {"2": [110], "3": [20]},
        {"3": "COMPLETED"},
        [],
        {"2": "Resources"},
        says={"2": ("n2: 4 CPUs wanted, 0 of 4 free; held by 3 (4)",)},
    ),
    Question(
        TRACKER + "ROCm/spur/issues/604",
        "of two partitions, the one in which it starts gives the limit",
        HEAD
        + CPUS
        + NODES
        + "PartitionName=long Nodes=n1 MaxTime=2 Default=YES\nPartitionName=short Nodes=n2 MaxTime=1\n",
        (job(1, partition="short", time_limit=60), job(2, 10, partition="long,short", time_limit=None)),
        {"1": [0], "2": [10]},
        {"1": "TIMEOUT", "2": "COMPLETED"},
        [],
        says={"2": ("10 s to 110 s: RUNNING on n1",)},
    ),
    Question(
        TRACKER + "JIC-CSB/SLURM-cheat-sheet/pull/1",
        "several dependencies",
        PLAIN,
        (job(1, run_time=50), job(2, run_time=80), job(3, 10, depends_on=["1", "2"])),
        {"3": [80]},
        {},
        [],
        {"3": "Dependency"},
    ),
    Question(
        TRACKER + "TheoChem-VU/TCMU/issues/362",
        "afterany a job that has ended already",
        PLAIN,
        (job(1), job(2, 150, depends_on="1")),
        {"2": [150]},
        {"2": "COMPLETED"},
        [],
    ),
    Question(
        TRACKER + "pitt-crc/user-manual/pull/59",
        "QOSMaxJobsPerUserLimit: others go on",
        LIMITED,
        (
            job(1, cpus=1, qos="one", user="a"),
            job(2, 10, cpus=1, qos="one", user="a"),
            job(3, 20, cpus=1, qos="one", user="b"),
        ),
        {"2": [100], "3": [20]},
        {},
        [],
        {"2": "QOSMaxJobsPerUserLimit"},
        "one|0|00:00:00|||cluster||||1\n",
        says={"2": ("QOSMaxJobsPerUserLimit",)},
    ),
    Question(
        TALLAHASSEE,
        "eight jobs at any one time",
        LIMITED,
        tuple(
            job(number, cpus=1, qos="general", user="a", run_time=90 + 10 * number) for number in range(1, 10)
        ),
        {"8": [0], "9": [100]},
        {},
        [],
        {"9": "QOSMaxJobsPerUserLimit"},
        "general|0|00:00:00|||cluster||||8\n",
    ),
    Question(
        TRACKER + "SlinkyProject/slurm-bridge/issues/10",
        "QOSGrpCpuLimit although CPUs are idle",
        LIMITED,
        (job(1, qos="three"), job(2, 10, cpus=1, qos="three")),
        {"1": [0], "2": [100]},
        {},
        [],
        {"2": "QOSGrpCpuLimit"},
        "three|0|00:00:00|||cluster||cpu=4||\n",
        says={"2": ("QOSGrpCpuLimit",)},
    ),
    Question(
        TRACKER + "ArjunaCluster/ArjunaUsers/issues/67",
        "all nodes drain",
        HEAD + CPUS + "NodeName=n[1-2] CPUs=4 State=DRAIN\nPartitionName=all Nodes=n[1-2] Default=YES\n",
        (job(1),),
        never={
            "1": "ReqNodeNotAvail,_UnavailableNodes:n[1-2]: needs 1 node; partition all has none in service"
        },
    ),
    Question(
        TRACKER + "lyulyul/shine-cluster/issues/170",
        "--nodelist names a node that is drained",
        HEAD
        + CPUS
        + "NodeName=n1 CPUs=4\nNodeName=n2 CPUs=4 State=DRAIN\nPartitionName=all Nodes=n[1-2] Default=YES\n",
        (job(1, required_nodes="n2"), job(2, 10)),
        {"2": [10]},
        never={"1": "ReqNodeNotAvail,_UnavailableNodes:n2: "},
    ),
    Question(
        TRACKER + "mace-cream/clusterhowto/issues/2",
        "three nodes where one of three is down",
        HEAD
        + CPUS
        + "NodeName=n[1-2] CPUs=4\nNodeName=n3 CPUs=4 State=DOWN\nPartitionName=all Nodes=n[1-3] Default=YES\n",
        (job(1, cpus=12, nodes=3), job(2, 10, cpus=8, nodes=2)),
        {"2": [10]},
        {},
        [],
        never={
            "1": "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions: "
            "needs 3 nodes; partition all has 2 in service"
        },
    ),
    Question(
        TRACKER + "mknoxnv/ubuntu-slurm/issues/7",
        "one GPU for each job: the fifth of four waits, and which jobs have them?",
        HEAD
        + CPUS
        + "GresTypes=gpu\nNodeName=n1 CPUs=32 Gres=gpu:4\nPartitionName=all Nodes=n1 Default=YES\n",
        tuple(job(number, cpus=1, gres={"gpu": 1}) for number in range(1, 6)),
        {"4": [0], "5": [100]},
        {},
        [],
        {"5": "Resources"},
        says={"5": ("n1: 1 gpu wanted, 0 of 4 free; held by 1 (1), 2 (1), 3 (1), 4 (1)",)},
    ),
    Question(
        TRACKER + "analyticalworkflows/TeachingMaterials/issues/79",
        "eight tasks of an array where four CPUs are free",
        HEAD + CPUS + ONE + "PartitionName=all Nodes=n1 Default=YES\n",
        (job(1, cpus=1, array="1-8"),),
        {"1_4": [0], "1_5": [100], "1_8": [100]},
        {},
        [],
        {"1_5": "Resources"},
        says={"1_5": ("n1: 1 CPU wanted, 0 of 4 free; held by 1_1 (1), 1_2 (1), 1_3 (1), 1_4 (1)",)},
    ),
    Question(
        TRACKER + "earthlab/rslurm/issues/70",
        "--array=1-20%10",
        HEAD + CPUS + "NodeName=n1 CPUs=40\nPartitionName=all Nodes=n1 Default=YES\n",
        (job(1, cpus=1, array="1-20%10"),),
        {"1_10": [0], "1_11": [100], "1_20": [100]},
        {},
        [],
        {"1_11": "JobArrayTaskLimit"},
    ),
    Question(
        TRACKER + "ComputeCanada/puppet-magic_castle/issues/302",
        "MaxCPUsPerNode leaves CPUs to jobs with GPUs",
        HEAD + CPUS + "GresTypes=gpu\nNodeName=n1 CPUs=4 Gres=gpu:1\n"
        "PartitionName=cpu Nodes=n1 MaxCPUsPerNode=2 Default=YES\nPartitionName=gpu Nodes=n1\n",
        (
            job(1, cpus=2, partition="cpu"),
            job(2, 10, cpus=2, partition="cpu"),
            job(3, 20, cpus=2, time_limit=150, partition="gpu", gres={"gpu": 1}),
        ),
        {"1": [0], "2": [100], "3": [20]},
        {},
        [],
        {"2": "Resources"},
    ),
    Question(
        ILLINOIS,
        "a short job may run before one that came earlier",
        PLAIN,
        (job(1), wide(2, 10), job(3, 20, run_time=50, time_limit=100)),
        {"1": [0], "2": [100], "3": [20]},
        {},
        [],
        {"2": "Resources"},
    ),
    Question(
        PAWSEY,
        "one whose wall time is too long for the gap does not",
        PLAIN,
        (job(1), wide(2, 10), job(3, 20, run_time=50, time_limit=1000)),
        {"1": [0], "2": [100], "3": [200]},
        {},
        [],
        {"2": "Resources"},
        says={"3": ("behind job 2 of priority",)},
    ),
    Question(
        STANFORD,
        "a large job waits until all of its nodes are free at once",
        PLAIN,
        (job(1), job(2, run_time=50), wide(3, 10)),
        {"3": [100]},
        {},
        [],
        {"3": "Resources"},
        says={"3": ("2 nodes wanted, 1 usable", "n1: 4 CPUs wanted, 0 of 4 free; held by 1 (4)")},
    ),
    Question(
        CYPRUS,
        "two jobs of 20 cores share a node of 40, a third waits",
        HEAD + CPUS + "NodeName=cn1 CPUs=40\nPartitionName=cpu Nodes=cn1 Default=YES\n",
        tuple(job(number, cpus=20) for number in (1, 2, 3)),
        {"1": [0], "2": [0], "3": [100]},
        {},
        [],
        {"3": "Resources"},
        says={"3": ("cn1: 20 CPUs wanted, 0 of 40 free; held by 1 (20), 2 (20)",)},
    ),
    Question(
        PITTSBURGH,
        "Dependency: not until another job has finished",
        PLAIN,
        (job(1), job(2, 10, depends_on="1")),
        {"2": [100]},
        {},
        [],
        {"2": "Dependency"},
        says={"2": ("10 s to 100 s: Dependency",)},
    ),
    Question(
        CODES,
        "JobHeldUser: it waits although CPUs are idle",
        PLAIN,
        (job(1, priority=0), job(2, cpus=1)),
        {"1": []},
        {"1": "PENDING"},
        [],
        {"1": "JobHeldUser"},
    ),
]


every_question = pytest.mark.parametrize(
    "question", [*QUESTIONS, *TRACKERS], ids=lambda each: f"{each.asks} [{each.page}]"
)


def asked(folder: Path, question: Question) -> tuple[list[str], list[str]]:
    """Write the input; return the arguments CONFIG and WORKLOAD, and the options."""
    conf, jobs, qos = (folder / name for name in ("slurm.conf", "jobs.jsonl", "qos.txt"))
    conf.write_text(question.site)
    jobs.write_text("".join(json.dumps(each) + "\n" for each in question.jobs))
    options = []
    if question.qos:
        qos.write_text(QOS_HEAD + question.qos)
        options = ["--accounting", str(qos)]
    return [str(conf), str(jobs)], options


@every_question
def test_what_people_ask(tmp_path: Path, question: Question) -> None:
    files, options = asked(tmp_path, question)
    out = tmp_path / "out.json"
    ideal = ["--set", "scheduler.clockwork=ideal"]
    done = CliRunner().invoke(cli, ["replay", *files, "--json", str(out), *ideal, *options])
    assert done.exit_code == (3 if question.never else 0), done.output
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


@every_question
def test_explain_answers_too(tmp_path: Path, question: Question) -> None:
    """Why a job waits, from when on it runs, and which displaced it, as the replay has it; and what else there is."""
    files, options = asked(tmp_path, question)
    options += ["--set", "scheduler.clockwork=ideal"]
    for name, why in question.never.items():
        done = CliRunner().invoke(cli, ["explain", *files, "--job", name, *options])
        assert (done.exit_code, "\nit can never run here: " in done.stdout) == (3, True)
        assert why in done.stdout
    for name in {**question.starts, **question.reasons, **question.says}:
        done = CliRunner().invoke(cli, ["explain", *files, "--job", name, *options])
        assert done.exit_code == 0, done.output
        for text in question.says.get(name, ()):
            assert text in done.stdout
        assert f": {question.reasons.get(name, '')}" in _part(done.stdout, "why it waited")
        running = [line for line in _part(done.stdout, "where it was").splitlines() if "RUNNING" in line]
        if name in question.starts and name not in question.never:
            assert [line.split(" s ", 1)[0].strip() for line in running] == [
                f"{start:,}" for start in question.starts[name]
            ]
        if question.victims is not None:
            displaced = "which displaced it: none" not in done.stdout
            assert displaced is (name in question.victims)


def _part(story: str, title: str) -> str:
    """Return the paragraph that begins so."""
    return next(part for part in story.split("\n\n") if part.startswith(title))


@every_question
def test_check_answers_too(tmp_path: Path, question: Question) -> None:
    """Which is no error, and whether, and how, jobs make way for one another."""
    (conf, _), options = asked(tmp_path, question)
    done = CliRunner().invoke(cli, ["check", conf, *options])
    assert done.exit_code == 0, done.output
    for text in question.check:
        assert text in done.stdout
    if question.victims:
        assert any(word in done.stdout for word in ("killed", "requeued", "suspended"))

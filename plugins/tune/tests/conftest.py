"""A site whose best settings are worked out by hand: a node of 4 CPUs, a preemptable partition and an urgent one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from makeway_app.cli import cli

CONF = """\
# The site.
ClusterName=site
SlurmctldHost=head
SchedulerType=sched/builtin
SelectType=select/linear
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PriorityType=priority/basic

NodeName=n1 CPUs=4 RealMemory=1000
PartitionName=batch Nodes=n1 PriorityTier=1 Default=YES MaxTime=INFINITE  # everybody
PartitionName=urgent Nodes=n1 PriorityTier=10 MaxTime=INFINITE
"""
HEADER = "JobID|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS|State"
HOURS = 24


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Return a slurm.conf."""
    path = tmp_path / "slurm.conf"
    path.write_text(CONF)
    return path


def log_rows(hours: int = HOURS) -> str:
    """Return a log: every two hours a batch job of 50 minutes begins, and after 40 an urgent one of 5 minutes comes."""
    lines = [HEADER]
    begin = datetime(2025, 6, 2, tzinfo=UTC)
    for hour in range(0, 2 * hours, 2):
        at = begin + timedelta(hours=hour)
        for number, part, after, minutes in ((1, "batch", 0, 50), (2, "urgent", 40, 5)):
            start = at + timedelta(minutes=after)
            user = {"batch": "ann", "urgent": "olga"}[part]
            times = f"{start:%Y-%m-%dT%H:%M:%S}|{start:%Y-%m-%dT%H:%M:%S}"
            end = f"{start + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S}"
            lines.append(
                f"{10 * hour + number}|{user}|acct|{part}|{times}|{end}|00:{minutes:02}:00|02:00:00|1|4|COMPLETED"
            )
    return "\n".join(lines) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the log as sacct prints it."""
    path = tmp_path / "june.sacct"
    path.write_text(log_rows())
    return path


@pytest.fixture
def short_log(tmp_path: Path) -> Path:
    """Return a log with jobs in 13 hours."""
    path = tmp_path / "short.sacct"
    path.write_text(log_rows(13))
    return path


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    """Return a log of six days, which is cut into 143 hours."""
    path = tmp_path / "long.sacct"
    path.write_text(log_rows(72))
    return path


Tune = Callable[..., Result]


@pytest.fixture
def tune() -> Tune:
    """Return what runs makeway tune, in this process alone."""
    return lambda *given: CliRunner().invoke(cli, ["tune", *map(str, given), "--workers", "1"])

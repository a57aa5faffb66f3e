"""Jobs that a log says were cancelled before they started, and jobs that were requeued, as sacct prints them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

SITE = """\
ClusterName=c
SlurmctldHost=head
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n[1-2] CPUs=4 CoresPerSocket=4 RealMemory=8000 State=UNKNOWN
PartitionName=DEFAULT Nodes=n[1-2] State=UP DefMemPerCPU=500 MaxTime=7-0
PartitionName=low PriorityTier=1 Default=YES
PartitionName=high PriorityTier=10
"""
HEADER = "JobID|User|Partition|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS|NodeList|State\n"
DAY = "2025-06-02T"
LONG = f"1|ada|low|{DAY}08:00:00|{DAY}08:00:00|{DAY}18:00:00|10:00:00|12:00:00|2|8|n[1-2]|COMPLETED\n"


def line(
    job: str, submit: str, start: str, end: str, elapsed: str, state: str, partition: str = "high"
) -> str:
    """Return a row of a job of two nodes; times are of one day."""
    start, end = (each if not each[:1].isdigit() else DAY + each for each in (start, end))
    nodes = "n[1-2]" if elapsed != "00:00:00" else "None assigned"
    return f"{job}|ben|{partition}|{DAY}{submit}|{start}|{end}|{elapsed}|12:00:00|2|8|{nodes}|{state}\n"


def replayed(
    tmp_path: Path, *rows: str, more: tuple[str, ...] = (), name: str = "log.sacct"
) -> dict[str, Any]:
    """Replay a log and return its record, with what was printed under `told`."""
    (tmp_path / "slurm.conf").write_text(SITE)
    (tmp_path / name).write_text((HEADER if name.endswith("sacct") else "") + "".join(rows))
    paths = [str(tmp_path / each) for each in ("slurm.conf", name, "out.json")]
    done = CliRunner().invoke(cli, ["replay", *paths[:2], "--json", paths[2], *more])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(Path(paths[2]).read_text())
    return {**found, "told": done.output}


def waited(job: dict[str, Any]) -> tuple[float, str]:
    """Return for how long a job waited that is over, and what became of it."""
    assert [each["state"] for each in job["intervals"]] == ["PENDING"]
    return job["intervals"][0]["end"] - job["submit"], job["final_state"]


@pytest.mark.parametrize("start", ["Unknown", "None", "14:00:20"])
def test_a_job_that_was_cancelled_first_waits_and_displaces_no_other(tmp_path: Path, start: str) -> None:
    """Old releases give such a job the instant of its end as its start."""
    row = line("2", "14:00:00", start, "14:00:20", "00:00:00", "CANCELLED by 1000")
    run = replayed(tmp_path, LONG, row)
    assert run["preemptions"] == []
    assert waited(run["jobs"]["2"]) == (20.0, "CANCELLED")
    assert run["jobs"]["1"]["final_state"] == "COMPLETED"
    assert run["metrics"]["makespan"] == 36_000.0
    assert run["metrics"]["mean_bounded_slowdown"] == 1.0  # of the job that ran


def test_its_wait_ends_when_the_log_says_though_there_is_room(tmp_path: Path) -> None:
    run = replayed(
        tmp_path, line("2", "10:40:00", "Unknown", "10:50:01", "00:00:00", "CANCELLED by 1001", "low")
    )
    assert waited(run["jobs"]["2"]) == (601.0, "CANCELLED")


def test_who_never_ran_and_has_no_end_is_listed(tmp_path: Path) -> None:
    run = replayed(tmp_path, LONG, line("2", "14:00:00", "Unknown", "Unknown", "00:00:00", "CANCELLED"))
    assert list(run["jobs"]) == ["1"]
    assert "log.sacct:3: it never started" in run["told"]


def test_components_that_never_ran_are_withdrawn_together(tmp_path: Path) -> None:
    rows = [line(f"2+{at}", "10:40:00", "Unknown", "10:50:00", "00:00:00", "CANCELLED") for at in (0, 1)]
    run = replayed(tmp_path, *rows)
    assert [waited(job) for job in run["jobs"].values()] == [(600.0, "CANCELLED")] * 2
    assert "refused" not in run["told"]


def test_a_warm_start_takes_who_waited_then(tmp_path: Path) -> None:
    """The first end is at 09:00: job 2 waits on from its submission, job 3 had gone."""
    ended = f"4|ada|low|{DAY}08:00:00|{DAY}08:00:00|{DAY}09:00:00|01:00:00|12:00:00|1|1|n1|COMPLETED\n"
    rows = [
        line("2", "08:30:00", "Unknown", "09:30:00", "00:00:00", "CANCELLED"),
        line("3", "08:30:00", "Unknown", "08:40:00", "00:00:00", "CANCELLED"),
    ]
    run = replayed(tmp_path, ended, *rows, more=("--set", "workload.warm=true"))
    assert list(run["jobs"]) == ["2"]
    assert (run["jobs"]["2"]["intervals"][-1]["end"], run["jobs"]["2"]["final_state"]) == (
        1800.0,
        "CANCELLED",
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_last_row_of_a_requeued_job_describes_it(tmp_path: Path, order: tuple[int, int]) -> None:
    """With -D: job 1 lost its first hour to job 2, and ran for 4 h after that; it had been submitted at 8."""
    rows = [
        line("1", "08:00:00", "08:00:00", "09:00:00", "01:00:00", "PREEMPTED", "low"),
        line("1", "09:00:00", "10:00:01", "14:00:01", "04:00:00", "COMPLETED", "low"),
    ]
    preemptor = line("2", "09:00:00", "09:00:00", "10:00:00", "01:00:00", "COMPLETED")
    run = replayed(tmp_path, *(rows[at] for at in order), preemptor)
    job = run["jobs"]["1"]
    runs = [each["end"] - each["start"] for each in job["intervals"] if each["state"] == "RUNNING"]
    assert (job["submit"], runs, job["restarts"]) == (0.0, [3600.0, 14_400.0], 1)
    assert [each["preemptor"] for each in run["preemptions"]] == ["2"]
    assert run["metrics"]["rows_unusable"] == 0


def test_a_requeued_job_that_waits_still_ran_as_its_last_run_did(tmp_path: Path) -> None:
    rows = [
        line("1", "08:00:00", "08:00:00", "09:00:00", "01:00:00", "PREEMPTED", "low"),
        line("1", "09:00:00", "Unknown", "Unknown", "00:00:00", "PENDING", "low"),
    ]
    run = replayed(tmp_path, *rows)
    assert [each["end"] for each in run["jobs"]["1"]["intervals"]] == [3600.0]


def test_the_same_run_twice_is_a_fault(tmp_path: Path) -> None:
    run = replayed(tmp_path, LONG, LONG, more=("--allow-unusable",))
    assert re.search(r"log\.sacct:3: job '1' was there before: line 2 has the same", run["told"])


@pytest.mark.parametrize("run_time", ["0", "-1"])
def test_swf_jobs_cancelled_first_wait_for_their_wait_time(tmp_path: Path, run_time: str) -> None:
    """Status 5 and no run time."""
    long = "1 0 0 36000 8 -1 -1 8 43200 -1 1 1 1 1 1 -1 -1 -1\n"
    row = f"2 14400 20 {run_time} 4 -1 -1 4 7200 -1 5 1 1 1 high -1 -1 -1\n"
    run = replayed(tmp_path, long, row, name="log.swf")
    assert run["preemptions"] == []
    assert waited(run["jobs"]["2"]) == (20.0, "CANCELLED")


def test_swf_jobs_without_a_wait_time_are_listed(tmp_path: Path) -> None:
    long = "1 0 0 36000 8 -1 -1 8 43200 -1 1 1 1 1 1 -1 -1 -1\n"
    run = replayed(
        tmp_path,
        long,
        "2 9 -1 0 8 -1 -1 8 43200 -1 5 1 1 1 1 -1 -1 -1\n",
        name="log.swf",
    )
    assert list(run["jobs"]) == ["1"]
    assert "log.swf:2: it was cancelled before it started, and the wait time does not say when" in run["told"]


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        pytest.param("JobRequeue=0\n", 1.0, id="killed: 3,600 s for the 36,000 s that it needed"),
        pytest.param("", (1.0 + (4200 + 36_000) / 36_000) / 2, id="requeued: 40,200 s for 36,000 s"),
    ],
)
def test_slowdown_is_over_the_run_time_that_a_job_needed(tmp_path: Path, site: str, expected: float) -> None:
    """Job 1 begins at 0 and gives way at 3,600 s for 600 s; job 2 waits for none."""
    (tmp_path / "slurm.conf").write_text(SITE + site)
    (tmp_path / "jobs.jsonl").write_text(
        '{"id": 1, "partition": "low", "nodes": 2, "cpus": 8, "run_time": 36000, "time_limit": 86400}\n'
        '{"id": 2, "partition": "high", "submit": 3600, "nodes": 2, "cpus": 8, "run_time": 600, "time_limit": 900}\n'
    )
    out = tmp_path / "out.json"
    options = ["--set", "scheduler.clockwork=ideal", "--json", str(out)]
    done = CliRunner().invoke(
        cli, ["replay", str(tmp_path / "slurm.conf"), str(tmp_path / "jobs.jsonl"), *options]
    )
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert found["metrics"]["mean_bounded_slowdown"] == pytest.approx(expected)
    assert found["jobs"]["1"].get("needed") == (36_000.0 if site else None)

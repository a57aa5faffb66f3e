"""What repeats is told once; suspensions that move a time limit and memory that costs CPUs are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway_explain.story import folded

Run = Callable[..., Any]

HEAD = "ClusterName=c\nSlurmctldHost=head\nSelectType=select/cons_tres\n"
LOW = "PartitionName=low Nodes=ALL Default=YES "
GRACE = (
    HEAD
    + "SelectTypeParameters=CR_CPU\nPreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nNodeName=n1 CPUs=4\n"
    + LOW
    + "PriorityTier=1 GraceTime=7200\nPartitionName=high Nodes=ALL PriorityTier=10\n"
)
GANG = (
    HEAD
    + "SelectTypeParameters=CR_CPU\nPreemptMode=GANG\nSchedulerTimeSlice=30\nNodeName=n1 CPUs=4\n"
    + LOW
    + "OverSubscribe=FORCE:2\n"
)
MEMORY = (
    HEAD
    + "SelectTypeParameters=CR_CPU_Memory\nMaxMemPerCPU=4000\nNodeName=n[1-2] CPUs=8 RealMemory=32000\n"
    + LOW
    + "\n"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("abc", "a b c"),
        ("aab", "a a b"),
        ("aaab", "aaa b"),
        ("abab", "a b a b"),
        ("ababab", "aaa bbb"),
        ("xabababay", "x aaaa bbb y"),
        ("abcabcabcd", "aaa bbb ccc d"),
        ("abcdeabcdeabcde", "a b c d e a b c d e a b c d e"),
        ("", ""),
    ],
)
def test_what_comes_three_times_in_a_row_is_put_together(text: str, found: str) -> None:
    assert " ".join("".join(run) for run in folded([[letter] for letter in text], lambda each: each)) == found


def told(run: Run, folder: Path, site: str, jobs: str, job: int) -> str:
    """Return the story of a job."""
    (folder / "slurm.conf").write_text(site)
    (folder / "jobs.jsonl").write_text(jobs)
    done = run("explain", folder / "slurm.conf", folder / "jobs.jsonl", "--job", str(job))
    assert done.status == 0, done.err
    return str(done.out)


def test_a_long_grace_time_is_told_in_a_few_lines(run: Run, tmp_path: Path) -> None:
    """The job tells its victim to leave at 600 s, again at each pass, and starts after two hours of grace."""
    story = told(
        run,
        tmp_path,
        GRACE,
        '{"id": 1, "cpus": 4, "run_time": 36000, "time_limit": 86400}\n'
        '{"id": 2, "cpus": 4, "partition": "high", "submit": 600, "run_time": 600, "time_limit": 1200}\n',
        2,
    )
    assert "  7,800 s to 8,400 s: RUNNING on n1\n" in story
    assert story.count("preempts for n1") == 1
    assert len(story.splitlines()) < 40


def test_turns_of_a_gang_are_told_in_pairs(run: Run, tmp_path: Path) -> None:
    """Two jobs of an hour take turns of 30 s: the second one is stopped for an hour in all, and works for one."""
    hour = '"cpus": 4, "run_time": 3600, "time_limit": 7200}\n'
    story = told(run, tmp_path, GANG, f'{{"id": 1, {hour}{{"id": 2, {hour}', 2)
    stopped, worked = story.partition("where it was\n")[2].splitlines()[:2]
    assert " times, 1:00:00 in all): SUSPENDED on n1" in stopped
    assert " times, 1:00:00 in all): RUNNING on n1" in worked


def test_a_suspension_moves_the_time_limit(run: Run, tmp_path: Path) -> None:
    """A limit of 20 minutes ends a job after 30 of which it was stopped for 10."""
    jobs = '{"id": 1, "cpus": 4, "run_time": 3600, "time_limit": 1200}\n'
    (tmp_path / "slurm.conf").write_text(GRACE)
    (tmp_path / "jobs.jsonl").write_text(jobs)
    do = ("--do", "300 suspend 1 by root", "--do", "900 resume 1 by root")
    story = run("explain", tmp_path / "slurm.conf", tmp_path / "jobs.jsonl", "--job", "1", *do).out
    assert "TIMEOUT at 1,800 s" in story
    (line,) = (line for line in story.splitlines() if "SUSPENDED" in line)
    assert line.startswith("  300 s to 900 s: ")
    assert line.endswith("; its time limit moves by as much")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(
            '"cpus": 1, "memory_mb_per_cpu": 10000',
            "it wants 10,000 MB for each CPU, and MaxMemPerCPU is 4,000 MB: it gets 3 CPUs instead of 1\n",
            id="memory of each CPU",
        ),
        pytest.param(
            '"cpus": 1, "memory_mb": 14000',
            "it wants 14,000 MB of each node, and MaxMemPerCPU is 4,000 MB: it gets 4 CPUs instead of 1\n",
            id="memory of the node",
        ),
        pytest.param(
            '"nodes": 2, "tasks_per_node": 2, "memory_mb_per_cpu": 8000',
            "and MaxMemPerCPU is 4,000 MB: it gets 4 CPUs instead of 2 on each node\n",
            id="on each of two nodes",
        ),
        pytest.param('"cpus": 1, "memory_mb_per_cpu": 4000', "", id="not above the limit"),
    ],
)
def test_memory_above_the_limit_costs_cpus(run: Run, tmp_path: Path, asked: str, said: str) -> None:
    """So says slurm.conf's manual of MaxMemPerCPU: CPUs are raised until each one's memory is below it."""
    story = told(run, tmp_path, MEMORY, f'{{"id": 1, {asked}, "run_time": 60, "time_limit": 600}}\n', 1)
    assert said in story
    assert bool(said) is ("MaxMemPerCPU" in story)


def test_the_cpus_that_it_lacks_are_those_that_it_gets(run: Run, tmp_path: Path) -> None:
    """Job 2 asks for 2 CPUs and gets 4 for its memory, of which n1 has 8 less 6."""
    here = '"nodes": 1, "required_nodes": "n1", "run_time": 600, "time_limit": 600}\n'
    jobs = f'{{"id": 1, "cpus": 6, "memory_mb": 100, {here}{{"id": 2, "cpus": 2, "memory_mb_per_cpu": 8000, {here}'
    assert "n1: 4 CPUs wanted, 2 of 8 free; held by 1 (6)" in told(run, tmp_path, MEMORY, jobs, 2)


def test_a_job_that_never_starts_waits(run: Run, tmp_path: Path) -> None:
    """Though the replay is over at once, for nothing else happens: its user holds it."""
    story = told(
        run, tmp_path, GRACE, '{"id": 1, "cpus": 4, "priority": 0, "run_time": 60, "time_limit": 60}\n', 1
    )
    assert "why it waited\n  0 s: JobHeldUser\n" in story

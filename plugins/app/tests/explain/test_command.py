"""``makeway explain``: what it tells of one job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_explain_the_preemptor(run: Run, with_jobs: Path) -> None:
    """Which jobs it displaced, and which were considered."""
    done = run("explain", with_jobs, "--job", 2)
    assert done.status == 0
    assert done.out.split("\n\n") == [
        "job 2 (rush) of user eve: 1 node, no time limit, partition high, submitted at 10 s\n"
        "first start after 0 s, COMPLETED at 30 s",
        "where it was\n  10 s to 30 s: RUNNING on n1",
        "why it waited: it did not",
        "what was decided about it\n"
        "  10 s: preempts for n1 in partition high; without that Resources: 1 node wanted, 0 usable\n"
        "    could displace, in this order: 1 (requeue, loses 10 s)\n"
        "    takes (two passes of select/linear): 1 (requeue)\n"
        "  10 s: starts on n1 in partition high: idle nodes",
        "which it displaced\n"
        "  10 s: job 1 (partition low) by requeue, mode of partition low [preempt/partition_prio]",
        "which displaced it: none\n",
    ]


def test_explain_the_victim(run: Run, config: Path, workload: Path) -> None:
    """Which displaced it, why it waited then, and what it lost; repeated attempts once."""
    more = "\n".join(
        f"[[job]]\nid = {n}\npartition = 'high'\nsubmit = {n}\nnodes = 1\nrun_time = 9" for n in (11, 12, 13)
    )
    workload.write_text(workload.read_text() + more)
    done = run("explain", config, workload, "--job", 1)
    assert done.status == 0
    heading, where, why, decided, displaced, by = done.out.split("\n\n")
    assert "started again 1 time, 0.02 core-hours of work lost" in heading
    assert where.splitlines()[1] == "  0 s to 10 s: RUNNING on n[1-2]"
    assert why.splitlines()[1:] == ["  10 s to 38 s: Resources"]
    assert "attempts): waits in partition low, Resources: 2 nodes wanted" in decided
    assert displaced == "which it displaced: none"
    assert by == (
        "which displaced it\n"
        "  10 s: job 2 (partition high) by requeue, mode of partition low "
        "[preempt/partition_prio]\n"
    )


QUEUE = """
[[job]]
id = "low"
nodes = 1
run_time = 100
time_limit = 100
[[job]]
id = "kept"
nodes = 1
run_time = 200
time_limit = 200
partition = "high"
[[job]]
id = "first"
nodes = 2
submit = 10
run_time = 100
time_limit = 100
partition = "high"
[[job]]
id = "next"
nodes = 1
submit = 20
run_time = 100
time_limit = 100
partition = "high"
"""
ONLY = "under scheduler easy only job first, the first that waits, may have others make way"


def test_explain_says_why_a_job_behind_the_first_displaces_no_other(
    run: Run, config: Path, tmp_path: Path
) -> None:
    """EASY: it could have low make way, but another waits before it; with room, the nodes may be kept."""
    jobs = tmp_path / "queue.toml"
    jobs.write_text(QUEUE)
    easy = ("--set", "scheduler.type=easy")
    done = run("explain", config, jobs, "--job", "next", *easy)
    assert f"20 s: waits in partition high, Priority: too few nodes are free; {ONLY}" in done.out
    roomy = QUEUE.replace("nodes = 1\nrun_time = 100\ntime_limit = 100", "nodes = 1\nrun_time = 5", 1)
    jobs.write_text(
        roomy.replace("submit = 20\nrun_time = 100\ntime_limit = 100", "submit = 20\nrun_time = 300")
    )
    done = run("explain", config, jobs, "--job", "next", *easy)
    kept = "it might run longer than until 200 s, when job first is to start, on nodes kept for that"
    assert f"20 s: waits in partition high, Priority: {kept}; {ONLY}" in done.out
    done = run("explain", config, jobs, "--job", "next", *easy, "--set", "policy.preempt=preempt/none")
    assert "make way" not in done.out


def test_explain_names_who_is_protected_and_why(run: Run, with_jobs: Path) -> None:
    """By the rule."""
    exempt = ("--set", "policy.preemption.exempt_time=50", "--set", "scheduler.type=builtin")
    done = run("explain", with_jobs, "--job", 2, *exempt)
    assert "protected: 1: exempt for 40 s more (PreemptExemptTime)" in done.out
    assert "10 s to 50 s: Resources" in done.out


def test_explain_a_job_that_can_never_run(run: Run, with_jobs: Path) -> None:
    """With the reason."""
    done = run("explain", with_jobs, "--job", 1, "--set", "job.1.nodes=3")
    assert done.status == 3
    assert (
        "it can never run here: PartitionNodeLimit: needs 3 nodes; partition low gives at most 2" in done.out
    )


def test_explain_a_job_whose_row_cannot_be_used(run: Run, config: Path, tmp_path: Path) -> None:
    """Line and reason, whether the reader or the mapping put it aside; a second row is a note."""
    trace = tmp_path / "june.sacct"
    trace.write_text(
        "JobID|Submit|Elapsed|NNodes|State|Partition\n"
        "1|2025-06-01T00:00:00|00:10:00|1|COMPLETED|low\n"
        "2|2025-06-01T00:00:00|00:00:00|1|PENDING|low\n"
        "3+1|2025-06-01T00:00:00|00:00:09|1|COMPLETED|lwo\n"
        "1|2025-06-01T00:00:00|00:10:00|1|COMPLETED|low\n"
    )
    done = run("explain", config, trace, "--job", 2)
    heading = "is not replayed, its row cannot be used"
    assert done.status == 3
    assert done.out == f"job 2 {heading}\n  june.sacct:3: state PENDING: how long it runs is not known\n"
    for job in ("3", "3+1"):
        done = run("explain", config, trace, "--job", job)
        assert done.status == 3
        assert done.out.startswith(f"job {job} {heading}\n  june.sacct:4: no partition named 'lwo'")
    done = run("explain", config, trace, "--job", 1)
    assert done.status == 0
    assert done.err.startswith("note: a row of job 1 cannot be used: june.sacct:5: job '1' was there before")
    done = run("explain", config, trace, "--job", 4)
    assert done.status == 2
    assert "no job '4' in june.sacct; there are 1, 1 to 1, and 3 rows that cannot be used" in done.err


@pytest.mark.parametrize(
    ("scheduler", "more"), [("easy", "; having others make way would not help"), ("backfill", "")]
)
def test_explain_says_which_component_is_short_of_room(
    run: Run, config: Path, tmp_path: Path, scheduler: str, more: str
) -> None:
    """Of both components; and when they start. Backfill seeks no victims before each has a place in its plan."""
    jobs = tmp_path / "het.toml"
    jobs.write_text(
        "[[job]]\nid = 1\nnodes = 1\nrun_time = 50\ntime_limit = 50\n"
        "[[job]]\nid = 2\nsubmit = 5\nrun_time = 10\n[[job.component]]\nnodes = 1\n[[job.component]]\nnodes = 1\n"
    )
    done = run("explain", config, jobs, "--job", 2, "--set", f"scheduler.type={scheduler}")
    why = f"component 2+1: 1 node wanted, 0 usable; components start together{more}"
    assert done.out.count(f"5 s: waits in partition low, Resources: {why}\n") == 2  # as squeue says of both
    assert "50 s: starts on n1 in partition low: with its other components" in done.out


def test_explain_a_job_that_comes_too_late(run: Run, with_jobs: Path) -> None:
    """Which is no error."""
    done = run("explain", with_jobs, "--job", 2, "--until", 5)
    assert (done.status, done.out) == (0, "job 2 was not submitted before --until\n")


def test_explain_all_parts_of_a_heterogeneous_job(run: Run, config: Path, tmp_path: Path) -> None:
    """By the id of the whole."""
    jobs = tmp_path / "het.toml"
    jobs.write_text("[[job]]\nid = 5\nrun_time = 9\ncomponent = [{ nodes = 1 }, { nodes = 1 }]\n")
    done = run("explain", config, jobs, "--job", 5)
    assert done.status == 0
    assert [line for line in done.out.splitlines() if line.startswith("job ")] == [
        f"job 5+{part} of user user: 1 node, no time limit, partition low, submitted at 0 s"
        for part in (0, 1)
    ]


ALONE = '[[job]]\nid = "1"\nnodes = 1\nrun_time = 600\n'


def test_a_job_that_stays_stopped_is_still_there_at_the_end(run: Run, config: Path, tmp_path: Path) -> None:
    """Nothing happens after 10 s, so that the replay ends there."""
    jobs = tmp_path / "alone.toml"
    jobs.write_text(ALONE)
    done = run("explain", config, jobs, "--job", 1, "--do", "10 signal=STOP 1")
    assert "  0 s to 10 s: RUNNING on n1, and still so as the replay ended\n" in done.out


@pytest.mark.parametrize("signal", ["STOP", "tstp"])
def test_a_job_that_a_person_stopped_by_a_signal_keeps_its_node(
    run: Run, config: Path, tmp_path: Path, signal: str
) -> None:
    """Its processes stand still from 10 s to 30 s, so that it ends 20 s later; squeue(1): CPUs are retained."""
    jobs = tmp_path / "alone.toml"
    jobs.write_text(ALONE)
    acts = ("--do", f"10 signal={signal} 1", "--do", "30 signal=CONT 1")
    done = run("explain", config, jobs, "--job", 1, *acts)
    assert done.status == 0
    assert "COMPLETED at 620 s" in done.out
    assert "where it was\n  0 s to 620 s: RUNNING on n1\n" in done.out
    sent = [line for line in done.out.splitlines() if "a person sent it" in line]
    assert [line.partition(",")[0] for line in sent] == [
        f"  10 s: a person sent it SIG{signal.upper()}",
        "  30 s: a person sent it SIGCONT",
    ]


def test_a_stopped_job_goes_on_only_once_it_is_continued(run: Run, config: Path, tmp_path: Path) -> None:
    """Without CONT it runs into its time limit, which goes on; CONT does nothing to one that is suspended."""
    jobs = tmp_path / "alone.toml"
    jobs.write_text(ALONE + "time_limit = 700\n")
    done = run("explain", config, jobs, "--job", 1, "--do", "10 signal=STOP 1")
    assert "TIMEOUT at 700 s" in done.out
    acts = ("--do", "10 suspend 1", "--do", "20 signal=CONT 1", "--do", "40 resume 1")
    done = run("explain", config, jobs, "--job", 1, *acts)
    assert "COMPLETED at 630 s" in done.out
    assert "10 s to 40 s: SUSPENDED on n1" in done.out


def test_explain_tells_what_people_did_and_what_they_were_refused(
    run: Run, config: Path, tmp_path: Path
) -> None:
    """Each with its instant."""
    jobs = tmp_path / "alone.toml"
    jobs.write_text(ALONE)
    acts = ["10 suspend 1", "15 resume 1", "20 requeue 1", "20 resume 1", "700 signal=KILL 1"]
    done = run("explain", config, jobs, "--job", 1, *(word for act in acts for word in ("--do", act)))
    (told,) = [each for each in done.out.split("\n\n") if each.startswith("what people did to it")]
    assert told.splitlines()[1:4] == [
        "  10 s: a person suspended it",
        "  15 s: a person resumed it",
        "  20 s: a person requeued it",
    ]
    assert told.splitlines()[4].startswith("  20 s: a person asked for resume, in vain: the job is ")

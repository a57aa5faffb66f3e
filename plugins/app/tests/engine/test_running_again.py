"""Jobs that a person has run again after they had ended (slurm-preemption 4.11), with values worked out by hand."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from makeway.config import build_cluster
from makeway.model import JobSpec, JobState
from makeway_app.replay import Options, Run, replay
from makeway_testing import InvariantChecker, builders, tiers

BUILTIN: dict[str, Any] = {"scheduler": "builtin"}
ONE = """
    job  submit  nodes  run_time
    a         0      1       100
"""
LIMIT = """
    job  submit  nodes  run_time  time_limit
    a         0      1       100          60
"""
TWO = ONE + "    b         0      1       100\n"


def play(jobs: str, commands: str, *, nodes: int = 1, keep: bool = True, **settings: Any) -> Run:
    """Replay jobs on nodes of 4 CPUs, with all invariants checked after each step."""
    config = builders.config(builders.cluster(nodes, cpus=4), {**BUILTIN, **settings})
    events = builders.commands(commands, build_cluster(config))
    options = Options(after_step=InvariantChecker(events), keep=keep)
    return replay(config, builders.jobs(jobs), events, options)


def runs(run: Run, job: str) -> list[tuple[float, float]]:
    """Return from when to when a job ran."""
    history = run.recorder.histories[job]
    return [(start, end) for state, start, end, _, _ in history.intervals if state is JobState.RUNNING]


def refusals(run: Run) -> list[str]:
    """Return why commands were refused."""
    return [reason for _, _, reason in run.recorder.refusals]


def test_a_job_that_ran_to_its_end_twice() -> None:
    """It counts once; its first run is done again, so that it counts as lost: 100 s on 4 CPUs."""
    run = play(ONE, "150 requeue a")
    history = run.recorder.histories["a"]
    assert runs(run, "a") == [(0, 100), (150, 250)]
    assert (history.final_state, history.job.restarts) == (JobState.COMPLETED, 1)
    assert [state for state, *_ in history.intervals] == [JobState.RUNNING, JobState.RUNNING]
    figures = run.summary()["metrics"]
    assert (figures["jobs"], figures["jobs_unfinished"]) == (1, 0)
    assert (figures["core_seconds_lost"], figures["goodput"]) == (400, 1)
    assert (figures["utilisation"], figures["makespan"]) == (0.8, 250)  # 200 of 250 s
    assert figures["mean_bounded_slowdown"] == 2.5  # 250 s for 100 s
    assert figures["mean_wait"] == 0  # until its first start


def test_one_that_has_not_ended_again_is_unfinished() -> None:
    """Its first end counts no longer."""
    config = builders.config(builders.cluster(1, cpus=4), BUILTIN)
    events = builders.commands("150 requeue a", build_cluster(config))
    run = replay(config, builders.jobs(ONE), events, Options(until=200))
    figures = run.summary()["metrics"]
    assert (figures["jobs_unfinished"], figures["goodput"], figures["core_seconds_lost"]) == (1, 0, 400)
    assert run.summary()["jobs"]["a"]["final_state"] == "RUNNING"


@pytest.mark.parametrize(
    ("jobs", "commands", "twice", "state", "lost", "goodput"),
    [
        pytest.param(LIMIT, "70 requeue a", [(0, 60), (70, 130)], "TIMEOUT", 240, 0, id="TIMEOUT"),
        pytest.param(
            ONE, "30 cancel a\n40 requeue a", [(0, 30), (40, 140)], "COMPLETED", 120, 1, id="CANCELLED"
        ),
        pytest.param(
            ONE, "10 signal=KILL a\n40 requeue a", [(0, 10), (40, 140)], "COMPLETED", 40, 1, id="FAILED"
        ),
        pytest.param(
            TWO, "10 cancel b\n50 requeue b", [(100, 200)], "COMPLETED", 0, 1, id="CANCELLED while it waits"
        ),
    ],
)
def test_however_it_ended(
    jobs: str, commands: str, twice: list[tuple[float, float]], state: str, lost: float, goodput: float
) -> None:
    """Each end of a job that has not been forgotten."""
    commands = commands.replace("signal=KILL a", "signal a KILL")
    run = play(jobs, commands)
    job = "b" if " b" in commands else "a"
    assert runs(run, job) == twice
    assert run.recorder.histories[job].final_state is JobState(state)
    figures = run.summary()["metrics"]
    assert (figures["core_seconds_lost"], figures["goodput"]) == (lost, goodput)


def test_one_that_preemption_ended_need_not_be_submitted_again() -> None:
    """It ran 40 s of its 100 s: 160 core-seconds are lost, and no more, as it is done in the end."""
    jobs = """
        job  submit  nodes  run_time  partition
        a         0      1       100        low
        b        40      1        20       high
    """
    settings = {**builders.preempting("preempt/partition_prio", "cancel"), "partitions": tiers(low=1, high=2)}
    before = play(jobs, "", **settings).summary()["metrics"]
    assert (before["jobs_ended_by_preemption"], before["core_seconds_to_submit_again"]) == (1, 400)
    run = play(jobs, "50 requeue a", **settings)
    assert runs(run, "a") == [(0, 40), (60, 160)]
    figures = run.summary()["metrics"]
    assert (figures["jobs_ended_by_preemption"], figures["core_seconds_to_submit_again"]) == (0, 0)
    assert (figures["core_seconds_lost"], figures["goodput"]) == (160, 1)
    assert run.summary()["jobs"]["a"]["core_seconds_lost"] == 160


def test_one_that_is_completing_waits_again_once_its_nodes_are_clean() -> None:
    """It ends at 100 s and leaves at 110 s."""
    run = play(ONE, "105 requeue a", clockwork={"completing_time": 10.0})
    assert runs(run, "a") == [(0, 100), (110, 210)]
    assert run.summary()["metrics"]["core_seconds_lost"] == 400


@pytest.mark.parametrize(
    ("clockwork", "at", "again"),
    [
        ({}, 400, True),
        ({}, 401, False),
        ({"min_job_age": 20.0}, 121, False),
        ({"min_job_age": 0.0}, 9000, True),
    ],
    ids=["300 s", "longer", "MinJobAge", "for good"],
)
def test_ended_jobs_are_forgotten_after_a_while(clockwork: dict[str, float], at: int, again: bool) -> None:
    """slurm.conf(5): MinJobAge, 300 s by default; 0 forgets no job."""
    run = play(ONE, f"{at} requeue a", clockwork=clockwork)
    assert len(runs(run, "a")) == 1 + again
    age = "0:00:20" if clockwork else "0:05:00"
    told = f"the job is unknown, or ended more than {age} ago (min_job_age)"
    assert refusals(run) == ([] if again else [told])


def test_who_may_not_be_requeued_does_not_run_again() -> None:
    """--no-requeue; and a job that was never submitted."""
    jobs = """
        job  submit  nodes  run_time  requeue
        a         0      1       100    false
    """
    run = play(jobs, "150 requeue a\n160 requeue x")
    assert len(runs(run, "a")) == 1
    unknown = "the job is unknown, or ended more than 0:05:00 ago (min_job_age)"
    assert refusals(run) == ["the job may not be requeued", unknown]


def test_the_requeue_delay_counts_from_the_command() -> None:
    """4.5 no. 4: the job waits for its begin time first."""
    run = play(ONE, "150 requeue a", clockwork={"requeue_delay": 121.0})
    assert runs(run, "a") == [(0, 100), (271, 371)]


def test_an_array_is_requeued_with_the_tasks_that_have_ended() -> None:
    """One node: task 0 has ended, task 1 runs, task 2 waits, which is refused."""
    config = builders.config(builders.cluster(1, cpus=4), BUILTIN)
    specs = builders.jobs(
        """
        job  submit  nodes  run_time
        t_0       0      1       100
        t_1       0      1       100
        t_2       0      1       100
        """
    )
    tasks = [attrs.evolve(spec, array_id="t", array_task=at) for at, spec in enumerate(specs)]
    events = builders.commands("150 requeue t", build_cluster(config))
    run = replay(config, tasks, events, Options(after_step=InvariantChecker(events)))
    assert refusals(run) == ["the job is pending"]
    assert [len(runs(run, each.id)) for each in tasks] == [2, 2, 1]


def test_a_heterogeneous_job_runs_again_as_a_whole() -> None:
    """By its leader: both components start together, twice."""
    parts = [
        JobSpec(id=f"h+{at}", user="u", submit_at=0, run_time=100, het_id="h", het_offset=at) for at in (0, 1)
    ]
    config = builders.config(builders.cluster(2, cpus=4), {"scheduler": "backfill"})
    events = builders.commands("150 requeue h+0", build_cluster(config))
    run = replay(config, parts, events, Options(after_step=InvariantChecker(events)))
    assert [runs(run, part.id) for part in parts] == [[(0, 100), (150, 250)]] * 2

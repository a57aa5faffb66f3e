"""Checkpoint as a mode: progress kept to the last checkpoint, its time and cost reported."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.hookspecs import hookimpl
from makeway.model import Candidates, JobState, PreemptMode
from makeway_testing import TableRun, replay_table, timeline


class ByCheckpoint:
    """Let the later job checkpoint the earlier one."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Any, active: Any) -> Candidates:
        """Name the jobs called low, for those that are not."""
        jobs = tuple(job for job in active if job.id.startswith("low") and preemptor.id == "high")
        return Candidates(jobs=jobs, modes=(PreemptMode.CHECKPOINT,) * len(jobs))


JOBS = """
    job   submit  nodes  run_time
    low        0      1       100
    high      30      1        20
"""


def run(jobs: str = JOBS, commands: str = "", **clock: float) -> TableRun:
    """Replay two jobs on one node."""
    config = {
        "preempt": "by/checkpoint",
        "preempt_mode": "checkpoint",
        "scheduler": "builtin",
        "clockwork": {"preset": "ideal", **clock},
    }
    return replay_table(jobs, config=config, plugins={"by/checkpoint": ByCheckpoint()}, commands=commands)


def test_nothing_is_lost() -> None:
    """Saved when told, at no cost: 30 s before, 70 s after."""
    done = run()
    assert done.timeline == timeline("""
         0  low   start
        30  low   requeue  for high
        30  high  start
        50  high  complete
        50  low   start
       120  low   complete
    """)
    history = done.history("low")
    assert (history.worked, history.lost) == (100.0, 0.0)
    figures = done.run.summary()["metrics"]
    assert (figures["checkpoints"], figures["core_seconds_lost"]) == (1, 0.0)


def test_writing_takes_time() -> None:
    """The nodes are held for 8 s more, 4 CPUs of them: 32 core-seconds."""
    done = run(checkpoint_time=8.0)
    assert done.starts("high") == (38.0,)
    assert done.run.summary()["metrics"]["core_seconds_checkpointing"] == 32.0


def test_reading_takes_time() -> None:
    """The second incarnation runs 5 s longer; that is no work."""
    done = run(restart_time=5.0)
    assert done.only("low")[-1] == "125 low complete"
    history = done.history("low")
    assert (history.worked, history.job.lost) == (100.0, 5.0)
    figures = done.run.summary()["metrics"]
    assert figures["core_seconds_restarting"] == 5.0 * 4
    assert figures["core_seconds_saved"] == 30.0 * 4


def test_periodic_checkpoints_lose_the_rest() -> None:
    """Every 20 s: of 30 s of work 10 are lost."""
    done = run(checkpoint_interval=20.0)
    assert done.only("low")[-1] == "130 low complete"
    history = done.history("low")
    assert (history.worked, history.job.lost) == (100.0, 10.0)


def test_two_checkpoints_add_up() -> None:
    """What the first saved is not lost by the second."""
    done = run(commands="10 checkpoint low\n60 checkpoint low")
    history = done.history("low")
    assert (history.worked, history.job.lost, history.job.restarts) == (100.0, 0.0, 3)


@pytest.mark.parametrize(("command", "state"), [("cancel", JobState.CANCELLED)])
def test_a_cancelled_job_keeps_its_work_on_the_books(command: str, state: JobState) -> None:
    """A person's cancel after a checkpoint throws nothing of it away."""
    done = run(commands=f"60 {command} low")
    assert done.state("low") is state
    assert done.history("low").worked == 40.0


def test_a_plain_requeue_starts_from_the_beginning() -> None:
    """A job that is requeued, not checkpointed, loses what earlier checkpoints had saved as well."""
    done = run(commands="60 requeue low")
    history = done.history("low")
    assert history.job.lost == 40.0
    assert history.worked == 100.0

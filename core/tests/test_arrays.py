"""Job arrays: which tasks there are, and how many of them work at a time (slurm-priority-and-limits 8)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from makeway.arrays import parse_array, tasks_of
from makeway.errors import ConfigError
from makeway.model import JobSpec, JobState
from makeway_app.readers.native import workload_of_tables
from makeway_testing import cluster, replay_table
from makeway_testing.relay import relay
from makeway_testing.strategies import Scenario

STRICT = {"partitions": {"p": {}}, "scheduler": "builtin"}


@pytest.mark.parametrize(
    ("text", "tasks", "limit"),
    [
        ("0-3", (0, 1, 2, 3), None),
        ("5", (5,), None),
        ("1,3,5-9:2", (1, 3, 5, 7, 9), None),
        ("3,1-3", (1, 2, 3), None),
        ("0-4%2", (0, 1, 2, 3, 4), 2),
        ("[1-2%1]", (1, 2), 1),
    ],
)
def test_tasks(text: str, tasks: tuple[int, ...], limit: int | None) -> None:
    """As sbatch's page describes them."""
    array = parse_array(text)
    assert (array.tasks, array.limit) == (tasks, limit)


@pytest.mark.parametrize(
    "text", ["", "a", "3-1", "1-5:0", "1%0", "1%", "-1", "1,,2", "4000001", "1-", "1%2%3"]
)
def test_no_tasks(text: str) -> None:
    """What is wrong is said with what is allowed."""
    with pytest.raises(ValueError, match=r"got .*; allowed"):
        parse_array(text)


@pytest.mark.parametrize("text", ["0-4000000", "0-10000", ",".join(["0-9999"] * 1000), "5," * 10_000 + "5"])
def test_too_many_tasks(text: str) -> None:
    """They are counted as they are written, before any is made."""
    with pytest.raises(ValueError, match=r"got [0-9,]+ tasks or more; allowed: 10,000"):
        parse_array(text, 10_000)


def array(tasks: str, job_id: str = "a", **more: Any) -> list[JobSpec]:
    """Return the tasks of an array in partition p, 10 s each."""
    spec = attrs.evolve(JobSpec(id=job_id, partitions=("p",), run_time=10.0), **more)
    return tasks_of(spec, parse_array(tasks))


def test_so_many_at_a_time() -> None:
    """Section 8 no. 2: the others wait with JobArrayTaskLimit, and hold up no other job."""
    other = JobSpec(id="b", partitions=("p",), run_time=10.0, submit_at=1.0)
    run = replay_table([*array("0-4%2"), other], cluster=cluster(4), config=STRICT)
    assert [run.starts(f"a_{task}") for task in range(5)] == [(0.0,), (0.0,), (10.0,), (10.0,), (20.0,)]
    assert run.starts("b") == (1.0,)


def test_no_limit() -> None:
    """All that fit start at once, in order of their indices."""
    run = replay_table(array("0-2"), cluster=cluster(2), config=STRICT)
    assert [run.starts(f"a_{task}") for task in range(3)] == [(0.0,), (0.0,), (10.0,)]


def test_a_task_that_is_requeued_gives_its_turn_up() -> None:
    """It comes back when there is room, after the tasks that have not run (recorded: array_requeued_task_basic)."""
    run = replay_table(
        array("0-2%1"),
        cluster=cluster(2),
        config=STRICT | {"clockwork": {"requeue_delay": 5.0}},
        commands="3 requeue a_0",
    )
    assert run.starts("a_1") == (3.0,)
    assert run.starts("a_2") == (13.0,)
    assert run.starts("a_0") == (0.0, 23.0)


def test_commands_mean_the_whole_array() -> None:
    """Its id stands for all tasks that have not ended; a task's own id for that one."""
    run = replay_table(
        array("0-3%1"), cluster=cluster(2), config=STRICT, commands="12 cancel a_2\n14 cancel a"
    )
    states = [run.state(f"a_{task}").value for task in range(4)]
    assert states == ["COMPLETED", "CANCELLED", "CANCELLED", "CANCELLED"]
    assert run.starts("a_1") == (10.0,)
    assert run.starts("a_3") == ()


def test_a_held_task_lets_the_next_one_in() -> None:
    """And is back in line when it is released."""
    run = replay_table(
        [JobSpec(id="first", partitions=("p",), run_time=5.0), *array("0-1%1")],
        cluster=cluster(1),
        config=STRICT,
        commands="2 hold a_0\n8 release a_0",
    )
    assert (run.starts("a_1"), run.starts("a_0")) == ((5.0,), (15.0,))


def test_a_task_that_is_cancelled_before_any_has_run() -> None:
    """Its place goes to no other job, and the others have their turns as before."""
    other = JobSpec(id="first", partitions=("p",), run_time=10.0, min_nodes=1, max_nodes=1)
    run = replay_table([other, *array("0-2%1")], cluster=cluster(1), config=STRICT, commands="2 cancel a_0")
    assert run.state("a_0") is JobState.CANCELLED
    assert (run.starts("a_1"), run.starts("a_2")) == ((10.0,), (20.0,))


def test_dependents_wait_for_all_tasks() -> None:
    """``afterany`` with the array's id."""
    after = JobSpec(id="b", partitions=("p",), run_time=10.0, submit_at=1.0, depends_on=("a",))
    run = replay_table([*array("0-1%1"), after], cluster=cluster(4), config=STRICT)
    assert run.starts("b") == (20.0,)


def test_rows_of_a_workload() -> None:
    """One row stands for all tasks."""
    jobs = workload_of_tables([{"id": "a", "run_time": 10.0, "array": "0-4:2%1"}], "w").jobs
    assert [(job.id, job.array_id, job.array_limit) for job in jobs] == [
        ("a_0", "a", 1), ("a_2", "a", 1), ("a_4", "a", 1),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"array: got '4-1'"):
        workload_of_tables([{"id": "a", "array": "4-1"}], "w")
    with pytest.raises(ConfigError, match="array: a heterogeneous job cannot be an array"):
        workload_of_tables([{"id": "a", "array": "1-4", "component": [{"nodes": 1}, {"nodes": 1}]}], "w")


def test_an_engine_that_takes_over_knows_whose_turn_it_is() -> None:
    """After every step of a run with requeues, holds and a limit."""
    jobs = [*array("0-4%2"), *array("0-2%1", "b", submit_at=2.0)]
    commands = "3 requeue a_0\n4 hold b_0\n6 cancel a_3\n15 release b_0"
    relay(Scenario.of(jobs, cluster=cluster(3), config=STRICT, commands=commands))

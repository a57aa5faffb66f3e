"""Where Slurm's job table has the records of arrays: by hand, as recorded in preempt_array_order."""

from __future__ import annotations

from typing import Any, cast

from makeway.job_table import JobTable
from makeway.model import ClusterView, Job
from makeway_testing import builders

VIEW = cast(ClusterView, None)


def job(name: str, index: int, **keys: Any) -> Job:
    return builders.job(name, index=index, **keys)


def test_the_rest_of_an_array_moves_behind_those_who_are_there() -> None:
    """Two of three tasks start, one before and one after other jobs come: the rest is the last record in the end."""
    table = JobTable(VIEW)
    tasks = [job(f"a_{at}", at, array_id="a") for at in (1, 2, 3)]
    others = [job("b", 4), job("c", 5)]
    for each in tasks:
        table.came(each, VIEW)
    assert [table.place(each) for each in tasks] == [(1, 0)] * 3
    table.started(tasks[0], VIEW)
    for each in others:
        table.came(each, VIEW)
    listed = [*tasks, *others]
    assert [each.id for each in sorted(listed, key=table.place)] == ["a_1", "a_2", "a_3", "b", "c"]
    table.started(tasks[1], VIEW)
    assert [each.id for each in sorted(listed, key=table.place)] == ["a_1", "a_2", "b", "c", "a_3"]
    assert [table.shares(each) for each in listed] == [None, None, "a", None, None]


def test_a_task_that_starts_again_keeps_its_record() -> None:
    """Once an array is gone, its id may come again."""
    table = JobTable(VIEW)
    tasks = [job("a_1", 1, array_id="a"), job("a_2", 2, array_id="a")]
    for each in tasks:
        table.came(each, VIEW)
    table.started(tasks[0], VIEW)
    table.left(tasks[0], VIEW)
    place, rest = table.place(tasks[0]), table.place(tasks[1])
    table.started(tasks[0], VIEW)
    assert (table.place(tasks[0]), table.place(tasks[1])) == (place, rest)
    for each in tasks:
        table.gone(each, VIEW)
    again = job("a_1", 7, array_id="a")
    table.came(again, VIEW)
    assert table.place(again) == (7, 0)


def test_a_task_that_is_set_apart_has_the_record_that_was_shared() -> None:
    """Those that are left stand behind jobs that have come since; its start changes nothing more.

    Recorded: preempt_array_aging.
    """
    table = JobTable(VIEW)
    tasks = [job(f"a_{at}", at, array_id="a") for at in (1, 2, 3)]
    other = job("b", 4)
    for each in (*tasks, other):
        table.came(each, VIEW)
    table.set_apart(tasks[0])
    table.set_apart(other)
    for _ in range(2):
        assert [each.id for each in sorted((*tasks, other), key=table.place)] == ["a_1", "b", "a_2", "a_3"]
        assert [table.shares(each) for each in tasks] == [None, "a", "a"]
        table.started(tasks[0], VIEW)

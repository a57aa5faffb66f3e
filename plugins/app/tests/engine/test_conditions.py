"""What jobs wait for of others (sbatch --dependency); instants are worked out by hand from sbatch(1)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from makeway.model import JobSpec, JobState
from makeway_testing import cluster, replay_table

BUILTIN: dict[str, Any] = {"scheduler": "builtin"}
NEVER = "DependencyNeverSatisfied"


def jobs(word: str, *, first: str = "COMPLETED", limit: float | None = None) -> list[JobSpec]:
    """Return a job of 100 s that ends so, and one that waits for it by `word`."""
    ends = {} if first == "COMPLETED" else {"ends_as": first}
    return [
        JobSpec(id="a", run_time=100.0, attributes=ends, time_limit=limit),
        JobSpec(id="b", run_time=10.0, depends_on=(word,)),
    ]


@pytest.mark.parametrize(
    ("word", "first", "starts"),
    [
        ("a", "COMPLETED", (100,)),
        ("a", "FAILED", (100,)),
        ("afterany:a", "FAILED", (100,)),
        ("afterok:a", "COMPLETED", (100,)),
        ("afterok:a", "FAILED", ()),
        ("afterok:a", "CANCELLED", ()),
        ("afternotok:a", "COMPLETED", ()),
        ("afternotok:a", "FAILED", (100,)),
        ("afternotok:a", "CANCELLED", (100,)),
        ("after:a", "COMPLETED", (0,)),
        ("after:a+1", "COMPLETED", (60,)),
    ],
)
def test_how_the_other_ended_decides(word: str, first: str, starts: tuple[float, ...]) -> None:
    """Its state, and for `after` its start; what never can be met is the reason."""
    run = replay_table(jobs(word, first=first), cluster=cluster(2), config=BUILTIN)
    assert run.starts("b") == starts
    if not starts:
        assert (run.state("b"), run.reason("b")) == (JobState.PENDING, NEVER)


@pytest.mark.parametrize("scheduler", ["builtin", "easy", "backfill", "greedy"])
def test_a_start_in_a_pass_lets_others_start(scheduler: str) -> None:
    """As soon as the other one has started, at 100 s; whatever the scheduler."""
    table = """
        job  submit  nodes  run_time  time_limit  depends_on
        w         0      2       100         100  -
        a         0      1       100         100  -
        b         0      1        10          10  after:a
    """
    run = replay_table(table, cluster=cluster(2), config={"scheduler": scheduler})
    assert (run.starts("a"), run.starts("b")) == ((100,), (100,))


@pytest.mark.parametrize(
    ("commands", "limit", "ok", "notok"),
    [
        ("", 40.0, (), (40,)),
        ("30 cancel a", None, (), (30,)),
        ("30 requeue a", None, (130,), ()),
        ("30 signal a KILL", None, (), (30,)),
    ],
    ids=["TIMEOUT", "cancelled by a person", "requeued, which is no end", "killed"],
)
def test_ends_that_the_replay_comes_to(
    commands: str, limit: float | None, ok: tuple[float, ...], notok: tuple[float, ...]
) -> None:
    """sbatch(1): afternotok is any failed state."""
    for word, expected in (("afterok:a", ok), ("afternotok:a", notok)):
        run = replay_table(jobs(word, limit=limit), cluster=cluster(2), config=BUILTIN, commands=commands)
        assert run.starts("b") == expected


def test_an_invalid_dependency_may_kill() -> None:
    """DependencyParameters=kill_invalid_depend: a job that waits for the killed one by afterany goes on."""
    chain = [
        *jobs("afterok:a", first="FAILED"),
        JobSpec(id="any", run_time=10.0, depends_on=("b",)),
        JobSpec(id="ok", run_time=10.0, depends_on=("afterok:b",)),
    ]
    run = replay_table(chain, cluster=cluster(2), config=BUILTIN | {"kill_invalid_depend": True})
    assert {each: run.state(each) for each in ("b", "any", "ok")} == {
        "b": JobState.CANCELLED,
        "any": JobState.COMPLETED,
        "ok": JobState.CANCELLED,
    }
    assert run.starts("any") == (100,)


def test_all_words_have_to_be_met() -> None:
    """The last end counts; one that never can be met is told at once."""
    three = [
        JobSpec(id="a", run_time=100.0),
        JobSpec(id="c", run_time=50.0, attributes={"ends_as": "FAILED"}),
        JobSpec(id="both", run_time=10.0, depends_on=("afterok:a", "afternotok:c")),
        JobSpec(id="never", run_time=10.0, depends_on=("afterok:a", "afterok:c")),
    ]
    run = replay_table(three, cluster=cluster(4), config=BUILTIN)
    assert (run.starts("both"), run.starts("never")) == ((100,), ())
    early = replay_table(three, cluster=cluster(4), config=BUILTIN, until=60.0)
    assert (early.reason("both"), early.reason("never")) == ("Dependency", NEVER)


def test_one_that_has_ended_before() -> None:
    """Its state counts all the same."""
    late = [
        attrs.evolve(each, submit_at=200.0 * at) for at, each in enumerate(jobs("afterok:a", first="FAILED"))
    ]
    assert replay_table(late, config=BUILTIN).reason("b") == NEVER
    late = [attrs.evolve(each, submit_at=200.0 * at) for at, each in enumerate(jobs("afterok:a"))]
    assert replay_table(late, config=BUILTIN).starts("b") == (200,)


def test_tasks_wait_for_the_tasks_of_the_same_number() -> None:
    """aftercorr: task 0 of the first array ends at 10 s, task 1 at 20 s and fails, task 2 at 30 s."""
    first = [JobSpec(id=f"x_{at}", array_id="x", array_task=at, run_time=10.0 * (at + 1)) for at in range(3)]
    first[1] = attrs.evolve(first[1], attributes={"ends_as": "FAILED"})
    second = [
        JobSpec(id=f"y_{at}", array_id="y", array_task=at, run_time=5.0, depends_on=("aftercorr:x",))
        for at in range(3)
    ]
    whole = JobSpec(id="z", run_time=5.0, depends_on=("afternotok:x",))
    run = replay_table([*first, *second, whole], cluster=cluster(7), config=BUILTIN)
    assert [run.starts(each.id) for each in second] == [(10,), (), (30,)]
    assert run.starts("z") == (30,)  # once all tasks have ended, one of them not well


def test_a_singleton_waits_for_earlier_ones_of_its_name_and_user() -> None:
    """Not for those of others, nor for later ones."""
    run = replay_table(
        [
            JobSpec(id="a", name="n", user="u", run_time=100.0),
            JobSpec(id="b", name="n", user="v", run_time=300.0),
            JobSpec(id="c", name="n", user="u", run_time=50.0, depends_on=("singleton",)),
            JobSpec(id="d", name="n", user="u", run_time=5.0, depends_on=("singleton",)),
            JobSpec(id="e", name="n", user="w", run_time=5.0, depends_on=("singleton",)),
        ],
        cluster=cluster(8),
        config=BUILTIN,
    )
    assert [run.starts(each) for each in "cde"] == [(100,), (150,), (0,)]

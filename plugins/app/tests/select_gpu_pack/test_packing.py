"""Where gangs of GPUs go; expected values by hand from the rule in the README."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import Exclusive, JobSpec
from makeway_testing import replay_table
from makeway_testing.builders import node, tiers

SITE: dict[str, Any] = {"select": "select/gpu_pack", "scheduler": "greedy"}


def given(gpus: tuple[int, ...], held: tuple[int, ...], *, cpus: int = 8, **asked: Any) -> Any:
    """Return the GPUs that a job gets by node, or why it waits.

    :param gpus: of each node, and `held`: how many of them are taken, with a CPU.
    :param asked: fields of the job.
    """
    machine = tuple(node(f"n{at + 1}", cpus=cpus, gres={"gpu": count}) for at, count in enumerate(gpus))
    jobs = [
        JobSpec(id=f"h{at}", run_time=100, required_nodes=(f"n{at + 1}",), gres={"gpu": count})
        for at, count in enumerate(held)
        if count
    ]
    run = replay_table(
        [*jobs, JobSpec(id="new", submit_at=1, run_time=10, **asked)], cluster=machine, config=SITE, until=50
    )
    if not run.starts("new"):
        return run.reason("new")
    allocation = run.history("new").intervals[-1][3]
    assert allocation is not None
    counts = allocation.gres.get("gpu", (0,) * len(allocation.node_indices))
    return {at + 1: count for at, count in zip(allocation.node_indices, counts, strict=True)}


FOUR = (4, 4, 4)


@pytest.mark.parametrize(
    ("gpus", "held", "asked", "expected"),
    [
        pytest.param(FOUR, (3, 1, 0), {"gres": {"gpu": 1}}, {1: 1}, id="the tightest node"),
        pytest.param(FOUR, (3, 1, 0), {"gres": {"gpu": 2}}, {2: 2}, id="the tightest that has two"),
        pytest.param(FOUR, (3, 1, 0), {"gres_total": {"gpu": 4}}, {3: 4}, id="one node, not two"),
        pytest.param(
            FOUR, (3, 1, 0), {"gres_total": {"gpu": 5}}, {1: 1, 3: 4}, id="no GPU is left on either"
        ),
        pytest.param(FOUR, (3, 1, 0), {"gres_total": {"gpu": 6}}, {2: 3, 3: 3}, id="n1 would not do"),
        pytest.param(FOUR, (3, 1, 0), {"gres_total": {"gpu": 8}}, {1: 1, 2: 3, 3: 4}, id="all there are"),
        pytest.param(FOUR, (3, 1, 0), {"gres_total": {"gpu": 9}}, "Resources", id="one has to wait for"),
        pytest.param(FOUR, (), {"gres_total": {"gpu": 13}}, "BadConstraints", id="more than there are"),
        pytest.param((4, 4, 8), (), {"min_nodes": 2, "gres": {"gpu": 4}}, {1: 4, 2: 4}, id="n3 stays whole"),
        pytest.param((4, 4, 8), (), {"min_nodes": 2, "gres_total": {"gpu": 4}}, {1: 3, 2: 1}, id="one each"),
        pytest.param((0, 4), (), {"tasks": 2}, {1: 0}, id="no GPU wanted: where none is"),
        pytest.param(
            FOUR,
            (3, 1, 0),
            {"tasks": 5, "gres_total": {"gpu": 5}, "gres_per_task": {"gpu": 1}},
            {1: 1, 3: 4},
            id="tasks with their GPUs",
        ),
        pytest.param(
            FOUR,
            (),
            {"tasks": 3, "gres_total": {"gpu": 9}, "gres_per_task": {"gpu": 3}},
            {1: 3, 2: 3, 3: 3},
            id="a task on each",
        ),
        pytest.param(
            FOUR,
            (),
            {"tasks": 4, "cpus_per_task": 4, "gres_total": {"gpu": 4}, "gres_per_task": {"gpu": 1}},
            {1: 2, 2: 2},
            id="two tasks by CPUs",
        ),
        pytest.param(FOUR, (), {"max_nodes": 1, "gres_total": {"gpu": 5}}, "BadConstraints", id="one node"),
        pytest.param(FOUR, (1,), {"exclusive": Exclusive.NODE}, {2: 4}, id="a whole node with its GPUs"),
        pytest.param(FOUR, (), {"gres": {"gpu_milli": 500}}, "BadConstraints", id="no parts"),
        pytest.param(FOUR, (), {"contiguous": True}, "BadConstraints", id="no neighbours"),
        pytest.param(
            FOUR, (), {"required_nodes": ("n3",), "gres_total": {"gpu": 5}}, {1: 4, 3: 1}, id="n3 is named"
        ),
        pytest.param(
            FOUR, (), {"excluded_nodes": ("n1",), "gres": {"gpu": 1}}, {2: 1}, id="n1 is not wanted"
        ),
    ],
)
def test_where_gpus_lie(
    gpus: tuple[int, ...], held: tuple[int, ...], asked: dict[str, Any], expected: Any
) -> None:
    """Nodes of eight CPUs."""
    assert given(gpus, held, **asked) == expected


def test_models_count_for_all() -> None:
    """One of two `a` is gone by name and two of four by number: one `a` is left, and one `b`."""
    machine = (node("n1", cpus=8, gres={"gpu": 4, "gpu:a": 2, "gpu:b": 2}),)
    jobs = [
        JobSpec(id="0", run_time=100, gres={"gpu": 1, "gpu:a": 1}),
        JobSpec(id="1", run_time=100, submit_at=1, gres={"gpu": 1}),
        JobSpec(id="2", run_time=100, submit_at=2, gres={"gpu": 2, "gpu:b": 2}),
        JobSpec(id="3", run_time=100, submit_at=3, gres={"gpu": 1, "gpu:a": 1}),
    ]
    run = replay_table(jobs, cluster=machine, config=SITE, until=300)
    assert [run.starts(each)[0] for each in "0123"] == [0, 1, 2, 100]


def test_a_suspended_victim_makes_no_room() -> None:
    """It keeps its GPU; one that is requeued gives it back."""
    machine = (node("n1", cpus=8, gres={"gpu": 1}),)
    jobs = [
        JobSpec(id="low", partitions=("low",), run_time=100, gres={"gpu": 1}),
        JobSpec(id="hi", partitions=("hi",), submit_at=10, run_time=10, gres={"gpu": 1}),
    ]
    for mode, start in (("suspend,gang", 100), ("requeue", 10)):
        site = SITE | {
            "preempt": "preempt/partition_prio",
            "preempt_mode": mode,
            "partitions": tiers(low=1, hi=2),
            "clockwork": {"preset": "ideal"},
        }
        run = replay_table(jobs, cluster=machine, config=site, until=300)
        assert run.starts("hi") == (start,)


def test_memory_is_counted_where_it_is_asked_for() -> None:
    """n1 has 2,000 MB: two tasks of 1,000 MB, and the third on n2."""
    machine = tuple(node(f"n{at}", cpus=8, memory_mb=2000) for at in (1, 2))
    run = replay_table(
        [JobSpec(id="1", run_time=10, tasks=3, memory_mb_per_cpu=1000)], cluster=machine, config=SITE
    )
    allocation = run.history("1").intervals[0][3]
    assert allocation is not None
    assert (allocation.cpus, allocation.memory_mb) == ((2, 1), (2000, 1000))

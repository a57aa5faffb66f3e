"""Where parts of GPUs go; expected values by hand from the rule in the README."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from makeway.model import Exclusive, JobSpec
from makeway_testing import replay_table
from makeway_testing.builders import node

SITE: dict[str, Any] = {"select": "select/gpu_pack", "scheduler": "greedy"}


def milli(count: int) -> dict[str, int]:
    """Return a request in thousandths of a GPU."""
    return {"gpu_milli": count}


def seats(gpus: tuple[int, ...], *jobs: Mapping[str, Any]) -> list[Any]:
    """Return of each job the node and which GPUs it has, by resource; of one that waits its start, or why it has none.

    :param gpus: of each node; each gives 1,000 thousandths and 4 shards.
    :param jobs: counted resources on each node, or fields of the job. They come a second apart and run for 100 s.
    """
    cluster = tuple(
        node(f"n{at + 1}", cpus=16, gres={"gpu": count, "gpu_milli": 1000 * count, "shard": 4 * count})
        for at, count in enumerate(gpus)
    )
    specs = [
        JobSpec(id=f"{at}", submit_at=at, run_time=100, **(asked if "gres" in asked else {"gres": asked}))
        for at, asked in enumerate(jobs)
    ]
    run = replay_table(specs, cluster=cluster, config=SITE)
    found: list[Any] = []
    for spec in specs:
        starts = run.starts(spec.id)
        if starts != (spec.submit_at,):
            found.append(starts[0] if starts else run.reason(spec.id))
            continue
        allocation = run.history(spec.id).intervals[-1][3]
        assert allocation is not None
        devices = {name: bits[0] for name, bits in allocation.devices.items()}
        found.append((allocation.node_indices[0] + 1, devices))
    return found


def test_a_part_goes_where_least_is_left() -> None:
    """800 do not fit beside 300, 150 do with both: the GPU with 800 has 200 left, the other 700."""
    assert seats((2,), milli(300), milli(800), milli(150)) == [
        (1, {"gpu_milli": 0b01}),
        (1, {"gpu_milli": 0b10}),
        (1, {"gpu_milli": 0b10}),
    ]


def test_the_gpu_counts_before_the_node() -> None:
    """n1 has no GPU free besides; n2 has one, but its other GPU has less left than that of n1."""
    jobs = (milli(500), {"gres": milli(600), "required_nodes": ("n2",)}, milli(400), milli(400))
    assert seats((1, 2), *jobs) == [
        (1, {"gpu_milli": 1}),
        (2, {"gpu_milli": 1}),
        (2, {"gpu_milli": 1}),
        (1, {"gpu_milli": 1}),
    ]


def test_a_part_is_not_put_together_from_two_gpus() -> None:
    """Two GPUs have 400 left each."""
    assert seats((2,), milli(600), milli(600), milli(500))[-1] == 100


def test_a_gpu_in_parts_is_not_given_as_a_whole() -> None:
    """Nor parts of one that is given as a whole: 950 wait until 100 s, and then two GPUs are not free until 200 s."""
    assert seats((2,), milli(100), {"gpu": 2}, {"gpu": 1}, milli(950)) == [
        (1, {"gpu_milli": 0b01}),
        200,
        (1, {"gpu": 0b10}),
        100,
    ]


def test_thousands_are_whole_gpus() -> None:
    """2,000 take two GPUs of which nothing is given; 1,500 are no part, and no number of GPUs."""
    assert seats((1, 3), {"gres": milli(100), "required_nodes": ("n2",)}, milli(2000), milli(1500)) == [
        (2, {"gpu_milli": 0b001}),
        (2, {"gpu_milli": 0b110}),
        "BadConstraints",
    ]


def test_parts_of_two_kinds_never_share_a_gpu() -> None:
    """A GPU is cut into shards or into thousandths."""
    assert seats((2,), milli(100), {"shard": 1}, {"shard": 3}, milli(900), {"shard": 1}) == [
        (1, {"gpu_milli": 0b01}),
        (1, {"shard": 0b10}),
        (1, {"shard": 0b10}),
        (1, {"gpu_milli": 0b01}),
        101,
    ]


@pytest.mark.parametrize(
    ("asked", "held"),
    [
        pytest.param({"gpu": 1}, {"gpu": (2,), "gpu:a": (0,)}, id="all GPUs, and no parts of them"),
        pytest.param(milli(300), {"gpu_milli": (300,)}, id="its part alone"),
    ],
)
def test_a_whole_node(asked: dict[str, int], held: dict[str, tuple[int, ...]]) -> None:
    """`--exclusive` takes what the node has; a job that wants a part has no use for the other GPUs."""
    cluster = (node("n1", cpus=16, gres={"gpu": 2, "gpu_milli": 2000}),)
    job = JobSpec(id="1", run_time=10, gres=asked, exclusive=Exclusive.NODE)
    allocation = replay_table([job], cluster=cluster, config=SITE).history("1").intervals[0][3]
    assert allocation is not None
    assert allocation.cpus == (16,)
    assert dict(allocation.gres) == {name: count for name, count in held.items() if any(count)}


@pytest.mark.parametrize("where", ["gres_total", "gres_per_task"])
def test_parts_in_all_or_by_task_are_refused(where: str) -> None:
    """The reason says so."""
    asked: dict[str, Any] = {where: milli(500)}
    cluster = (node("n1", cpus=16, gres={"gpu": 2, "gpu_milli": 2000}),)
    run = replay_table([JobSpec(id="1", run_time=10, **asked)], cluster=cluster, config=SITE, until=50)
    assert run.reason("1") == "BadConstraints"

"""GPUs in all and for tasks over several nodes; expected values by hand from the rules in docs/gpus.md.

The same rules are held against a real Slurm by the recordings cons_gpus_* of tests/recordings.
"""

from __future__ import annotations

from typing import Any

import pytest

from makeway_slurm.readers.sbatch_args import parse_sbatch
from makeway_testing import replay_table
from makeway_testing.builders import node, tiers

SITE: dict[str, Any] = {"select": "select/cons_tres", "select_parameters": "CR_Core", "scheduler": "greedy"}


def given(args: str, *gpus: int, cpus: int = 8, held: str = "") -> str | dict[str, int]:
    """Return how many GPUs a job gets on each node, or why it waits.

    :param gpus: of each node.
    :param held: options of a job that is there before.
    """
    machine = tuple(node(f"n{at + 1}", cpus=cpus, gres={"gpu": count}) for at, count in enumerate(gpus))
    before = parse_sbatch(held.split(), id="0", run_time=100) if held else []
    jobs = [*before, *parse_sbatch(args.split(), id="1", submit_at=1, run_time=10)]
    run = replay_table(jobs, cluster=machine, config=SITE, until=50)
    if not run.starts("1"):
        return run.reason("1")
    allocation = run.history("1").intervals[-1][3]
    assert allocation is not None
    counts = allocation.gres.get("gpu", (0,) * len(allocation.node_indices))
    return {f"n{at + 1}": count for at, count in zip(allocation.node_indices, counts, strict=True)}


@pytest.mark.parametrize(
    ("args", "gpus", "expected"),
    [
        pytest.param("--gpus=2", (1, 2, 4), {"n2": 2}, id="n1 alone would not do"),
        pytest.param("--gpus=4", (1, 2, 4), {"n3": 4}, id="all on one"),
        pytest.param("--gpus=5", (1, 2, 4), {"n2": 2, "n3": 3}, id="then those with two as well"),
        pytest.param("--gpus=7", (1, 2, 4), {"n1": 1, "n2": 2, "n3": 4}, id="all there are"),
        pytest.param("--gpus=8", (1, 2, 4), "BadConstraints", id="more than there are"),
        pytest.param("-N2 --gpus=4", (4, 4), {"n1": 3, "n2": 1}, id="one is left for the second"),
        pytest.param("-N2-3 --gpus=4", (4, 4, 4), {"n1": 3, "n2": 1}, id="no more nodes than needed"),
        pytest.param("-n2 --gpus=9", (4, 4, 4), "BadConstraints", id="a node for each task at most"),
        pytest.param("-n3 --gpus-per-task=2", (4, 4), {"n1": 4, "n2": 2}, id="two tasks, then one"),
        pytest.param("-n3 --gpus-per-task=3", (4, 4, 4), {"n1": 3, "n2": 3, "n3": 3}, id="a task on each"),
        pytest.param("-n3 -c4 --gpus-per-task=1", (4, 4), {"n1": 2, "n2": 1}, id="eight CPUs for two tasks"),
        pytest.param("-n2 --gpus-per-task=5", (4, 4), "BadConstraints", id="a task fits nowhere"),
        pytest.param("--exclusive", (4, 4), {"n1": 4}, id="a whole node with its GPUs"),
    ],
)
def test_where_gpus_lie(args: str, gpus: tuple[int, ...], expected: str | dict[str, int]) -> None:
    """On idle nodes of eight CPUs."""
    assert given(args, *gpus) == expected


@pytest.mark.parametrize(
    ("args", "held", "expected"),
    [
        ("-n4 --gpus-per-task=1", "-w n1 --gres=gpu:3", {"n2": 4}),
        ("-n5 --gpus-per-task=1", "-w n1 --gres=gpu:3", {"n1": 1, "n2": 4}),
        ("-n6 --gpus-per-task=1", "-w n1 --gres=gpu:3", "Resources"),
        ("-n6 --gpus-per-task=1", "-w n1 -n7", {"n1": 1, "n2": 4, "n3": 1}),
        ("--gpus=2 --exclusive", "-w n1 -n1", {"n2": 4}),
        ("--gpus=1", "-w n1 --exclusive", {"n2": 1}),
    ],
)
def test_beside_another_job(args: str, held: str, expected: str | dict[str, int]) -> None:
    """One of two or three nodes is partly taken."""
    gpus = (4, 4, 4) if "n3" in expected else (4, 4)
    assert given(args, *gpus, held=held) == expected


@pytest.mark.parametrize(
    ("args", "rule", "expected"),
    [
        ("-N1 -n1 --gpus-per-socket=1 --sockets-per-node=2", True, {"n1": 2}),
        ("-N1 -n4 --gpus-per-socket=1 --sockets-per-node=1", True, {"n1": 2}),
        ("-N1 -n4 --gpus-per-socket=1 --sockets-per-node=1", False, {"n1": 1}),
        ("-N1 -n1 --gpus-per-socket=3 --sockets-per-node=1", True, "BadConstraints"),
        ("-N1 -n1 --gpus-per-socket=3 --sockets-per-node=1", False, {"n1": 3}),
    ],
)
def test_gpus_for_sockets(args: str, rule: bool, expected: str | dict[str, int]) -> None:
    """Two sockets of four cores and two GPUs; four tasks have cores of both."""
    machine = (node("n1", cpus=8, sockets=2, cores_per_socket=4, gres={"gpu": 4}),)
    site = SITE | {"rules": {"gpus_for_used_sockets": rule}, "slurm_release": "22.05"}
    run = replay_table(
        parse_sbatch(args.split(), id="1", run_time=10), cluster=machine, config=site, until=50
    )
    if not run.starts("1"):
        assert run.reason("1") == expected
        return
    allocation = run.history("1").intervals[-1][3]
    assert allocation is not None
    assert {"n1": allocation.gres["gpu"][0]} == expected


def test_a_gang_displaces_no_more_than_it_needs() -> None:
    """Three jobs hold two GPUs each on three nodes of two: for four GPUs the two youngest have to go."""
    machine = tuple(node(f"n{at}", cpus=8, gres={"gpu": 2}) for at in (1, 2, 3))
    low = [
        spec
        for at in range(3)
        for spec in parse_sbatch(["-p", "low", "--gres=gpu:2"], id=f"l{at}", submit_at=at, run_time=100)
    ]
    urgent = parse_sbatch(["-p", "hi", "-n4", "--gpus-per-task=1"], id="urgent", submit_at=10, run_time=10)
    site = SITE | {
        "preempt": "preempt/partition_prio",
        "preempt_mode": "requeue",
        "partitions": tiers(low=1, hi=2),
        "clockwork": {"preset": "ideal"},
    }
    run = replay_table([*low, *urgent], cluster=machine, config=site, until=60)
    assert len(run.victims) == 2
    assert run.starts("urgent") == (10,)


def test_one_task_takes_the_first_node_and_several_the_fullest() -> None:
    """n2 has one CPU free, n1 eight. A single task counts one on each, so that both are alike."""
    assert given("-n1 --gres=gpu:1", 4, 4, held="-w n2 -n7") == {"n1": 1}
    assert given("--gres=gpu:1", 4, 4, held="-w n2 -n7") == {"n2": 1}

"""Whole GPUs and parts of them exclude each other, and what a job has of one lies on one GPU; worked out by hand.

Rules: Slurm's documentation of sharing (``shard``, ``mps``): a GPU is given either as a whole or in parts, and the
parts of a job on a node lie on the first GPU that has enough left. Thousandths of GPUs are those of Alibaba's openb.
"""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import build_cluster
from makeway.model import JobSpec
from makeway.state import allocation_of, held_of
from makeway_testing import cluster, one_node, replay_table
from makeway_testing.builders import config, node, tiers

SITE: dict[str, Any] = {"select": "select/cons_tres", "select_parameters": "CR_Core", "scheduler": "greedy"}
TWO = {"gpu": 2, "shard": 8}
"""Two GPUs of four shards."""


def starts(gres: dict[str, int], *wants: str, nodes: int = 1, **changes: Any) -> list[float]:
    """Return when each job started; they come second by second and run 100 s each.

    :param gres: of each node.
    :param wants: ``name:count``, or several with ``+``, on one node; ``name*count``: in all.
    """
    specs = []
    for at, want in enumerate(wants):
        each: dict[str, int] = {}
        total: dict[str, int] = {}
        for word in want.split("+"):
            name, sign, count = word.rpartition("*") if "*" in word else word.rpartition("=")
            (total if sign == "*" else each)[name] = int(count)
        specs.append(
            JobSpec(
                id=str(at),
                submit_at=at,
                run_time=100,
                min_nodes=nodes if total else 1,
                max_nodes=nodes if total else 1,
                gres=each,
                gres_total=total,
            )
        )
    run = replay_table(specs, cluster=cluster(nodes, cpus=16, gres=gres), config=SITE | changes)
    return [run.starts(str(at))[0] for at in range(len(wants))]


@pytest.mark.parametrize(
    ("gres", "wants", "expected"),
    [
        pytest.param(TWO, ("gpu=2", "shard=1"), [0, 100], id="no shard of a GPU that is taken"),
        pytest.param(TWO, ("shard=1", "gpu=2"), [0, 100], id="no GPU of which a shard is taken"),
        pytest.param(
            TWO, ("shard=1", "gpu=1", "shard=3"), [0, 1, 2], id="the other GPU, and the rest of the first"
        ),
        pytest.param(
            TWO, ("gpu=1", "shard=4", "shard=1"), [0, 1, 100], id="shards of one GPU alone are left"
        ),
        pytest.param(TWO, ("shard=3", "shard=3", "shard=2"), [0, 1, 100], id="two are free, but on two GPUs"),
        pytest.param(TWO, ("shard=3", "shard=3", "shard=1", "shard=1"), [0, 1, 2, 3], id="one each is not"),
        pytest.param(TWO, ("shard=2", "shard=2", "gpu=1"), [0, 1, 2], id="the first GPU is filled first"),
        pytest.param(
            {"gpu": 2, "gpu_milli": 2000}, ("gpu_milli=600", "gpu_milli=600", "gpu_milli=700"), [0, 1, 100]
        ),
        pytest.param(
            {"gpu": 2, "gpu_milli": 2000}, ("gpu_milli=300", "gpu_milli=2000"), [0, 100], id="two whole ones"
        ),
        pytest.param({"gpu": 2, "gpu_milli": 2000}, ("gpu_milli=1000", "gpu=1", "gpu_milli=1"), [0, 1, 100]),
        pytest.param({"gpu_milli": 2000}, ("gpu_milli=600", "gpu_milli=600", "gpu_milli=700"), [0, 1, 100]),
        pytest.param(
            {"gpu": 2, "shard": 7}, ("shard=4", "shard=4", "shard=3"), [0, 100, 2], id="4 and 3 shards"
        ),
        pytest.param(
            {"gpu": 2, "gpu:a": 1, "gpu:b": 1, "shard": 8},
            ("shard=1", "gpu=1+gpu:b=1", "gpu=1+gpu:a=1"),
            [0, 1, 100],
            id="a shard is of the first model",
        ),
        pytest.param(TWO, ("gpu=1+shard=1", "shard=4", "shard=3"), [0, 100, 2], id="one job has both"),
        pytest.param({"gpu": 2}, ("gpu=2", "gpu=1"), [0, 100], id="whole GPUs alone"),
    ],
)
def test_who_waits(gres: dict[str, int], wants: tuple[str, ...], expected: list[float]) -> None:
    """One node."""
    assert starts(gres, *wants) == expected


def test_gpus_in_all_are_taken_where_they_are_whole() -> None:
    """Two nodes of two GPUs: a shard on n1 leaves three whole ones; four have to wait."""
    assert starts(TWO, "shard=1", "gpu*3", nodes=2) == [0, 1]
    assert starts(TWO, "shard=1", "gpu*4", nodes=2) == [0, 100]


def test_typed_gpus_in_all_lie_where_the_type_is() -> None:
    """`gpu=2` and `gpu:a=2` are the same two, on n2, though n1 comes first."""
    machine = (*one_node(cpus=1, gres={"gpu": 2, "gpu:b": 2}), *_second())
    run = replay_table(
        [_job(gres_total={"gpu": 2, "gpu:a": 2}, tasks=1, max_nodes=2)], cluster=machine, config=SITE
    )
    allocation = run.history("1").intervals[0][3]
    assert allocation is not None
    assert dict(allocation.gres) == {"gpu:a": (2,), "gpu": (2,)}
    assert run.nodes("1") == "n2"


def _second() -> Any:
    return (node("n2", cpus=1, gres={"gpu": 2, "gpu:a": 2}),)


def _job(**asked: Any) -> Any:
    return JobSpec(id="1", run_time=10, **asked)


@pytest.mark.parametrize("want", ["shard=5", "gpu_milli=1500"])
def test_more_parts_than_a_gpu_has_never_fit(want: str) -> None:
    """The job is refused, and told why."""
    name, _, count = want.partition("=")
    gres = {"gpu": 2, "shard": 8} if name == "shard" else {"gpu": 2, "gpu_milli": 2000}
    run = replay_table([_job(gres={name: int(count)})], cluster=one_node(gres=gres), config=SITE)
    assert run.starts("1") == ()
    assert run.reason("1") == "BadConstraints"


def test_victims_give_back_whole_gpus() -> None:
    """a has three shards of GPU 0, c three of GPU 1: for one GPU one of them goes, the other one stays."""
    low = [
        JobSpec(id=name, partitions=("low",), submit_at=at, run_time=100, tasks=1, gres={"shard": count})
        for at, (name, count) in enumerate((("a", 3), ("c", 3)))
    ]
    new = JobSpec(id="new", partitions=("hi",), submit_at=10, run_time=10, tasks=1, gres={"gpu": 1})
    site = SITE | {
        "preempt": "preempt/partition_prio",
        "preempt_mode": "requeue",
        "partitions": tiers(low=1, hi=2),
        "clockwork": {"preset": "ideal"},
    }
    run = replay_table([*low, new], cluster=one_node(cpus=16, gres=TWO), config=site)
    assert len(run.victims) == 1
    assert run.starts("new") == (10,)


def test_another_engine_knows_which_gpus_are_taken() -> None:
    """The state says it, so that b, which has the shards of GPU 1, has them after an adoption, too."""
    jobs = [
        JobSpec(id=name, submit_at=at, run_time=run, tasks=1, gres={"shard": 3})
        for at, (name, run) in enumerate((("a", 10), ("b", 100)))
    ]
    machine = one_node(cpus=16, gres=TWO)
    run = replay_table(jobs, cluster=machine, config=SITE, until=50)
    known, allocation = build_cluster(config(machine, SITE)), run.history("b").allocation
    assert allocation is not None
    held = held_of(known, allocation)
    assert held.devices == {"shard": ("1",)}
    assert allocation_of(known, held).devices == {"shard": (0b10,)}


def test_older_releases_give_whole_gpus_beside_parts() -> None:
    """Recorded on 22.05.8: a GPU with a shard is given as a whole; one that is given as a whole gives no shard."""
    rule: dict[str, Any] = {"rules": {"whole_gpus_beside_parts": True}}
    assert starts(TWO, "shard=1", "gpu=2", **rule) == [0, 1]
    assert starts(TWO, "gpu=2", "shard=1", **rule) == [0, 100]
    assert starts(TWO, "shard=1", "gpu=1", "shard=1", **rule) == [0, 1, 2]

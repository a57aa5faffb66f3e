"""Which nodes are taken: the tables of slurm-gang-and-select 4.3.6, rows C01 to C04."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from makeway_testing.builders import Machine, cluster, node

NEW, OLD = "26.11", "22.05.8"
"""The releases that the rules tell apart; rows without one hold in both."""

TEN: Machine = cluster(10, sockets=1, cores_per_socket=2)
FOUR: Machine = cluster(4, sockets=2, cores_per_socket=4)
CORES = {"select_parameters": "CR_Core"}


def _per_release(rows: list[Any]) -> list[Any]:
    """Return a parameter set for each row and release: (release, arguments, nodes)."""
    found = []
    for row in rows:
        args, nodes, *only = row
        for release in only or (NEW, OLD):
            found.append(pytest.param(release, args, nodes, id=f"{args or 'neither'} on {release}"))
    return found


BEST_FIT = [
    ("-N1", "n8:0", OLD),
    ("-N1", "n1:0", NEW),
    ("-n1", "n8:0", OLD),
    ("-n1", "n1:0", NEW),
    ("", "n8:0"),
    ("-N2", "n5:0 n6:0"),
    ("-N3", "n1:0 n2:0 n3:0"),
    ("-N4", "n1:0 n2:0 n3:0 n8:0"),
    ("-N5", "n1:0 n2:0 n3:0 n5:0 n6:0"),
    ("-n3", "n5:0-1 n6:0"),
    ("-n4", "n5:0-1 n6:0-1"),
    ("-n5", "n1:0-1 n2:0-1 n3:0"),
    ("-n7", "n1:0-1 n2:0-1 n3:0-1 n8:0"),
    ("-N1-4", "n5:0 n6:0 n8:0 n10:0"),
    ("-N2-4 -n4", "n5:0 n6:0 n8:0 n10:0"),
    ("-N2-4 -n8", "n1:0-1 n2:0-1 n3:0-1 n8:0-1"),
    ("-N3 -w n5", "n5:0 n6:0 n8:0"),
    ("-N2 --exclusive", "n5:0-1 n6:0-1"),
    ("-N2 -x n8", "n5:0 n6:0"),
    ("-N2 --contiguous", "n5:0 n6:0"),
    ("-N4 --contiguous", ""),
]


@pytest.mark.parametrize(("release", "args", "place"), _per_release(BEST_FIT))
def test_best_fit(stage: Callable[..., Any], release: str, args: str, place: str) -> None:
    """C01, C02: ten 2-CPU nodes of which n4, n7 and n9 are busy."""
    scene = stage(TEN, CORES, slurm_release=release)
    for name in ("n4", "n7", "n9"):
        scene.submit(name, f"-N1 -n2 -w {name}")
    assert scene.submit("x", args) == place


PARTLY_USED = [
    ("", "n3:3"),
    ("-n1", "n3:3", OLD),
    ("-n1", "n1:0", NEW),
    ("-N1 -n1", "n3:3", OLD),
    ("-N1 -n1", "n1:0", NEW),
    ("-n2", "n3:3,7"),
    ("-N1 -n2", "n3:3,7", OLD),
    ("-N1 -n2", "n1:0,4", NEW),
    ("-n3", "n2:2-3,6"),
    ("-n10", "n1:0-7 n2:2,6"),
    ("-N2 -n2", "n1:0 n2:2"),
    ("-N3", "n1:0 n2:2 n3:3"),
]


@pytest.mark.parametrize(("release", "args", "place"), _per_release(PARTLY_USED))
def test_partly_used_nodes(stage: Callable[..., Any], release: str, args: str, place: str) -> None:
    """Four 8-core nodes: n3 has 2 cores free, n2 has 4, the others are idle (4.3.6, second table)."""
    scene = stage(FOUR, CORES, slurm_release=release)
    scene.submit("b3", "-n6 -w n3")
    scene.submit("b2", "-n4 -w n2")
    assert scene.submit("x", args) == place


WEIGHTS = (
    node("n1", cpus=4, weight=10),
    node("n2", cpus=4, weight=1),
    node("n3", cpus=4, weight=5),
    node("n4", cpus=4, weight=1),
)


@pytest.mark.parametrize("release", [NEW, OLD])
@pytest.mark.parametrize(
    ("args", "nodes"),
    [
        pytest.param("-N1", "n2", id="lightest"),
        pytest.param("-N2", "n[2,4]", id="two lightest"),
        pytest.param("-N3", "n[2-4]", id="then the next weight"),
        pytest.param("-N2 --contiguous", "n[1-2]", id="contiguous: weights do not count"),
        pytest.param("-N3 --contiguous", "n[1-3]", id="contiguous, three"),
    ],
)
def test_weights(stage: Callable[..., Any], release: str, args: str, nodes: str) -> None:
    """Weights 10, 1, 5, 1 (4.3.6, end)."""
    scene = stage(WEIGHTS, CORES, slurm_release=release)
    scene.submit("x", args)
    assert scene.nodes("x") == nodes


LEAST_LOADED = [
    ("", "n3:0"),
    ("-n1", "n3:0", OLD),
    ("-n1", "n1:2", NEW),
    ("-n9", "n2:1 n3:0-7"),
    ("-N2", "n2:1 n3:0"),
]


@pytest.mark.parametrize(("release", "args", "place"), _per_release(LEAST_LOADED))
def test_least_loaded(stage: Callable[..., Any], release: str, args: str, place: str) -> None:
    """C03, C04: n1 has 4 of 8 cores busy, n2 two, n3 none; one-node jobs do not look at the load any more."""
    machine = cluster(3, sockets=2, cores_per_socket=4)
    scene = stage(machine, select_parameters="CR_Core,CR_LLN", slurm_release=release)
    scene.submit("b1", "-n4 -w n1")
    scene.submit("b2", "-n2 -w n2")
    assert scene.submit("x", args) == place


def test_a_partition_may_want_the_least_loaded_node(stage: Callable[..., Any]) -> None:
    """LLN of a partition does what CR_LLN does (4.6)."""
    machine = cluster(2, sockets=2, cores_per_socket=4)
    partitions = {"p": {"default": True}, "even": {"lln": True}}
    scene = stage(machine, CORES, partitions=partitions)
    scene.submit("busy", "-n4 -w n1")
    assert scene.submit("packs") == "n1:2"
    assert scene.submit("spreads", "", "even") == "n2:0"


def test_the_one_node_rule_takes_the_required_node(stage: Callable[..., Any]) -> None:
    """-w restricts the shortcut of one-node jobs (4.3.6)."""
    assert stage(FOUR, CORES).submit("x", "-N1 -n2 -w n3") == "n3:0,4"


def test_spread_job_uses_many_nodes(stage: Callable[..., Any]) -> None:
    """--spread-job: as many nodes as there are tasks, if there are so many (4.3.6)."""
    assert stage(FOUR, CORES).submit("x", "-n4 --spread-job") == "n1:0 n2:0 n3:0 n4:0"


FEATURED = (
    node("n1", cpus=4, features=("a",)),
    node("n2", cpus=4, features=("a",)),
    node("n3", cpus=4, features=("b",)),
    node("n4", cpus=4, features=("a", "b")),
)


@pytest.mark.parametrize(
    ("args", "nodes"),
    [
        pytest.param("-N1 -C b", "n3", id="one feature"),
        pytest.param("-N1 -C a&b", "n4", id="both"),
        pytest.param("-N3 -C a|b", "n[1-3]", id="either: no preference"),
        pytest.param("-N2 -C [b|a]", "n[3-4]", id="alternatives: the first that fits"),
        pytest.param("-N3 -C [b|a]", "n[1-2,4]", id="alternatives: the second if the first is too small"),
        pytest.param("-N3 -C a*2&b*1", "n[1-3]", id="counts"),
    ],
)
def test_features(stage: Callable[..., Any], args: str, nodes: str) -> None:
    """Section 4.1.3 no. 3 and 4."""
    scene = stage(FEATURED, CORES)
    scene.submit("x", args)
    assert scene.nodes("x") == nodes

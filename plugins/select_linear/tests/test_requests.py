"""What a request amounts to: counted features and memory above a limit (slurm-gang-and-select 4.1.3, 4.1.5)."""

from __future__ import annotations

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import JobSpec, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine

FEATURED = Config(
    node=(
        NodeTable(name="n[1-2]", features=("a",)),
        NodeTable(name="n3", features=("b",)),
        NodeTable(name="n4", features=("a", "b")),
        NodeTable(name="n[5-6]"),
    ),
    partition=(PartitionTable(name="main", default=True),),
    scheduler=SchedulerTable(type="builtin"),
)


def start(config: Config, **asked: object) -> tuple[str, tuple[int, ...] | None]:
    """Submit one job; return its nodes and the memory charged on each."""
    run = Engine(config, Recorder(build_cluster(config)), Policies(config))
    run.step(0.0, [Submitted(JobSpec(id="x", **asked))])  # type: ignore[arg-type]  # rows of a table
    history = run.recorder.histories["x"]
    if history.state is not JobState.RUNNING or history.allocation is None:
        return "", None
    return run.recorder.node_list(history.allocation.nodes), history.allocation.memory_mb


@pytest.mark.parametrize(
    ("features", "size", "nodes"),
    [
        pytest.param("a*2&b*1", 3, "n[1-3]", id="two with a, one with b"),
        pytest.param("b*1&a*3", 4, "n[1-4]", id="each count is solved for itself"),
        pytest.param("a*1", 3, "n[1-3]", id="the rest is filled up with any"),
        pytest.param("b*3", 3, "", id="too few of them: never"),
    ],
)
def test_counted_features(features: str, size: int, nodes: str) -> None:
    """So many nodes with each feature are required; the others are chosen as ever (4.1.3 no. 3)."""
    assert start(FEATURED, min_nodes=size, max_nodes=size, features=features)[0] == nodes


@pytest.mark.parametrize(
    ("asked", "nodes", "memory"),
    [
        pytest.param({"memory_mb_per_cpu": 1200}, "n1", (400 * 8,), id="1200 a CPU: three CPUs at 400"),
        pytest.param({"memory_mb_per_cpu": 600, "tasks": 2}, "n1", (300 * 8,), id="600 a CPU: two at 300"),
        pytest.param(
            {"memory_mb_per_cpu": 1200, "tasks": 3}, "n[1-2]", (3200, 3200), id="nine CPUs: two nodes"
        ),
        pytest.param({"memory_mb_per_node": 1600}, "n1", (1600,), id="1600 a node: four of its CPUs"),
        pytest.param({"memory_mb_per_node": 8000}, "", None, id="8000 a node: sixteen CPUs, never"),
    ],
)
def test_memory_above_the_limit_per_cpu(
    asked: dict[str, object], nodes: str, memory: tuple[int, ...] | None
) -> None:
    """MaxMemPerCPU=500 turns memory into CPUs (4.1.5); whole nodes are charged for all of theirs."""
    config = Config(
        node=(NodeTable(name="n[1-4]", cpus=8, memory_mb=8000),),
        partition=(PartitionTable(name="main", default=True, max_mem_per_cpu=500),),
        policy=PolicyTable(select_parameters=("CR_Memory",)),
        scheduler=SchedulerTable(type="builtin"),
    )
    assert start(config, **asked) == (nodes, memory)


@pytest.mark.parametrize(("per_cpu", "nodes"), [(1000, "n3"), (1001, "n1"), (2001, "")])
def test_memory_per_cpu_counts_for_all_cpus_of_a_node(per_cpu: int, nodes: str) -> None:
    """Of 8000 MB each of four CPUs gets 2000, each of eight 1000 (recorded: linear_memory_per_cpu_unlike)."""
    config = Config(
        node=(
            NodeTable(name="n[1-2]", cpus=4, memory_mb=8000, weight=5),
            NodeTable(name="n[3-4]", cpus=8, memory_mb=8000),
        ),
        partition=(PartitionTable(name="main", default=True),),
        policy=PolicyTable(select="select/linear", select_parameters=("CR_Memory",)),
        scheduler=SchedulerTable(type="builtin"),
    )
    assert start(config, memory_mb_per_cpu=per_cpu)[0] == nodes

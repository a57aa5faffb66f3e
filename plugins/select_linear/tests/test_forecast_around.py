"""When a job could start that keeps off the nodes of some jobs until they have ended (4.2.9, 4.4.6)."""

from __future__ import annotations

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import JobSpec
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine
from makeway_select_linear.forecast import forecast_around
from makeway_select_linear.selector import LinearSelector


def start(ends: dict[str, float], spared: list[str], wanted: int) -> float:
    """Return when a job of `wanted` nodes could start.

    :param ends: node -> when the job on it ends; every node has one.
    :param spared: nodes whose jobs are not to be laid over.
    """
    config = Config(
        node=(NodeTable(name=f"n[1-{len(ends)}]", cpus=1),),
        partition=(PartitionTable(name="main", default=True),),
        policy=PolicyTable(),
        scheduler=SchedulerTable(type="builtin"),
    )
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    for node, end in ends.items():
        spec = JobSpec(id=node, required_nodes=(node,), min_nodes=1, max_nodes=1, time_limit=end)
        engine.step(0.0, [Submitted(spec)])
    engine.step(0.0, [Submitted(JobSpec(id="asked", min_nodes=wanted, max_nodes=wanted))])
    ledger, selector = engine.ledger, engine.selector
    assert isinstance(selector, LinearSelector)
    others = [ledger.jobs[node] for node in spared]
    found = forecast_around(selector, ledger.jobs["asked"], ledger.all_nodes, ledger, (), others)
    assert found is not None
    return found.at


@pytest.mark.parametrize(
    ("spared", "wanted", "at"),
    [
        pytest.param(["n1"], 1, 100.0, id="the node of one that is spared, once it has ended"),
        pytest.param(["n3"], 1, 100.0, id="another node before he ends"),
        pytest.param(["n1"], 2, 200.0, id="his node and another"),
        pytest.param(["n1", "n2"], 3, 300.0, id="all nodes: none will do before both have ended"),
        pytest.param(["n1", "n2", "n3"], 3, 300.0, id="all of them spared"),
        pytest.param(["n2", "n3"], 2, 200.0, id="one of two that are spared has ended"),
    ],
)
def test_a_node_is_kept_off_until_its_job_has_ended(spared: list[str], wanted: int, at: float) -> None:
    """Jobs on n1, n2 and n3 end after 100, 200 and 300 s: n nodes are free when the n-th has ended."""
    assert start({"n1": 100.0, "n2": 200.0, "n3": 300.0}, spared, wanted) == at

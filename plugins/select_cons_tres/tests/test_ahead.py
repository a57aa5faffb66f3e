"""What is counted ahead is what an attempt comes to as jobs end."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from makeway.bitmap import NodeBits
from makeway.config import Config
from makeway.model import ClusterView, Exclusive, Forecast, Job, JobSpec
from makeway_select_cons_tres.ahead import Ahead
from makeway_select_cons_tres.selector import ConsSelector
from makeway_testing import replay_table
from makeway_testing.builders import cluster


def jobs(seed: int) -> list[JobSpec]:
    """Return 120 jobs of one or more nodes, some with further wishes."""
    chance = Random(seed)
    drawn = []
    for at in range(120):
        nodes = chance.choice((1, 1, 1, 2, 3, 4))
        more: dict[str, Any] = {}
        if chance.random() < 0.3:
            more = chance.choice(
                (
                    {"features": "fast"},
                    {"exclusive": Exclusive.NODE},
                    {"memory_mb_per_node": None, "memory_mb_per_cpu": 700},
                    {"memory_mb_per_node": 0},
                    {"max_nodes": None},
                    {"max_nodes": nodes + 2, "tasks": nodes + 3},
                    {"tasks_per_node": 2, "tasks": 2 * nodes},
                    {"contiguous": True},
                    {"required_nodes": ("n2",)},
                    {"sockets_per_node": 1, "cores_per_socket": 2},
                )
            )
        spec = {
            "min_nodes": nodes,
            "max_nodes": nodes,
            "tasks": chance.choice((nodes, nodes, 2 * nodes, None)),
            "cpus_per_task": chance.choice((1, 1, 2)),
            "memory_mb_per_node": chance.choice((100, 3_000, 6_000)),
        }
        drawn.append(
            JobSpec(
                id=str(at),
                submit_at=float(chance.randrange(900)),
                run_time=float(chance.randint(5, 200)),
                time_limit=chance.choice((None, 100.0, 200.0, 400.0)),
                partitions=(chance.choice(("low", "low", "hi")),),
                **{**spec, **more},
            )
        )
    return sorted(drawn, key=lambda spec: spec.submit_at)


@pytest.mark.slow
def test_counting_comes_to_the_same(each_forecast: list[Any], drawn_site: Callable[..., Config]) -> None:
    """The same instant and the same nodes, for jobs of one node and of several."""
    seen = {False: 0, True: 0}

    def counted(
        selector: ConsSelector, job: Job, nodes: NodeBits, view: ClusterView, found: Forecast
    ) -> None:
        if selector._ahead.forecast(job, nodes, view) is not None:
            seen[job.size > 1] += found.at > view.now

    each_forecast.append(counted)
    for seed in range(40):
        replay_table(jobs(seed), config=drawn_site(seed, (2, 4, 8)))
    assert min(seen.values()) > 100


@pytest.mark.parametrize(
    ("args", "at", "nodes"),
    [
        pytest.param("-N1 -n4", 300, 0b01, id="n1 is empty first"),
        pytest.param("-N2 -n2", 70, 0b11, id="two nodes with a core each"),
        pytest.param("-N2 -n8", 600, 0b11, id="all of both"),
        pytest.param("-N1 -n2 --mem=700", 300, 0b01, id="cores are there at 60, memory only then"),
        pytest.param("-N2 -n2 --mem=700", 600, 0b11, id="the same of two nodes"),
    ],
)
def test_two_nodes(stage: Callable[..., Any], args: str, at: float, nodes: int) -> None:
    """n1 and n2 have 4 cores and 1,000 MB; their jobs hold two cores and 400 MB each."""
    machine = cluster(2, cpus=4, sockets=1, cores_per_socket=4, memory_mb=1_000)
    scene = stage(machine, {"select_parameters": "CR_Core_Memory"}, scheduler="easy")
    for name, where, limit in (("a", "n1", 60.0), ("b", "n2", 70.0), ("c", "n1", 300.0), ("d", "n2", 600.0)):
        scene.submit(name, f"-n2 --mem=400 -w {where}", time_limit=limit)
    engine = scene.engine
    scene.submit("asked", args if "--mem" in args else f"{args} --mem=100")
    job = engine.ledger.jobs["asked"]
    told = Ahead(engine.selector, engine.ledger).forecast(job, job.partition.nodes, engine.ledger)
    assert told is not None
    found = told.forecast
    assert found is not None
    assert (found.at, found.nodes) == (at, nodes)

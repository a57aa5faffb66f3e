"""When a job that only wants so many nodes could start, by the shortcut and by hand (4.2.9)."""

from __future__ import annotations

import pytest

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import JobSpec, PreemptMode
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine
from makeway_select_linear import forecast as module
from makeway_select_linear.selector import LinearSelector

ENDS = {"n1": 100.0, "n2": 200.0, "n3": 300.0}


def start(
    wanted: int,
    removable: dict[str, PreemptMode],
    *,
    tolerates: bool,
    memory: int | None = None,
    required: tuple[str, ...] = (),
) -> tuple[float, bool, list[int]] | None:
    """Return when a job of `wanted` nodes could start, whether others make way for it, and on which nodes.

    :param memory: how much each job wants of 1000 MB; None: memory is not counted.
    :param required: nodes that it names.
    """
    config = Config(
        node=(NodeTable(name=f"n[1-{len(ENDS)}]", cpus=1, memory_mb=1000),),
        partition=(PartitionTable(name="main", default=True),),
        policy=PolicyTable(select_parameters=() if memory is None else ("CR_Memory",)),
        scheduler=SchedulerTable(type="builtin", rules={"linear_forecast_tolerates_one": tolerates}),
    )
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    for node, end in ENDS.items():
        spec = JobSpec(
            id=node,
            required_nodes=(node,),
            min_nodes=1,
            max_nodes=1,
            time_limit=end,
            memory_mb_per_node=memory,
        )
        engine.step(0.0, [Submitted(spec)])
    asked = JobSpec(
        id="asked",
        min_nodes=wanted,
        max_nodes=wanted,
        memory_mb_per_node=memory,
        required_nodes=required,
    )
    engine.step(0.0, [Submitted(asked)])
    ledger, selector = engine.ledger, engine.selector
    assert isinstance(selector, LinearSelector)
    others = [(ledger.jobs[node], mode) for node, mode in removable.items()]
    found = module.forecast(selector, ledger.jobs["asked"], ledger.all_nodes, ledger, others)
    return None if found is None else (found.at, found.preempts, list(bitmap.indices(found.nodes)))


OFF, CANCEL = PreemptMode.OFF, PreemptMode.CANCEL


@pytest.mark.parametrize("tolerates", [False, True])
@pytest.mark.parametrize(
    ("wanted", "removable", "expected"),
    [
        pytest.param(1, {}, (100.0, False, [0]), id="the first to end"),
        pytest.param(2, {}, (200.0, False, [0, 1]), id="the second to end"),
        pytest.param(1, {"n3": CANCEL}, (0.0, True, [2]), id="one that may go"),
        pytest.param(1, {"n3": OFF}, (100.0, False, [0]), id="one that is OFF stays"),
        pytest.param(2, {"n2": CANCEL, "n3": CANCEL}, (0.0, True, [1, 2]), id="two that may go"),
        pytest.param(
            2, {"n2": CANCEL, "n3": OFF}, (100.0, False, [0, 1]), id="one that may go, one that ends"
        ),
    ],
)
def test_the_start_of_a_job_that_only_counts_nodes(
    wanted: int, removable: dict[str, PreemptMode], expected: tuple[float, bool, list[int]], tolerates: bool
) -> None:
    """Jobs on n1, n2 and n3 end after 100, 200 and 300 s; both ways of estimating say the same of them."""
    assert start(wanted, removable, tolerates=tolerates) == expected


@pytest.mark.parametrize(
    ("wanted", "removable", "expected"),
    [
        pytest.param(1, {}, (100.0, False, [0]), id="the first to end"),
        pytest.param(1, {"n3": CANCEL}, (0.0, True, [2]), id="one that may go"),
        pytest.param(2, {"n2": CANCEL, "n3": CANCEL}, (0.0, True, [1, 2]), id="two that may go"),
        pytest.param(2, {"n3": CANCEL}, (100.0, False, [0, 2]), id="one that may go, one that ends"),
    ],
)
def test_the_start_of_a_job_that_wants_memory_too(
    wanted: int, removable: dict[str, PreemptMode], expected: tuple[float, bool, list[int]]
) -> None:
    """Each job has all of its node's memory, so that the same nodes come free."""
    assert start(wanted, removable, tolerates=True, memory=1000) == expected


@pytest.mark.parametrize("tolerates", [False, True])
@pytest.mark.parametrize(
    ("required", "removable", "expected"),
    [
        pytest.param("n3", {}, (300.0, False, [2]), id="once the job has ended that has it"),
        pytest.param("n3", {"n3": CANCEL}, (0.0, True, [2]), id="now, if he may go"),
        pytest.param("n3", {"n2": CANCEL}, (300.0, False, [2]), id="another that may go is of no use"),
    ],
)
def test_the_start_of_a_job_that_names_its_node(
    required: str,
    removable: dict[str, PreemptMode],
    expected: tuple[float, bool, list[int]],
    tolerates: bool,
) -> None:
    """Only the jobs on that node count."""
    assert start(1, removable, tolerates=tolerates, required=(required,)) == expected

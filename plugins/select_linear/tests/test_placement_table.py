"""Which nodes select/linear takes: the table of slurm-gang-and-select 4.2.5, and numbered scenarios."""

from __future__ import annotations

import attrs
import pytest

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.hostlist import expand_hostlist
from makeway.model import JobSpec, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Command, Submitted
from makeway_engine.engine import Engine

TEN = Config(
    node=(NodeTable(name="n[1-10]", cpus=2, sockets=1, cores_per_socket=2),),
    partition=(PartitionTable(name="main", default=True),),
    policy=PolicyTable(),
    scheduler=SchedulerTable(type="builtin"),
)
"""Ten nodes of two CPUs; n4, n7 and n9 are kept busy."""


def engine(config: Config) -> Engine:
    """Return an engine on the empty cluster of `config`."""
    return Engine(config, Recorder(build_cluster(config)), Policies(config))


def place(run: Engine, job_id: str, **asked: object) -> str:
    """Submit a job and return its nodes as a host list; empty while it waits."""
    run.step(run.ledger.now, [Submitted(JobSpec(id=job_id, **asked))])  # type: ignore[arg-type]  # table rows
    job = run.ledger.jobs[job_id]
    return run.recorder.node_list(job.nodes) if job.state is JobState.RUNNING else ""


def exactly(nodes: int) -> dict[str, object]:
    """Return what ``-N nodes`` asks for."""
    return {"min_nodes": nodes, "max_nodes": nodes}


TABLE = [
    ("-N1", exactly(1), "n8"),
    ("-N2", exactly(2), "n[5-6]"),
    ("-N3", exactly(3), "n[1-3]"),
    ("-N4", exactly(4), "n[1-3,8]"),
    ("-N5", exactly(5), "n[1-3,5-6]"),
    ("-N7", exactly(7), "n[1-3,5-6,8,10]"),
    ("-n3 -N1-3", {"tasks": 3, "min_nodes": 1, "max_nodes": 3}, "n[5-6,8]"),
    ("-N1-4", {"min_nodes": 1, "max_nodes": 4}, "n[5-6,8,10]"),
    ("-N2 --contiguous", exactly(2) | {"contiguous": True}, "n[5-6]"),
    ("-N4 --contiguous", exactly(4) | {"contiguous": True}, ""),
    ("-N2 -w n5", exactly(2) | {"required_nodes": ("n5",)}, "n[5-6]"),
    ("-N3 -w n5", exactly(3) | {"required_nodes": ("n5",)}, "n[5-6,8]"),
    ("-N2 -w n2", exactly(2) | {"required_nodes": ("n2",)}, "n[2,8]"),
    ("-n4", {"tasks": 4}, "n[5-6]"),
    ("-n4 --contiguous", {"tasks": 4, "contiguous": True}, "n[5-6]"),
    ("-n5", {"tasks": 5}, "n[1-3]"),
    ("-n7", {"tasks": 7}, "n[1-3,8]"),
    ("-N2 -x n8", exactly(2) | {"excluded_nodes": ("n8",)}, "n[5-6]"),
]


@pytest.mark.parametrize(("asked", "nodes"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_best_fit_table(asked: dict[str, object], nodes: str) -> None:
    """L01: ten 2-CPU nodes, n4 n7 n9 busy; every row of the table in section 4.2.5."""
    run = engine(TEN)
    for busy in ("n4", "n7", "n9"):
        assert place(run, busy, required_nodes=(busy,), **exactly(1)) == busy
    assert place(run, "asked", **asked) == nodes


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        pytest.param(1, "n1", id="a single node of the line that comes first"),
        pytest.param(3, "n[1,5-6]", id="too small a block with more CPUs displaces a sufficient one"),
        pytest.param(4, "n[1-2,5-6]", id="and then the rest from the other"),
    ],
)
def test_blocks_of_unlike_nodes(wanted: int, nodes: str) -> None:
    """Two nodes of one CPU, four of four CPUs, n4 busy: blocks of 6 and 8 CPUs (4.2.5 step 4)."""
    lines = (NodeTable(name="n[1-2]", cpus=1), NodeTable(name="n[3-6]", cpus=4))
    run = engine(attrs.evolve(TEN, node=lines))
    assert place(run, "busy", required_nodes=("n4",), **exactly(1)) == "n4"
    assert place(run, "asked", **exactly(wanted)) == nodes


def weights() -> Config:
    """Return four nodes with weights 10, 1, 5, 1 (L17)."""
    nodes = [NodeTable(name=f"n{at}", cpus=2, weight=w) for at, w in ((1, 10), (2, 1), (3, 5), (4, 1))]
    return attrs.evolve(TEN, node=tuple(nodes))


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        pytest.param(exactly(1), "n2", id="-N1"),
        pytest.param(exactly(2), "n[2,4]", id="-N2"),
        pytest.param(exactly(3), "n[2-4]", id="-N3"),
        pytest.param(exactly(2) | {"contiguous": True}, "n[2-3]", id="-N2 contiguous"),
        pytest.param(exactly(3) | {"contiguous": True}, "n[2-4]", id="-N3 contiguous"),
    ],
)
def test_light_nodes_first(asked: dict[str, object], nodes: str) -> None:
    """L17: node sets by weight, cumulative."""
    assert place(engine(weights()), "asked", **asked) == nodes


def test_a_block_that_just_suffices_is_the_best_fit_among_unlike_nodes() -> None:
    """Four CPUs are asked for: n5 and n6 have exactly four, n1 to n3 six (section 4.2.5)."""
    nodes = (NodeTable(name="n[1-6]", cpus=2), NodeTable(name="n7", cpus=4))
    run = engine(attrs.evolve(TEN, node=nodes))
    for busy in ("n4", "n7"):
        assert place(run, busy, required_nodes=(busy,), **exactly(1)) == busy
    assert place(run, "asked", tasks=4) == "n[5-6]"


def test_a_glance_drops_the_jobs_that_are_too_large() -> None:
    """Seven nodes are idle: a job that wants more is dropped, wherever it stands in the list."""
    run = engine(TEN)
    for busy in ("n4", "n7", "n9"):
        place(run, busy, required_nodes=(busy,), **exactly(1))
    for name, size in (("large", 8), ("small", 2), ("fits", 7)):
        run.step(0.0, [Submitted(JobSpec(id=name, priority=0, **exactly(size)))])  # type: ignore[arg-type]
    large, small, fits = (run.ledger.jobs[name] for name in ("large", "small", "fits"))
    nodes = bitmap.of(range(10))
    assert list(run.selector.screen([large, small, fits], nodes)) == [small, fits]
    assert list(run.selector.screen([large], nodes)) == []
    assert list(run.selector.screen([fits], nodes)) == [fits]


def test_equal_sizes_stack_under_force() -> None:
    """L03: FORCE:3 under gang; job mates, and the sum of running jobs per node."""
    partition = PartitionTable(name="main", default=True, oversubscribe="FORCE:3")
    config = attrs.evolve(
        TEN,
        node=(NodeTable(name="n[1-5]", cpus=2),),
        partition=(partition,),
        policy=PolicyTable(preempt_mode=("gang",)),
    )
    run = engine(config)
    wanted = [
        (2, "n[1-2]"),
        (2, "n[3-4]"),
        (2, "n[1-2]"),
        (2, "n[3-4]"),
        (1, "n5"),
        (3, "n[1-3]"),
        (1, "n5"),
        (2, "n[4-5]"),
    ]
    for at, (size, nodes) in enumerate(wanted):
        run.step(0.0, [Submitted(JobSpec(id=str(at), **exactly(size)))])  # type: ignore[arg-type]
        assert run.recorder.node_list(run.ledger.jobs[str(at)].nodes) == nodes
    states = [run.ledger.jobs[str(at)].state.value[0] for at in range(len(wanted))]
    assert "".join(states) == "RRSSRSSS"


@pytest.mark.parametrize(
    ("sharing", "offered", "states"),
    [
        pytest.param("YES:2", (False, False, True), "RPP", id="YES:2, no job offered first: L04"),
        pytest.param("YES:2", (True, True, True), "RRP", id="YES:2, all offer: L05 without gang"),
        pytest.param("FORCE:1", (False, False), "RP", id="FORCE:1 is exclusive: L10"),
        pytest.param("FORCE:2", (False, False, False), "RRP", id="FORCE:2 shares whatever is asked"),
        pytest.param("EXCLUSIVE", (True, True), "RP", id="EXCLUSIVE never shares"),
        pytest.param("NO", (True, True), "RP", id="NO never shares"),
    ],
)
def test_who_shares(sharing: str, offered: tuple[bool, ...], states: str) -> None:
    """Section 4.1.2, the linear column; whole-node jobs on one node."""
    partition = PartitionTable(name="main", default=True, oversubscribe=sharing)
    run = engine(attrs.evolve(TEN, node=(NodeTable(name="n1", cpus=2),), partition=(partition,)))
    for at, offer in enumerate(offered):
        run.step(0.0, [Submitted(JobSpec(id=str(at), oversubscribe=offer))])
    assert "".join(run.ledger.jobs[str(at)].state.value[0] for at in range(len(offered))) == states


@pytest.mark.parametrize(
    ("mebibytes", "states"),
    [
        pytest.param((None, None), "RP", id="none given takes the whole node: L06"),
        pytest.param((400, 400, 400), "RRP", id="three of 400 on 1000: L07"),
        pytest.param((300, 700), "RR", id="exactly full"),
        pytest.param((300, 701), "RP", id="one too many"),
    ],
)
def test_memory_is_consumable(mebibytes: tuple[int | None, ...], states: str) -> None:
    """CR_Memory, FORCE:4, one node of 1000 MB (sections 4.1.5, 4.2.5)."""
    config = attrs.evolve(
        TEN,
        node=(NodeTable(name="n1", cpus=2, memory_mb=1000),),
        partition=(PartitionTable(name="main", default=True, oversubscribe="FORCE:4"),),
        policy=PolicyTable(select_parameters=("CR_Memory",)),
    )
    run = engine(config)
    for at, memory in enumerate(mebibytes):
        run.step(0.0, [Submitted(JobSpec(id=str(at), memory_mb_per_node=memory))])
    assert "".join(run.ledger.jobs[str(at)].state.value[0] for at in range(len(mebibytes))) == states


@pytest.mark.parametrize(("of_first", "nodes"), [(True, ("n2", "n2", "")), (False, ("n2", "", ""))])
def test_who_asks_for_no_memory_wants_that_of_the_first_node(of_first: bool, nodes: tuple[str, ...]) -> None:
    """4.2.5: of n2, with 700 of 1600 MB in use, the 800 MB of n1; then all of n2 is charged for."""
    config = attrs.evolve(
        TEN,
        node=(NodeTable(name="n1", cpus=2, memory_mb=800), NodeTable(name="n2", cpus=2, memory_mb=1600)),
        partition=(PartitionTable(name="main", default=True, oversubscribe="FORCE:4"),),
        policy=PolicyTable(select_parameters=("CR_Memory",)),
        scheduler=SchedulerTable(type="builtin", rules={"linear_memory_of_first_node": of_first}),
    )
    run = engine(config)
    asked = ((700, "n2"), (None, "n2"), (100, "n2"))
    for at, ((memory, node), given) in enumerate(zip(asked, nodes, strict=True)):
        assert place(run, str(at), memory_mb_per_node=memory, required_nodes=(node,), **exactly(1)) == given


def test_node_lists_are_the_cluster_s() -> None:
    """The folded list in a record names what the bitmap holds."""
    run = engine(TEN)
    names = [node.name for node in run.ledger.cluster.nodes]
    assert names == expand_hostlist("n[1-10]")
    assert run.recorder.node_list(bitmap.of([0, 1, 9])) == "n[1-2,10]"


@pytest.mark.parametrize(
    ("sharing", "rules", "charged"),
    [
        ("NO", {}, False),
        ("FORCE:1", {}, False),
        ("FORCE:2", {}, True),
        ("NO", {"linear_counts_forced_gpus": False}, True),
    ],
)
@pytest.mark.parametrize("gpus", [1, 2])
def test_gres_of_nodes_that_are_alike(gpus: int, sharing: str, rules: dict[str, bool], charged: bool) -> None:
    """Both nodes have two GPUs: a job of FORCE:2 is charged for as many as it asks for (linear_gpus_shared)."""
    config = attrs.evolve(
        TEN,
        node=(NodeTable(name="n[1-2]", cpus=2, gres={"gpu": 2}),),
        partition=(PartitionTable(name="main", default=True, oversubscribe=sharing),),
        scheduler=SchedulerTable(type="builtin", rules=rules),
    )
    run = engine(config)
    assert place(run, "asked", gres={"gpu": gpus}, **exactly(1)) == "n1"
    held = run.ledger.jobs["asked"].allocation
    assert held is not None
    assert dict(held.gres) == ({"gpu": (gpus,)} if charged else {})


def test_any_number_of_stopped_jobs_is_tolerated_at_the_last_level() -> None:
    """4.2.3: exclusive jobs have one level, which is the last, so that five stopped jobs keep no job out."""
    run = engine(attrs.evolve(TEN, node=(NodeTable(name="n1", cpus=2, features=("a",)),)))
    for at in range(5):
        assert place(run, str(at), **exactly(1)) == "n1"
        run.step(run.ledger.now, [Command("suspend", str(at))])
    assert place(run, "asked", features="a", **exactly(1)) == "n1"


@pytest.mark.parametrize(("asked", "given"), [("[a|b]", "n1"), ("[b|a]", "n2"), ("[c|b]", "n2")])
def test_the_first_alternative_that_has_room_is_taken(asked: str, given: str) -> None:
    """Only those that preempt are held to the last one (slurm-preemption 5.0 no. 6)."""
    nodes = (NodeTable(name="n1", cpus=2, features=("a",)), NodeTable(name="n2", cpus=2, features=("b",)))
    third = NodeTable(name="n3", cpus=2, features=("c",), up=False)
    run = engine(attrs.evolve(TEN, node=(*nodes, third)))
    assert place(run, "asked", features=asked, **exactly(1)) == given

"""Hold `LinearAttempt.cover` against probing every subset of the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random

import attrs
import pytest

from makeway import bitmap
from makeway.config import (
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    SchedulerTable,
    build_cluster,
)
from makeway.model import (
    Allocation,
    Cover,
    Job,
    JobSpec,
    Placement,
    PreemptMode,
    SuspendedBy,
)
from makeway.record import Recorder
from makeway.registry import Policies
from makeway_engine.engine import Engine
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.selector import LinearSelector

MODES = [
    PreemptMode.REQUEUE,
    PreemptMode.CANCEL,
    PreemptMode.SUSPEND,
    PreemptMode.CHECKPOINT,
    PreemptMode.OFF,
]


@attrs.frozen
class Case:
    """A cluster with jobs on it, and one that wants in."""

    engine: Engine
    attempt: LinearAttempt
    jobs: Sequence[Job]
    modes: Sequence[PreemptMode]


def engine_with(
    nodes: Sequence[NodeTable],
    *,
    low: str = "FORCE:1",
    high: str = "FORCE:1",
    memory: bool = False,
    rules: Mapping[str, bool] | None = None,
) -> Engine:
    """Return an empty cluster with the partitions low and high."""
    config = Config(
        node=tuple(nodes),
        partition=(
            PartitionTable(name="low", default=True, oversubscribe=low),
            PartitionTable(name="high", priority_tier=2, oversubscribe=high),
        ),
        policy=PolicyTable(
            preempt="preempt/partition_prio",
            preempt_mode=("requeue",),
            select_parameters=("CR_Memory",) if memory else (),
        ),
        scheduler=SchedulerTable(rules=dict(rules or {})),
    )
    engine = Engine(config, Recorder(build_cluster(config)), Policies(config))
    engine.submission._impossible = lambda job: ""  # type: ignore[method-assign]  # covers are asked about any job
    return engine


def running(engine: Engine, spec: JobSpec, nodes: Sequence[int], *, shared: bool) -> Job:
    """Put a job on `nodes`, whatever is there already."""
    engine.submit(spec)
    job = engine.ledger.jobs[spec.id]
    indices = tuple(sorted(nodes))
    memory = spec.memory_mb_per_node
    allocation = Allocation(
        nodes=bitmap.of(indices),
        node_indices=indices,
        memory_mb=(memory,) * len(indices) if memory else None,
        gres={name: (count,) * len(indices) for name, count in spec.gres.items()},
        shared=shared,
    )
    engine.queue.remove(job)
    engine.ledger.start(job, allocation)
    engine.selector.placed(job)
    return job


def attempt_of(engine: Engine, spec: JobSpec) -> LinearAttempt:
    """Begin an attempt on all nodes."""
    engine.submit(spec)
    job = engine.ledger.jobs[spec.id]
    selector = engine.selector
    assert isinstance(selector, LinearSelector)
    return selector.attempt(job, engine.ledger.all_nodes, engine.ledger)


def fits(case: Case, gone: Sequence[int]) -> bool:
    """Ask the selector itself."""
    trial = case.attempt.fresh()
    for at in gone:
        trial.remove(case.jobs[at], case.modes[at])
    return isinstance(trial.probe(), Placement)


def says(cover: Cover, gone: Sequence[int]) -> bool:
    """Ask the cover."""
    left = set(gone)
    freed = sum(left.issuperset(group) for group in cover.blockers.values())
    return cover.free + freed >= cover.wanted


def open_to(case: Case) -> list[int]:
    """Return the candidates that make way at all."""
    return [at for at, mode in enumerate(case.modes) if mode is not PreemptMode.OFF]


def differences(case: Case, cover: Cover) -> list[tuple[int, ...]]:
    """Return the sets of candidates about which the two disagree."""
    able = open_to(case)
    subsets = [s for size in range(len(able) + 1) for s in combinations(able, size)]
    return [gone for gone in subsets if fits(case, gone) != says(cover, gone)]


def random_case(seed: int) -> Case:
    """Return a small cluster with all that may matter: sharing, memory, gres, odd states."""
    rng = Random(seed)
    size = rng.randint(2, 6)
    memory, gres = rng.random() < 0.4, rng.random() < 0.25
    nodes = [
        NodeTable(
            name=f"n{at}",
            cpus=rng.choice([4, 4, 4, 8]) if seed % 3 == 0 else 4,
            memory_mb=1000,
            gres={"gpu": 2} if gres else {},
            features=("fast",) if rng.random() < 0.7 else (),
        )
        for at in range(size)
    ]
    engine = engine_with(
        nodes,
        low=rng.choice(["FORCE:1", "FORCE:2", "FORCE:3", "NO", "YES:3"]),
        high=rng.choice(["FORCE:1", "FORCE:1", "FORCE:2", "FORCE:3", "NO"]),
        memory=memory,
        rules={"linear_suspend_frees_memory": rng.random() < 0.3},
    )
    jobs, modes = [], []
    for at in range(rng.randint(1, 6)):
        job = running(
            engine,
            JobSpec(
                id=str(at),
                partitions=("low",),
                memory_mb_per_node=rng.choice([200, 400, 600]) if memory else None,
                gres={"gpu": rng.choice([1, 2])} if gres and rng.random() < 0.7 else {},
            ),
            rng.sample(range(size), rng.randint(1, min(3, size))),
            shared=rng.random() < 0.5,
        )
        if rng.random() < 0.2:
            by = rng.choice([SuspendedBy.POLICY, SuspendedBy.ADMIN])
            engine.ledger.suspend(job, by)
            engine.selector.suspended(job)
        if rng.random() < 0.85:
            jobs.append(job)
            modes.append(rng.choice(MODES))
    wanted = rng.randint(1, size)
    spec = JobSpec(
        id="P",
        partitions=("high",),
        min_nodes=wanted,
        max_nodes=rng.choice([None, wanted, wanted + 1]),
        tasks=rng.choice([None, None, wanted, 4 * wanted, 5 * wanted]),
        memory_mb_per_node=rng.choice([300, 500, 900]) if memory else None,
        gres={"gpu": rng.choice([1, 2])} if gres else {},
        oversubscribe=rng.random() < 0.5,
        features="fast" if rng.random() < 0.2 else "",
    )
    return Case(engine, attempt_of(engine, spec), jobs, modes)


@pytest.mark.parametrize("block", range(20))
def test_a_cover_says_what_probes_say(block: int) -> None:
    """For every set of candidates removed."""
    covers = 0
    for seed in range(block * 40, block * 40 + 40):
        case = random_case(seed)
        if isinstance(case.attempt.fresh().probe(), Placement):
            continue  # it is not blocked, so nothing asks for a cover
        if not fits(case, open_to(case)):
            continue  # nothing helps; a cover need not know every reason (licences, limits)
        cover = case.attempt.cover(case.jobs, case.modes)
        if cover is not None:
            covers += 1
            assert not differences(case, cover), f"seed {seed}: {cover}"
    assert covers > 3


def four_nodes() -> list[NodeTable]:
    """Return four like nodes."""
    return [NodeTable(name="n[1-4]", cpus=4, memory_mb=1000)]


@pytest.mark.parametrize(
    ("memory", "wanted_memory", "expected"),
    [
        pytest.param(False, None, {0: (0, 1)}, id="without memory both have to leave"),
        pytest.param(True, 300, {0: (0, 1)}, id="with memory to spare both have to leave"),
    ],
)
def test_two_on_a_node(
    memory: bool, wanted_memory: int | None, expected: Mapping[int, tuple[int, ...]]
) -> None:
    """A preemptor that does not share needs the node to itself."""
    engine = engine_with(four_nodes(), low="FORCE:2", memory=memory)
    jobs = [
        running(engine, JobSpec(id=str(at), memory_mb_per_node=300 if memory else None), [0], shared=True)
        for at in range(2)
    ]
    attempt = attempt_of(
        engine,
        JobSpec(id="P", partitions=("high",), min_nodes=4, memory_mb_per_node=wanted_memory),
    )
    cover = attempt.cover(jobs, [PreemptMode.REQUEUE] * 2)
    assert cover is not None
    assert (cover.wanted, cover.free, dict(cover.blockers)) == (4, 3, expected)


def test_either_of_two_is_no_cover() -> None:
    """A preemptor that shares with one more may choose which job to send away."""
    engine = engine_with(four_nodes(), low="FORCE:2", high="FORCE:2")
    jobs = [running(engine, JobSpec(id=str(at)), [0], shared=True) for at in range(2)]
    attempt = attempt_of(engine, JobSpec(id="P", partitions=("high",), min_nodes=4))
    assert attempt.cover(jobs, [PreemptMode.REQUEUE] * 2) is None


def test_a_sharer_may_stay_beside_a_preemptor_that_shares() -> None:
    """Only the one that holds the node alone has to leave."""
    engine = engine_with(four_nodes(), low="FORCE:2", high="FORCE:3")
    jobs = [
        running(engine, JobSpec(id="0"), [0], shared=True),
        running(engine, JobSpec(id="1"), [0], shared=False),
    ]
    attempt = attempt_of(engine, JobSpec(id="P", partitions=("high",), min_nodes=4))
    cover = attempt.cover(jobs, [PreemptMode.REQUEUE] * 2)
    assert cover is not None
    assert dict(cover.blockers) == {0: (1,)}


def test_a_suspended_victim_keeps_its_memory() -> None:
    """A node whose memory stays full cannot be freed; one whose owner is requeued can."""
    rules = {"linear_suspend_frees_memory": False}
    engine = engine_with(four_nodes(), memory=True, rules=rules)
    jobs = [
        running(engine, JobSpec(id=str(at), memory_mb_per_node=800), [at], shared=False) for at in range(2)
    ]
    attempt = attempt_of(engine, JobSpec(id="P", partitions=("high",), min_nodes=3, memory_mb_per_node=500))
    cover = attempt.cover(jobs, [PreemptMode.SUSPEND, PreemptMode.REQUEUE])
    assert cover is not None
    assert dict(cover.blockers) == {1: (1,)}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(JobSpec(id="P", min_nodes=2, contiguous=True), id="a block of nodes"),
        pytest.param(JobSpec(id="P", min_nodes=2, required_nodes=("n1",)), id="a certain node"),
        pytest.param(JobSpec(id="P", min_nodes=2, features="[a|b]"), id="one of two kinds"),
        pytest.param(JobSpec(id="P", min_nodes=2, features="a*1&b*1"), id="some of each kind"),
    ],
)
def test_shapes_are_no_cover(spec: JobSpec) -> None:
    """Which nodes they are matters."""
    nodes = [
        NodeTable(name="n[1-2]", cpus=4, features=("a",)),
        NodeTable(name="n[3-4]", cpus=4, features=("b",)),
    ]
    engine = engine_with(nodes)
    job = running(engine, JobSpec(id="0"), [0, 1, 2], shared=False)
    attempt = attempt_of(engine, attrs.evolve(spec, partitions=("high",)))
    assert attempt.cover([job], [PreemptMode.REQUEUE]) is None

"""When a job could start where others lie over one another, stopped ones below (4.2.9); by hand, and by counting."""

from __future__ import annotations

from random import Random

import pytest

from makeway import bitmap
from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import Job, JobSpec, PreemptMode
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine
from makeway_select_linear import forecast as module
from makeway_select_linear.selector import LinearSelector

CANCEL = PreemptMode.CANCEL
Found = tuple[float, bool, list[int]] | None


def engine(nodes: int, *, shares: bool = False) -> Engine:
    """Return a cluster on which jobs of `high` stop those of `low`."""
    config = Config(
        node=(NodeTable(name=f"n[1-{nodes}]", cpus=1),),
        partition=(
            PartitionTable(name="low", default=True, oversubscribe="FORCE:2" if shares else "NO"),
            PartitionTable(name="high", priority_tier=2),
        ),
        policy=PolicyTable(
            select="select/linear", preempt="preempt/partition_prio", preempt_mode=("suspend", "gang")
        ),
        scheduler=SchedulerTable(type="builtin"),
    )
    return Engine(config, Recorder(build_cluster(config)), Policies(config))


def submit(run: Engine, name: str, size: int, limit: float, partition: str, **more: object) -> Job | None:
    """Submit a job at instant 0, and return it if it still lives."""
    spec = JobSpec(id=name, partitions=(partition,), min_nodes=size, max_nodes=size, time_limit=limit, **more)  # type: ignore[arg-type]
    run.step(0.0, [Submitted(spec)])
    return run.ledger.jobs.get(name)


def start(run: Engine, job: Job, removable: list[Job]) -> Found:
    """Return when a job could start, whether others make way for it, and where."""
    selector = run.selector
    assert isinstance(selector, LinearSelector)
    others = [(each, CANCEL) for each in removable]
    found = module.forecast(selector, job, run.ledger.all_nodes, run.ledger, others)
    return None if found is None else (found.at, found.preempts, list(bitmap.indices(found.nodes)))


def test_a_node_is_free_when_both_have_gone() -> None:
    """On n1 a job that ends at 100 lies over a stopped one, which counts to its deadline at 300; n2 ends at 200."""
    run = engine(2)
    below, beside = submit(run, "below", 1, 300.0, "low"), submit(run, "beside", 1, 200.0, "low")
    assert submit(run, "over", 1, 100.0, "high", required_nodes=("n1",)) is not None
    assert below is not None
    assert beside is not None
    assert run.selector.books.running.above(1) == 1  # type: ignore[attr-defined]
    asked = submit(run, "asked", 1, 50.0, "low")
    assert asked is not None
    assert start(run, asked, []) == (200.0, False, [1])
    wide = submit(run, "wide", 2, 50.0, "low")
    assert wide is not None
    assert start(run, wide, []) == (300.0, False, [0, 1])
    assert start(run, wide, [below]) == (200.0, False, [0, 1])
    assert start(run, asked, [below]) == (100.0, False, [0])
    assert start(run, asked, [beside]) == (0.0, True, [1])


@pytest.mark.parametrize("seed", range(30))
def test_the_shortcut_says_what_counting_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random jobs over one another, with and without others that may go; in each third run some share nodes."""
    chance = Random(seed)
    run = engine(8, shares=seed % 3 == 0)
    for at in range(24):
        partition = "high" if at > 6 and chance.random() < 0.5 else "low"
        submit(run, str(at), chance.choice((1, 1, 2, 3)), float(chance.randrange(60, 900)), partition)
    waiting = [job for job in run.ledger.pending if not job.required]
    active = list(run.ledger.active)
    assert waiting
    choices = [(job, chance.sample(active, chance.choice((0, 0, 1, 3)))) for job in waiting]
    quick = [start(run, job, removable) for job, removable in choices]
    monkeypatch.setattr(module, "_plain", lambda *_, **__: False)
    assert quick == [start(run, job, removable) for job, removable in choices]


def test_the_shortcut_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where jobs lie over one another; or the test above would compare counting with itself."""
    run = engine(2)
    for name, partition in (("below", "low"), ("beside", "low"), ("over", "high")):
        submit(run, name, 1, 300.0, partition)
    asked = submit(run, "asked", 1, 50.0, "low")
    assert asked is not None
    monkeypatch.setattr(module, "_counting_forecast", None)
    assert start(run, asked, []) is not None

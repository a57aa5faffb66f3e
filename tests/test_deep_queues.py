"""Hold schedulers that look at a deep queue by shape or by partition to the loops that go through all of it."""

from __future__ import annotations

from random import Random

import attrs
import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import JobSpec
from makeway.record import to_json
from makeway.worlds.events import Command
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.schedulers.barred import Barred
from makeway_engine.schedulers.lanes import Lanes
from makeway_engine.schedulers.shapes import Shapes

INDICES: dict[str, type[Shapes | Lanes]] = {
    "easy": Shapes,
    "greedy": Barred,
    "builtin": Lanes,
    "backfill": Lanes,
}
SELECTS = {
    "select/linear": (),
    "select/cons_tres": ("CR_Core_Memory",),
    "select/whole_nodes": (),
}


def _config(scheduler: str, select: str, *, mode: tuple[str, ...] = ("off",), seed: int) -> Config:
    chance = Random(seed)
    clockwork = {"preset": chance.choice(("ideal", "slurm"))}
    return Config(
        node=(
            NodeTable(name="n[1-4]", cpus=4, memory_mb=8_000),
            NodeTable(name="n[5-6]", cpus=8, memory_mb=16_000),
        ),
        partition=(
            PartitionTable(name="low", default=True),
            PartitionTable(name="small", nodes="n[1-3]"),
            PartitionTable(name="high", priority_tier=2, nodes="n[2-6]"),
        ),
        policy=PolicyTable(
            select=select,
            select_parameters=SELECTS[select],
            preempt="preempt/none" if mode == ("off",) else "preempt/partition_prio",
            preempt_mode=mode,
        ),
        scheduler=SchedulerTable(type=scheduler, clockwork=clockwork),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    instants = sorted(chance.choice((0, 0, chance.randrange(2_000))) for _ in range(60))
    several = seed % 3 == 0
    found = []
    for at, instant in enumerate(instants):
        run = chance.randrange(1, 400)
        partitions = (
            ("low", "small")
            if several and chance.random() < 0.1
            else (chance.choice(("low", "low", "small", "high")),)
        )
        found.append(
            JobSpec(
                id=str(at + 1),
                user=f"u{chance.randrange(3)}",
                partitions=partitions,
                submit_at=float(instant),
                run_time=float(run),
                time_limit=chance.choice((None, float(60 * (run // 60 + 1)), 600.0)),
                min_nodes=chance.choice((1, 1, 2, 3)),
                cpus_per_task=chance.choice((1, 2, 4)),
                memory_mb_per_node=chance.choice((500, 4_000)),
                depends_on=(str(chance.randrange(1, at)),) if at > 5 and chance.random() < 0.1 else (),
                priority=chance.choice((None, None, 10, 2_000_000)),
            )
        )
    return found


def _record(config: Config, jobs: list[JobSpec]) -> list[str]:
    lines: list[str] = []
    replay(config, jobs, (), Options(sink=lambda line: lines.append(to_json(line))))
    return lines


@pytest.mark.parametrize("mode", [("off",), ("requeue",), ("suspend", "gang")], ids=" ".join)
@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("scheduler", ["builtin", "backfill", "easy", "greedy"])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_record(
    seed: int, scheduler: str, select: str, mode: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reasons and decisions too, whatever is sent back, held back by another job, or in several partitions."""
    if select == "select/whole_nodes" and "gang" in mode:
        pytest.skip("select/whole_nodes knows no gang scheduling")
    config, jobs = _config(scheduler, select, mode=mode, seed=seed), _jobs(seed)
    monkeypatch.setattr(INDICES[scheduler], "many", (0, 8, 20)[seed])
    quick = _record(config, jobs)
    for index in (Shapes, Lanes):
        monkeypatch.setattr(index, "complete", lambda self: False)
    assert quick == _record(config, jobs)
    assert sum('"RUNNING"' in line for line in quick) >= 50


@pytest.mark.parametrize(("scheduler", "index"), INDICES.items())
def test_the_quick_way_is_taken(
    scheduler: str, index: type[Shapes | Lanes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the test above would compare a loop with itself."""
    asked: list[bool] = []
    complete = index.complete

    def noted(self: Shapes | Lanes) -> bool:
        asked.append(complete(self))
        return asked[-1]

    monkeypatch.setattr(index, "complete", noted)
    monkeypatch.setattr(index, "many", 4)
    replay(_config(scheduler, "select/linear", seed=1), _jobs(1), ())
    assert asked.count(True) > 20


@pytest.mark.parametrize("value", ["time_limit=77", "nice=3"])
def test_what_a_person_changes(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that waits in a deep queue gets another time limit, and still is found where it is kept."""
    monkeypatch.setattr(Shapes, "many", 4)
    config = _config("easy", "select/linear", seed=1)
    jobs = [attrs.evolve(job, submit_at=0.0) for job in _jobs(1)]
    told: list[float] = []

    def change(engine: Engine) -> None:
        if not told and len(engine.queue.entries) > 5:
            told.append(engine.ledger.now)
            waits = [job for job in engine.ledger.pending if not job.spec.depends_on][-1]
            engine.step(engine.ledger.now, [Command("change", waits.id, None, value)])

    result = replay(config, jobs, (), Options(keep=False, after_step=change))
    assert told
    assert result.engine.ledger.now > told[0]

"""Hold what is spared where nothing listens to attempts to the passes, tries and searches that it spares."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from makeway.config import (
    ClusterTable,
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
)
from makeway.model import Job, JobSpec, Seconds
from makeway.preemption import PreemptionTable
from makeway.worlds.events import Command, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.placing.order import Order
from makeway_engine.schedulers.barred import Barred
from makeway_engine.schedulers.settled import Settled

QOS = ("low", "mid", "high")


def _config(scheduler: str, select: str, seed: int) -> Config:
    chance = Random(seed)
    preempt = chance.choice(("preempt/qos", "preempt/qos", "preempt/partition_prio", "preempt/none"))
    mode = "off" if preempt == "preempt/none" else chance.choice(("requeue", "cancel", "requeue"))
    exempt = 30.0 if chance.random() < 0.3 and mode != "off" else None
    own = ("suspend",) if chance.random() < 0.15 and mode != "off" else None
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
        qos=(
            QosTable(name="low"),
            QosTable(name="mid", preempt=("low",), preempt_mode=own),
            QosTable(name="high", preempt=("low", "mid")),
        ),
        cluster=ClusterTable(name="drawn", licenses={"lic": 2}),
        policy=PolicyTable(
            select=select,
            select_parameters=("CR_Core_Memory",) if select == "select/cons_tres" else (),
            preempt=preempt,
            preempt_mode=(mode,),
            preemption=PreemptionTable(exempt_time=exempt),
        ),
        scheduler=SchedulerTable(
            type=scheduler, clockwork={"preset": chance.choice(("ideal", "ideal", "slurm"))}
        ),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    found = []
    for at, instant in enumerate(sorted(chance.randrange(900) for _ in range(90))):
        run = chance.randrange(1, 300)
        partitions: tuple[str, ...] = (chance.choice(("low", "low", "low", "small", "high")),)
        if seed % 4 == 3 and chance.random() < 0.1:
            partitions = ("low", "small")
        found.append(
            JobSpec(
                id=str(at + 1),
                user=f"u{chance.randrange(3)}",
                qos=chance.choice(QOS),
                partitions=partitions,
                submit_at=float(instant),
                run_time=float(run),
                time_limit=chance.choice((None, float(60 * (run // 60 + 1)), 600.0)),
                min_nodes=(nodes := chance.choice((1, 1, 1, 2, 3))),
                max_nodes=chance.choice((None, nodes, nodes)),
                tasks=chance.choice((None, nodes)),
                cpus_per_task=chance.choice((1, 2, 4)),
                memory_mb_per_node=chance.choice((500, 4_000)),
                licenses={"lic": 1} if chance.random() < 0.05 else {},
                required_nodes=("n2",) if chance.random() < 0.03 else (),
                depends_on=(str(chance.randrange(1, at)),) if at > 5 and chance.random() < 0.05 else (),
            )
        )
    return found


def _commands(seed: int) -> list[tuple[Seconds, Event]]:
    chance = Random(seed)
    found: list[tuple[Seconds, Event]] = []
    for verb in ("hold", "release", "cancel", "suspend", "resume", "suspend", "resume"):
        job = str(chance.randrange(1, 80))
        found += [(float(chance.randrange(900)), Command(verb, job))]
    job = str(chance.randrange(1, 80))
    found.append((float(chance.randrange(900)), Command("change", job, None, "qos=high")))
    return sorted(found, key=lambda each: each[0])


def _seen(config: Config, seed: int) -> list[Any]:
    """Return where each job is after every step and why it waits, and all figures."""
    states: list[Any] = []

    def note(engine: Engine) -> None:
        ledger = engine.ledger
        there = [
            (job.id, job.state.value, job.reason, job.nodes, job.partition.name) for job in ledger.present
        ]
        states.append((ledger.now, there))

    run = replay(config, _jobs(seed), _commands(seed), Options(after_step=note))
    return [*states, run.recorder.preemptions, run.engine.metrics()]


@pytest.mark.parametrize("select", ["select/cons_tres", "select/linear"])
@pytest.mark.parametrize("scheduler", ["builtin", "backfill", "easy", "greedy"])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_after_every_step(
    seed: int, scheduler: str, select: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits does so for the same reason, and what starts starts where it would."""
    config = _config(scheduler, select, seed)
    quick = _seen(config, seed)
    monkeypatch.setattr(Settled, "lets_wait", lambda self, arrivals: False)
    monkeypatch.setattr(Order, "names_none", lambda self, job: False)
    monkeypatch.setattr(Barred, "complete", lambda self: False)
    assert quick == _seen(config, seed)


@pytest.mark.parametrize("scheduler", ["builtin", "backfill"])
def test_a_job_without_a_rank_ends_the_ranks(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of no QOS comes: from then on the hook is asked which stands first, and a QOS may go before others."""
    config = _config(scheduler, "select/cons_tres", 4)
    monkeypatch.setattr(f"{__name__}.QOS", (*QOS, None))
    assert config.policy.preempt == "preempt/qos"
    for seed in range(2):
        quick = _seen(config, seed)
        with monkeypatch.context() as patched:
            patched.setattr(Settled, "lets_wait", lambda self, arrivals: False)
            assert quick == _seen(config, seed), seed


@pytest.mark.parametrize(
    ("scheduler", "cls", "name"),
    [
        ("builtin", Settled, "lets_wait"),
        ("builtin", Order, "names_none"),
        ("greedy", Barred, "open_among"),
    ],
)
def test_the_short_ways_are_taken(
    scheduler: str, cls: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the test above would compare a loop with itself."""
    said: list[bool] = []
    plain = getattr(cls, name)

    def noted(self: Any, *given: Job | Sequence[Any], **more: bool) -> Any:
        found = plain(self, *given, **more)
        said.append(bool(found))
        return found

    monkeypatch.setattr(cls, name, noted)
    for seed in range(8):
        _seen(_config(scheduler, "select/cons_tres", seed), seed)
    assert said.count(True) > 10

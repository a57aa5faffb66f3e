"""Hold EASY to a look at all who wait, where whoever has room is kept back by the first one's reservation."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, QosTable, SchedulerTable
from makeway.model import JobSpec, Seconds
from makeway.worlds.events import Command, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.schedulers.easy import Easy
from makeway_engine.schedulers.in_vain import InVain


def _config(preempt: str = "preempt/none", nodes: int = 6, big: int = 1) -> Config:
    mode = "off" if preempt == "preempt/none" else "requeue"
    return Config(
        node=(
            NodeTable(name=f"n[1-{nodes}]", cpus=4, memory_mb=8_000),
            *(NodeTable(name=f"big{at}", cpus=16, memory_mb=64_000) for at in range(big)),
        ),
        partition=(PartitionTable(name="all", default=True),),
        qos=(QosTable(name="low"), QosTable(name="high", preempt=("low",))),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",),
            preempt=preempt,
            preempt_mode=(mode,),
        ),
        scheduler=SchedulerTable(type="easy", clockwork={"preset": "ideal"}),
    )


def _job(job: int, at: float, run: float, cpus: int, limit: float) -> JobSpec:
    return JobSpec(
        id=str(job),
        submit_at=at,
        run_time=run,
        time_limit=limit,
        tasks=1,
        cpus_per_task=cpus,
        memory_mb_per_node=100,
    )


def _drawn(seed: int) -> list[JobSpec]:
    """Draw many small jobs, and few that want all of the largest node."""
    chance = Random(seed)
    found = []
    for at, instant in enumerate(sorted(chance.choice((0, chance.randrange(900))) for _ in range(120))):
        run = float(chance.randrange(1, 600))
        wide = chance.random() < 0.1
        nodes = chance.choice((1, 1, 1, 2)) if not wide else 1
        found.append(
            JobSpec(
                id=str(at + 1),
                qos=chance.choice(("low", "low", "high")),
                submit_at=float(instant),
                run_time=run,
                time_limit=chance.choice((run + 20, 2 * run + 900, 3_000.0, None)),
                min_nodes=nodes,
                max_nodes=nodes,
                tasks=nodes,
                cpus_per_task=16 if wide else chance.choice((1, 1, 2, 3)),
                memory_mb_per_node=chance.choice((100, 1_000, 3_000)),
            )
        )
    return found


def _commands(seed: int) -> list[tuple[Seconds, Event]]:
    chance = Random(seed)
    found: list[tuple[Seconds, Event]] = []
    for verb, value in (("hold", ""), ("release", ""), ("cancel", ""), ("change", "time_limit=900")) * 3:
        found.append(
            (float(chance.randrange(1500)), Command(verb, str(chance.randrange(1, 110)), None, value))
        )
    return sorted(found, key=lambda each: each[0])


def _seen(config: Config, jobs: list[JobSpec], commands: list[tuple[Seconds, Event]]) -> list[Any]:
    """Return where each job is after every step and why it waits, and all figures."""
    states: list[Any] = []

    def note(engine: Engine) -> None:
        there = [(job.id, job.state.value, job.reason, job.nodes) for job in engine.ledger.present]
        states.append((engine.ledger.now, there))

    run = replay(config, jobs, commands, Options(after_step=note))
    return [*states, run.engine.metrics()]


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let it be noted what each look at a reservation that begins anew says."""
    said: list[bool] = []
    plain = Easy._bars_still

    def noted(self: Easy, *given: Any) -> bool:
        said.append(plain(self, *given))
        return said[-1]

    monkeypatch.setattr(Easy, "_bars_still", noted)
    return said


@pytest.mark.parametrize("preempt", ["preempt/none", "preempt/qos"])
@pytest.mark.parametrize("seed", range(12))
def test_the_same_after_every_step(seed: int, preempt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left out who could start, whatever becomes of the reservation."""
    config, jobs = _config(preempt), _drawn(seed)
    commands = _commands(seed) if seed % 2 else []
    quick = _seen(config, jobs, commands)
    monkeypatch.setattr(InVain, "holds", lambda self: False)
    plain = _seen(config, jobs, commands)
    for step, (one, other) in enumerate(zip(quick, plain, strict=True)):
        assert one == other, step


def test_the_short_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the test above would compare a look with itself."""
    said = _noted(monkeypatch)
    for seed in range(12):
        _seen(_config(), _drawn(seed), [])
    assert said.count(True) > 10


def test_a_long_job_waits_beside_the_reservation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Job 5 fits on n3, which is kept for job 4; what ends on n1 and n2 is too little for it."""
    said = _noted(monkeypatch)
    jobs = [
        _job(1, 0, 5_000, 3, 6_000),
        _job(6, 0, 100, 1, 200),
        _job(2, 0, 5_000, 3, 6_000),
        _job(7, 0, 150, 1, 300),
        _job(3, 0, 400, 2, 400),  # on n3, beside two idle cores
        _job(4, 10, 100, 4, 200),  # wants all of a node: n3 at 400 s
        _job(5, 20, 1_000, 2, 2_000),  # would outlast that
    ]
    run = replay(_config(nodes=3, big=0), jobs)
    began = {key: history.first_start for key, history in run.recorder.histories.items()}
    assert (began["4"], began["5"]) == (400, 500)
    assert said == [True]

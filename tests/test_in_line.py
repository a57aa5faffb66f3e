"""Victims who are drawn one by one are those whom a search finds among all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, QosTable, SchedulerTable
from makeway.model import Choice, Job, JobSpec
from makeway.preemption import PreemptionTable
from makeway.worlds.events import Command, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.placing.in_line import InLine

QOS = ("low", "mid", "high")


def _config(seed: int) -> Config:
    chance = Random(seed)
    own = chance.choice(((), (), ("cancel",)))
    return Config(
        node=(
            NodeTable(name="n[1-6]", cpus=4, memory_mb=8_000, weight=chance.choice((1, 3))),
            NodeTable(name="big[1-2]", cpus=8, memory_mb=16_000, weight=2),
        ),
        partition=(PartitionTable(name="all", default=True), PartitionTable(name="few", nodes="n[2-4]")),
        qos=(
            QosTable(name="low", priority=chance.choice((0, 5)), preempt_mode=own),
            QosTable(name="mid", preempt=("low",), priority=chance.choice((0, 3))),
            QosTable(name="high", preempt=("low", "mid")),
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",),
            preempt="preempt/qos",
            preempt_mode=(chance.choice(("requeue", "cancel", "checkpoint")),),
            preemption=PreemptionTable(
                reorder_count=chance.choice((0, 1, 1, 2)), strict_order=chance.random() < 0.4
            ),
        ),
        scheduler=SchedulerTable(
            type=chance.choice(("easy", "greedy", "builtin")),
            clockwork={"preset": "ideal", "requeue_delay": chance.choice((0.0, 5.0))},
        ),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    found = []
    for at, instant in enumerate(sorted(chance.randrange(1500) for _ in range(150))):
        nodes = chance.choice((1, 1, 1, 1, 1, 1, 2, 3))
        found.append(
            JobSpec(
                id=str(at + 1),
                qos=chance.choice(("low", "low", "mid", "high")),
                partitions=(chance.choice(("all", "all", "all", "few")),),
                submit_at=float(instant),
                run_time=float(chance.randrange(1, 400)),
                min_nodes=nodes,
                max_nodes=nodes,
                tasks=nodes,
                cpus_per_task=chance.choice((1, 1, 2, 4)),
                memory_mb_per_node=chance.choice((500, 4_000, 7_000)),
            )
        )
    return found


def _commands(seed: int) -> list[tuple[float, Event]]:
    chance = Random(seed)
    verbs = ("cancel", "suspend", "resume", "requeue") if seed % 3 == 2 else ("cancel", "requeue")
    found: list[tuple[float, Event]] = [
        (float(chance.randrange(1500)), Command(verb, str(chance.randrange(1, 150)))) for verb in verbs * 3
    ]
    return sorted(found, key=lambda each: each[0])


def _compared(engine: Engine, found: list[Sequence[str]]) -> None:
    """Let the search say the same whenever somebody was drawn."""
    placer, own = engine.placer, engine.placer.in_line.search

    def both(job: Job, nodes: int) -> Any:
        drawn = own(job, nodes)
        if drawn is None:
            return None
        choice, some, room = drawn
        candidates = placer.order.candidates(job)
        assert candidates.jobs[: len(some.jobs)] == some.jobs
        assert candidates.modes[: len(some.modes)] == some.modes
        plain, unjudged = placer.search.choose(job, nodes, candidates)
        assert isinstance(plain, Choice)
        for name in ("allocation", "overlays", "why", "alternative"):
            assert repr(getattr(plain.placement, name)) == repr(getattr(choice.placement, name))
        assert plain.victims == choice.victims
        assert placer.search.room(job, plain, candidates) == (
            room.nodes,
            list(room.victims),
            list(room.modes),
            list(room.reasons),
        )
        assert not (unjudged and engine.ledger.kept_out(job))
        found.append([victim.id for victim in room.victims])
        return drawn

    placer.in_line.search = both  # type: ignore[method-assign]


def test_the_same_go() -> None:
    """In the same order, and the job starts at the same place."""
    found: list[Sequence[str]] = []
    for seed in range(24):
        replay(
            _config(seed), _jobs(seed), _commands(seed), Options(started=lambda each: _compared(each, found))
        )
    assert len(found) > 300
    assert sum(len(victims) > 1 for victims in found) > 50


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_decided_otherwise(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preemptions and figures are those of a run in which each search is given all candidates."""
    drawn = replay(_config(seed), _jobs(seed), _commands(seed))
    monkeypatch.setattr(InLine, "search", lambda self, job, nodes: None)
    plain = replay(_config(seed), _jobs(seed), _commands(seed))
    assert drawn.recorder.preemptions == plain.recorder.preemptions
    assert drawn.summary() == plain.summary()


@pytest.mark.parametrize(
    ("strict", "gone"),
    [
        pytest.param(False, {"c", "d"}, id="by the chosen node: b may stay"),
        pytest.param(True, {"c", "d"}, id="strict_order"),
    ],
)
def test_only_those_on_the_chosen_node_go(strict: bool, gone: set[str]) -> None:
    """Candidates b on n1, c and d on n2: two cores are wanted, and n2 is the first to have them.

    An urgent job has the other core of n1, and nobody displaces it.
    """
    config = Config(
        node=(NodeTable(name="n[1-2]", cpus=2, memory_mb=1_000),),
        partition=(PartitionTable(name="all", default=True),),
        qos=(QosTable(name="low"), QosTable(name="high", preempt=("low",))),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",),
            preempt="preempt/qos",
            preempt_mode=("cancel",),
            preemption=PreemptionTable(strict_order=strict),
        ),
        scheduler=SchedulerTable(type="greedy", clockwork="ideal"),
    )
    jobs = [
        _small("a", 0.0, "high"),
        _small("b", 1.0, "low"),
        _small("c", 2.0, "low"),
        _small("d", 3.0, "low"),
        _small("p", 4.0, "high", cores=2),
    ]
    found: list[Sequence[str]] = []
    run = replay(config, jobs, (), Options(started=lambda engine: _compared(engine, found)))
    assert [set(victims) for victims in found] == [gone]
    assert {each.victim for each in run.recorder.preemptions} == gone


def _small(name: str, at: float, qos: str, cores: int = 1) -> JobSpec:
    return JobSpec(
        id=name,
        submit_at=at,
        qos=qos,
        run_time=100.0,
        tasks=1,
        cpus_per_task=cores,
        min_nodes=1,
        max_nodes=1,
        memory_mb_per_node=100,
    )

"""Hold `greedy` that knows for whom nodes have gained room to a glance at all who wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, QosTable, SchedulerTable
from makeway.model import JobSpec, Seconds
from makeway.record import to_json
from makeway.worlds.events import Command, Event
from makeway_app.replay import Options, replay
from makeway_engine.schedulers.barred import Barred
from makeway_engine.schedulers.gains import Gains
from makeway_engine.schedulers.greedy import Greedy
from makeway_engine.schedulers.shapes import Shape, glance


def _config(seed: int = 0, preempt: str = "preempt/qos", mode: str = "requeue", nodes: int = 6) -> Config:
    preset = Random(seed).choice(("ideal", "ideal", "slurm"))
    return Config(
        node=(
            NodeTable(name=f"n[1-{nodes}]", cpus=4, memory_mb=8_000),
            NodeTable(name="big", cpus=16, memory_mb=64_000),
        ),
        partition=(
            PartitionTable(name="all", default=True),
            PartitionTable(name="few", nodes="n[1-2]" if nodes > 1 else "n1"),
        ),
        qos=(QosTable(name="low"), QosTable(name="high", preempt=("low",))),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",),
            preempt=preempt,
            preempt_mode=("off" if preempt == "preempt/none" else mode,),
        ),
        scheduler=SchedulerTable(type="greedy", clockwork={"preset": preset}),
    )


def _drawn(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    found = []
    for at, instant in enumerate(sorted(chance.randrange(700) for _ in range(130))):
        run = float(chance.randrange(1, 500))
        nodes = chance.choice((1,) * 6 + (2, 3))
        found.append(
            JobSpec(
                id=str(at + 1),
                qos=chance.choice(("low", "low", "high")),
                partitions=(chance.choice(("all", "all", "few")) if nodes < 3 else "all",),
                submit_at=float(instant),
                run_time=run,
                time_limit=chance.choice((run + 20, 2 * run + 900, None)),
                min_nodes=nodes,
                max_nodes=chance.choice((nodes, nodes, nodes, None)),
                tasks=nodes,
                cpus_per_task=chance.choice((1, 1, 2, 3, 4)),
                memory_mb_per_node=chance.choice((100, 1_000, 3_000)),
                required_nodes=("n1",) if nodes == 1 and chance.random() < 0.03 else (),
            )
        )
    return found


def _commands(seed: int) -> list[tuple[Seconds, Event]]:
    chance = Random(seed)
    found: list[tuple[Seconds, Event]] = []
    for verb, value in (("hold", ""), ("release", ""), ("cancel", ""), ("change", "qos=high")) * 3:
        job = str(chance.randrange(1, 110))
        found.append((float(chance.randrange(900)), Command(verb, job, None, value)))
    return sorted(found, key=lambda each: each[0])


PREEMPT = [("preempt/qos", "requeue"), ("preempt/qos", "cancel")]


@pytest.mark.parametrize(("preempt", "mode"), PREEMPT)
@pytest.mark.parametrize("seed", range(8))
def test_a_glance_sees_the_same(seed: int, preempt: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it is known who has room, a glance at all shapes sees room for the same, and for nobody else."""
    said: Counter[str] = Counter()
    plain = Greedy._able

    def compared(self: Greedy, barred: Barred) -> Sequence[Shape] | None:
        newcomers = isinstance(self._gains, Gains) and bool(self._gains._newcomers)
        able = plain(self, barred)
        if able is not None:
            seen = glance(self._futile.glance, barred.behind(None))
            assert set(map(id, able)) == set(map(id, seen))
            assert len(able) == len(seen)
            said["newcomers" if newcomers else "some" if able else "nobody"] += 1
        return able

    again = Greedy._still_able

    def compared_again(self: Greedy, able: Sequence[Shape]) -> Sequence[Shape]:
        still = again(self, able)
        assert set(map(id, still)) == set(map(id, glance(self._futile.glance, able)))
        said["again"] += isinstance(self._gains, Gains) and not self._gains._glanced_at
        return still

    monkeypatch.setattr(Greedy, "_able", compared)
    monkeypatch.setattr(Greedy, "_still_able", compared_again)
    replay(_config(seed, preempt, mode), _drawn(seed), _commands(seed) if seed % 2 else [])
    assert min(said["newcomers"], said["some"], said["nobody"], said["again"]) > 5


def _record(config: Config, jobs: list[JobSpec], commands: list[tuple[Seconds, Event]]) -> list[str]:
    lines: list[str] = []
    replay(config, jobs, commands, Options(sink=lambda line: lines.append(to_json(line))))
    return lines


def _figures(config: Config, jobs: list[JobSpec], commands: list[tuple[Seconds, Event]]) -> str:
    return repr(replay(config, jobs, commands).summary())


@pytest.mark.parametrize("seed", range(6))
def test_the_same_record(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a record and without one it comes to the same as where a glance has to tell each time."""
    case = _config(seed), _drawn(seed), _commands(seed) if seed % 2 else []
    quick, figures = _record(*case), _figures(*case)
    monkeypatch.setattr(Greedy, "_able", lambda self, barred: None)
    plain = _record(*case)
    for line, (one, other) in enumerate(zip(quick, plain, strict=True)):
        assert one == other, line
    assert figures == _figures(*case)


def _job(job: int, at: float, run: float, cpus: int) -> JobSpec:
    return JobSpec(
        id=str(job),
        qos="low",
        submit_at=at,
        run_time=run,
        tasks=1,
        cpus_per_task=cpus,
        memory_mb_per_node=100,
    )


def test_three_cores_are_room_for_two_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """When job 2 ends, two of three who wait have room on its cores; nobody has it on the one that job 6 leaves."""
    named: list[list[str]] = []
    plain = Greedy._able

    def noted(self: Greedy, barred: Barred) -> Sequence[Shape] | None:
        able = plain(self, barred)
        if able:
            named.append(sorted(shape.entries[0][1].id for shape in able))
        return able

    monkeypatch.setattr(Greedy, "_able", noted)
    jobs = [
        _job(1, 0, 1_000, 16),  # all of the big node
        _job(2, 0, 500, 3),
        _job(3, 0, 100, 1),  # beside it
        _job(4, 10, 100, 4),
        _job(5, 20, 100, 3),
        _job(8, 25, 100, 2),
        _job(6, 30, 50, 1),  # after job 3
        _job(7, 160, 1_000, 1),
    ]
    run = replay(_config(nodes=1), jobs)
    began = {key: history.first_start for key, history in run.recorder.histories.items()}
    assert (began["6"], began["7"], began["5"], began["8"]) == (100, 160, 500, 600)
    assert named[0] == ["5", "8"]

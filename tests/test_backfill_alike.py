"""Hold backfill that remembers what it found of jobs alike to one that looks at each job by itself."""

from __future__ import annotations

import gc
import math
import weakref
from collections import Counter
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, QosTable, SchedulerTable
from makeway.model import Forecast, JobSpec
from makeway.record import to_json
from makeway_app.replay import Options, replay
from makeway_backfill import Backfill, Sliding
from makeway_backfill.behind import Behind, _Kinds
from makeway_backfill.seen import Spans
from makeway_select_cons_tres.selector import ConsSelector
from makeway_select_cons_tres.timeline import Enough, Timeline
from makeway_select_linear.selector import LinearSelector

Found = tuple[float, Forecast, int] | None


def _config(seed: int) -> Config:
    """Return ten nodes; every other site lets one partition preempt, each third shares nodes."""
    preempts, shares = seed % 2 == 0, seed % 3 == 0
    return Config(
        node=(
            NodeTable(name="n[1-6]", cpus=4, memory_mb=8_000, features=("old",)),
            NodeTable(name="n[7-10]", cpus=4, memory_mb=16_000),
        ),
        partition=(
            PartitionTable(name="low", default=True, oversubscribe="YES:2" if shares else "NO"),
            PartitionTable(name="high", priority_tier=2, nodes="n[3-10]"),
        ),
        policy=PolicyTable(
            select="select/linear",
            preempt="preempt/partition_prio" if preempts else "preempt/none",
            preempt_mode=("requeue",) if preempts else ("off",),
        ),
        scheduler=SchedulerTable(
            type="backfill",
            clockwork={"bf_window": (86_400.0, 900.0)[seed % 4 == 3], "bf_resolution": (1.0, 60.0)[seed % 2]},
        ),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    found = []
    for at in range(60):
        run = chance.randint(5, 300)
        nodes = chance.choice((1, 1, 2, 3, 5, 8))
        found.append(
            JobSpec(
                id=str(at + 1),
                partitions=("high" if chance.random() < 0.2 else "low",),
                user=chance.choice(("u1", "u2", "u3")),
                submit_at=float(chance.choice((0, chance.randrange(600)))),
                run_time=float(run),
                time_limit=None if chance.random() < 0.05 else float(60 * math.ceil(run / 60)),
                min_nodes=nodes,
                max_nodes=nodes + 1 if chance.random() < 0.1 else None,
                cpus_per_task=chance.choice((1, 4)),
                features="old" if chance.random() < 0.1 and nodes < 6 else "",
                oversubscribe=chance.random() < 0.3,
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


@pytest.mark.parametrize("seed", range(24))
def test_what_is_found_is_what_a_look_at_every_instant_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each try: when, on which nodes, and among which the job may choose."""
    quick, alike, compared = Backfill.earliest, Backfill.alike, Counter[bool]()

    def both(self: Backfill, *given: Any) -> Found:
        monkeypatch.setattr(Backfill, "alike", lambda *_: None)
        plain = quick(self, *given)
        monkeypatch.setattr(Backfill, "alike", alike)
        compared[alike(self, given[0]) is not None] += 1
        found = quick(self, *given)
        assert _from_now_on(found, self._ledger.now) == _from_now_on(plain, self._ledger.now)
        return found

    monkeypatch.setattr(Backfill, "earliest", both)
    monkeypatch.setattr(Behind, "begin", lambda *_: False)  # all that wait are planned for
    replay(_config(seed), _jobs(seed), (), Options(keep=False))
    assert compared.total() > 100
    if seed % 3:  # where nodes are shared, jobs often matter one by one
        assert compared[True] > compared.total() / 2, compared


def _from_now_on(found: Found, now: float) -> Found:
    """A forecast that is kept from an earlier pass may say that the job could have started by then."""
    if found is None:
        return None
    at, forecast, nodes = found
    return at, attrs.evolve(forecast, at=max(forecast.at, now)), nodes


@pytest.mark.slow
def test_fewer_instants_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than two thirds as many about a deep queue."""
    site = Config(
        node=(NodeTable(name="n[1-40]"),),
        partition=(PartitionTable(name="low", default=True),),
        scheduler=SchedulerTable(type="backfill"),
    )
    chance = Random(1)
    jobs = [
        JobSpec(
            id=str(at + 1),
            submit_at=0.0,
            run_time=float(chance.randint(60, 600)),
            time_limit=float(60 * chance.randint(10, 20)),
            min_nodes=chance.choice((1, 2, 4, 8)),
        )
        for at in range(150)
    ]
    looked = 0
    available = Sliding.available

    def noted(self: Sliding, start: float) -> int:
        nonlocal looked
        looked += 1
        return available(self, start)

    def count() -> int:
        nonlocal looked
        looked = 0
        replay(site, jobs, (), Options(keep=False))
        return looked

    monkeypatch.setattr(Sliding, "available", noted)
    monkeypatch.setattr(Behind, "begin", lambda *_: False)  # else most of those that wait are not looked at
    quick = count()
    monkeypatch.setattr(LinearSelector, "forecast_key", lambda *_: None)
    assert quick * 3 < count() * 2


@pytest.mark.parametrize("seed", range(20))
def test_spans_are_the_union_of_what_was_added(seed: int) -> None:
    """An instant in one of them leads to the first that is in none."""
    chance = Random(seed)
    spans, taken = Spans(), set[int]()
    for _ in range(30):
        begin = chance.randrange(60)
        end = begin + chance.randint(1, 9)
        spans.add(float(begin), float(end))
        taken |= set(range(begin, end))
        for at in range(75):
            over = next(later for later in range(at, 100) if later not in taken)
            assert spans.over(float(at)) == over


@pytest.mark.parametrize("seed", range(8))
def test_a_pass_that_ends_early_starts_the_same_jobs_as_a_whole_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same jobs at the same instants, with the same reasons; fewer of those that wait are looked at."""
    tried = 0
    whole = Backfill._try

    def noted(self: Backfill, *given: Any) -> bool:
        nonlocal tried
        tried += 1
        return whole(self, *given)

    monkeypatch.setattr(Backfill, "_try", noted)
    monkeypatch.setattr(_Kinds, "many", 1)
    lines, few = _record(_config(seed), _jobs(seed)), tried
    monkeypatch.setattr(Behind, "begin", lambda *_: False)
    expected, many = _record(_config(seed), _jobs(seed)), tried - few
    assert lines == expected
    assert few < many


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_idle_nodes_are_kept_as_behind_a_whole_plan(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are wakes backfill for begin times, with Slurm's periods: the same however a pass is made."""
    passes: list[tuple[float, bool]] = []
    run, chance = Backfill.run, Random(seed)
    config, jobs = _deep(seed)
    given = config.scheduler.clockwork
    assert not isinstance(given, str)
    scheduler = attrs.evolve(config.scheduler, clockwork={**given, "preset": "slurm"})
    config = attrs.evolve(config, scheduler=scheduler)
    jobs = [
        attrs.evolve(
            job, begin_at=job.submit_at + 5 + chance.randrange(4_000) if chance.random() < 0.3 else None
        )
        for job in jobs
    ]

    def noted(self: Backfill) -> None:
        run(self)
        passes.append((self._ledger.now, self.keeps_idle))

    monkeypatch.setattr(Backfill, "run", noted)
    monkeypatch.setattr(_Kinds, "many", 1)
    lines, quick = _record(config, jobs), [*passes]
    passes.clear()
    monkeypatch.setattr(Behind, "begin", lambda *_: False)
    assert lines == _record(config, jobs)
    assert quick == passes
    assert {keeps for _, keeps in passes} == {False, True}


def _record(config: Config, jobs: list[JobSpec]) -> list[str]:
    """Return what a replay tells of each job and decision."""
    lines: list[str] = []
    replay(config, jobs, (), Options(sink=lambda line: lines.append(to_json(line))))
    return lines


def _deep(seed: int) -> tuple[Config, list[JobSpec]]:
    """Return a site that is soon full, and jobs that wait behind each other, most of them for one node."""
    chance = Random(seed)
    nodes = chance.choice((6, 12, 20))
    config = Config(
        node=(
            NodeTable(name=f"n[1-{nodes // 2}]", cpus=8, memory_mb=8_000, features=("old",)),
            NodeTable(
                name=f"n[{nodes // 2 + 1}-{nodes}]", cpus=8, memory_mb=16_000, weight=1 + 2 * (seed % 2)
            ),
        ),
        partition=(
            PartitionTable(name="low", default=True),
            PartitionTable(name="high", priority_tier=2, nodes=f"n[{nodes // 3}-{nodes}]"),
        ),
        scheduler=SchedulerTable(
            type="backfill",
            clockwork={
                "bf_max_job_test": chance.choice((1_000_000, 1_000_000, 40)),
                "bf_window": chance.choice((86_400.0, 1_800.0)),
                "bf_resolution": chance.choice((1.0, 60.0)),
            },
        ),
    )
    jobs = []
    for at in range(100):
        run = chance.randint(5, 2_000)
        size = chance.choice((1, 1, 1, 2, 2, 3))
        jobs.append(
            JobSpec(
                id=str(at + 1),
                partitions=("high" if chance.random() < 0.15 else "low",),
                submit_at=float(chance.choice((0, chance.randrange(2), chance.randrange(4_000)))),
                run_time=float(run),
                time_limit=None
                if chance.random() < 0.02
                else 60.0 * math.ceil(run * chance.uniform(1, 2) / 60),
                min_nodes=size,
                features="old" if chance.random() < 0.1 else "",
            )
        )
    return config, sorted(jobs, key=lambda job: job.submit_at)


def _arrays(seed: int) -> tuple[Config, list[JobSpec]]:
    """Return the same with tasks of arrays among them, some of which may only run so many at a time."""
    config, jobs = _deep(seed)
    chance = Random(seed)
    clockwork = {"bf_resolution": 1.0, "bf_max_job_array_resv": chance.choice((1_000_000, 3, 2))}
    rules = {"backfill_plans_beyond_array_limit": chance.random() < 0.7}
    scheduler = attrs.evolve(config.scheduler, clockwork=clockwork, rules=rules)
    for job in chance.sample(jobs, 8):
        limit = chance.choice((None, 1, 2, 3))
        array: dict[str, Any] = {"array_id": job.id, "array_limit": limit, "partitions": job.partitions}
        jobs += [
            attrs.evolve(job, id=f"{job.id}_{task}", array_task=task, **array)
            for task in range(2, chance.randint(3, 9))
        ]
        jobs[jobs.index(job)] = attrs.evolve(job, array_task=1, **array)
    return attrs.evolve(config, scheduler=scheduler), sorted(jobs, key=lambda job: job.submit_at)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_tasks_of_arrays_are_planned_for_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same record where those between are not planned for, and where all are."""
    monkeypatch.setattr(_Kinds, "many", 1)
    quick = _record(*_arrays(seed))
    monkeypatch.setattr(Behind, "begin", lambda *_: False)
    assert quick == _record(*_arrays(seed))


def _busy(seed: int) -> tuple[Config, list[JobSpec]]:
    """Return a site of cores and memory with Slurm's clocks, where jobs of many sizes wait in a few classes."""
    chance = Random(seed)
    by_qos = seed % 3 == 1
    config = Config(
        node=(
            NodeTable(name="n[1-6]", sockets=2, cores_per_socket=4, memory_mb=16_000),
            NodeTable(name="n[7-9]", cpus=4, memory_mb=8_000, features=("old",), weight=1 + seed % 2),
        ),
        partition=(
            PartitionTable(name="low", default=True, oversubscribe=chance.choice(("NO", "NO", "FORCE:2"))),
            PartitionTable(name="high", priority_tier=2, nodes="n[2-9]"),
        ),
        qos=(QosTable(name="normal"), QosTable(name="urgent", priority=10, preempt=("normal",))),
        policy=PolicyTable(
            select="select/cons_tres",
            preempt="preempt/qos" if by_qos else ("preempt/partition_prio", "preempt/none")[seed % 3 > 1],
            preempt_mode=("off",) if seed % 3 > 1 else ("requeue",),
        ),
        scheduler=SchedulerTable(
            type="backfill",
            rules={"forecast_in_batches": True, "forecast_ends_at_relevant_job": seed % 2 == 0},
            clockwork={
                "preset": "slurm",
                "bf_window": chance.choice((86_400.0, 1_800.0)),
                "bf_resolution": chance.choice((1.0, 60.0)),
            },
        ),
    )
    jobs: list[JobSpec] = []
    while len(jobs) < 90:
        like: dict[str, Any] = {
            "partitions": ("high" if chance.random() < 0.3 else "low",),
            "qos": "urgent" if by_qos and chance.random() < 0.3 else "normal",
            "submit_at": float(chance.randrange(3_000)),
            "time_limit": chance.choice((300.0, 600.0, 1_800.0, 3_600.0, None)),
            "tasks": chance.choice((1, 1, 2, 3, 4, 8, 12, 20)),
            "memory_mb_per_cpu": chance.choice((None, 500, 2_000)),
            "features": "old" if chance.random() < 0.1 else "",
        }
        if like["features"]:
            like["tasks"] = chance.choice((1, 4))
        for _ in range(chance.choice((1, 1, 4, 8))):
            run = chance.uniform(5, like["time_limit"] or 900)
            jobs.append(JobSpec(id=str(len(jobs) + 1), run_time=float(round(run)), **like))
    return config, sorted(jobs, key=lambda job: job.submit_at)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_jobs_that_are_alike_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same record if each job is looked at by itself, and all of them in every pass."""
    quick = _record(*_busy(seed))
    assert any('"RUNNING"' in line for line in quick)
    monkeypatch.setattr(ConsSelector, "forecast_key", lambda *_: None)
    monkeypatch.setattr(Behind, "begin", lambda *_: False)
    assert quick == _record(*_busy(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 24, 4))
def test_counting_first_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same record if each moment is tried, whatever is free by then."""
    quick = _record(*_busy(seed))
    monkeypatch.setattr(Enough, "after", lambda *_: True)
    assert quick == _record(*_busy(seed))


def test_what_was_foreseen_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replays run without a collector of garbage: nothing that a pass leaves behind may hold itself."""
    made: list[weakref.ref[Timeline]] = []
    begin = Timeline.__init__

    def noted(self: Timeline, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Timeline, "__init__", noted)
    gc.disable()
    try:
        _record(*_busy(1))
        kept = sum(each() is not None for each in made)
    finally:
        gc.enable()
    assert len(made) > 50
    assert kept <= 4, kept

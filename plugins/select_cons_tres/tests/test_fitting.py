"""What is kept between passes, and the shorter way for jobs of one node, give what looking at everything gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
import pytest

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.config import Config
from makeway.model import Job, JobSpec
from makeway_engine.schedulers.barred import Barred
from makeway_engine.schedulers.futile import FutileTries
from makeway_engine.schedulers.shapes import Shape
from makeway_select_cons_tres import known
from makeway_select_cons_tres.beside import Beside
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.fitting import Fitting
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.selector import ConsSelector
from makeway_testing.builders import config, node
from makeway_testing.scenario import replay_table

SETTINGS: dict[str, Any] = {
    "select": "select/cons_tres",
    "preempt": "preempt/partition_prio",
    "preempt_mode": "requeue",
    "partitions": {"low": {"default": True}, "high": {"priority_tier": 2, "nodes": "n[2-5]"}},
}


def jobs(seed: int, count: int = 60) -> list[JobSpec]:
    """Draw jobs of one node and of several, with and without memory, that fill the cluster."""
    random = Random(seed)
    drawn = []
    for at in range(count):
        nodes = random.choice((1, 1, 1, 1, 2))
        spec: dict[str, Any] = {"min_nodes": nodes, "max_nodes": nodes}
        if random.random() < 0.8:
            spec["tasks"] = nodes * random.randint(1, 6)
        if random.random() < 0.2:
            spec["cpus_per_task"] = random.randint(1, 2)
        if random.random() < 0.15:
            spec["tasks_per_node"] = random.randint(1, 6)
        memory = random.choice(("memory_mb_per_node", "memory_mb_per_node", "memory_mb_per_cpu"))
        spec[memory] = random.choice((0, 300, 900)) if memory == "memory_mb_per_node" else 150
        if random.random() < 0.1:
            spec = {"min_nodes": 1, "max_nodes": 1, "min_cpus_per_node": random.randint(1, 6)}
        drawn.append(
            JobSpec(
                id=f"j{at}",
                partitions=(random.choice(("low", "low", "high")),),
                submit_at=float(random.randint(0, 200)),
                run_time=float(random.randint(5, 60)),
                time_limit=float(random.randint(60, 90)),
                **spec,
            )
        )
    return sorted(drawn, key=lambda spec: spec.submit_at)


def built(seed: int, scheduler: str, **more: Any) -> Config:
    """Return six nodes of two kinds, some of them preferred to others."""
    small = node("n[1-3]", sockets=2, cores_per_socket=3, memory_mb=1000)
    large = node("n[4-6]", sockets=2, cores_per_socket=4, memory_mb=2000, weight=1 + seed % 3)
    parameters = ("CR_Core_Memory", "CR_CPU_Memory", "CR_Core")[seed % 3]
    return config((small, large), SETTINGS, scheduler=scheduler, select_parameters=parameters, **more)


@pytest.mark.parametrize("scheduler", ["easy", "builtin", "greedy"])
@pytest.mark.parametrize("seed", range(6))
def test_the_shorter_way_changes_nothing(scheduler: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same record with every job put through the whole test, and every node looked at each time."""
    chosen, specs = built(seed, scheduler), jobs(seed)
    quick = replay_table(specs, config=chosen)
    assert any(kind.cpus_on_one_node for kind in kinds_of(quick.engine.selector))
    monkeypatch.setattr(known, "cpus_on_one_node", lambda *_: None)
    monkeypatch.setattr(Fitting, "nodes", lambda self, kind: counted(self._books, kind))
    thorough = replay_table(specs, config=chosen)
    assert not any(kind.cpus_on_one_node for kind in kinds_of(thorough.engine.selector))
    assert quick.record == thorough.record


def deeds(record: str) -> list[str]:
    """Return the lines of a record that say what became of jobs, without why they waited."""
    return [line for line in without_waits(record) if json.loads(line)["kind"] != "reason"]


def without_waits(record: str) -> list[str]:
    """Return the lines of a record but for decisions to go on waiting."""
    lines = record.splitlines()
    kept = [line for line in lines if json.loads(line).get("outcome") != "waits"]
    assert len(lines) > len(kept) > 100
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["requeue", "cancel", "suspend,gang"])
@pytest.mark.parametrize("seed", range(6))
def test_who_is_passed_over_would_be_tried_in_vain(
    mode: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same record with all tried whenever something was given back."""
    random = Random(seed)
    specs = [attrs.evolve(spec, qos=random.choice(("low", "mid", "high"))) for spec in jobs(seed, 100)]
    qos = {"low": {}, "mid": {"preempt": "low"}, "high": {"preempt": "low,mid", "preempt_mode": "cancel"}}
    policy: dict[str, Any] = {"preempt": "preempt/qos", "preempt_mode": mode, "qos": qos}
    if seed % 2:
        policy["exempt_time"] = 20.0
    chosen = built(seed, "greedy", **policy)
    passed_over = 0
    vain = FutileTries.vain

    def counting(self: FutileTries, waiting: Sequence[Job], kind_of: Callable[[Job], Any]) -> set[int]:
        nonlocal passed_over
        found = vain(self, waiting, kind_of)
        passed_over += len(found)
        return found

    among = Barred.open_among

    def counting_shapes(self: Barred, shapes: Sequence[Shape]) -> Sequence[Shape]:
        nonlocal passed_over
        found = among(self, shapes)
        passed_over += sum(bool(shape.entries) for shape in shapes) - len(found)
        return found

    monkeypatch.setattr(FutileTries, "vain", counting)
    monkeypatch.setattr(Barred, "open_among", counting_shapes)
    quick = replay_table(specs, config=chosen)
    monkeypatch.setattr(FutileTries, "vain", lambda self, waiting, kind_of: set())
    monkeypatch.setattr(Barred, "complete", lambda self: False)
    assert quick.record == replay_table(specs, config=chosen).record
    assert passed_over > 50 or mode == "suspend,gang"


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["easy", "builtin", "greedy"])
@pytest.mark.parametrize("seed", range(4))
def test_who_lacks_room_beside_its_own_row_would_be_tried_in_vain(
    scheduler: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gang, too: the same record with all tried, but for why a job waits."""
    partitions = {
        "low": {"default": True},
        "high": {"priority_tier": 2, "nodes": "n[2-5]", "preempt_mode": "off" if seed % 2 else None},
        "beside": {"nodes": "n[3-6]"},
    }
    drawn = Random(seed)
    specs = [
        attrs.evolve(spec, partitions=(drawn.choice(("low", "low", "high", "beside")),))
        for spec in jobs(seed, 100)
    ]
    policy: dict[str, Any] = {"preempt_mode": "suspend,gang", "partitions": partitions}
    if seed % 2:
        policy["exempt_time"] = 20.0
    chosen = built(seed, scheduler, **policy)
    dropped = 0
    has_room = Beside.has_room

    def counting(self: Beside, kind: Kind, nodes: NodeBits) -> bool:
        nonlocal dropped
        found = has_room(self, kind, nodes)
        dropped += not found
        return found

    monkeypatch.setattr(Beside, "has_room", counting)
    quick = replay_table(specs, config=chosen)
    monkeypatch.setattr(Beside, "has_room", lambda self, kind, nodes: True)
    assert deeds(quick.record) == deeds(replay_table(specs, config=chosen).record)
    assert dropped > 20 or scheduler != "easy"


def kinds_of(found: Any) -> list[Kind]:
    """Return the kinds of jobs that a selector was asked about."""
    assert isinstance(found, ConsSelector)
    return list(found._kinds.values())


@pytest.mark.parametrize("seed", range(3))
def test_the_nodes_that_fit_follow_the_books(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every question they are those with the CPUs and the memory, counted anew."""
    asked = 0
    nodes = Fitting.nodes

    def checked(self: Fitting, kind: Kind) -> NodeBits:
        nonlocal asked
        asked += 1
        found = nodes(self, kind)
        assert found == counted(self._books, kind)
        return found

    monkeypatch.setattr(Fitting, "nodes", checked)
    replay_table(jobs(seed, 120), config=built(seed, "easy"))
    assert asked > 200


def counted(books: Books, kind: Kind) -> NodeBits:
    """Look at every node."""
    fitting = []
    for index in bitmap.indices(kind.able & kind.request.partition.nodes):
        free = books.layout.full[index] & ~books.busy[index]
        left = books.layout.memory[index] - books.memory[index]
        if kind.idle.cpus_of(index, free, books) < kind.wanted or left < kind.least_memory:
            continue
        if (kind.request.whole and books.busy[index]) or (
            kind.request.memory_per_node == 0 and books.memory[index]
        ):
            continue
        fitting.append(index)
    return bitmap.of(fitting)

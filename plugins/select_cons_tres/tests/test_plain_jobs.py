"""The short ways for plain jobs of one node come to what the step-by-step ways come to, at every step."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import attrs
import pytest

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.config import Config
from makeway.model import JobSpec
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.idle import IdleCores
from makeway_select_cons_tres.kinds import Wish
from makeway_select_cons_tres.steps import CoreTest, Shortage
from makeway_testing.builders import config, node
from makeway_testing.scenario import replay_table

QOS: dict[str, Any] = {
    "low": {},
    "mid": {"preempt": "low"},
    "high": {"preempt": "low,mid", "preempt_mode": "cancel"},
}
PARTITIONS: dict[str, Any] = {"all": {"default": True}, "some": {"nodes": "n[2-5]", "priority_tier": 2}}


def site(seed: int, scheduler: str) -> Config:
    """Draw a cluster of nodes of two kinds, some of them preferred to others, and its rules of preemption."""
    small = node("n[1-3]", sockets=2, cores_per_socket=3, memory_mb=1000)
    large = node("n[4-6]", sockets=2, cores_per_socket=4, memory_mb=2000, weight=1 + seed % 3)
    chance = Random(seed)
    settings: dict[str, Any] = {
        "select": "select/cons_tres",
        "partitions": PARTITIONS,
        "preempt": chance.choice(("preempt/qos", "preempt/qos", "preempt/partition_prio")),
        "preempt_mode": chance.choice(("requeue", "cancel", "requeue", "suspend,gang")),
        "reorder_count": chance.choice((0, 1, 1, 2)),
        "youngest_first": chance.random() < 0.3,
        "strict_order": chance.random() < 0.2,
        "qos": QOS,
    }
    if chance.random() < 0.3:
        settings["exempt_time"] = 20.0
    parameters = ("CR_Core_Memory", "CR_Core", "CR_CPU_Memory", "CR_Socket_Memory")[seed % 4]
    return config((small, large), settings, scheduler=scheduler, select_parameters=parameters)


def jobs(seed: int, count: int = 120) -> list[JobSpec]:
    """Draw jobs that fill the cluster, most of them of one node, with and without memory."""
    chance = Random(seed)
    drawn = []
    for at in range(count):
        nodes = chance.choice((1, 1, 1, 1, 1, 2))
        spec: dict[str, Any] = {"min_nodes": nodes, "max_nodes": nodes, "tasks": nodes * chance.randint(1, 7)}
        if chance.random() < 0.1:
            spec["tasks_per_node"] = chance.randint(1, 6)
        if chance.random() < 0.1:
            spec["cpus_per_task"] = 2
        if chance.random() < 0.1:
            spec["excluded_nodes"] = ("n2", "n5")
        if chance.random() < 0.05:
            spec["sockets_per_node"] = 2
        memory = "memory_mb_per_cpu" if chance.random() < 0.1 else "memory_mb_per_node"
        spec[memory] = chance.choice((0, 100, 300, 300, 900, 1500)) if memory != "memory_mb_per_cpu" else 150
        drawn.append(
            JobSpec(
                id=f"j{at}",
                partitions=(chance.choice(("all", "all", "some")),),
                qos=chance.choice(tuple(QOS)),
                submit_at=float(chance.randint(0, 300)),
                run_time=float(chance.randint(5, 60)),
                time_limit=float(chance.randint(60, 90)),
                **spec,
            )
        )
    return sorted(drawn, key=lambda spec: spec.submit_at)


SITES = [(scheduler, seed) for scheduler in ("builtin", "easy", "greedy") for seed in range(5)]


@pytest.mark.parametrize("seed", range(12))
def test_the_first_node_with_idle_cores_and_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer, for a job and for those that stay, is what a look at every node comes to."""
    asked = {True: 0, False: 0}
    first = IdleCores.first

    def checked(self: IdleCores, wish: Wish, nodes: NodeBits, apart: NodeBits = 0) -> int:
        found = first(self, wish, nodes, apart)
        assert found == looked_for(self._books, wish, nodes & ~apart)
        asked[found >= 0] += 1
        return found

    monkeypatch.setattr(IdleCores, "first", checked)
    monkeypatch.setattr("makeway_select_cons_tres.idle._MOST_BOUNDS", 2)
    monkeypatch.setattr("makeway_select_cons_tres.idle._MOST_LEVELS", 3)
    monkeypatch.setattr("makeway_select_cons_tres.idle._MOST_LOOKS", 2)
    chosen = site(seed, ("builtin", "easy", "greedy")[seed % 3])
    replay_table(jobs(seed), config=chosen)
    if "gang" not in chosen.policy.preempt_mode and chosen.policy.select_parameters != ("CR_Socket_Memory",):
        assert min(asked.values()) > 20


def looked_for(books: Books, wish: Wish, nodes: NodeBits) -> int:
    """Return the first node that serves, by weight and index, with a look at each."""
    layout, kind = books.layout, wish.kind
    serving = []
    for index in bitmap.indices(nodes & wish.able):
        free = layout.full[index] & ~books.busy[index]
        left = layout.memory[index] - books.memory[index]
        if kind.idle.cpus_of(index, free, books) >= kind.wanted and left >= kind.least_memory:
            serving.append((layout.weight[index], index))
    return min(serving)[1] if serving else -1


@pytest.mark.parametrize(("scheduler", "seed"), [(name, seed) for name, seed in SITES if name != "easy"])
def test_the_same_node_once_others_have_made_way(
    scheduler: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first node that fits a job of one node is that which the test of cores comes to; or the same is missing."""
    quick = ConsAttempt._on_one_node_without
    chance, asked = Random(seed), Counter[bool]()

    def checked(self: ConsAttempt, nodes: NodeBits) -> Found | None:
        for some in (nodes & chance.getrandbits(6), nodes & 1 << chance.randrange(6), nodes):
            found = quick(self, some)
            test = CoreTest(self.kind, self.books, some, self.known.mode, self.kind.choices[0])
            plain = test.run()
            assert (found and attrs.asdict(found)) == (plain and attrs.asdict(plain))
            if found is None:
                assert test.short is not None
                assert _missing(self.short) == _missing(test.short)
            asked[found is not None] += 1
        return found

    monkeypatch.setattr(ConsAttempt, "_on_one_node_without", checked)
    chosen = site(seed, scheduler)
    replay_table(jobs(seed), config=chosen)
    if "gang" not in chosen.policy.preempt_mode:
        assert asked[True] > 10
        assert asked[False] > 3


def _missing(short: Shortage) -> tuple[int, str, int]:
    return short.nodes, short.resource, short.available

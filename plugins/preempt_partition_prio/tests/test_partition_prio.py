"""Which job may displace which, in which order and how: slurm-preemption 1.3, 2, 3.1, rule by rule."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from makeway.config import (
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    build_cluster,
)
from makeway.model import Candidates, JobSpec, PreemptMode
from makeway.preemption import PreemptionTable
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine
from makeway_preempt_partition_prio import kinds_of
from makeway_slurm_rules.preemption import exempt_time


def engine(partitions: tuple[PartitionTable, ...], size: int = 4, **policy: Any) -> Engine:
    """Return an engine on `size` one-CPU nodes."""
    chosen = {"preempt": "preempt/partition_prio", "preempt_mode": ("cancel",)} | policy
    config = Config(
        node=(NodeTable(name=f"n[1-{size}]"),),
        partition=partitions,
        policy=PolicyTable(**chosen),
        scheduler=SchedulerTable(type="builtin"),
    )
    return Engine(config, Recorder(build_cluster(config)), Policies(config))


def start(run: Engine, job_id: str, at: float = 0.0, **asked: Any) -> None:
    """Let a job start at once."""
    asked.setdefault("max_nodes", asked.get("min_nodes", 1))
    run.step(at, [Submitted(JobSpec(id=job_id, **asked))])
    assert run.ledger.jobs[job_id].state.value == "RUNNING"


def ask(run: Engine, **asked: Any) -> Candidates:
    """Return the candidates of a pending job, no pass having seen it."""
    run.submit(JobSpec(id="P", **asked))
    return run.placer.order.candidates(run.ledger.jobs["P"])


LOW = PartitionTable(name="low", default=True, priority_tier=1)
HIGH = PartitionTable(name="high", priority_tier=2)


@pytest.mark.parametrize(
    ("victim", "preemptor", "allowed"),
    [
        pytest.param({}, {}, True, id="lower tier: yes"),
        pytest.param({"priority_tier": 2}, {}, False, id="same tier: no"),
        pytest.param({"priority_tier": 3}, {}, False, id="higher tier: no"),
        pytest.param({"preempt_mode": ("off",)}, {}, False, id="victim's partition OFF: no (S05 a)"),
        pytest.param({}, {"preempt_mode": ("off",)}, True, id="preemptor's partition OFF: yes (S05 b)"),
        pytest.param({"preempt_mode": ("requeue",)}, {}, True, id="victim's own mode: yes"),
        pytest.param({}, {"nodes": "n[3-4]"}, False, id="not on the preemptor's nodes: no (1.2 no. 8)"),
        pytest.param({}, {"nodes": "n[1-2]"}, True, id="on some of the preemptor's nodes: yes"),
    ],
)
def test_who_may(victim: dict[str, Any], preemptor: dict[str, Any], allowed: bool) -> None:
    """One low job on n1; may a job of the high partition displace it?"""
    run = engine((attrs.evolve(LOW, **victim), attrs.evolve(HIGH, **preemptor)))
    start(run, "v")
    assert [job.id for job in ask(run, partitions=("high",)).jobs] == (["v"] if allowed else [])


@pytest.mark.parametrize(
    ("mode", "victim", "asked", "kind"),
    [
        pytest.param("cancel", {}, {"partitions": ("high",)}, "high", id="lower tier: as its partition"),
        pytest.param(
            "cancel,priority", {}, {"partitions": ("high",)}, None, id="priorities count: not known"
        ),
        pytest.param("cancel", {}, {"partitions": ("low",)}, "low", id="lowest tier, too"),
        pytest.param(
            "cancel", {"preempt_mode": ("off",)}, {"partitions": ("high",)}, "high", id="all OFF, too"
        ),
        pytest.param(
            "cancel",
            {},
            {"partitions": ("low",), "licenses": {"a": 1}},
            None,
            id="licences count (1.2 no. 8): not known",
        ),
    ],
)
def test_the_kind_of_a_preemptor(
    mode: str, victim: dict[str, Any], asked: dict[str, Any], kind: object
) -> None:
    """Jobs of a partition have the same candidates, unless priorities or licences count (1.2 no. 8 and 1.3)."""
    run = engine((attrs.evolve(LOW, **victim), HIGH), preempt_mode=tuple(mode.split(",")))
    run.ledger._rules = {**run.ledger._rules, "priority_modifier": "priority" in mode}
    start(run, "v")
    ask(run, **asked)
    assert kinds_of(run.ledger)(run.ledger.jobs["P"]) == kind


@pytest.mark.parametrize(
    ("mine", "its", "release", "allowed"),
    [
        pytest.param(2000, 2000, "25.05", True, id="equal: yes (S19)"),
        pytest.param(1999, 2000, "25.05", False, id="lower: no (S19)"),
        pytest.param(1999, 2000, "24.11", True, id="unknown before 25.05: no condition"),
    ],
)
def test_priority_modifier(mine: int, its: int, release: str, allowed: bool) -> None:
    """PRIORITY compares job priorities, equal is enough (section 1.3 no. 1)."""
    run = engine((LOW, HIGH), preempt_mode=("cancel", "priority"))
    run.ledger._rules = {**run.ledger._rules, "priority_modifier": release >= "25.05"}
    start(run, "v", priority=its)
    found = ask(run, partitions=("high",), priority=mine).jobs
    assert [job.id for job in found] == (["v"] if allowed else [])


def test_order_by_tier_then_nodes_then_table() -> None:
    """S09, S10 and 2.3: the lowest tier first, fewest nodes within it, the older among equals."""
    tiers = (LOW, attrs.evolve(HIGH, name="mid"), attrs.evolve(HIGH, name="top", priority_tier=3))
    run = engine(tiers, size=8)
    start(run, "mid1", partitions=("mid",))
    start(run, "wide", min_nodes=2)
    start(run, "old")
    start(run, "young")
    assert [job.id for job in ask(run, partitions=("top",)).jobs] == ["old", "young", "wide", "mid1"]


def test_youngest_first_replaces_the_order() -> None:
    """Section 2.2: tier and size are ignored."""
    tiers = (LOW, attrs.evolve(HIGH, name="mid"), attrs.evolve(HIGH, name="top", priority_tier=3))
    run = engine(tiers, preemption=PreemptionTable(youngest_first=True))
    start(run, "a", at=0)
    start(run, "b", at=10, partitions=("mid",))
    start(run, "c", at=5 + 10)
    assert [job.id for job in ask(run, partitions=("top",)).jobs] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("cluster", "own", "mode"),
    [
        pytest.param(("cancel",), None, PreemptMode.CANCEL, id="the cluster's"),
        pytest.param(("cancel",), ("requeue",), PreemptMode.REQUEUE, id="the partition's own"),
        pytest.param(("suspend", "gang"), None, PreemptMode.SUSPEND, id="gang is stripped"),
        pytest.param(("cancel",), ("priority",), PreemptMode.OFF, id="modifiers alone leave nothing"),
        pytest.param(("cancel", "within"), None, PreemptMode.OFF, id="within matches nothing here (3.1)"),
    ],
)
def test_mode(cluster: tuple[str, ...], own: tuple[str, ...] | None, mode: PreemptMode) -> None:
    """Section 3.1, the partition_prio row and its traps."""
    run = engine((attrs.evolve(LOW, preempt_mode=own), HIGH), preempt_mode=cluster, gang=None)
    start(run, "v")
    assert run.ledger.mode_of(run.ledger.jobs["v"]) is mode


@pytest.mark.parametrize(
    ("priority", "safe"),
    [
        pytest.param(999, False, id="below"),
        pytest.param(1000, False, id="equal may go (10.1 no. 1)"),
        pytest.param(1001, True, id="above"),
    ],
)
def test_min_exempt_priority(priority: int, safe: bool) -> None:
    """S15."""
    run = engine((LOW, HIGH), preemption=PreemptionTable(min_exempt_priority=1000))
    start(run, "v", priority=priority)
    found = ask(run, partitions=("high",))
    assert (not found.jobs) is safe
    assert ("v" in found.protected) is safe


@pytest.mark.parametrize(
    ("age", "safe"),
    [
        pytest.param(299.0, True, id="299 s"),
        pytest.param(300.0, False, id="the exact second"),
    ],
)
def test_exempt_time(age: float, safe: bool) -> None:
    """S13: five minutes, and the instant at which asking again helps is named."""
    run = engine((LOW, HIGH), preemption=PreemptionTable(exempt_time=300.0))
    start(run, "v", at=100.0)
    run.ledger.now = 100.0 + age
    found = ask(run, partitions=("high",))
    assert (not found.jobs) is safe
    assert found.ask_again_at == (400.0 if safe else None)


def test_exempt_precedence() -> None:
    """S14: partition QOS, then job QOS, unless OverPartQOS; unset falls through to the cluster."""
    config = Config(
        node=(NodeTable(name="n1"),),
        partition=(attrs.evolve(LOW, qos="pq"), HIGH),
        qos=(
            QosTable(name="pq", exempt_time=600.0),
            QosTable(name="jq", exempt_time=0.0),
            QosTable(name="over", exempt_time=0.0, flags=("OverPartQOS",)),
            QosTable(name="unset"),
        ),
        policy=PolicyTable(preempt="preempt/partition_prio", preempt_mode=("cancel",)),
    )
    run = Engine(config, Recorder(build_cluster(config)), Policies(config))
    answers = {}
    for at, qos in enumerate(("jq", "over")):
        run.submit(JobSpec(id=str(at), qos=qos))
        answers[qos] = exempt_time(run.ledger.jobs[str(at)], run.ledger, 1200.0)
    assert answers == {"jq": 600.0, "over": 0.0}
    no_partition_qos = attrs.evolve(config, partition=(LOW, HIGH))
    run = Engine(no_partition_qos, Recorder(build_cluster(no_partition_qos)), Policies(no_partition_qos))
    for at, qos in enumerate(("jq", "unset")):
        run.submit(JobSpec(id=str(at), qos=qos))
        answers[qos] = exempt_time(run.ledger.jobs[str(at)], run.ledger, 1200.0)
    assert answers == {"jq": 0.0, "over": 0.0, "unset": 1200.0}

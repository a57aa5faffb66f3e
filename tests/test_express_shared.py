"""Plain jobs that share nodes take the short way (`makeway_engine.express_shared`), and all comes out the same.

Each step is compared with the same step of an engine that knows the plain way alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import (
    ClusterTable,
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    build_cluster,
)
from makeway.model import Exclusive, JobSpec
from makeway.preemption import PreemptionTable
from makeway.record import Recorder, to_json
from makeway.registry import Policies
from makeway.state import write_state
from makeway.worlds.events import Action, Command, Event, NodesDown, NodesDrained, NodesUp
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_engine.express_shared import SharedExpress

GRAIN = 5
"""Instants are multiples of this, so that many coincide."""
QOS = ("low", "mid", "high")
PREEMPT = {
    "none": ("preempt/none", "off"),
    "qos": ("preempt/qos", "requeue"),
    "qos cancel": ("preempt/qos", "cancel"),
    "partition": ("preempt/partition_prio", "requeue"),
}
Site = tuple[Config, list[JobSpec], list[tuple[float, Event]]]


@attrs.define
class Counted:
    """How many steps went the short way."""

    short: int = 0
    all: int = 0


def drawn(seed: int, scheduler: str, preempt: str, *, odd: bool) -> Site:
    """Draw a site.

    :param odd: with jobs that are not plain, people who interfere, and nodes that fail.
    """
    chance = Random(f"{seed} {scheduler} {preempt} {odd}")
    policy, mode = PREEMPT[preempt]
    nodes = chance.choice((4, 8, 70))
    config = Config(
        node=(
            NodeTable(name=f"n[1-{nodes}]", cpus=chance.choice((2, 4)), memory_mb=4_000),
            NodeTable(name="big[1-2]", cpus=8, memory_mb=16_000, gres={"gpu": 2}),
        ),
        partition=(
            PartitionTable(name="all", default=True, grace_time=chance.choice((0.0, 0.0, 15.0))),
            PartitionTable(name="few", nodes="n[2-4]", max_time=400.0, min_nodes=1, max_nodes=2),
            PartitionTable(name="urgent", priority_tier=2),
        ),
        qos=(
            QosTable(name="low", priority=chance.choice((0, 5))),
            QosTable(name="mid", preempt=("low",), exempt_time=30.0 if seed % 7 == 6 else None),
            QosTable(name="high", preempt=("low", "mid"), grace_time=20.0 if seed % 6 == 5 else 0.0),
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core_Memory",) if seed % 8 < 6 else ("CR_CPU",),
            preempt=policy,
            preempt_mode=(mode,),
            preemption=PreemptionTable(youngest_first=seed % 3 == 1),
        ),
        scheduler=SchedulerTable(
            type=scheduler,
            clockwork={
                "preset": "ideal",
                "requeue_delay": chance.choice((0.0, 5.0)),
                "completing_time": 3.0 if seed % 5 == 4 else 0.0,
            },
            enforce_time_limits=seed % 4 > 0,
            over_time_limit=chance.choice((0.0, 0.0, 20.0)),
        ),
        cluster=ClusterTable(licenses={"tool": 2} if odd else {}),
    )
    jobs = _jobs(chance, nodes, odd=odd)
    return config, jobs, _commands(chance, nodes, int(jobs[-1].submit_at)) if odd else []


def _jobs(chance: Random, nodes: int, *, odd: bool) -> list[JobSpec]:
    count = chance.choice((20, 60, 120))
    spread = count * chance.choice((5, 20, 60)) // GRAIN
    kinds = chance.sample(_ODD, 4)
    found = []
    for at, instant in enumerate(sorted(chance.randrange(spread) for _ in range(count))):
        run = chance.choice((0, GRAIN, 20, 60, 60, 300))
        limits = (None, float(run) + 60.0, float(run) + 60.0, 600.0, max(1.0, run - 5.0))
        more: dict[str, Any] = {}
        if odd and chance.random() < 0.25:
            more = chance.choice(kinds)(chance, at)
        wide = chance.choice((1, 1, 1, 1, 2, 3, nodes // 2))
        found.append(
            JobSpec(
                id=str(at + 1),
                user=chance.choice(("ann", "bob")),
                **{
                    "partitions": chance.choice(((), (), ("all",), ("few",), ("urgent",))),
                    "qos": chance.choice(QOS),
                    "submit_at": float(instant * GRAIN),
                    "run_time": float(run),
                    "time_limit": chance.choice(limits),
                    "min_nodes": wide,
                    "max_nodes": chance.choice((wide, wide, None)),
                    "tasks": chance.choice((wide, wide, 2 * wide, None)),
                    "cpus_per_task": chance.choice((1, 1, 2)),
                    "memory_mb_per_node": chance.choice((100, 1_000, 3_000, 12_000)),
                    **more,
                },
            )
        )
    return found


_ODD: Sequence[Any] = (
    lambda chance, at: {"partitions": ("all", "urgent")},
    lambda chance, at: {"partitions": ("nowhere",)},
    lambda chance, at: {"qos": "none such"},
    lambda chance, at: {"qos": None},
    lambda chance, at: {"licenses": {"tool": chance.choice((1, 2, 3))}},
    lambda chance, at: {"depends_on": (str(chance.randrange(1, at + 1)),)} if at else {},
    lambda chance, at: {"begin_at": float(chance.randrange(200) * GRAIN)},
    lambda chance, at: {"priority": chance.choice((0, 10, 5_000_000_000))},
    lambda chance, at: {"nice": 7},
    lambda chance, at: {"required_nodes": ("n2",)},
    lambda chance, at: {"excluded_nodes": ("n1", "n3")},
    lambda chance, at: {"contiguous": True},
    lambda chance, at: {"oversubscribe": True},
    lambda chance, at: {"exclusive": Exclusive.NODE},
    lambda chance, at: {"exclusive": Exclusive.USER},
    lambda chance, at: {"features": "fast"},
    lambda chance, at: {"min_nodes": 1000, "max_nodes": None, "tasks": None},
    lambda chance, at: {"gres": {"gpu": chance.choice((1, 2, 3))}},
    lambda chance, at: {"memory_mb_per_node": None, "memory_mb_per_cpu": 700},
    lambda chance, at: {"memory_mb_per_node": 0},
    lambda chance, at: {"array_id": "a", "array_task": at, "array_limit": 2},
    lambda chance, at: {"array_id": "b", "array_task": at},
    lambda chance, at: {"het_id": f"h{at // 3}", "het_offset": 0},
    lambda chance, at: {"run_time": None, "time_limit": 90.0},
    lambda chance, at: {"requeue": False},
    lambda chance, at: {"attributes": {"ends_as": "FAILED"}},
)


def _commands(chance: Random, nodes: int, last: int) -> list[tuple[float, Event]]:
    found: list[tuple[float, Event]] = []
    for _ in range(chance.randrange(12)):
        at = float(chance.randrange(last // GRAIN + 1) * GRAIN)
        verb = chance.choice(
            ("suspend", "requeue", "cancel", "hold", "release", "start", "change", "nodes", "nodes")
        )
        job_id = str(chance.randrange(1, 60))
        if verb == "nodes":
            bits = 1 << chance.randrange(nodes)
            gone = chance.choice((NodesDown, NodesDrained))
            found += [(at, gone(bits)), (at + 50.0, NodesUp(bits))]
        elif verb == "change":
            value = chance.choice(("nice=5", "qos=high", "timelimit=2"))
            found.append((at, Command("change", job_id, value=value)))
        else:
            found.append((at, Command(verb, job_id)))
            if verb == "suspend":
                found.append((at + 40.0, Command("resume", job_id)))
    return found


def engine_of(config: Config, *, trusted: bool, listens: bool) -> tuple[Engine, list[str]]:
    """Return an engine, and the lines of its record as they come."""
    lines: list[str] = []
    recorder = Recorder(
        build_cluster(config), (lambda line: lines.append(to_json(line))) if listens else None
    )
    return Engine(config, recorder, Policies(config), trusted=trusted), lines


def told(actions: Sequence[Action]) -> list[object]:
    """Return actions as they can be compared between two runs."""
    return [
        (
            type(each).__name__,
            each.job.id,
            each.serial,
            each.incarnation,
            each.after,
            repr(each.job.allocation),
        )
        for each in actions
    ]


def books(engine: Engine) -> object:
    """Return what a state does not show."""
    ledger, selector = engine.ledger, engine.selector
    shown: Any = selector.books  # type: ignore[attr-defined]
    shown.sync()
    return (
        (ledger.held_tally.odd, ledger.held_tally.digits, ledger.held, ledger.exclusive, ledger.up),
        (ledger.version, ledger.freed, ledger.reasons, ledger.searches, ledger.completing),
        [(end, job.id) for end, _, job in ledger.by_end],
        (shown.busy, shown.memory, shown.marks, shown.sharing, shown.gres),
        (
            shown.busy_nodes,
            shown.charged_nodes,
            shown.marked_nodes,
            shown.reserved_nodes,
            shown.sharing_nodes,
        ),
        [
            (job.id, job.reason, job.priority, job.eligible_since, job.time_limit)
            for job in ledger.jobs.values()
        ],
        [job.id for job in ledger.active],
        [job.id for job in ledger.pending],
        [(key, job.id) for key, job, _ in engine.queue.entries],
        (engine.transitions.changed, engine.transitions.left_nodes),
        attrs.asdict(engine.recorder.metrics),
    )


def in_step(site: Site, *, trusted: bool, listens: bool, counted: Counted) -> None:
    """Let a run go both ways, and compare them after each step."""
    config, jobs, commands = site
    (short, lines), (plain, plain_lines) = (
        engine_of(config, trusted=trusted, listens=listens) for _ in range(2)
    )
    assert isinstance(short.express, SharedExpress)
    plain.express = plain.placer.quick = plain.placer.waits = None
    worlds = [SimulatedWorld(iter(jobs), engine.clockwork, commands) for engine in (short, plain)]
    own = SharedExpress.step

    def seen(self: SharedExpress, now: float, events: Sequence[Event]) -> list[Action] | None:
        actions = own(self, now, events)
        counted.short += actions is not None
        return actions

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SharedExpress, "step", seen)
        for _ in range(20 * len(jobs) + 1000):
            assert short.next_wake == plain.next_wake
            moments = [
                world.wait(engine.next_wake) for world, engine in zip(worlds, (short, plain), strict=True)
            ]
            assert moments[0] == moments[1]
            if moments[0] is None:
                break
            now, events = moments[0]
            counted.all += 1
            actions = [short.step(now, events), plain.step(now, events)]
            assert told(actions[0]) == told(actions[1])
            for world, done in zip(worlds, actions, strict=True):
                world.perform(done, now)
            assert books(short) == books(plain)
            if counted.all % 4 == 0:
                assert write_state(short.hand_over()) == write_state(plain.hand_over())
    assert lines == plain_lines
    assert short.recorder.summary(now) == plain.recorder.summary(now)


@pytest.mark.parametrize("preempt", list(PREEMPT))
@pytest.mark.parametrize("scheduler", ["builtin", "easy", "greedy", "backfill"])
@pytest.mark.parametrize("odd", [False, True], ids=["plain jobs", "odd ones among them"])
def test_both_ways_come_to_the_same(scheduler: str, preempt: str, odd: bool) -> None:
    """Actions, states, books and records, whoever interferes."""
    counted = Counted()
    for seed in range(8):
        site = drawn(seed, scheduler, preempt, odd=odd)
        in_step(site, trusted=seed % 3 > 0, listens=seed % 2 > 0, counted=counted)
    assert counted.short > counted.all * (0.02 if odd else 0.2)

"""Plain jobs take the short way (`makeway_engine.express`), and all comes out as on the plain one, step by step."""

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
from makeway.model import JobSpec
from makeway.record import Recorder, to_json
from makeway.registry import Policies
from makeway.state import write_state
from makeway.worlds.events import Action, Command, Event, NodesDown, NodesDrained, NodesUp
from makeway_app.replay import replay
from makeway_app.worlds.simulated import SimulatedWorld
from makeway_engine.engine import Engine
from makeway_engine.express import Express

GRAIN = 5
"""Instants are multiples of this, so that many coincide."""
Site = tuple[Config, list[JobSpec], list[tuple[float, Event]]]


@attrs.define
class Counted:
    """How many steps went the short way."""

    short: int = 0
    all: int = 0


def drawn(seed: int, scheduler: str, mode: str, *, odd: bool) -> Site:
    """Draw a site.

    :param odd: with jobs that are not plain, people who interfere, and nodes that fail.
    """
    chance = Random(f"{seed} {scheduler} {mode} {odd}")
    nodes = chance.choice((6, 12, 80))
    config = Config(
        node=(NodeTable(name=f"n[1-{nodes}]", cpus=chance.choice((1, 4)), memory_mb=1000),),
        partition=(
            PartitionTable(name="all", default=True, grace_time=chance.choice((0.0, 0.0, 15.0))),
            PartitionTable(name="few", nodes="n[2-4]", max_time=400.0, min_nodes=1, max_nodes=2),
            PartitionTable(name="urgent", priority_tier=2),
        ),
        policy=PolicyTable(
            preempt="preempt/none" if mode == "off" else "preempt/partition_prio", preempt_mode=(mode,)
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


LIMITS = {
    "GrpTRES": ("cpu=6", "node=3", "cpu=12,node=5", "cpu=1000"),
    "GrpTRESMins": ("cpu=20", "cpu=400", "cpu=1000000"),
    "GrpTRESRunMins": ("cpu=15", "cpu=60", "cpu=1000000"),
    "GrpJobs": ("1", "3", "100"),
    "GrpWall": ("30", "1000000"),
    "GrpSubmit": ("5", "1000"),
    "MaxTRESMins": ("cpu=10", "cpu=100000"),
    "MaxJobs": ("2", "100"),
}
OF_QOS = {
    "GrpTRES": ("cpu=8", "cpu=1000"),
    "MaxTRESPU": ("cpu=6", "node=4", "cpu=1000"),
    "MaxTRESPA": ("cpu=12", "cpu=1000"),
    "MaxTRESPerJob": ("cpu=8", "cpu=1000"),
    "MaxTRESRunMinsPU": ("cpu=30", "cpu=100000"),
    "MinTRES": ("cpu=2",),
    "MaxJobsPU": ("2", "100"),
    "MaxSubmitPU": ("6", "100"),
    "MaxWall": ("5", "1000"),
}


def limited(seed: int, scheduler: str, mode: str, *, odd: bool) -> Site:
    """Draw a site with limits of every kind, near and far away."""
    config, jobs, commands = drawn(seed, scheduler, mode, odd=odd)
    chance = Random(f"limits {seed} {scheduler} {mode} {odd}")
    often = chance.choice((0.15, 0.4))

    def some(limits: dict[str, tuple[str, ...]]) -> dict[str, str]:
        return {name: chance.choice(values) for name, values in limits.items() if chance.random() < often}

    accounts = [{"Account": name, **some(LIMITS)} for name in "ab"]
    users = [{"Account": "ab"[at % 2], "User": f"u{at}", **some(LIMITS)} for at in range(4)]
    settings = {
        "safe": chance.random() < 0.3,
        "limit_stop": chance.random() < 0.2,
        "lift_by_preempting": chance.random() < 0.2,
    }
    flags = chance.choice(((), (), ("DenyOnLimit",)))
    config = attrs.evolve(
        config,
        cluster=attrs.evolve(config.cluster, attributes={"associations": [*accounts, *users]}),
        qos=(QosTable(name="q", attributes=some(OF_QOS), flags=flags), QosTable(name="free")),
        policy=attrs.evolve(config.policy, plugins=("limits/slurm",), settings={"limits/slurm": settings}),
    )
    taken = [chance.randrange(4) for _ in jobs]
    named = [
        attrs.evolve(job, user=f"u{at}", account="ab"[at % 2], qos=chance.choice((None, "q", "q", "free")))
        for job, at in zip(jobs, taken, strict=True)
    ]
    return config, named, commands


def _jobs(chance: Random, nodes: int, *, odd: bool) -> list[JobSpec]:
    count = chance.choice((20, 60, 100))
    spread = count * chance.choice((10, 40, 120)) // GRAIN
    kinds = chance.sample(_ODD, 3)
    found = []
    for at, instant in enumerate(sorted(chance.randrange(spread) for _ in range(count))):
        run = chance.choice((0, GRAIN, 20, 60, 60, 300))
        limits = (None, float(run) + 60.0, float(run) + 60.0, 600.0, max(1.0, run - 5.0))
        more: dict[str, Any] = {}
        if odd and chance.random() < 0.25:
            more = chance.choice(kinds)(chance, at)
        found.append(
            JobSpec(
                id=str(at + 1),
                user=chance.choice(("ann", "bob")),
                **{
                    "partitions": chance.choice(((), (), ("all",), ("few",), ("urgent",))),
                    "submit_at": float(instant * GRAIN),
                    "run_time": float(run),
                    "time_limit": chance.choice(limits),
                    "min_nodes": chance.choice((1, 1, 2, 3, nodes // 2, nodes)),
                    **more,
                },
            )
        )
    return found


_ODD: Sequence[Any] = (
    lambda chance, at: {"partitions": ("all", "urgent")},
    lambda chance, at: {"partitions": ("nowhere",)},
    lambda chance, at: {"licenses": {"tool": chance.choice((1, 2, 3))}},
    lambda chance, at: {"depends_on": (str(chance.randrange(1, at + 1)),)} if at else {},
    lambda chance, at: {"begin_at": float(chance.randrange(200) * GRAIN)},
    lambda chance, at: {"priority": chance.choice((0, 10, 5_000_000_000))},
    lambda chance, at: {"nice": 7},
    lambda chance, at: {"required_nodes": ("n2",)},
    lambda chance, at: {"excluded_nodes": ("n1", "n3")},
    lambda chance, at: {"contiguous": True},
    lambda chance, at: {"oversubscribe": True},
    lambda chance, at: {"features": "fast"},
    lambda chance, at: {"min_nodes": 1000},
    lambda chance, at: {"tasks": 5},
    lambda chance, at: {"max_nodes": 4, "min_nodes": 2},
    lambda chance, at: {"array_id": "a", "array_task": at, "array_limit": 2},
    lambda chance, at: {"array_id": "b", "array_task": at},
    lambda chance, at: {"het_id": f"h{at // 3}", "het_offset": 0},
    lambda chance, at: {"run_time": None, "time_limit": 90.0},
    lambda chance, at: {"requeue": False},
    lambda chance, at: {"attributes": {"ends_as": "FAILED"}},
)


def _commands(chance: Random, nodes: int, last: int) -> list[tuple[float, Event]]:
    found: list[tuple[float, Event]] = []
    for _ in range(chance.randrange(10)):
        at = float(chance.randrange(last // GRAIN + 1) * GRAIN)
        verb = chance.choice(
            ("suspend", "requeue", "cancel", "hold", "release", "start", "change", "nodes", "nodes")
        )
        job_id = str(chance.randrange(1, 40))
        if verb == "nodes":
            bits = 1 << chance.randrange(nodes)
            gone = chance.choice((NodesDown, NodesDrained))
            found += [(at, gone(bits)), (at + 50.0, NodesUp(bits))]
        elif verb == "change":
            found.append((at, Command("change", job_id, value="nice=5")))
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
        (type(each).__name__, each.job.id, each.serial, each.incarnation, each.after, each.job.nodes)
        for each in actions
    ]


def books(engine: Engine) -> object:
    """Return what a state does not show."""
    ledger, selector = engine.ledger, engine.selector
    shown: Any = selector
    return (
        (ledger.held, ledger.exclusive, ledger.up, ledger.version, ledger.freed, ledger.completing),
        [(end, job.id) for end, _, job in ledger.by_end],
        (shown.books.running.over, shown.books.exclusive.over, shown.books.version),
        [
            (job.id, job.reason, job.priority, job.eligible_since, job.time_limit)
            for job in ledger.jobs.values()
        ],
        [job.id for job in ledger.active],
        [job.id for job in ledger.pending],
        (engine.transitions.changed, engine.transitions.left_nodes, ledger.searches),
        attrs.asdict(engine.recorder.metrics),
    )


def in_step(site: Site, *, trusted: bool, listens: bool, counted: Counted) -> None:
    """Let a run go both ways, and compare them after each step."""
    config, jobs, commands = site
    (short, lines), (plain, plain_lines) = (
        engine_of(config, trusted=trusted, listens=listens) for _ in range(2)
    )
    assert short.express is not None
    plain.express = None
    worlds = [SimulatedWorld(iter(jobs), engine.clockwork, commands) for engine in (short, plain)]
    own = Express.step

    def seen(self: Express, now: float, events: Sequence[Event]) -> list[Action] | None:
        actions = own(self, now, events)
        counted.short += actions is not None
        return actions

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Express, "step", seen)
        for _ in range(20 * len(jobs) + 1000):
            wakes = [short.next_wake, plain.next_wake]
            if short.endings.looks:  # one may look at those who run more often than the other
                wakes = [min((wake for wake in wakes if wake is not None), default=None)] * 2
            assert wakes[0] == wakes[1]
            moments = [world.wait(wake) for world, wake in zip(worlds, wakes, strict=True)]
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


@pytest.mark.parametrize("mode", ["off", "requeue"])
@pytest.mark.parametrize("scheduler", ["easy", "builtin", "greedy", "backfill"])
@pytest.mark.parametrize("odd", [False, True], ids=["plain jobs", "odd ones among them"])
def test_both_ways_come_to_the_same(scheduler: str, mode: str, odd: bool) -> None:
    """Actions, states, books and records, whoever interferes."""
    counted = Counted()
    for seed in range(24 if scheduler == "easy" and mode == "off" else 8):
        site = drawn(seed, scheduler, mode, odd=odd)
        in_step(site, trusted=seed % 3 > 0, listens=seed % 2 > 0, counted=counted)
    assert counted.short > counted.all * (0.1 if odd else 0.4)


@pytest.mark.parametrize("mode", ["off", "requeue", "cancel", "suspend"])
@pytest.mark.parametrize("scheduler", ["easy", "builtin", "greedy", "backfill"])
@pytest.mark.parametrize("odd", [False, True], ids=["plain jobs", "odd ones among them"])
def test_limits_have_their_say(scheduler: str, mode: str, odd: bool) -> None:
    """The same under limits on whatever may be limited: jobs are refused, kept out and ended alike."""
    counted = Counted()
    for seed in range(24 if scheduler == "easy" and mode == "off" else 6):
        site = limited(seed, scheduler, mode, odd=odd)
        in_step(site, trusted=seed % 3 > 0, listens=seed % 2 > 0, counted=counted)
    assert counted.short > counted.all * (0.05 if odd else 0.2)


def spec(id: str, at: float, nodes: int, run: float, limit: float | None = None) -> JobSpec:
    """Return a plain job."""
    return JobSpec(id=id, submit_at=at, min_nodes=nodes, run_time=run, time_limit=limit)


SITE = Config(
    node=(NodeTable(name="n[1-10]"),),
    partition=(PartitionTable(name="all", default=True),),
    scheduler=SchedulerTable(type="easy"),
)


@pytest.mark.parametrize(
    ("jobs", "commands"),
    [
        pytest.param(
            [spec("a", 1, 3, 50), spec("b", 30, 1, 50), spec("c", 60, 7, 9), spec("d", 61, 4, 9)],
            [(10.0, NodesDrained(1))],
            id="a node is drained under a job, which ends later",
        ),
        pytest.param(
            [
                *(spec("a", 1, 5, 100, 100), spec("head", 2, 7, 10, 10)),
                *(spec("b", 3, 2, 200, 200), spec("c", 4, 2, 200, 200), spec("d", 5, 1, 200, 200)),
                *(spec("e", 6, 1, 90, 90), spec("f", 7, 1, 200, 200), spec("g", 8, 1, 200)),
            ],
            [],
            id="what is to spare beside the first one is used up by arrivals",
        ),
    ],
)
def test_single_sites(jobs: list[JobSpec], commands: list[tuple[float, Event]]) -> None:
    """Each is about one thing."""
    counted = Counted()
    in_step((SITE, jobs, commands), trusted=True, listens=False, counted=counted)
    assert counted.short > len(jobs) // 2


def test_others_pass_a_job_that_a_limit_keeps_out() -> None:
    """Ann may run one job: the first of those who wait is hers, Bob's starts beside it, and hers once she has none."""
    config = attrs.evolve(
        SITE,
        qos=(QosTable(name="q", attributes={"MaxJobsPU": "1"}),),
        policy=PolicyTable(plugins=("limits/slurm",)),
    )
    hers: dict[str, Any] = {"user": "ann", "qos": "q"}
    jobs = [
        attrs.evolve(spec("a", 1, 3, 100), **hers),
        attrs.evolve(spec("b", 2, 2, 10), **hers),
        attrs.evolve(spec("c", 3, 4, 20), user="bob", qos="q"),
        attrs.evolve(spec("d", 30, 10, 10), user="bob", qos="q"),
    ]
    counted = Counted()
    in_step((config, jobs, []), trusted=True, listens=True, counted=counted)
    assert counted.short > len(jobs)
    told = replay(config, jobs, ()).summary()["jobs"]
    starts = {
        name: next(each["start"] for each in job["intervals"] if each["state"] == "RUNNING")
        for name, job in told.items()
    }
    assert starts == {"a": 1.0, "b": 101.0, "c": 3.0, "d": 111.0}

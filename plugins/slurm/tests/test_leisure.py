"""Priorities at leisure (`makeway_engine.patience`): what starts, and when, is as with everything at its time."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from makeway.config import Config
from makeway.model import Exclusive, JobSpec
from makeway.settings import structure
from makeway.worlds.events import Action, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.express_leisure import LeisurelyExpress

NAME = "priority/multifactor"
USERS = 5
PERIOD = 60.0
LIMITS: Mapping[str, Mapping[str, str]] = {
    "far away": {"GrpTRES": "cpu=1000", "GrpTRESMins": "cpu=1000000", "GrpJobs": "100", "GrpSubmit": "1000"},
    "on what is held": {"GrpTRES": "cpu=16,node=5", "GrpJobs": "4"},
    "on what is used up": {"GrpTRESMins": "cpu=1200", "GrpWall": "400"},
    "on what may be used": {"GrpTRESRunMins": "cpu=900"},
}


def site(chance: random.Random, limits: Mapping[str, str]) -> Config:
    """Return 7 nodes with 4 CPUs under EASY, and two accounts."""
    accounts = [{"Account": name, "Share": str(chance.randint(1, 3)), **limits} for name in ("a", "b")]
    users = [
        {"Account": "ab"[at % 2], "User": f"u{at}", "Share": chance.choice(("1", "2"))} for at in range(USERS)
    ]
    settings = {
        "calc_period": PERIOD,
        "decay_half_life": chance.choice((0.0, 6000.0, 86400.0)),
        "max_age": 3000.0,
        "weight_age": chance.choice((0, 100, 1000)),
        "weight_fairshare": 1000,
        "weight_job_size": chance.choice((0, 50, 5000)),
        "favor_small": chance.random() < 0.3,
    }
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}, "licenses": {"tool": 2}},
        "node": [{"name": "n[1-7]", "cpus": 4, "cores_per_socket": 4}],
        "partition": [{"name": "main", "default": True}, {"name": "few", "nodes": "n[1-3]"}],
        "qos": [{"name": "q", "attributes": {"MaxJobsPU": "50", "MaxWall": "1000"}}],
        "policy": {
            "priority": NAME,
            "settings": {NAME: settings, "limits/slurm": {"safe": chance.random() < 0.3}},
            "plugins": ["limits/slurm"],
            "select": chance.choice(("select/linear", "select/linear", "select/cons_tres")),
        },
        "scheduler": {
            "type": "easy",
            "clockwork": "ideal",
            "enforce_time_limits": chance.random() < 0.8,
            "over_time_limit": chance.choice((0.0, 0.0, 60.0)),
        },
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random) -> list[JobSpec]:
    """Return jobs of which many come at once, or when usage is recalculated; some ask for less than whole nodes."""
    grain = chance.choice((1, 15, int(PERIOD)))
    odd, less = chance.random() < 0.3, chance.random() < 0.5
    found: list[JobSpec] = []
    for at in range(60):
        user, nodes = chance.randrange(USERS), chance.choice((1, 1, 2, 3, 6))
        submit = float(chance.randrange(9000) // grain * grain)
        more: dict[str, Any] = {}
        if found and chance.random() < 0.4:
            submit = found[-1].submit_at
        if chance.random() < 0.1:
            more["begin_at"] = float(chance.randrange(9000) // 300 * 300)
        if less and chance.random() < 0.1:
            more["exclusive"] = Exclusive.NODE
        if odd and chance.random() < 0.2:
            more |= chance.choice(
                (
                    {"licenses": {"tool": 1}},
                    {"partitions": ("main", "few")},
                    {"excluded_nodes": ("n2",)},
                    {"priority": 40},
                )
            )
        found.append(
            JobSpec(
                id=str(at),
                submit_at=submit,
                user=f"u{user}",
                account="ab"[user % 2],
                qos="q",
                min_nodes=min(nodes, 3) if "few" in more.get("partitions", ()) else nodes,
                tasks=chance.choice((4 * nodes, nodes)) if less else 4 * nodes,
                run_time=float(chance.choice((30, 60, chance.randrange(1, 2000)))),
                time_limit=chance.choice((60.0, 600.0, 3000.0, None)),
                **more,
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


@attrs.define
class Ran:
    """What became of a replay that nobody watches."""

    jobs: Mapping[str, Any]
    actions: list[tuple[float, list[tuple[str, str, int]]]]
    """By step: what was ordered, for which job, on which nodes."""
    short: int
    """Steps that went the short way."""


def ran(config: Config, given: list[JobSpec]) -> Ran:
    """Replay."""
    actions: list[tuple[float, list[tuple[str, str, int]]]] = []
    short = 0
    step, quick = Engine.step, LeisurelyExpress.step

    def looked_at(engine: Engine, now: float, events: Sequence[Event]) -> list[Action]:
        found = step(engine, now, events)
        if found:
            actions.append((now, [(type(each).__name__, each.job.id, each.job.nodes) for each in found]))
        return found

    def counted(express: LeisurelyExpress, now: float, events: Sequence[Event]) -> list[Action] | None:
        nonlocal short
        found = quick(express, now, events)
        short += found is not None
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Engine, "step", looked_at)
        patched.setattr(LeisurelyExpress, "step", counted)
        run = replay(config, given, (), Options())
    return Ran(run.summary()["jobs"], actions, short)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("seed", range(10))
def test_all_is_as_with_everything_at_its_time(
    monkeypatch: pytest.MonkeyPatch, seed: int, limits: Mapping[str, str]
) -> None:
    """Jobs, their order and nodes are the same."""
    chance = random.Random(f"{seed} {limits}")
    config, given = site(chance, limits), jobs(chance)
    patient = ran(config, given)
    monkeypatch.setattr(Engine, "be_patient", lambda engine, **_: None)
    punctual = ran(config, given)
    assert patient.jobs == punctual.jobs
    assert patient.actions == punctual.actions


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("seed", range(10, 20))
def test_both_ways_come_to_the_same(
    monkeypatch: pytest.MonkeyPatch, seed: int, limits: Mapping[str, str]
) -> None:
    """The short way (`makeway_engine.express_leisure`) is held against the plain one."""
    chance = random.Random(f"{seed} {limits}")
    config, given = site(chance, limits), jobs(chance)
    short = ran(config, given)
    monkeypatch.setattr("makeway_engine.engine.leisurely_express_of", lambda *_: None)
    plain = ran(config, given)
    assert short.jobs == plain.jobs
    assert short.actions == plain.actions
    assert not plain.short


def test_plain_jobs_go_the_short_way() -> None:
    """As long as they come one by one, no limit is near, and nodes are counted."""
    chance = random.Random(1)
    config = site(chance, LIMITS["far away"])
    config = attrs.evolve(config, policy=attrs.evolve(config.policy, select="select/linear"))
    given = [
        attrs.evolve(job, submit_at=job.submit_at + at / 100, begin_at=None, time_limit=3000.0)
        for at, job in enumerate(jobs(chance))
    ]
    assert ran(config, given).short > len(given)

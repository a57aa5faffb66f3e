"""Replays that nobody watches start the same jobs, then and there, as with every priority at its time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import JobSpec
from makeway.settings import structure
from makeway.worlds.events import Action, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine

NAME = "priority/multifactor"
USERS = 6
Started = list[tuple[float, str, int]]


def site(**settings: Any) -> Config:
    """Return 9 nodes under EASY, two accounts, and a partition of few nodes."""
    accounts = [{"Account": name, "Share": str(at)} for at, name in ((1, "a"), (2, "b"))]
    users = [{"Account": "ab"[at % 2], "User": f"u{at}"} for at in range(USERS)]
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}},
        "node": [{"name": "n[1-9]", "cpus": 2, "cores_per_socket": 2}],
        "partition": [
            {"name": "main", "default": True},
            {"name": "few", "nodes": "n[1-4]", "priority_tier": 2},
        ],
        "policy": {"priority": NAME, "settings": {NAME: {"calc_period": 60.0, **settings}}},
        "scheduler": {"type": "easy", "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random) -> list[JobSpec]:
    """Return large jobs, and small ones that may start beside them; some take more nodes than they name."""
    grain, found = chance.choice((1, 7, 60)), list[JobSpec]()
    many = chance.choice((2, 4))
    for at in range(90):
        small = chance.random() < 0.7
        limit = chance.choice((120.0, 600.0, 3000.0)) if small else chance.choice((900.0, 3000.0, None))
        found.append(
            JobSpec(
                id=str(at),
                submit_at=float(chance.randrange(18000) // grain * grain),
                user=f"u{chance.randrange(USERS)}",
                partitions=("few",) if small and chance.random() < 0.15 else (),
                min_nodes=chance.choice((1, 1, 2)) if small else chance.choice((5, 7, 9)),
                tasks=many if small and chance.random() < 0.2 else 1,
                run_time=min(limit or 1000.0, float(chance.randrange(1, 2000))),
                time_limit=limit,
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


def started(config: Config, given: Sequence[JobSpec], monkeypatch: pytest.MonkeyPatch) -> Started:
    """Replay, and return what started, when and where."""
    found: Started = []
    step = Engine.step

    def looked_at(engine: Engine, now: float, events: Sequence[Event]) -> list[Action]:
        actions = step(engine, now, events)
        found.extend((now, each.job.id, each.job.nodes) for each in actions)
        return actions

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "step", looked_at)
        replay(config, given, (), Options(keep=False))
    return found


def drawn(seed: int) -> tuple[Config, list[JobSpec]]:
    """Return a site and its jobs."""
    chance = random.Random(seed)
    settings = {
        "decay_half_life": chance.choice((0.0, 6000.0, 86400.0)),
        "max_age": chance.choice((3000.0, 86400.0)),
        "weight_age": chance.choice((0, 100, 5000)),
        "weight_fairshare": chance.choice((1000, 20)),
        "weight_job_size": chance.choice((0, 300)),
    }
    return site(**settings), jobs(chance)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(32, id="usage of who has just ended counts from the next recalculation on"),
        pytest.param(335, id="it makes ranks tie"),
        pytest.param(96, id="more than was to spare was taken beside the first job"),
        pytest.param(455, id="who came gains on who ages no more"),
        *range(20),
    ],
)
def test_what_starts_is_as_with_every_priority_at_its_time(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Some that stand in line age no more, ends lie between recalculations, and some leave their partition room."""
    config, given = drawn(seed)
    unwatched = started(config, given, monkeypatch)
    monkeypatch.setattr(Engine, "be_patient", lambda engine, **_: None)
    assert unwatched == started(config, given, monkeypatch)

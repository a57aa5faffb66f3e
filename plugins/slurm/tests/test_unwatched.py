"""Replays that nobody watches start the same jobs, then and there, as with every priority at its time."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import Job, JobSpec, Partition, Seconds
from makeway.settings import structure
from makeway.worlds.events import Action, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.express_leisure import LeisurelyPasses

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
        pytest.param(425, id="two come at once while the first job can never start"),
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


def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Return who was tried beside the first one, and whether he was in nobody's way."""
    tried: dict[str, bool] = {}
    beside = LeisurelyPasses.start_beside

    def start_beside(
        passes: LeisurelyPasses,
        job: Job,
        partition: Partition,
        wanted: int,
        now: Seconds,
        stands: Callable[[Seconds], bool],
    ) -> bool:
        tried[job.id] = beside(passes, job, partition, wanted, now, stands)
        return tried[job.id]

    monkeypatch.setattr(LeisurelyPasses, "start_beside", start_beside)
    return tried


@pytest.mark.parametrize("seed", range(20, 40))
def test_who_starts_at_once_starts_in_a_pass_as_well(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Where a job is in nobody's way (`LeisurelyPasses.start_beside`), standing in the queue first changes nothing."""
    config, given = drawn(seed)
    tried = counted(monkeypatch)
    quick = started(config, given, monkeypatch)
    assert any(tried.values())
    monkeypatch.setattr(LeisurelyPasses, "start_beside", lambda *_: False)
    assert quick == started(config, given, monkeypatch)
    monkeypatch.setattr(Engine, "be_patient", lambda engine, **_: None)
    assert quick == started(config, given, monkeypatch)


def come(*rows: tuple[str, float, int, float]) -> list[JobSpec]:
    """Return jobs by id, submission, nodes and time limit, which they use up."""
    return [
        JobSpec(
            id=job_id, submit_at=at, user=f"u{at % 4:.0f}", min_nodes=nodes, run_time=limit, time_limit=limit
        )
        for job_id, at, nodes, limit in rows
    ]


HELD = (("runs", 0.0, 6, 1000.0), ("first", 1.0, 7, 500.0))
"""From 1 s on the first one waits for 7 nodes, which it gets at 1,000 s; 3 are idle, and 2 of 9 to spare."""


@pytest.mark.parametrize(
    ("row", "goes"),
    [
        (("short", 2.0, 3, 900.0), True),
        (("spare", 2.0, 2, 5000.0), True),
        (("long", 2.0, 3, 5000.0), False),
        (("large", 2.0, 4, 10.0), False),
    ],
)
def test_only_who_is_in_nobodys_way_goes_beside(
    monkeypatch: pytest.MonkeyPatch, row: tuple[str, float, int, float], *, goes: bool
) -> None:
    """Who is over by then, or leaves as many nodes as the first one needs."""
    tried = counted(monkeypatch)
    found = started(site(weight_fairshare=1000), come(*HELD, row), monkeypatch)
    assert tried[row[0]] is goes
    assert ((2.0, row[0]) in [(at, job_id) for at, job_id, _ in found]) is goes


def test_what_was_to_spare_is_taken_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two jobs of two nodes that outlast the room kept would leave too few nodes."""
    tried = counted(monkeypatch)
    given = come(*HELD, ("one", 2.0, 1, 5000.0), ("two", 3.0, 2, 5000.0))
    found = started(site(weight_fairshare=0), given, monkeypatch)
    assert tried == {"one": True, "two": False}
    assert (1000.0, "first") in [(at, job_id) for at, job_id, _ in found]


def test_others_are_looked_at_first_who_may_start_since_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room is kept anew after an end only where it is too small for all who wait."""
    tried = counted(monkeypatch)
    given = come(("brief", 0.0, 1, 5.0), *HELD, ("late", 8.0, 2, 100.0))
    assert ("late", 8.0) in [(job_id, at) for at, job_id, _ in started(site(), given, monkeypatch)]
    assert tried == {"late": True}

"""Those who wait stand as priorities say that nobody has worked out (`makeway_slurm.multifactor.line`)."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.priorities import Priorities
from makeway_slurm.multifactor.leisure import priorities_at
from makeway_slurm.multifactor.prioritizer import Multifactor

NAME = "priority/multifactor"
USERS = 4


def site(cpus: int = 1, **settings: Any) -> Config:
    """Return 7 nodes of so many CPUs under EASY, two accounts of two users, and a partition of a higher tier."""
    accounts = [{"Account": name, "Share": str(at)} for at, name in ((1, "a"), (2, "b"))]
    users = [{"Account": "ab"[at % 2], "User": f"u{at}"} for at in range(USERS)]
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}},
        "node": [{"name": "n[1-7]", "cpus": cpus}],
        "partition": [{"name": "main", "default": True}, {"name": "high", "priority_tier": 2}],
        "policy": {"priority": NAME, "settings": {NAME: {"calc_period": 60.0, **settings}}},
        "scheduler": {"type": "easy", "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random) -> list[JobSpec]:
    """Return jobs that wait for long; some come at a recalculation, depend on others, or have a priority."""
    grain = chance.choice((1, 1, 30, 60))
    found: list[JobSpec] = []
    for at in range(70):
        submit = float(chance.randrange(12000) // grain * grain)
        more: dict[str, Any] = {}
        if chance.random() < 0.1:
            more["begin_at"] = submit + chance.randrange(1000)
        elif found and chance.random() < 0.1:
            more["depends_on"] = (found[-1].id,)
        elif chance.random() < 0.02:
            more["priority"] = 500
        found.append(
            JobSpec(
                id=str(at),
                submit_at=submit,
                user=f"u{chance.randrange(USERS)}",
                partitions=("high",) if chance.random() < 0.1 else (),
                min_nodes=chance.choice((1, 1, 2, 3, 6)),
                nice=chance.choice((0, 0, 0, 0, 3)),
                run_time=float(chance.randrange(1, 1500)),
                time_limit=chance.choice((600.0, 1500.0, 3000.0)),
                **more,
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


def looked_at(monkeypatch: pytest.MonkeyPatch, config: Config, given: list[JobSpec]) -> Counter[bool]:
    """Replay, and hold each order against the priorities of its recalculation; count those that were not worked out."""
    settle, told = Priorities.settle, Counter[bool]()

    def checked(priorities: Priorities, *, roughly: bool = False, due: bool | None = None) -> bool:
        found = settle(priorities, roughly=roughly, due=due)
        told[priorities._rough] += 1
        multifactor, queue = priorities.prioritizer, priorities._queue
        assert isinstance(multifactor, Multifactor)
        line = [job for _, job, _ in queue.entries]
        second = math.floor(multifactor.worked_out_at + 1e-6)
        assert multifactor.worked_out_at == multifactor.book.next_at - 60.0
        values = priorities_at(
            line,
            second,
            multifactor._known,
            multifactor._look_at,
            multifactor._fairshare_by_index(),
            multifactor.settings,
        )
        exact: dict[str, Any] = {
            job.id: job.priority if job.id in priorities.given else value
            for job, value in zip(line, values, strict=True)
        }

        def place(job: Any) -> tuple[Any, ...]:
            return -job.partition.priority_tier, -exact[job.id], job.submit_at, job.index

        assert [job.id for job in line] == [job.id for job in sorted(line, key=place)]
        if not priorities._rough:
            assert {job.id: job.priority for job in line} == exact
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Priorities, "settle", checked)
        replay(config, given, (), Options())
    return told


@pytest.mark.parametrize("seed", range(12))
def test_all_stand_as_their_priorities_say(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """With whatever weights, and however soon jobs are as old as can be."""
    chance = random.Random(seed)
    settings: dict[str, Any] = {
        "decay_half_life": chance.choice((0.0, 6000.0, 86400.0)),
        "max_age": chance.choice((600.0, 3000.0, 86400.0)),
        "weight_age": chance.choice((0, 10, 100, 1000)),
        "weight_fairshare": chance.choice((0, 1, 100, 10000)),
        "weight_job_size": chance.choice((0, 7, 50)),
    }
    looked_at(monkeypatch, site(chance.choice((1, 1, 4)), **settings), jobs(chance))


LARGE: Mapping[str, Any] = {"weight_age": 1, "weight_job_size": 700}


def test_often_nothing_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sums lie far apart."""
    chance = random.Random(1)
    given = [job for job in jobs(chance) if job.priority is None]
    told = looked_at(monkeypatch, site(decay_half_life=86400.0, max_age=86400.0, **LARGE), given)
    assert told[True] > 20


def test_two_of_nearly_the_same_sum_are_worked_out_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off to a whole number, now the one has the larger sum, now both have the same: the older one is first then.

    Both have age 1 in 100 s, and the smaller one is half a point ahead by its size.
    """
    settings: dict[str, Any] = {
        "weight_age": 100,
        "max_age": 10000.0,
        "weight_job_size": 7,
        "favor_small": True,
    }
    common: dict[str, Any] = {"user": "u0", "run_time": 9000.0, "time_limit": 10000.0}
    short: dict[str, Any] = {"user": "u1", "run_time": 10.0, "time_limit": 20.0}
    given = [
        JobSpec(id="all", submit_at=0.0, min_nodes=6, **common),
        JobSpec(id="older", submit_at=30.0, min_nodes=3, **common),
        JobSpec(id="small", submit_at=31.0, min_nodes=2, **common),
        *(JobSpec(id=f"s{at}", submit_at=100.0 + at * 50, **short) for at in range(30)),
    ]
    told = looked_at(monkeypatch, site(**settings), given)
    assert told[False] > told[True]

"""Who is first of many waiting jobs, though few have a priority: as with every priority at its time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from makeway.config import Config
from makeway.errors import PolicyError
from makeway.model import Exclusive, JobSpec, Seconds
from makeway.settings import structure
from makeway.worlds.events import Action, Event
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.patience import Patience
from makeway_engine.schedulers.contest import Contest
from makeway_slurm.multifactor.prioritizer import Multifactor

NAME = "priority/multifactor"
PERIOD = 60.0
USERS = 6


def site(chance: random.Random, scheduler: str) -> Config:
    """Return 8 nodes with 4 CPUs, two accounts, and limits that keep nobody out."""
    limits = {"GrpTRES": "cpu=1000", "GrpJobs": "1000", "GrpSubmit": "1000"}
    accounts = [{"Account": name, "Share": str(chance.randint(1, 3)), **limits} for name in ("a", "b")]
    users = [
        {"Account": "ab"[at % 2], "User": f"u{at}", "Share": chance.choice(("0", "1", "2"))}
        for at in range(USERS)
    ]
    settings = {
        "calc_period": PERIOD,
        "decay_half_life": chance.choice((0.0, 6000.0, 86400.0)),
        "max_age": chance.choice((600.0, 3000.0, 86400.0)),
        "weight_age": chance.choice((0, 3, 100, 1000)),
        "weight_fairshare": chance.choice((0, 5, 1000)),
        "weight_job_size": chance.choice((0, 50)),
        "weight_partition": chance.choice((0, 20)),
    }
    partitions: list[dict[str, Any]] = [{"name": "main", "default": True}]
    if chance.random() < 0.6:
        partitions.append({"name": "few", "nodes": "n[1-3]", "priority_job_factor": 2})
        partitions.append(
            {"name": "other", "nodes": "n[4-8]", "priority_tier": chance.choice((1, 2))},
        )
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}},
        "node": [{"name": "n[1-8]", "cpus": 4, "cores_per_socket": 4}],
        "partition": partitions,
        "qos": [{"name": "q"}],
        "policy": {
            "priority": NAME,
            "settings": {NAME: settings},
            "plugins": ["limits/slurm"],
            "select": chance.choice(("select/linear", "select/linear", "select/cons_tres")),
        },
        "scheduler": {"type": scheduler, "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random, config: Config) -> list[JobSpec]:
    """Return jobs that come faster than they go, some at once or when priorities are recalculated."""
    names = [each.name for each in config.partition]
    grain, odd = chance.choice((1, 15, int(PERIOD))), chance.random() < 0.3
    found: list[JobSpec] = []
    for at in range(chance.choice((40, 120))):
        submit = float(chance.randrange(6000) // grain * grain)
        if found and chance.random() < 0.2:
            submit = found[-1].submit_at
        partition = chance.choice(names)
        nodes = chance.choice((1, 1, 2, 3, 6)) if partition == "main" else chance.choice((1, 2, 3))
        more: dict[str, Any] = {}
        if odd and chance.random() < 0.1:
            more = chance.choice(
                (
                    {"begin_at": submit + 200.0},
                    {"priority": 40},
                    {"nice": 3},
                    {"required_nodes": ("n4",)},
                    {"exclusive": Exclusive.NODE},
                )
            )
        if "required_nodes" in more and partition == "few":
            more = {}
        found.append(
            JobSpec(
                id=str(at),
                submit_at=submit,
                user=f"u{chance.randrange(USERS)}",
                partitions=(partition,),
                qos="q",
                min_nodes=nodes,
                tasks=4 * nodes,
                run_time=float(chance.choice((30, 60, chance.randrange(1, 2000)))),
                time_limit=chance.choice((600.0, 3000.0, None)),
                **more,
            )
        )
    found = [attrs.evolve(job, account="ab"[int(job.user[1:]) % 2]) for job in found]
    return sorted(found, key=lambda job: job.submit_at)


def job(name: str, at: int, user: str) -> JobSpec:
    """Return a job that takes all nodes for a minute."""
    return JobSpec(
        id=name,
        submit_at=float(at),
        user=user,
        account="ab"[int(user[1:]) % 2],
        qos="q",
        min_nodes=8,
        run_time=60.0,
    )


@attrs.define
class Ran:
    """What became of a replay that nobody watches."""

    jobs: Any
    actions: list[tuple[float, list[tuple[str, str, int]]]]
    """By step: what was ordered, for which job, on which nodes."""
    passes: Counter[bool]
    """How often a pass went by a contest, or could not."""


def ran(config: Config, given: Sequence[JobSpec]) -> Ran:
    """Replay."""
    actions: list[tuple[float, list[tuple[str, str, int]]]] = []
    passes: Counter[bool] = Counter()
    step, goes_by = Engine.step, Patience._goes_by

    def looked_at(engine: Engine, now: Seconds, events: Sequence[Event]) -> list[Action]:
        found = step(engine, now, events)
        if found:
            actions.append((now, [(type(each).__name__, each.job.id, each.job.nodes) for each in found]))
        return found

    def counted(patience: Patience, contest: Contest, now: Seconds) -> bool:
        found = goes_by(patience, contest, now)
        passes[found] += 1
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Engine, "step", looked_at)
        patched.setattr(Patience, "_goes_by", counted)
        run = replay(config, given, (), Options())
    return Ran(run.summary()["jobs"], actions, passes)


@pytest.mark.parametrize("scheduler", ["builtin", "greedy"])
@pytest.mark.parametrize("seed", range(40))
def test_all_is_as_with_every_priority_at_its_time(
    monkeypatch: pytest.MonkeyPatch, scheduler: str, seed: int
) -> None:
    """Jobs, their order and nodes are the same."""
    chance = random.Random(f"{scheduler} {seed}")
    config = site(chance, scheduler)
    given = jobs(chance, config)
    few = ran(config, given)
    monkeypatch.setattr(Engine, "be_patient", lambda engine, **_: None)
    every = ran(config, given)
    assert not every.passes
    assert (few.jobs == every.jobs, few.actions == every.actions) == (True, True)


@pytest.mark.parametrize("scheduler", ["builtin", "greedy"])
def test_plain_jobs_contend(scheduler: str) -> None:
    """One partition, nodes counted: no pass gives all a priority, and far fewer are asked for than wait."""
    chance = random.Random(3)
    config = site(chance, scheduler)
    policy = attrs.evolve(config.policy, select="select/linear")
    config = attrs.evolve(config, policy=policy, partition=config.partition[:1])
    given = [
        JobSpec(
            id=str(at),
            submit_at=float(10 * at),
            user=f"u{at % 2}",
            account="ab"[at % 2],
            qos="q",
            min_nodes=2,
            tasks=8,
            run_time=400.0,
            time_limit=600.0,
        )
        for at in range(200)
    ]
    asked: list[int] = []
    of_some = Multifactor.of_some

    def counted(policy: Multifactor, jobs: Any, view: Any) -> Any:
        asked.append(len(jobs))
        return of_some(policy, jobs, view)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Multifactor, "of_some", counted)
        passes = ran(config, given).passes
    assert passes[True] > 100
    assert passes[False] <= 1  # before all is calm
    assert max(asked, default=0) <= 2  # two users, jobs of one size
    assert sum(asked) < 400


def test_kinds_are_told_apart_by_what_the_priority_is_made_of() -> None:
    """Of one user and size, jobs keep their order; with another nice value, they may change places."""
    config = site(random.Random(5), "builtin")
    kinds: dict[str, Any] = {}
    kind_of = Multifactor.kind_of

    def noted(policy: Multifactor, job: Any, view: Any) -> Any:
        found = kinds[job.id] = kind_of(policy, job, view)
        return found

    made = [
        job("first", 0, "u0"),
        job("one", 1, "u0"),
        job("same", 2, "u0"),
        attrs.evolve(job("nice", 3, "u0"), nice=7),
        job("other", 4, "u1"),
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Multifactor, "kind_of", noted)
        replay(config, made, (), Options())
    assert kinds["one"] == kinds["same"]
    assert len({kinds[name] for name in ("one", "nice", "other")}) == 3


@pytest.mark.parametrize(
    ("verb", "answer", "said"),
    [
        ("kind_of", [], "unhashable"),
        ("standings", [], "standings returned"),
        ("standings", [(1.0, 0.0)], "allowed: a number and a later instant"),
        ("ranks_until", None, "ranks_until returned None"),
        ("next_after", 0.0, "next_after returned 0.0"),
    ],
)
def test_an_answer_that_is_none_is_named(
    monkeypatch: pytest.MonkeyPatch, verb: str, answer: object, said: str
) -> None:
    """The error names what was answered, and what is allowed."""
    monkeypatch.setattr(Multifactor, verb, lambda *_: answer)
    config = site(random.Random(5), "builtin")
    made = [job(str(at), at, f"u{at % 2}") for at in range(5)]
    with pytest.raises(PolicyError, match=said):
        replay(config, made, (), Options())

"""What is known for sure without looking is so: which is taken, ranks that stand, usage kept in columns."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from makeway.config import Config
from makeway.model import Job, JobSpec, Seconds
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.limits.judge import Judge
from makeway_slurm.limits.submission import Submission

USERS = 4
NAME = "priority/multifactor"


def site(chance: random.Random, *, safe: bool = False, **settings: Any) -> Config:
    """Return 4 nodes with 4 CPUs, and limits of every kind, most of them near but not always tight."""

    def some(**limits: tuple[str, ...]) -> dict[str, str]:
        return {name: chance.choice(values) for name, values in limits.items() if chance.random() < 0.5}

    def of_association() -> dict[str, str]:
        return some(
            GrpTRES=("cpu=12,node=3", "cpu=40", "cpu=1000,node=1000"),
            GrpTRESMins=("cpu=3000", "cpu=20000", "cpu=1000000"),
            GrpTRESRunMins=("cpu=1000", "cpu=2000", "cpu=1000000", "cpu=1000000"),
            GrpJobs=("3", "100"),
            GrpWall=("300", "1000000"),
            GrpSubmit=("6", "1000"),
            MaxTRESMins=("cpu=300", "cpu=100000"),
        )

    accounts = [{"Account": name, "Share": str(at), **of_association()} for at, name in ((1, "a"), (2, "b"))]
    users = [{"Account": "ab"[at % 2], "User": f"u{at}", **of_association()} for at in range(USERS)]
    qos = some(
        GrpTRES=("cpu=12", "node=4", "cpu=1000"),
        MaxTRESPU=("cpu=12", "cpu=1000"),
        MaxTRESPA=("cpu=16", "cpu=1000"),
        MaxTRESPerJob=("cpu=12", "cpu=1000"),
        MaxTRESRunMinsPU=("cpu=900", "cpu=100000"),
        MinTRES=("cpu=8",),
        MaxJobsPU=("2", "100"),
        MaxSubmitPU=("4", "100"),
        MaxWall=("60", "1000"),
    )
    weights = {"weight_age": 1000, "weight_fairshare": 10000, "weight_job_size": 10}
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}},
        "node": [{"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4}],
        "partition": [{"name": "main", "default": True}],
        "qos": [
            {"name": "normal", "attributes": qos},
            {"name": "free", "attributes": {"UsageFactor": chance.choice(("0", "0.1", "2"))}},
        ],
        "policy": {
            "priority": NAME,
            "plugins": ["limits/slurm"],
            "settings": {
                NAME: {
                    "calc_period": 60.0,
                    "decay_half_life": chance.choice((0.0, 1200.0, 86400.0)),
                    **weights,
                    **settings,
                },
                "limits/slurm": {"safe": safe},
            },
        },
        "scheduler": {"type": chance.choice(("easy", "greedy")), "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random, span: int = 6000) -> list[JobSpec]:
    """Return 50 jobs of four users."""
    found = []
    for at in range(50):
        user, nodes = chance.randrange(USERS), chance.randint(1, 4)
        found.append(
            JobSpec(
                id=str(at),
                submit_at=float(chance.randint(0, span)),
                user=f"u{user}",
                account="ab"[user % 2],
                qos=chance.choice(("normal", "normal", "normal", "free")),
                min_nodes=nodes,
                max_nodes=nodes,
                tasks=4 * nodes if at % 3 else nodes,
                required_nodes=chance.choice(((), (), (), ("n1",))) if nodes == 1 else (),
                run_time=float(chance.randint(1, 3000)),
                time_limit=chance.choice((600.0, 3000.0, 3600.0, 90.3)),
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


@pytest.mark.slow
def test_a_job_that_is_surely_taken_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """No job is refused of which it was sure that it is taken; some are refused."""
    takes, told = Submission.takes, Counter[bool]()

    def checked(submission: Submission, job: Job) -> bool:
        found = takes(submission, job)
        why = submission.refused(job)
        told[found] += 1
        told[bool(why)] += 0
        assert not (found and why), (job.id, why)
        return found

    monkeypatch.setattr(Submission, "takes", checked)
    for seed in range(8):
        chance = random.Random(seed)
        replay(site(chance), jobs(chance, 1000), (), Options())
    assert min(told[True], told[False]) > 10, told


@pytest.mark.slow
def test_no_job_has_to_end_while_it_is_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is asked all the same, it says that no job has to end."""
    step, told = Engine.step, Counter[bool]()

    def checked(engine: Engine, now: Seconds, events: Any) -> Any:
        found = step(engine, now, events)
        ending = engine.ledger.book(Judge).ending
        if ending.calm_until() > now:
            overdue = ending.overdue()
            assert overdue is None or not overdue.jobs
            told[True] += 1
        else:
            told[False] += 1
        return found

    monkeypatch.setattr(Engine, "step", checked)
    for seed in range(6):
        chance = random.Random(seed)
        replay(site(chance), jobs(chance), (), Options())
    assert told[True] > 1000
    assert told[False]


def amounts(
    ran: Mapping[str, tuple[float, float, float, float]], at: float, per_second: float, period: int
) -> tuple[float, float]:
    """Return usage and what may still be used at an instant, from recalculation to recalculation.

    :param ran: by job: start, end, what is charged for a second, and the time limit.
    """
    used, last = 0.0, 0
    ticks = [*range(period, int(at) + 1, period)]
    for now in ticks:
        used *= per_second ** (now - last)
        for start, end, rate, _ in ran.values():
            if (start < last and end > last) or last <= start < now:
                begun, over = max(int(start), last), min(int(end), now)
                length = max(0, over - begun)
                left = per_second ** (now - last) if over < now else 1.0
                used += rate * length * per_second**length * left
        last = now
    owed = 0.0
    for start, end, rate, limit in ran.values():
        if start <= at < end:
            owed += rate * (limit - max(0, last - int(start)))
        elif last <= end <= at:
            length = max(0, int(end) - max(int(start), last))
            used += rate * length * per_second**length
    return used, max(0.0, owed)


@pytest.mark.parametrize("seed", range(6))
def test_usage_in_columns_is_what_each_job_was_charged(seed: int) -> None:
    """Piece by piece: what a user was charged for CPUs, nodes and wall time, and what running jobs may still use."""
    chance = random.Random(seed)
    config = site(chance, decay_half_life=float(chance.choice((0, 3000, 86400))))
    given = jobs(chance, 9000)
    factor = {"normal": 1.0, "free": float(config.qos[1].attributes["UsageFactor"])}
    looks: dict[float, dict[str, list[float]]] = {}
    names = ("raw", "cpu", "node", "wall")

    def look(engine: Engine, at: float) -> None:
        book = engine.ledger.book(UsageBook)
        book.advance(at)
        assert book.tree is not None
        looks[at] = {
            node.user: [
                *map(book.associations[node.index].used, names),
                book.associations[node.index].may_use("cpu"),
            ]
            for node in book.tree.users
        }

    times = [float(chance.randint(100, 12000)) + 0.5 for _ in range(12)]
    shots = {at: (lambda engine, at=at: look(engine, at)) for at in times}
    run = replay(config, given, (), Options(snapshots=shots))
    specs = {spec.id: spec for spec in given}
    half_life = config.policy.settings[NAME]["decay_half_life"]
    per_second = 1.0 - 0.693 / half_life if half_life else 1.0
    for at, seen in looks.items():
        for user in {spec.user for spec in given}:
            for place, size in enumerate((4, 4, 1, 0)):
                ran = {}
                for job_id, job in run.summary()["jobs"].items():
                    spec = specs[job_id]
                    if spec.user == user:
                        rate = (size * spec.min_nodes if size else 1) * factor[spec.qos or "normal"]
                        for each in job["intervals"]:
                            if each["state"] == "RUNNING":
                                ran[job_id] = each["start"], each["end"], rate, spec.time_limit or 0.0
                used, owed = amounts(ran, at, per_second, 60)
                assert seen[user][place] == pytest.approx(used, rel=1e-9, abs=1e-6), (user, at, names[place])
                if place == 1:
                    assert seen[user][4] == pytest.approx(owed, rel=1e-9, abs=1e-6)

"""Limits that are far away are passed at a glance: a job that is held is held as if each had been looked at."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import attrs
import pytest

from makeway.config import Config
from makeway.model import Blocked, ClusterView, Job, JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_slurm.limits.judge import Judge
from makeway_slurm.limits.kinds import Kind
from makeway_slurm.limits.waiting import Waiting

USERS = 4


def site(chance: random.Random, *, safe: bool) -> Config:
    """Return 4 nodes with 4 CPUs, and limits of every kind, a few of them tight."""

    def some(**limits: tuple[str, ...]) -> dict[str, str]:
        return {name: chance.choice(values) for name, values in limits.items() if chance.random() < 0.6}

    def of_association() -> dict[str, str]:
        return some(
            GrpTRES=("cpu=6", "cpu=12,node=3", "node=2", "cpu=1000"),
            GrpTRESMins=("cpu=300", "cpu=2000", "cpu=1000000", "mem=100000"),
            GrpTRESRunMins=("cpu=200", "cpu=2000", "cpu=1000000"),
            GrpJobs=("1", "3", "100"),
            GrpWall=("60", "300", "1000000"),
        )

    accounts = [{"Account": name, **of_association()} for name in ("a", "b")]
    users = [{"Account": "ab"[at % 2], "User": f"u{at}", **of_association()} for at in range(USERS)]
    qos = some(
        GrpTRES=("cpu=10", "node=3", "cpu=1000"),
        MaxTRESPU=("cpu=8", "node=2", "cpu=1000"),
        MaxTRESPA=("cpu=8", "cpu=1000"),
        MaxTRESPerJob=("cpu=12", "cpu=1000"),
        MaxTRESRunMinsPU=("cpu=300", "cpu=100000"),
        GrpTRESMins=("cpu=1000", "cpu=1000000"),
        MaxJobsPU=("2", "100"),
        MaxWall=("60", "1000"),
    )
    tables = {
        "cluster": {"attributes": {"associations": [*accounts, *users]}},
        "node": [{"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4}],
        "partition": [{"name": "main", "default": True}],
        "qos": [
            {"name": "normal", "attributes": qos},
            {"name": "free", "attributes": {"UsageFactor": "0"}},
        ],
        "policy": {
            "priority": "priority/multifactor",
            "plugins": ["limits/slurm"],
            "settings": {
                "priority/multifactor": {
                    "calc_period": 60.0,
                    "decay_half_life": chance.choice((0.0, 1200.0, 86400.0)),
                },
                "limits/slurm": {"safe": safe},
            },
        },
        "scheduler": {"type": chance.choice(("easy", "greedy")), "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def jobs(chance: random.Random) -> list[JobSpec]:
    """Return 45 jobs of four users."""
    found = []
    for at in range(45):
        user, nodes = chance.randrange(USERS), chance.randint(1, 4)
        found.append(
            JobSpec(
                id=str(at),
                submit_at=float(chance.randint(0, 4000)),
                user=f"u{user}",
                account="ab"[user % 2],
                qos=chance.choice(("normal", "normal", "normal", "free")),
                min_nodes=nodes,
                max_nodes=nodes,
                tasks=4 * nodes,
                required_nodes=chance.choice(((), (), (), ("n1",))) if nodes == 1 else (),
                run_time=float(chance.randint(1, 3000)),
                time_limit=chance.choice((600.0, 3000.0, 3600.0)),
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


def plainly(judge: Judge, job: Job, view: ClusterView) -> Blocked | None:
    """Look at all limits that hold for a job, one by one."""
    asked = judge.requests.known(job)
    judge._usage.advance(view.now)
    before: list[Blocked] = []
    hopeless: list[Blocked] = []
    after: list[Blocked] = []
    for each in judge.listing.of(judge._counts.seat(job), job.user):
        found = judge.waiting.against(each, job, asked, view)
        if found is None:
            continue
        if each.kind in (Kind.JOBS, Kind.USED_WALL, Kind.WALL, Kind.LEAST_FACTOR):
            assert found.before_nodes
            before.append(found)
        elif each.name == "node" and each.kind in (Kind.TRES, Kind.JOB_TRES) and job.size > each.most:
            hopeless.append(found)
        else:
            after.append(found)
    answers = [*before, *hopeless, *after]
    if not answers or before or hopeless:
        return answers[0] if answers else None
    if not all(found.depends_on_nodes for found in answers):
        return attrs.evolve(answers[0], counted=(), least_nodes=0)
    return attrs.evolve(
        answers[0],
        counted=tuple(each for found in answers for each in found.counted),
        least_nodes=max(found.least_nodes for found in answers),
    )


@pytest.mark.slow
@pytest.mark.parametrize("safe", [False, True])
def test_no_job_is_held_otherwise(monkeypatch: pytest.MonkeyPatch, safe: bool) -> None:
    """Every answer of eight random sites is that of a look at each limit in turn; all kinds hold some job."""
    blocked, held = Waiting.blocked, Counter[str]()

    def both(waiting: Waiting, job: Job, view: ClusterView) -> Any:
        found = blocked(waiting, job, view)
        assert found == plainly(view.book(Judge), job, view), (job.id, view.now)
        held[found.reason if found is not None else ""] += 1
        return found

    monkeypatch.setattr(Waiting, "blocked", both)
    for seed in range(8):
        chance = random.Random(seed)
        replay(site(chance, safe=safe), jobs(chance), (), Options(until=7000.0))
    kinds = ("", "GrpCpu", "GrpNode", "Jobs", "Minutes", "RunMin", "Wall")
    missing = [kind for kind in kinds if not any(kind in reason for reason in held)]
    assert not missing, held

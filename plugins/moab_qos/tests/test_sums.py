"""Hold what limits count as jobs come and go to adding all active jobs up."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import attrs
import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, QosTable, SchedulerTable
from makeway.model import ClusterView, Job, JobSpec, Seconds
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_engine.entries import Entry
from makeway_engine.schedulers.greedy import Greedy
from makeway_engine.schedulers.one_by_one import OneByOne
from makeway_moab_qos import order
from makeway_moab_qos.limits import added_up, are_beyond_soft, beyond_soft, limits_of, used
from makeway_moab_qos.priority import start_priorities, start_priority

LIMITS = {"max_job": [3, 5], "max_proc": [8], "max_node": [6]}


def _config() -> Config:
    settings = {
        "user": {"DEFAULT": LIMITS},
        "group": {"DEFAULT": LIMITS},
        "klass": {"batch": LIMITS},
        "qos": {
            "high": {"flags": ["PREEMPTOR"], **LIMITS},
            "low": {"flags": ["PREEMPTEE"], **LIMITS},
        },
    }
    return Config(
        node=(NodeTable(name="n[1-6]", cpus=4),),
        partition=(PartitionTable(name="batch", default=True),),
        qos=(QosTable(name="high", priority=1000, preempt=("low",)), QosTable(name="low")),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core",),
            preempt="moab/qos",
            preempt_mode=("requeue",),
            settings={"moab/qos": settings},
        ),
        scheduler=SchedulerTable(type="greedy"),
    )


def _jobs(seed: int) -> list[JobSpec]:
    chance = Random(seed)
    instants = sorted(chance.randrange(600) for _ in range(50))
    return [
        JobSpec(
            id=str(at + 1),
            user=f"u{chance.randrange(3)}",
            group=chance.choice((None, "g1", "g2")),
            qos=chance.choice(("high", "low", "low")),
            submit_at=float(instant),
            run_time=float(chance.randint(5, 200)),
            time_limit=300.0,
            tasks=chance.choice((1, 1, 2, 6)),
        )
        for at, instant in enumerate(instants)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_what_adding_up_comes_to(seed: int) -> None:
    """For every job that waits or runs, after each step."""
    compared: list[int] = []

    def look(engine: Engine) -> None:
        ledger = engine.ledger
        for job in ledger.jobs.values():
            for limit in limits_of(job, ledger):
                compared.append(used(limit, ledger.active, ledger))
                assert compared[-1] == added_up(limit, ledger.active, ledger), limit.whose

    replay(_config(), _jobs(seed), (), Options(after_step=look))
    assert len(compared) > 1000
    assert sum(map(bool, compared)) > 500


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_to_all_alike_is_said_to_each(seed: int) -> None:
    """Which soft limit a waiting job would be beyond, added up for it alone."""
    said: list[str] = []

    def look(engine: Engine) -> None:
        ledger = engine.ledger
        for job in ledger.pending:
            alone = ""
            for limit in limits_of(job, ledger):
                wants = {"max_job": 1, "max_proc": job.spec.cpus, "max_node": job.size}[limit.kind]
                taken = added_up(limit, ledger.active, ledger)
                if taken + wants > limit.soft:
                    alone = f"{limit.whose}: {taken} of {limit.soft} in use"
                    break
            said.append(beyond_soft(job, ledger))
            assert said[-1] == alone

    replay(_config(), _jobs(seed), (), Options(after_step=look, keep=False))
    assert sum(map(bool, said)) > 100


@pytest.mark.parametrize("seed", range(4))
def test_who_stands_before_is_listed_as_it_was_tried(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waiting job once, though the list only grows."""
    listed: list[int] = []
    before = Greedy._before

    def noted(self: Greedy, entry: Entry) -> list[Job]:
        found = list(before(self, entry))
        assert found == list(dict.fromkeys(each[1] for each in self._waiting))
        listed.append(len(found))
        return found

    monkeypatch.setattr(OneByOne, "begins", lambda self, attempts: False)
    monkeypatch.setattr(Greedy, "_before", noted)
    replay(_config(), _jobs(seed), (), Options(keep=False))
    assert max(listed) > 5


@pytest.mark.parametrize("weights", [{"serv": 2}, {"serv": 1, "xfactor": 3, "queue_time": 0}, {"bypass": 5}])
def test_the_whole_queue_is_ranked_as_job_by_job(
    weights: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Priorities and soft limits of all that wait, in each pass."""
    compared: list[int] = []

    def ranked(jobs: Sequence[Job], view: ClusterView, now: Seconds) -> list[int]:
        found = list(start_priorities(jobs, view, now))
        assert found == [start_priority(job, view, now) for job in jobs]
        assert list(are_beyond_soft(jobs, view)) == [bool(beyond_soft(job, view)) for job in jobs]
        compared.append(len(jobs))
        return found

    monkeypatch.setattr(OneByOne, "begins", lambda self, attempts: False)
    monkeypatch.setattr(order, "start_priorities", ranked)
    config = _config()
    settings = dict(config.policy.settings["moab/qos"]) | {"weights": weights}
    policy = attrs.evolve(config.policy, settings={"moab/qos": settings})
    for seed in range(5):
        replay(attrs.evolve(config, policy=policy), _jobs(seed))
    assert max(compared) > 5

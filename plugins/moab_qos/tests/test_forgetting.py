"""What is kept about jobs does not grow with the log."""

from __future__ import annotations

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, QosTable, SchedulerTable
from makeway.model import JobSpec
from makeway_app.replay import replay
from makeway_moab_qos import forgetting
from makeway_moab_qos.credentials import settings_of

SETTINGS = {
    "qos": {"high": {"priority": 9, "flags": ["PREEMPTOR"]}, "low": {"flags": ["PREEMPTEE"]}},
    "weights": {"qos": 1, "bypass": 1},
    "user": {"DEFAULT": {"max_job": [5]}},
}


@pytest.mark.parametrize("select", ["select/linear", "moab/tasks"])
def test_ended_jobs_are_forgotten(select: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """600 jobs come on two nodes, each third one while both are in use: it makes the low ones make way."""
    monkeypatch.setattr(forgetting, "_FEWEST", 20)
    config = Config(
        node=(NodeTable(name="n[1-2]", cpus=1),),
        partition=(PartitionTable(name="batch", default=True),),
        qos=(QosTable(name="high"), QosTable(name="low")),
        policy=PolicyTable(
            select=select, preempt="moab/qos", preempt_mode=("requeue",), settings={"moab/qos": SETTINGS}
        ),
        scheduler=SchedulerTable(type="greedy"),
    )
    jobs = [
        JobSpec(
            id=str(at),
            user="u",
            qos="high" if at % 3 == 2 else "low",
            submit_at=4.0 * (at // 3) + at % 3 / 2,
            run_time=2.0,
        )
        for at in range(600)
    ]
    run = replay(config, jobs)
    assert run.recorder.metrics.preemptions
    memo = settings_of(run.engine.ledger).memo
    tables = {name: len(memo[name]) for name in forgetting._BY_JOB if name in memo}
    assert {"access", "qos_of", "flags", *(("requests",) if select == "moab/tasks" else ())} <= tables.keys()
    assert max(tables.values()) <= 40

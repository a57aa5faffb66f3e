"""Hold runs of plugins that say which jobs may displace the same others to runs in which they do not say it."""

from __future__ import annotations

import importlib
from random import Random

import pytest

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, QosTable, SchedulerTable
from makeway.model import JobSpec
from makeway.preemption import PreemptionTable
from makeway.record import to_json
from makeway_app.replay import Options, replay

PLUGINS = {
    "preempt/qos": "makeway_preempt_qos",
    "preempt/partition_prio": "makeway_preempt_partition_prio",
}


def _config(preempt: str, scheduler: str, dice: Random) -> Config:
    """Victims are exempt for a while, so that candidates come and go while jobs wait for the same reason."""
    exempt = dice.choice([0.0, 20.0, 90.0])
    return Config(
        node=(NodeTable(name="n[1-4]", cpus=4), NodeTable(name="n[5-6]", cpus=8)),
        qos=(
            QosTable(name="low"),
            QosTable(name="mid", preempt=("low",), priority=1),
            QosTable(name="high", preempt=("low", "mid"), priority=2),
        ),
        partition=(
            PartitionTable(name="p1", default=True),
            PartitionTable(name="p2", priority_tier=2, nodes="n[1-3]"),
            PartitionTable(name="p3", priority_tier=3, nodes="n[2-6]"),
        ),
        policy=PolicyTable(
            select=dice.choice(["select/cons_tres", "select/linear"]),
            preempt=preempt,
            preempt_mode=(dice.choice(["requeue", "cancel"]),),
            preemption=PreemptionTable(exempt_time=exempt),
        ),
        scheduler=SchedulerTable(type=scheduler, clockwork={"preset": dice.choice(["ideal", "slurm"])}),
    )


def _jobs(dice: Random) -> list[JobSpec]:
    found = []
    for at in range(80):
        run = dice.randrange(5, 300)
        found.append(
            JobSpec(
                id=str(at + 1),
                user="u",
                partitions=(dice.choice(["p1", "p1", "p2", "p3"]),),
                qos=dice.choice(["low", "low", "mid", "high"]),
                submit_at=float(dice.randrange(600)),
                run_time=float(run),
                time_limit=float(60 * (run // 60 + dice.choice([1, 5]))),
                min_nodes=dice.choice([1, 1, 2, 3]),
                cpus_per_task=dice.choice([1, 2, 4]),
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


@pytest.mark.parametrize("scheduler", ["greedy", "easy", "builtin", "backfill"])
@pytest.mark.parametrize("preempt", PLUGINS)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_record(seed: int, preempt: str, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons and decisions too."""
    config, jobs = _config(preempt, scheduler, Random(seed)), _jobs(Random(seed))

    def record() -> list[str]:
        lines: list[str] = []
        replay(config, jobs, (), Options(sink=lambda line: lines.append(to_json(line))))
        return lines

    marked = record()
    hook = importlib.import_module(PLUGINS[preempt]).makeway_preempt_candidates
    monkeypatch.delattr(hook, "makeway_kinds")
    assert marked == record()
    assert sum('"waits"' in line for line in marked) >= 20
    assert scheduler != "greedy" or sum('"preempts"' in line for line in marked) >= 5


def test_which_jobs_displace_the_same_others_is_said() -> None:
    """Or the test above would compare a run with itself."""
    for module in PLUGINS.values():
        assert callable(importlib.import_module(module).makeway_preempt_candidates.makeway_kinds)

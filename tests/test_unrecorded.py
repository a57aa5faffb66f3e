"""Hold runs without a record to those that are recorded, under every scheduler.

Much is spared where nothing listens. Nodes stay busy after an end here, and jobs ask for nodes by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import attrs
import pytest

from makeway.config import (
    ClusterTable,
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
)
from makeway.model import JobSpec
from makeway.record import Line
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_testing.patience import Patience


def _config(scheduler: str, select: str, preempt: str, mode: str, completing: float = 3.0) -> Config:
    return Config(
        node=(NodeTable(name="n[1-5]", cpus=2),),
        partition=(
            PartitionTable(name="low", default=True),
            PartitionTable(name="some", nodes="n[1-3]"),
            PartitionTable(name="high", priority_tier=3),
        ),
        policy=PolicyTable(
            select=select,
            select_parameters=("CR_Core",) if select == "select/cons_tres" else (),
            preempt=preempt,
            preempt_mode=(mode,),
        ),
        scheduler=SchedulerTable(type=scheduler, clockwork={"completing_time": completing}),
    )


def _fair(scheduler: str, select: str, limit: str, completing: float) -> Config:
    """Return the same with fair share, and a limit on what each account holds."""
    users = [{"Account": f"a{at % 2}", "User": f"u{at}", "Share": str(at + 1)} for at in range(4)]
    accounts = [{"Account": f"a{at}", "Share": "2", "GrpTRES": limit, "MaxJobs": "9"} for at in range(2)]
    plain = _config(scheduler, select, "preempt/none", "off", completing)
    settings = {"weight_fairshare": 10_000, "weight_age": 100, "decay_half_life": 300.0, "calc_period": 20.0}
    return attrs.evolve(
        plain,
        cluster=ClusterTable(attributes={"associations": [*accounts, *users]}),
        qos=(QosTable(name="q", attributes={"MaxJobsPU": "4"}),),
        policy=attrs.evolve(
            plain.policy,
            priority="priority/multifactor",
            plugins=("limits/slurm",),
            settings={"priority/multifactor": settings},
        ),
    )


def _jobs(seed: int, count: int) -> list[JobSpec]:
    chance = Random(seed)
    found = []
    for at in range(count):
        partition = chance.choice(("low", "low", "some", "high"))
        nodes = chance.choice((1, 1, 2, 3))
        run = float(chance.randrange(1, 40))
        found.append(
            JobSpec(
                id=f"j{at}",
                submit_at=float(chance.randrange(count * 4)),
                partitions=(partition,),
                min_nodes=nodes,
                max_nodes=nodes,
                required_nodes=(f"n{chance.randrange(1, 4)}",) if chance.random() < 0.4 else (),
                run_time=run,
                time_limit=chance.choice((None, run + 5.0, 60.0)),
            )
        )
    return sorted(found, key=lambda job: job.submit_at)


def _moves(config: Config, jobs: list[JobSpec], sink: Callable[[Line], None] | None) -> Any:
    """Return where each job was, and when."""
    return replay(config, jobs, (), Options(sink=sink)).summary()["jobs"]


def _seen(config: Config, jobs: list[JobSpec], sink: Callable[[Line], None] | None) -> list[Any]:
    """Return where each job is after every step, and why it waits."""
    states: list[Any] = []
    patience = Patience()

    def note(engine: Engine) -> None:
        patience(engine)
        there = [(job.id, job.state.value, job.reason, job.nodes) for job in engine.ledger.present]
        states.append((engine.ledger.now, there))

    replay(config, jobs, (), Options(after_step=note, sink=sink, keep=sink is not None))
    return states


@pytest.mark.parametrize("select", ["select/linear", "select/cons_tres"])
@pytest.mark.parametrize("scheduler", ["builtin", "easy", "greedy"])
@pytest.mark.parametrize("limit", ["cpu=1000", "cpu=6", "node=2"])
def test_fair_share_and_limits(scheduler: str, select: str, limit: str) -> None:
    """Jobs start and end at the same instants on the same nodes; priorities may be worked out later."""
    for seed, count in itertools.product(range(6), (12, 150)):
        chance = Random(seed)
        config = _fair(scheduler, select, limit, completing=chance.choice((0.0, 0.0, 3.0)))
        jobs = [
            attrs.evolve(job, user=f"u{at}", account=f"a{at % 2}", qos=chance.choice((None, "q")))
            for job in _jobs(seed, count)
            for at in (chance.randrange(4),)
        ]
        told, alone = _moves(config, jobs, lambda line: None), _moves(config, jobs, None)
        assert told == alone, f"seed {seed}, {count} jobs"


@pytest.mark.parametrize("select", ["select/linear", "select/cons_tres"])
@pytest.mark.parametrize("scheduler", ["builtin", "backfill", "easy", "greedy"])
@pytest.mark.parametrize(
    ("preempt", "mode"),
    [("preempt/none", "off"), ("preempt/partition_prio", "cancel"), ("preempt/partition_prio", "requeue")],
)
def test_recorded_or_not(scheduler: str, select: str, preempt: str, mode: str) -> None:
    """Each job is in the same place after every step, and waits for the same reason."""
    config = _config(scheduler, select, preempt, mode)
    for seed, count in itertools.product(range(6), (12, 150)):
        jobs = _jobs(seed, count)
        told, alone = _seen(config, jobs, lambda line: None), _seen(config, jobs, None)
        for one, other in zip(told, alone, strict=True):
            assert one == other, f"seed {seed}, {count} jobs"


def _start(intervals: list[dict[str, Any]]) -> float:
    return next(float(each["start"]) for each in intervals if each["state"] == "RUNNING")


@pytest.mark.parametrize("preempt", ["preempt/none", "preempt/partition_prio"])
@pytest.mark.parametrize("scheduler", ["easy", "greedy"])
def test_a_required_node_that_is_being_cleaned(scheduler: str, preempt: str) -> None:
    """A job that waits for it starts at once, whether or not it was tried before (slurm-preemption 5.0 no. 3)."""
    config = _config(scheduler, "select/linear", preempt, "off" if preempt == "preempt/none" else "cancel")
    jobs = [
        JobSpec(id="first", submit_at=0.0, min_nodes=5, max_nodes=5, run_time=20.0, time_limit=60.0),
        JobSpec(id="named", submit_at=1.0, min_nodes=1, max_nodes=1, run_time=9.0, required_nodes=("n2",)),
        JobSpec(id="other", submit_at=1.0, min_nodes=1, max_nodes=1, run_time=9.0),
    ]
    told = replay(config, jobs, (), Options()).summary()["jobs"]
    starts = {name: _start(job["intervals"]) for name, job in told.items()}
    assert starts == {"first": 0.0, "named": 20.0, "other": 23.0}

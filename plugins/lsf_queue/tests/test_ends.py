"""Let a replay end although jobs collect slots for good (lsf 7.1)."""

from __future__ import annotations

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import JobSpec
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine

WEEK = 7 * 86400.0


def test_jobs_that_never_start_keep_no_replay_going() -> None:
    """Three jobs want more slots than QJOB_LIMIT lets their queue have; they collect slots all the same.

    Each lets go for a turn of 20 s after every 500 turns, at another time than the others: a small job behind them
    finds no turn in which nothing collects. Each turn is a reason to ask again, but nothing comes of it.
    """
    limits = {"SLOT_RESERVE": "MAX_RESERVE_TIME[500]", "QJOB_LIMIT": "3", "PREEMPTION": "PREEMPTIVE"}
    config = Config(
        node=(NodeTable(name="h[1-2]", cpus=2),),
        partition=(
            PartitionTable(name="high", priority_tier=50, attributes=limits),
            PartitionTable(name="low", priority_tier=10),
        ),
        policy=PolicyTable(
            select="select/cons_tres",
            select_parameters=("CR_Core",),
            preempt="lsf/queue",
            preempt_mode=("suspend",),
            settings={"lsf/queue": {"params": {"MBD_SLEEP_TIME": "20"}}},
        ),
        scheduler=SchedulerTable(type="greedy"),
    )
    wide = [
        JobSpec(id=f"wide{at}", partitions=("high",), tasks=4, submit_at=at * 3_000.0, run_time=50.0)
        for at in range(3)
    ]
    small = JobSpec(id="small", partitions=("low",), tasks=1, submit_at=7_000.0, run_time=10.0)
    steps: list[float] = []

    def look(engine: Engine) -> None:
        steps.append(engine.ledger.now)

    run = replay(config, [*wide, small], (), Options(after_step=look))
    assert sorted(run.engine.ledger.waiting) == ["small", "wide0", "wide1", "wide2"]
    assert 7_000.0 + WEEK < max(steps) < 7_000.0 + WEEK + 2 * 10_020.0
    assert len(steps) < 3 * WEEK / 10_020.0 + 20

"""EASY: a job that outlasts the first one's reservation keeps off its nodes."""

from __future__ import annotations

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable
from makeway.model import JobSpec
from makeway_app.replay import replay


def _job(job: int, at: float, run: float, cpus: int, limit: float) -> JobSpec:
    return JobSpec(id=str(job), submit_at=at, run_time=run, time_limit=limit, tasks=1, cpus_per_task=cpus)


def test_a_long_job_waits_beside_the_reservation() -> None:
    """Job 5 fits on n3, which is kept for job 4; what ends on n1 and n2 is too little for it."""
    config = Config(
        node=(NodeTable(name="n[1-3]", cpus=4),),
        partition=(PartitionTable(name="all", default=True),),
        policy=PolicyTable(select="select/cons_tres", select_parameters=("CR_Core",)),
        scheduler=SchedulerTable(type="easy", clockwork={"preset": "ideal"}),
    )
    jobs = [
        _job(1, 0, 5_000, 3, 6_000),
        _job(6, 0, 100, 1, 200),
        _job(2, 0, 5_000, 3, 6_000),
        _job(7, 0, 150, 1, 300),
        _job(3, 0, 400, 2, 400),  # on n3, beside two idle cores
        _job(4, 10, 100, 4, 200),  # wants all of a node: n3 at 400 s
        _job(5, 20, 1_000, 2, 2_000),  # would outlast that
    ]
    run = replay(config, jobs)
    began = {key: history.first_start for key, history in run.recorder.histories.items()}
    assert (began["4"], began["5"]) == (400, 500)

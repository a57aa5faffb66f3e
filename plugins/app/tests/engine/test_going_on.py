"""Partitions of a job that has started are gone on with for the next one that waits (a defect of Slurm)."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config, NodeTable, PartitionTable, SchedulerTable, build_cluster
from makeway.model import JobSpec, JobState
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.worlds.events import Submitted
from makeway_engine.engine import Engine

_PENDING, _RUNNING = JobState.PENDING, JobState.RUNNING


def played(**rules: bool) -> dict[str, Any]:
    """Return four jobs of one node each: the first may run on n1 or n2, the others on n1 alone."""
    config = Config(
        node=(NodeTable(name="n[1-3]", cpus=1),),
        partition=(
            PartitionTable(name="main", nodes="n1", default=True),
            PartitionTable(name="other", nodes="n2"),
            PartitionTable(name="third", nodes="n3", max_time=30.0),
        ),
        scheduler=SchedulerTable(type="builtin", rules={"builtin_raw_order": True, **rules}),
    )
    run = Engine(config, Recorder(build_cluster(config)), Policies(config))
    asked = [("main", "other", "third"), ("main",), ("main",), ("main",)]
    specs = [
        JobSpec(id=str(at), partitions=partitions, time_limit=60.0) for at, partitions in enumerate(asked, 1)
    ]
    run.step(0.0, [Submitted(spec) for spec in specs])
    return dict(run.ledger.jobs)


def test_the_next_job_that_waits_is_tried_in_the_partitions_that_are_left() -> None:
    """The second starts where it never asked to; the third waits for good, since the last partition is too short."""
    jobs = played(raw_order_goes_on_with_partitions=True)
    assert [job.state for job in jobs.values()] == [_RUNNING, _RUNNING, _PENDING, _PENDING]
    assert [job.partition.name for job in jobs.values()] == ["main", "other", "third", "main"]
    assert [job.reason for job in jobs.values()][2:] == ["PartitionTimeLimit", "Priority"]


@pytest.mark.parametrize("rules", [{}, {"raw_order_goes_on_with_partitions": False}])
def test_without_the_rule_they_stay_where_they_were_submitted_to(rules: dict[str, bool]) -> None:
    """All three wait for the first."""
    jobs = played(**rules)
    assert [job.state for job in jobs.values()] == [_RUNNING, _PENDING, _PENDING, _PENDING]
    assert {job.partition.name for job in jobs.values()} == {"main"}

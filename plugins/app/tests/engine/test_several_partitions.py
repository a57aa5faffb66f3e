"""A job of several partitions is tried where it may run, and nowhere else (`makeway.partition_bounds`)."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay

SELECTORS = ("select/whole_nodes", "select/linear", "select/cons_tres")


@pytest.mark.parametrize("scheduler", ["builtin", "backfill", "easy", "greedy"])
@pytest.mark.parametrize("select", SELECTORS)
@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize("narrow", [{"max_nodes": 1}, {"min_nodes": 3}, {"max_time": 30.0}])
def test_a_job_runs_in_the_partition_that_allows_it(
    scheduler: str, select: str, enforce: bool, narrow: dict[str, Any]
) -> None:
    """It asks for two nodes and a minute; the first partition allows something else."""
    tables = {
        "node": [{"name": "n[1-3]", "cpus": 4}],
        "partition": [{"name": "narrow", "default": True, **narrow}, {"name": "wide"}],
        "policy": {"select": select},
        "scheduler": {"type": scheduler, "clockwork": "ideal", "enforce_part_limits": enforce},
    }
    job = JobSpec(
        id="job",
        submit_at=0.0,
        run_time=10.0,
        time_limit=60.0,
        min_nodes=2,
        max_nodes=2,
        partitions=("narrow", "wide"),
    )
    shown = replay(structure(tables, Config, "test"), [job], (), Options()).summary()["jobs"]["job"]
    assert shown["partition"] == "wide"
    assert [(each["state"], each["start"]) for each in shown["intervals"]] == [("RUNNING", 0.0)]


def test_backfill_keeps_no_nodes_for_a_job_beyond_its_partition() -> None:
    """Where such jobs only wait: `small` would delay it, were it planned for."""
    tables = {
        "node": [{"name": "n[1-2]", "cpus": 4}],
        "partition": [{"name": "main", "default": True}, {"name": "narrow", "max_nodes": 1}],
        "policy": {"select": "select/linear"},
        "scheduler": {"type": "backfill", "clockwork": "ideal", "enforce_part_limits": False},
    }
    common: dict[str, Any] = {"min_nodes": 1, "max_nodes": 1}
    jobs = [
        JobSpec(id="runs", submit_at=0.0, run_time=50.0, time_limit=50.0, **common),
        JobSpec(
            id="beyond", submit_at=1.0, run_time=50.0, time_limit=50.0, min_nodes=2, partitions=("narrow",)
        ),
        JobSpec(id="small", submit_at=2.0, run_time=90.0, time_limit=90.0, **common),
    ]
    shown = replay(structure(tables, Config, "test"), jobs, (), Options(until=60.0)).summary()["jobs"]
    assert [each["start"] for each in shown["small"]["intervals"]] == [2.0]
    assert shown["beyond"]["reason"] == "PartitionNodeLimit"

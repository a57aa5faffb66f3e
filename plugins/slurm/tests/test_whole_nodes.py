"""What jobs take up that take whole nodes, before any are chosen (`makeway_slurm.accounts.whole_nodes`)."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config
from makeway.model import Exclusive, JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine

NAME = "priority/multifactor"
PERIOD = 60.0
WHOLE: dict[str, Any] = {"exclusive": Exclusive.NODE}


def priorities(job: dict[str, Any], *, select: str = "select/cons_tres", **settings: Any) -> list[int]:
    """Return the priorities that one job has while another one runs: at first, and after one recalculation.

    Two nodes of 4 CPUs, one of 8 and one of 16: 32 CPUs; size weighs 3,200, half of it by nodes.
    """
    tables = {
        "node": [
            {"name": "n[1-2]", "cpus": 4},
            {"name": "large", "cpus": 8},
            {"name": "huge", "cpus": 16},
        ],
        "partition": [
            {"name": "main", "default": True},
            {"name": "short", "max_time": 600.0},
            {"name": "large", "nodes": "large,huge", "oversubscribe": "EXCLUSIVE"},
        ],
        "policy": {
            "priority": NAME,
            "select": select,
            "settings": {NAME: {"calc_period": PERIOD, "weight_job_size": 3200, **settings}},
        },
        "scheduler": {"type": "easy", "clockwork": "ideal", "enforce_part_limits": False},
    }
    runs = JobSpec(id="runs", submit_at=0.0, min_nodes=4, run_time=500.0, time_limit=900.0, **WHOLE)
    waits = JobSpec(id="waits", submit_at=1.0, run_time=10.0, **{"time_limit": 300.0, **job})
    told: list[int] = []

    def look(engine: Engine) -> None:
        waiting = engine.ledger.job("waits")
        if waiting is not None and waiting.priority and waiting.priority not in told:
            told.append(waiting.priority)

    replay(
        structure(tables, Config, "test"), [runs, waits], (), Options(until=PERIOD + 10.0, after_step=look)
    )
    return told


@pytest.mark.parametrize(
    ("job", "first", "later"),
    [
        ({"tasks": 1, **WHOLE}, 400 + 50, 400 + 200),
        ({"tasks": 1, "required_nodes": ("huge",), **WHOLE}, 400 + 50, 400 + 800),
        ({"tasks": 2, "min_nodes": 2, "required_nodes": ("huge",), **WHOLE}, 800 + 100, 800 + 1000),
        ({"tasks": 1, "partitions": ("large",)}, 400 + 50, 400 + 400),
        ({"tasks": 12, **WHOLE}, 400 + 600, 400 + 600),
    ],
    ids=[
        "the smallest",
        "a required one",
        "a required and the smallest",
        "exclusive partition",
        "asked for more",
    ],
)
def test_the_size_counts_all_their_cpus(job: dict[str, Any], first: int, later: int) -> None:
    """From the first recalculation on: (n/N + c/C)/2, by hand (slurm-priority-and-limits 1.3)."""
    assert priorities(job) == list(dict.fromkeys((first, later)))


def test_under_select_linear_that_of_every_job_does() -> None:
    """Whatever it asks for."""
    assert priorities({"tasks": 1}, select="select/linear") == [400 + 50, 400 + 200]
    assert priorities({"tasks": 1}) == [400 + 50]


def test_the_size_falls_where_small_ones_are_favoured() -> None:
    """By the other formula: ((N-n)/N + (C-c)/C)/2."""
    assert priorities({"tasks": 1, **WHOLE}, favor_small=True) == [1200 + 1550, 1200 + 1400]


def test_no_nodes_are_looked_for_where_a_partition_keeps_a_job_out() -> None:
    """A job that is longer than its partition allows counts what it asked for (recorded: prio_size_whole_nodes)."""
    assert priorities({"tasks": 1, "partitions": ("short",), "time_limit": 700.0, **WHOLE}) == [400 + 50]

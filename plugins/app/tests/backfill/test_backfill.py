"""A job goes ahead where it delays no job that has a promise."""

from __future__ import annotations

import attrs

from makeway.arrays import parse_array, tasks_of
from makeway.model import JobSpec
from makeway.registry import scheduler_of
from makeway_backfill import Backfill
from makeway_testing import cluster, replay_table

SITE = {"scheduler": "backfill", "select": "select/whole_nodes"}
JOBS = """
    job    submit  nodes  run_time  time_limit
    first       0      1       100         100
    wide        1      2       100         100
    short       2      1        50          50
    long        3      1       200         200
    alike       4      2        10          10
"""


def test_short_jobs_fill_what_is_promised_later() -> None:
    """`wide` waits for `first`; `short` is over before, `long` would not be, nor may `alike` go before `wide`."""
    run = replay_table(JOBS, cluster=cluster(2), config=SITE)
    starts = {job: run.starts(job) for job in ("first", "wide", "short", "long", "alike")}
    assert starts == {"first": (0.0,), "wide": (100.0,), "short": (2.0,), "long": (200.0,), "alike": (400.0,)}


def test_the_first_task_of_an_array_starts_whichever_finds_nodes() -> None:
    """`x` is still leaving n1, which the first task would get; n2, which the second one finds, is idle."""
    one = JobSpec(id="a", partitions=("p",), submit_at=11.0, run_time=20.0, time_limit=20.0)
    jobs = [
        attrs.evolve(one, id="x", submit_at=0.0, run_time=10.0, time_limit=10.0),
        attrs.evolve(one, id="long", submit_at=0.0, run_time=1000.0, time_limit=1000.0),
        attrs.evolve(one, id="wide", submit_at=1.0, min_nodes=3),
        *tasks_of(one, parse_array("1-2")),
    ]
    clockwork = {"completing_time": 5.0}
    run = replay_table(
        jobs,
        cluster=cluster(3),
        config={"scheduler": "backfill", "partitions": {"p": {}}, "clockwork": clockwork},
    )
    assert run.starts("a_1") == (11.0,)
    assert run.starts("a_2") == (15.0,)


def test_the_core_asks_for_it_by_name() -> None:
    assert scheduler_of("backfill") is Backfill
    assert scheduler_of("easy") is None

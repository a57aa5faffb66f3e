"""A job that a limit keeps out holds up no other under EASY either, though it found no room before (11.1 no. 1)."""

from __future__ import annotations

from typing import Any

from makeway.config import Config
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_app.replay import replay

LONG = 1000.0


def site(nodes: int) -> Config:
    """Return nodes that are given out as a whole; each user may run one job."""
    tables = {
        "node": [{"name": f"n[1-{nodes}]"}],
        "partition": [{"name": "main", "default": True}],
        "qos": [{"name": "q", "attributes": {"MaxJobsPU": "1"}}, {"name": "free"}],
        "policy": {"select": "select/linear", "plugins": ["limits/slurm"]},
        "scheduler": {"type": "easy", "clockwork": "ideal"},
    }
    return structure(tables, Config, "test")


def job(id: str, nodes: int, run_time: float, limit: float = 0.0, **more: Any) -> JobSpec:
    """Return a job that runs as long as it may, unless it says less."""
    return JobSpec(
        id=id,
        min_nodes=nodes,
        max_nodes=nodes,
        tasks=nodes,
        run_time=run_time,
        time_limit=limit or run_time,
        **more,
    )


def starts(nodes: int, *jobs: JobSpec) -> dict[str, float]:
    """Return when each job started first."""
    told = replay(site(nodes), list(jobs), ()).summary()["jobs"]
    return {
        name: next(each["start"] for each in job["intervals"] if each["state"] == "RUNNING")
        for name, job in told.items()
    }


def test_who_comes_later_does_not_wait_for_a_job_that_a_limit_keeps_out() -> None:
    """Ann's `small` starts beside the reservation of her `wide`, which from then on may not start before LONG."""
    found = starts(
        6,
        job("full", 3, 100.0, user="bob", qos="free"),
        job("wide", 4, LONG, user="ann", qos="q"),
        job("small", 1, LONG, user="ann", qos="q"),
        job("later", 2, LONG, user="bob", qos="free", submit_at=10.0),
    )
    assert found == {"full": 0.0, "small": 0.0, "later": 10.0, "wide": LONG}


def test_nor_does_he_once_something_has_ended() -> None:
    """At 50 s one node comes free, too few for `wide`: it does not count that it found no room at 0 s."""
    found = starts(
        6,
        job("full", 2, 100.0, user="bob", qos="free"),
        job("early", 1, 50.0, 100.0, user="bob", qos="free"),
        job("wide", 4, LONG, user="ann", qos="q"),
        job("small", 1, LONG, user="ann", qos="q"),
        job("later", 3, LONG, user="bob", qos="free"),
    )
    assert found == {"full": 0.0, "early": 0.0, "small": 0.0, "later": 50.0, "wide": LONG + 50.0}

"""Time one recalculation of ``priority/multifactor`` with tens of thousands of jobs waiting.

The users belong to a hundred accounts and have shares of their own. Jobs of two nodes fill the cluster, so that usage
grows; all others want more nodes than are free, and wait.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from makeway.config import Config
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_engine.priorities import Priorities

_NAME = "priority/multifactor"
_ACCOUNTS, _NODES, _RUNNING = 100, 100, 50


def site(users: int) -> Config:
    """Return a cluster whose accounts and users have shares."""
    accounts = [{"Account": f"a{at}", "Share": str(at % 7 + 1)} for at in range(_ACCOUNTS)]
    members = [
        {"Account": f"a{at % _ACCOUNTS}", "User": f"u{at}", "Share": str(at % 3 + 1)} for at in range(users)
    ]
    weights = {"weight_age": 1000, "weight_fairshare": 10000, "weight_job_size": 100}
    table = {
        "cluster": {"attributes": {"associations": [*accounts, *members]}},
        "node": [{"name": f"n[1-{_NODES}]"}],
        "partition": [{"name": "p", "default": True}],
        "policy": {"priority": _NAME, "settings": {_NAME: weights}},
        "scheduler": {"type": "easy", "clockwork": "ideal"},
    }
    return structure(table, Config, "site")


def workload(waiting: int, users: int) -> list[JobSpec]:
    """Return jobs that fill the cluster, and those that wait behind them."""
    return [
        JobSpec(
            id=str(at),
            submit_at=0.0 if at < _RUNNING else 1.0,
            user=f"u{at % users}",
            account=f"a{at % users % _ACCOUNTS}",
            min_nodes=2 if at < _RUNNING else 60,
            max_nodes=2 if at < _RUNNING else 60,
            tasks=2,
            run_time=3000.0 + at,
            time_limit=9000.0,
        )
        for at in range(_RUNNING + waiting)
    ]


def measure(waiting: int, users: int) -> list[float]:
    """Return the CPU time of each recalculation of 1,600 seconds, in seconds."""
    took: list[float] = []
    plain = Priorities.again

    def timed(self: Priorities) -> Any:
        began = time.process_time()
        try:
            return plain(self)
        finally:
            took.append(time.process_time() - began)

    Priorities.again = timed  # type: ignore[method-assign]
    try:
        replay(site(users), workload(waiting, users), (), Options(keep=False, until=1600.0))
    finally:
        Priorities.again = plain  # type: ignore[method-assign]
    return took


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, nargs="+", default=[12_500, 25_000, 50_000])
    parser.add_argument("--users", type=int, default=5_000)
    given = parser.parse_args()
    for waiting in given.waiting:
        took = measure(waiting, given.users)
        print(
            f"{waiting:,} jobs waiting, {given.users:,} users: {statistics.median(took):.3f} s of CPU in the median "
            f"of {len(took)} recalculations, {max(took):.3f} s at most"
        )


if __name__ == "__main__":
    main()

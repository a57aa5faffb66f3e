"""Jobs that a policy names start, and make way, alike whether or not attempts are recorded."""

from __future__ import annotations

import random
from typing import Any

import pytest

from makeway_app.replay import Options, replay
from makeway_testing import builders

NAME = "kueue/cohort"


def site(dice: random.Random, sharing: str) -> tuple[Any, str]:
    """Return a few queues of one cohort, and jobs that crowd them."""
    queues = [
        {
            "name": name,
            "cohort": "all",
            "quotas": [{"flavor": "default", "resource": "cpu", "nominal": dice.randrange(7)}],
            "reclaim": dice.choice(["Any", "Any", "LowerPriority"]),
            "within_queue": dice.choice(["Never", "LowerPriority"]),
            "weight": dice.choice([0, 1, 2]),
        }
        for name in "abcd"
    ]
    own = {"queue": queues, "sharing": sharing, "grace_time": dice.choice([0.0, 0.0, 4.0])}
    config = builders.config(
        builders.cluster(8, cpus=64),
        {
            "select": "kueue/quota",
            "preempt": NAME,
            "preempt_mode": "requeue",
            "scheduler": "greedy",
            "partitions": {name: {} for name in "abcd"},
            "settings": {NAME: own},
        },
    )
    lines = ["job partition submit cpus run_time priority"]
    for at in range(80):
        run_time, priority = dice.randrange(5, 50), dice.choice([1, 1, 4])
        lines.append(
            f"j{at} {dice.choice('aabcd')} {at // 4} {dice.choice([1, 1, 2, 3, 5])} {run_time} {priority}"
        )
    return config, "\n".join(lines)


@pytest.mark.parametrize("sharing", ["classic", "fair"])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_decided_otherwise(seed: int, sharing: str) -> None:
    """With a record of attempts and without: the same starts and victims."""
    config, table = site(random.Random(seed), sharing)
    decided = []
    for options in (Options(sink=lambda _: None), Options()):
        run = replay(config, builders.jobs(table), options=options)
        displaced = [(each.at, each.preemptor, each.victim, each.why) for each in run.recorder.preemptions]
        decided.append((displaced, run.engine.metrics()))
    assert decided[0] == decided[1]
    assert decided[0][0]

"""Jobs that a policy names are not tried where it says why they would wait, unless somebody records attempts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from makeway_app.replay import Options, replay
from makeway_engine.placing import Placer
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
def test_nothing_is_decided_otherwise(seed: int, sharing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever records attempts hears of each; the others get the same starts and victims with fewer tries."""
    config, table = site(random.Random(seed), sharing)
    tries: list[object] = []
    try_start = Placer.try_start

    def counted(self: Placer, question: Any) -> Any:
        tries.append(question)
        return try_start(self, question)

    monkeypatch.setattr(Placer, "try_start", counted)
    decided, counts = [], []
    for options in (Options(sink=lambda _: None), Options()):
        tries.clear()
        run = replay(config, builders.jobs(table), options=options)
        displaced = [(each.at, each.preemptor, each.victim, each.why) for each in run.recorder.preemptions]
        decided.append((displaced, run.engine.metrics()))
        counts.append(len(tries))
    assert decided[0] == decided[1]
    assert decided[0][0]
    assert counts[1] < counts[0]

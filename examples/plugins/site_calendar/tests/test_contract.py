"""The plugin keeps the contract of vetoes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from makeway_testing import one_node, tiers
from makeway_testing.contracts import ProtectContract
from makeway_testing.strategies import Scenario

HOURS = Scenario.of(
    """
    job   partition  submit  nodes  run_time
    low   a               0      1       200
    rush  b              60      1        10
    """,
    cluster=one_node(),
    config={"preempt": ProtectContract.preempt, "preempt_mode": "requeue", "partitions": tiers(a=1, b=2)},
)
"""The hours are open at 60 s, and shut at 90 s."""


class TestContract(ProtectContract):
    """Hours that open and close during the runs, some users, and the last minute."""

    __test__ = True
    plugin = "protect/calendar"
    found = (HOURS,)
    settings: ClassVar[Mapping[str, Any]] = {
        "start": "2026-03-02T07:59:30",
        "last_minutes": 1.0,
        "rule": [
            {"name": "a minute", "users": ["*"], "hours": ["08:00-08:01"]},
            {"name": "one job", "jobs": ["2"]},
        ],
    }

"""The plugin keeps the contract of preempt policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from makeway_testing import one_node, tiers
from makeway_testing.contracts import PreemptPolicyContract
from makeway_testing.strategies import Scenario

RUSH = Scenario.of(
    """
    job   partition  submit  nodes  run_time
    low   a               0      1       100
    rush  b              10      1        10
    """,
    cluster=one_node(),
    config={
        "preempt": "preempt/least_work_lost",
        "preempt_mode": "requeue",
        "partitions": tiers(a=1, b=2),
    },
)
"""Some job makes way."""


class TestByTier(PreemptPolicyContract):
    """The default."""

    __test__ = True
    plugin = "preempt/least_work_lost"
    found = (RUSH,)
    modes = ("requeue", "cancel", "checkpoint", "suspend,gang")
    settles_ties = True


class TestByQos(PreemptPolicyContract):
    """QOS, partitions or both; a guard that strikes at once."""

    __test__ = True
    plugin = "preempt/least_work_lost"
    found = (RUSH,)
    by_qos = True
    settles_ties = True
    settings: ClassVar[Mapping[str, Any]] = {
        "by": "tier_or_qos",
        "guard_count": 1,
        "guard_window": 1e6,  # by tier or QOS jobs may displace one another in a circle: once each is enough
        "suspension": "free",
    }

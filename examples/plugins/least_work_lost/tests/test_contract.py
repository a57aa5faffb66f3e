"""The plugin keeps the contract of preempt policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from makeway.testing.contracts import PreemptPolicyContract


class TestByTier(PreemptPolicyContract):
    """The default."""

    __test__ = True
    plugin = "preempt/least_work_lost"
    modes = ("requeue", "cancel", "checkpoint", "suspend,gang")
    settles_ties = True


class TestByQos(PreemptPolicyContract):
    """QOS, partitions or both; a guard that strikes at once."""

    __test__ = True
    plugin = "preempt/least_work_lost"
    by_qos = True
    settles_ties = True
    settings: ClassVar[Mapping[str, Any]] = {
        "by": "tier_or_qos",
        "guard_count": 1,
        "guard_window": 1e6,  # by tier or QOS jobs may displace one another in a circle: once each is enough
        "suspension": "free",
    }

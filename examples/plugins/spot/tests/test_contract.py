"""The plugin keeps the contract of preempt policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from makeway_testing import one_node
from makeway_testing.builders import preempting
from makeway_testing.contracts import PreemptPolicyContract
from makeway_testing.strategies import Scenario

NAME = "preempt/spot"
SETTINGS: Mapping[str, Any] = {"spot": ["low"], "restart_cost": 5.0}
EVICTED = Scenario.of(
    """
    job   qos   submit  nodes  run_time
    spot  low        0      1       100
    rush  high      30      1        10
    """,
    cluster=one_node(),
    config=preempting(NAME, **SETTINGS) | {"qos": {"low": {}, "high": {}}},
)
"""Some job makes way."""


class TestContract(PreemptPolicyContract):
    """One QOS is spot, two are not."""

    __test__ = True
    plugin = NAME
    found = (EVICTED,)
    modes = ("requeue", "checkpoint")
    by_qos = True
    settles_ties = True
    examples, trials = 6, 100  # one rule, one search: few random runs show all of it
    settings: ClassVar[Mapping[str, Any]] = SETTINGS

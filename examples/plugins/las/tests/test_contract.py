"""The plugin keeps the contract of preempt policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from makeway_testing import one_node
from makeway_testing.builders import preempting
from makeway_testing.contracts import PreemptPolicyContract
from makeway_testing.strategies import Scenario

NAME = "preempt/las"
SETTINGS: Mapping[str, Any] = {"thresholds": [20.0, 100.0]}
SINKS = Scenario.of(
    """
    job    submit  nodes  run_time
    long        0      1       100
    short      30      1        10
    """,
    cluster=one_node(),
    config=preempting(NAME, **SETTINGS),
)
"""Some job makes way."""


class TestContract(PreemptPolicyContract):
    """Three queues."""

    __test__ = True
    plugin = NAME
    found = (SINKS,)
    modes = ("requeue", "checkpoint")
    settles_ties = True
    examples, trials = 6, 100  # one queue order, one search: few random runs show all of it
    settings: ClassVar[Mapping[str, Any]] = SETTINGS

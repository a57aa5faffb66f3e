"""An engine that takes over goes on exactly as the one before would have: after any step of any run, by way of JSON.

The contracts hold every plugin of ours to the same (`test_another_engine_goes_on_alike`). More examples, and others
each time: ``MAKEWAY_EXAMPLES=5000 pytest tests/test_adoption.py``.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from makeway_testing.relay import relay
from makeway_testing.strategies import POLICIES, SCHEDULERS, Scenario, contended, scenarios

MANY = os.environ.get("MAKEWAY_EXAMPLES")
PARAMETERS = {
    "select/linear": ((), ("CR_Memory",)),
    "select/cons_tres": (("CR_Core",), ("CR_Core_Memory",), ("CR_CPU",)),
}
ALL_SCHEDULERS = (*SCHEDULERS, "greedy")


def examples(count: int) -> hypothesis_settings:
    """Return how hard to try; the same examples each time unless told how many."""
    return hypothesis_settings(
        max_examples=int(MANY or count),
        derandomize=MANY is None,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ALL_SCHEDULERS)
def test_a_run_goes_on_alike_under_every_scheduler(scheduler: str) -> None:
    """Whatever the preempt plugin and mode, and whatever interferes."""

    @examples(40)
    @given(scenarios(POLICIES, (scheduler,), with_commands=True))
    def holds(scenario: Scenario) -> None:
        relay(scenario)

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("select", ["select/linear", "select/cons_tres"])
@pytest.mark.parametrize("preempt", ["preempt/partition_prio", "preempt/qos"])
def test_a_run_goes_on_alike_where_jobs_are_in_one_anothers_way(preempt: str, select: str) -> None:
    """Rows, memory, grace times and turns, under both selectors."""
    policies = [policy for policy in POLICIES if policy[0] == "preempt/partition_prio"]

    @examples(25)
    @given(st.data(), contended(policies, ALL_SCHEDULERS, with_qos=preempt == "preempt/qos"))
    def holds(data: st.DataObject, scenario: Scenario) -> None:
        parameters = data.draw(st.sampled_from(PARAMETERS[select]))
        relay(scenario.with_settings(preempt=preempt, select=select, select_parameters=parameters))

    holds()

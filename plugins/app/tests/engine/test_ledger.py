"""The ledger's list of active jobs, whatever comes and goes between two looks at it."""

from __future__ import annotations

from unittest.mock import create_autospec

from hypothesis import given
from hypothesis import strategies as st

from makeway.model import Allocation, Job, ModeSetting
from makeway_engine.ledger import Ledger, Rulings
from makeway_testing import builders

NODES = 60
CLUSTER = builders.build_cluster(builders.config(builders.cluster(NODES)))


@given(
    st.lists(st.tuples(st.sampled_from(["come", "go", "look"]), st.integers(1, NODES)), max_size=150),
    st.booleans(),
)
def test_active_jobs_are_listed_in_order(events: list[tuple[str, int]], all_at_once: bool) -> None:
    """By place in the job table, each once, also when many leave between two looks, or come back."""
    ledger = Ledger(CLUSTER, ModeSetting(), {}, {}, create_autospec(Rulings, instance=True))
    jobs = {number: builders.job(str(number)) for number in range(1, NODES + 1)}
    here: set[int] = set()

    def come(number: int) -> None:
        ledger.start(jobs[number], Allocation(nodes=1 << number - 1, node_indices=(number - 1,)))
        here.add(number)

    def go(number: int) -> None:
        ledger.release(jobs[number], at_once=True)
        here.discard(number)

    def listed() -> list[Job]:
        return [jobs[number] for number in sorted(here)]

    for number in jobs:
        come(number)
    assert list(ledger.active) == listed()
    for what, number in events:
        if what == "come" and number not in here:
            come(number)
        elif what == "go" and number in here:
            go(number)
        elif what == "look":
            assert list(ledger.active) == listed()
    if all_at_once:
        for number in sorted(here):
            go(number)
    assert list(ledger.active) == listed()


def test_who_waits_for_resources_after_something_else_is_noted() -> None:
    """The next look of the main scheduler says again what it waited for."""
    ledger = Ledger(CLUSTER, ModeSetting(), {}, {}, create_autospec(Rulings, instance=True))
    behind, first = builders.job("behind"), builders.job("first")
    for quieted, found in ((None, None), (set[str](), {"behind"})):
        ledger.quieted = quieted
        ledger.wait_for(behind, "Priority")
        ledger.wait_for(first, "Resources")
        ledger.wait_for(behind, "Resources")
        assert ledger.quieted == found

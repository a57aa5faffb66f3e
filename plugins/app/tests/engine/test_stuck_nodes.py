"""Nodes that count as if a job was leaving them for good."""

from __future__ import annotations

from makeway.model import Allocation
from makeway_engine.leaving import Leaving
from makeway_testing import builders

A, B = 0b01, 0b10


def test_stuck_nodes_stay_until_they_are_back_in_service() -> None:
    """Whatever else comes and goes."""
    leaving = Leaving()
    leaving.stuck("first", A | B)
    other = builders.job("other")
    leaving.add(other, Allocation(nodes=A, node_indices=(0,)))
    leaving.cleaned(other)
    assert (leaving.nodes, leaving.on(B)) == (A | B, ["first"])
    leaving.back_in_service(B)
    assert (leaving.nodes, leaving.on(B)) == (A, [])


def test_stuck_nodes_are_handed_over() -> None:
    """A look at the jobs does not tell of them: the job has ended."""
    before, after = Leaving(), Leaving()
    before.stuck("first", B)
    after.restore(before.save())
    assert (after.nodes, after.on(A | B)) == (B, ["first"])

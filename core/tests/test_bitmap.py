"""Runs of many nodes, against looking at them one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway import bitmap


def one_by_one(bits: int, wanted: int) -> tuple[int, int]:
    """Return the shortest run that serves, else the longest; the lowest of equals."""
    runs, first = [], None
    for at in range(bits.bit_length() + 1):
        held = bits >> at & 1
        if held and first is None:
            first = at
        elif not held and first is not None:
            runs.append((first, at))
            first = None
    enough = [run for run in runs if run[1] - run[0] >= wanted]
    if enough:
        return min(enough, key=lambda run: (run[1] - run[0], run[0]))
    return min(runs, key=lambda run: (run[0] - run[1], run[0]))


@given(
    lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=40),
    first=st.sampled_from([0, 3, 1_100, 5_000]),
    rest=st.sampled_from([0, 1, 45, 3_000]),
    wanted=st.sampled_from([*range(1, 60), 3_000, 3_001]),
)
def test_tight_run(lengths: list[tuple[int, int]], first: int, rest: int, wanted: int) -> None:
    """Small sets and large ones give the run that a walk over the nodes gives."""
    bits, at = 0, first
    for length, gap in lengths:
        bits |= bitmap.span(at, at + length)
        at += length + gap
    bits |= bitmap.span(at, at + rest)
    assert bitmap.tight_run(bits, wanted) == one_by_one(bits, wanted)


def test_no_run_in_nothing() -> None:
    """An empty set is an error."""
    with pytest.raises(ValueError, match="an empty set has no run"):
        bitmap.tight_run(0, 1)


@given(st.lists(st.integers(0, 9_000), max_size=40), st.integers(0, 45), st.booleans())
def test_whether_there_are_so_many(listed: list[int], wanted: int, top: bool) -> None:
    """Wherever they are."""
    bits = bitmap.of([*listed, *range(9_001, 9_030)] if top else listed)
    assert bitmap.has(bits, wanted) is (len(bitmap.indices(bits)) >= wanted)

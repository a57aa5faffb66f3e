"""Counting jobs per node in bitmaps, against counting them one by one."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from makeway import bitmap
from makeway.levels import Levels
from makeway.tally import Tally

NODES = 6
SETS = st.lists(st.integers(0, (1 << NODES) - 1), max_size=40)


class Plain:
    """One number per node."""

    def __init__(self) -> None:
        self.counts = [0] * NODES

    def change(self, nodes: int, by: int) -> None:
        for index in bitmap.indices(nodes):
            self.counts[index] += by

    def above(self, count: int) -> int:
        return bitmap.of([index for index, here in enumerate(self.counts) if here > count])


@given(SETS, st.randoms(use_true_random=False))
def test_tally_and_levels_count(sets: list[int], order: random.Random) -> None:
    """Whatever comes and goes, in whichever order."""
    plain, tally, levels = Plain(), Tally(), Levels()
    leaving = list(sets)
    order.shuffle(leaving)
    for sign, batch in ((1, sets), (-1, leaving)):
        for nodes in batch:
            plain.change(nodes, sign)
            (tally.add if sign > 0 else tally.remove)(nodes)
            (levels.add if sign > 0 else levels.remove)(nodes)
            assert tally.any == levels.over[0] == plain.above(0)
            for count in range(1, 5):
                assert levels.above(count) == plain.above(count)


def test_a_node_with_thousands_of_jobs() -> None:
    """It is there until the last has left."""
    tally = Tally()
    for _ in range(5000):
        tally.add(0b10)
    for left in reversed(range(5000)):
        tally.remove(0b10)
        assert bool(tally.any) is (left > 0)

"""Hold the choice among many blocks of like nodes against taking them one by one."""

from __future__ import annotations

from random import Random

import pytest

from makeway import bitmap
from makeway_select_linear.best_fit import like_nodes


def one_by_one(nodes: int, wanted: int) -> int:
    """Look for the tightest block anew each time (slurm-gang-and-select 4.2.5 step 4)."""
    taken = 0
    while wanted:
        first, stop = bitmap.tight_run(nodes, wanted)
        block = bitmap.span(first, min(stop, first + wanted))
        taken |= block
        nodes ^= block
        wanted -= block.bit_count()
    return taken


@pytest.mark.parametrize("width", [6, 20, 200])
@pytest.mark.parametrize("density", [0.2, 0.5, 0.9])
def test_many_blocks_at_once(width: int, density: float) -> None:
    """The same nodes, for every number wanted."""
    rng = Random(width)
    for _ in range(20):
        nodes = bitmap.of([at for at in range(width) if rng.random() < density])
        for wanted in range(1, nodes.bit_count() + 1):
            assert like_nodes(nodes, wanted, None) == one_by_one(nodes, wanted)
    assert like_nodes(0b111, 4, None) is None
    assert like_nodes(0b111, 3, 2) is None

"""Pass over instants of a plan at which too few nodes are free, and over no others."""

from __future__ import annotations

from random import Random

import pytest

from makeway import bitmap
from makeway.engine.schedulers.backfill import Plan


@pytest.mark.parametrize("seed", range(20))
def test_skipping_finds_what_a_look_at_every_begin_finds(seed: int) -> None:
    """The first begin from which enough nodes are free, each record by itself, until the job is over."""
    chance = Random(seed)
    plan = Plan(100.0, 1e6, bitmap.full(12), 1.0)
    for _ in range(chance.randrange(1, 30)):
        start = 100.0 + chance.randrange(0, 500)
        plan.promise(start, start + chance.randrange(1, 200), bitmap.of(chance.sample(range(12), 4)))
    for _ in range(50):
        nodes = bitmap.of(chance.sample(range(12), 8))
        least, length = chance.randrange(1, 9), float(chance.randrange(1, 300))
        start = 100.0 + chance.randrange(0, 600)
        expected = None
        for at in [start, *(begin for begin in plan.begins if begin > start)]:
            records = [
                free
                for begin, free in zip(plan.begins, plan.free, strict=True)
                if begin <= at + length and (begin >= at or begin == max(b for b in plan.begins if b <= at))
            ]
            if all((free & nodes).bit_count() >= least for free in records):
                expected = at
                break
        assert plan.skipping(nodes, least).first_from(start, length) == expected

"""Say which nodes of a plan are free for how long."""

from __future__ import annotations

import math
from random import Random

import pytest

from makeway import bitmap
from makeway_backfill import Plan, Sliding
from makeway_backfill.plan import full_second


@pytest.mark.parametrize("seed", range(50))
def test_sliding_over_a_plan_finds_what_each_look_finds(seed: int) -> None:
    """At instants that only move forward, at records and between them, also at the same one again."""
    chance = Random(seed)
    plan = Plan(0.0, 1_000.0, bitmap.first_n(-1, 12), 1.0)
    for _ in range(chance.randrange(30)):
        begin = float(chance.randrange(300))
        nodes = bitmap.of(chance.sample(range(12), chance.randint(1, 6)))
        plan.promise(begin, begin + chance.randint(1, 60), nodes)
    length = chance.choice((0.5, 1.0, 20.0, 400.0))
    sliding, start = Sliding(plan, length), 0.0
    for _ in range(100):
        assert sliding.available(start) == plan.available(start, start + length), start
        later = plan.next_begin(start)
        start = later if later is not None and chance.random() < 0.7 else start + chance.randrange(20) / 4


def test_a_promise_ends_in_its_second() -> None:
    """From 305.33 for 300 s is 305 to 605: another from 605.33 on comes just after (recorded: backfill_one_second)."""
    plan = Plan(24.33, 1e6, bitmap.full(3), 1.0)
    plan.promise(305.33, 605.33, bitmap.of([2]))
    assert plan.begins == [24.33, 305, 605]
    assert plan.collides(605.33, 905.33, bitmap.of([2])) is False
    assert plan.collides(5.33, 305.33, bitmap.of([2])) is False
    assert plan.collides(5.33, 306.0, bitmap.of([2])) is True
    assert full_second(605.33) == 605
    assert full_second(math.inf) == math.inf

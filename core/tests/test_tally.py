"""Jobs per node are counted in binary, and a job with none is seen."""

from __future__ import annotations

from random import Random

from makeway.tally import Tally


def test_counts_are_those_of_a_list() -> None:
    """Whatever comes and goes, on several nodes at once."""
    for seed in range(40):
        chance = Random(seed)
        tally, counts = Tally(), [0] * 6
        held: list[int] = []
        for _ in range(200):
            if held and chance.random() < 0.5:
                nodes, step = held.pop(chance.randrange(len(held))), -1
                tally.remove(nodes)
            else:
                nodes, step = chance.getrandbits(6), 1
                held.append(nodes)
                tally.add(nodes)
            counts = [count + step * (nodes >> at & 1) for at, count in enumerate(counts)]
            digits = [tally.odd, *tally.digits]
            seen = [sum((digit >> at & 1) << place for place, digit in enumerate(digits)) for at in range(6)]
            assert seen == counts
            assert [bool(tally.any >> at & 1) for at in range(6)] == [count > 0 for count in counts]

"""The search finds what exhaustive search finds, the same each time, and runs nothing twice."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

from makeway.foreign import Knob
from makeway_tune.files import Chosen, Site
from makeway_tune.search import Score, front, search


def knob(name: str, values: Sequence[str]) -> Knob:
    """Return a setting whose value counts as it is."""
    return Knob(name=name, file="f", now="0", values=tuple(values), written=lambda text, value: text)


SITE = Site(path=Path("f"), knobs=(knob("a", "123"), knob("b", "12"), knob("c", "1234")))


def score(chosen: Chosen) -> Score:
    """Return two goals that pull apart, and a limit that a=3 breaks."""
    at = {"a": 0, "b": 0, "c": 0} | {name: int(value) for name, value in chosen}
    one = (at["a"] - 2) ** 2 + (at["b"] - 1) ** 2 + 0.5 * at["c"]
    two = 4.0 - at["c"] + abs(at["b"] - 1)
    return Score(values=(one, two), beyond=(at["a"] - 2.0,))


def test_it_finds_the_front_of_a_small_space() -> None:
    """60 combinations, of which it may try 45: the front that it finds is that of all."""
    ran: list[Chosen] = []

    def run(listed: Sequence[Chosen]) -> list[Score | None]:
        ran.extend(listed)
        return [score(each) for each in listed]

    def tried() -> dict[Chosen, Score]:
        return search(
            SITE, run, 2, trials=45, seed=1, until=time.monotonic() + 600, progress=lambda number: None
        )

    found = tried()
    assert len(ran) == len(set(ran)) == len(found) <= 45
    every = {
        SITE.chosen(dict(zip("abc", values, strict=True))): score(
            SITE.chosen(dict(zip("abc", values, strict=True)))
        )
        for values in itertools.product("0123", "012", "01234")
    }
    best = {each for each in every if not any(other.dominates(every[each]) for other in every.values())}
    assert best <= set(found)
    assert set(front(found)[: len(best)]) == best
    ran.clear()
    assert tried() == found


def test_what_the_reader_refuses_is_no_candidate() -> None:
    """A refused combination costs nothing and is not on the front."""

    def run(listed: Sequence[Chosen]) -> list[Score | None]:
        return [None if dict(each).get("a") == "2" else score(each) for each in listed]

    found = search(
        SITE, run, 2, trials=20, seed=1, until=time.monotonic() + 600, progress=lambda number: None
    )
    assert found
    assert all(dict(each).get("a") != "2" for each in found)


def test_of_several_that_come_to_the_same_the_smallest_change_is_named() -> None:
    """Nobody pastes a change that does nothing."""
    same = Score(values=(1.0,))
    listed: dict[Chosen, Score] = {
        (("a", "1"), ("b", "1")): same,
        (("b", "1"),): same,
        (): Score(values=(2.0,)),
    }
    assert front(listed) == [(("b", "1"),), ()]

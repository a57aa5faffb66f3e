"""What files may stand for: small ones that are huge are refused at once, with the line."""

from __future__ import annotations

import time
from typing import Any

import pytest

from makeway.bounds import DEEPEST, LARGEST, MOST_VALUES, measure, toml_of
from makeway.config import parse_toml
from makeway.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "where", "wrong"),
    [
        ("a = 1\n" + "a." * 400_000 + "b = 1\n", "t:2", "nested too deeply"),
        ("[" + "a." * 400_000 + "b]\n", "t:1", "nested too deeply"),
        ("\n\na = " + "9" * 5_000, "t:3", "more than 400 digits"),
        ("a = " + "[" * 3_000, "", "nested too deeply"),
        ("a = " + "{a=" * 200 + "1" + "}" * 200, "", "nested too deeply"),
    ],
)
def test_toml_beyond_the_bounds(text: str, where: str, wrong: str) -> None:
    """Each within seconds of the processor; a time that grows with the square of the keys would be minutes."""
    begun = time.process_time()
    with pytest.raises(ConfigError) as found:
        toml_of(text, "t")
    assert time.process_time() - begun < 30.0
    (problem,) = found.value.problems
    assert problem.where == where
    assert wrong in problem.message


def test_toml_within_the_bounds() -> None:
    """Long words and texts are no keys."""
    assert toml_of(f"a = '{'x.' * 90}'\n{'b' * 100_000} = 1", "t")["a"] == "x." * 90


def test_values_that_are_referred_to_count_each_time() -> None:
    """Nine lists of nine lists of nine ...: few objects, very many values."""
    value: Any = ["x"] * 9
    for _ in range(8):
        value = [value] * 9
    with pytest.raises(ConfigError, match=f"more than {MOST_VALUES:,} values"):
        measure(value, "t")
    measure([["x"] * 9] * 9, "t")


def test_a_value_that_holds_itself() -> None:
    value: list[Any] = []
    value.append({"a": value})
    with pytest.raises(ConfigError, match="holds itself"):
        measure(value, "t")


def test_depth() -> None:
    value: Any = "x"
    for _ in range(DEEPEST):
        value = [value]
    measure(value, "t")
    with pytest.raises(ConfigError, match="nested too deeply"):
        measure([value], "t")


def test_whole_numbers_have_a_bound() -> None:
    """Nothing that computes with them meets one that no machine has."""
    for number in (LARGEST + 1, 10**300, -LARGEST - 2):
        with pytest.raises(ConfigError, match=r"max_requeues: got .*allowed: -?[0-9]+ to"):
            parse_toml(f"[scheduler]\nmax_requeues = {number}", "t")

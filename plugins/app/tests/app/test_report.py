"""Times and counts as people read them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from makeway.obstacle import counted
from makeway_app.report import Beside, clock, instant, short_name


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (12.345, "12.35 s"),
        (59.999, "60 s"),
        (60, "0:01:00"),
        (3599.6, "1:00:00"),
        (86400, "1-00:00:00"),
        (273906, "3-04:05:06"),
    ],
)
def test_lengths_of_time(seconds: float, shown: str) -> None:
    """As Slurm writes them, except the short ones."""
    assert clock(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0 s"), (1.5, "1.5 s"), (14758, "14,758 s"), (0.1 + 0.2, "0.3 s")]
)
def test_instants(seconds: float, shown: str) -> None:
    """In seconds since the start, so that they can be looked up in the log."""
    assert instant(seconds) == shown


def test_counts() -> None:
    """One thing, many things."""
    assert [counted(n, "job") for n in (0, 1, 1000)] == ["0 jobs", "1 job", "1,000 jobs"]


def test_letters_of_runs() -> None:
    """A to Z, then two letters."""
    assert [short_name(at) for at in (0, 1, 25, 26, 27)] == ["A", "B", "Z", "AA", "AB"]


def _printed(runs: int, width: int) -> list[str]:
    rows = [
        (("mean bounded slowdown",), ["1-00:45:00"] * runs),
        (("core-hours lost",), [f"{at:,}.5" for at in range(1000, 1000 + runs)]),
    ]
    stream = io.StringIO()
    Console(file=stream, width=width).print(
        Beside(("",), [short_name(at) for at in range(runs)], rows), crop=False
    )
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_six_runs_fit_80_columns() -> None:
    """Every row keeps its label, folded at blanks, and every figure is whole."""
    lines = _printed(6, 80)
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["A", "B", "C", "D", "E", "F"]
    assert " ".join(lines).count("1-00:45:00") == 6
    assert "mean bounded" in lines[1]
    assert lines[-2].split() == ["core-hours", *(f"{at:,}.5" for at in range(1000, 1006))]


def test_runs_that_do_not_fit_stand_below_beside_the_first() -> None:
    """Nothing is cut off, whatever the width."""
    lines = _printed(4, 40)
    assert max(map(len, lines)) <= 40
    headings = [line.split() for line in lines if set(line.split()) <= set("ABCD") and line]
    assert headings == [["A", "B"], ["A", "C"], ["A", "D"]]
    assert " ".join(_printed(3, 10)).count("1-00:45:00") == 4

"""Times and counts as people read them."""

from __future__ import annotations

import pytest

from makeway_app.report import clock, count, instant


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
    assert [count(n, "job") for n in (0, 1, 1000)] == ["0 jobs", "1 job", "1,000 jobs"]

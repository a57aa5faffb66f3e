"""What was decided about a job, put together."""

from __future__ import annotations

from makeway.record import Decision
from makeway_explain.story import groups


def _decision(at: float, detail: str) -> Decision:
    return Decision(at=at, job="1", partition="low", outcome="waits", reason="Resources", detail=detail)


def test_attempts_that_came_to_the_same_are_put_together() -> None:
    """Numbers do not count, reasons do, and only neighbours are joined."""
    decisions = [
        _decision(1, "3 usable"),
        _decision(2, "4 usable"),
        _decision(3, "a limit"),
        _decision(4, "3 usable"),
    ]
    assert [[each.at for each in group] for group in groups(decisions)] == [[1, 2], [3], [4]]

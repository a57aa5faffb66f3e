"""Hold what a log and its replay say of one job."""

from __future__ import annotations

from typing import NamedTuple

from makeway.model import Seconds


class Row(NamedTuple):
    """One job that started in both."""

    partition: str
    qos: str
    account: str
    submit: Seconds
    recorded: Seconds
    """Its wait in the log."""
    replayed: Seconds
    priorities: tuple[int, int] | None
    """Recorded and replayed, at the start; None: the log does not say."""
    reasons: tuple[str, str] | None
    """Why it last waited, recorded and replayed; None: the log does not say, or it did not wait."""

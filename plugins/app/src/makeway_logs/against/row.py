"""Hold what a log and its replay say of one job."""

from __future__ import annotations

from typing import NamedTuple

from makeway.model import Seconds


class Count(NamedTuple):
    """How often one job had to go, and what that cost, in the log and in the replay; None: the log does not say."""

    partition: str
    user: str
    requeues: tuple[int | None, int]
    preemptions: tuple[int | None, int]
    """How often it had to make way; by suspension as well, which a log does not show."""
    lost: tuple[float | None, float]
    """Core-seconds."""


class Row(NamedTuple):
    """One job that started in both."""

    partition: str
    qos: str
    account: str
    submit: Seconds
    recorded: Seconds
    """Its wait in the log: to its first start, or to its last one where the log has that alone of a requeued job."""
    replayed: Seconds
    """To the same start."""
    priorities: tuple[int, int] | None
    """Recorded and replayed, at the start; None: the log does not say."""
    reasons: tuple[str, str] | None
    """Why it last waited, recorded and replayed; None: the log does not say, or it did not wait."""
    user: str = ""
    later: tuple[tuple[Seconds, Seconds], ...] = ()
    """Waits of its runs after requeues, recorded and replayed: the second with the second, and so on."""

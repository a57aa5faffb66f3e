"""Say what a world has to offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from makeway.clockwork import Clockwork
from makeway.model import JobSpec, Seconds
from makeway.worlds.events import Action, Event


class Runner(Protocol):
    """Carries out actions and reports events."""

    def act(self, actions: Sequence[Action], now: Seconds) -> None:
        """Carry out `actions`, in order; nothing that follows from them is reported before `wait`."""

    def wait(self, until: Seconds | None) -> tuple[Seconds, Sequence[Event]] | None:
        """Wait for what happens next, at the latest until `until`.

        :returns: the time and the events of that instant (none if `until` came first); None: nothing will
            ever happen again.
        """


RunnerFactory = Callable[[Iterable[JobSpec], Clockwork], Runner]
"""Builds a world of jobs, in order of submission, and the delays of the scheduler that they run under."""

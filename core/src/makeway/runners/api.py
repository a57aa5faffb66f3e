"""Say what a runner has to offer: a world by the old contract, which `makeway.worlds.api` replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from makeway.clockwork import Clockwork
from makeway.model import JobSpec, Seconds
from makeway.worlds.api import Survey
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


class RunnerWorld:
    """A runner as a world: it performs what it is told, never fails, and cannot be surveyed."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._now: Seconds = 0.0

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Have the runner act."""
        self._runner.act(actions, now)

    def wait(self, until: Seconds | None) -> tuple[Seconds, Sequence[Event]] | None:
        """Have the runner wait."""
        found = self._runner.wait(until)
        if found is not None:
            self._now = found[0]
        return found

    def survey(self) -> Survey:
        """See nothing."""
        return Survey(at=self._now, complete=False)


__all__ = ["Runner", "RunnerFactory", "RunnerWorld"]

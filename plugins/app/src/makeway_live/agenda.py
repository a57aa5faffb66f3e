"""Hand jobs and people's commands to the engine at their instants, whatever world they run in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from makeway.model import JobSpec, Seconds
from makeway.worlds.events import Event, Submitted


class Agenda:
    """A workload and a list of commands, read as time goes on."""

    def __init__(self, jobs: Iterable[JobSpec] = (), commands: Iterable[tuple[Seconds, Event]] = ()) -> None:
        """Take over `jobs`, in order of submission, and commands with their instants, in any order."""
        self._jobs: Iterator[JobSpec] = iter(jobs)
        self._next_job = next(self._jobs, None)
        self._commands = sorted(commands, key=lambda item: item[0], reverse=True)

    @property
    def next_at(self) -> Seconds | None:
        """When something is due next; None: nothing will be."""
        ahead = [each[0] for each in self._commands[-1:]]
        if self._next_job is not None:
            ahead.append(self._next_job.submit_at)
        return min(ahead, default=None)

    def due(self, now: Seconds) -> list[Event]:
        """Return all that is due by `now`, commands first; each once."""
        events: list[Event] = []
        while self._commands and self._commands[-1][0] <= now:
            events.append(self._commands.pop()[1])
        while self._next_job is not None and self._next_job.submit_at <= now:
            events.append(Submitted(self._next_job))
            self._next_job = next(self._jobs, None)
        return events

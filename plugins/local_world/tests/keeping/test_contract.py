"""The world of real processes keeps the contract of worlds.

Its jobs are real; the clock is a test's. Each job waits for a word on a FIFO, and gets it at the instant at which it
has run for its run time. So the runs are exact, however slow the machine is.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from makeway.config import Config
from makeway.model import JobSpec, Seconds
from makeway.worlds.api import Moment, State, Survey
from makeway.worlds.clock import Clock
from makeway.worlds.events import Action, Cleaned, Event, Failed, Finished, Kill, Resume, Start, Suspend
from makeway_local_world import plugin as local
from makeway_local_world.processes.world import LocalWorld
from makeway_testing.contracts import WorldContract

LIMIT = 300.0
"""Seconds of the computer's clock after which a run is given up."""


@attrs.define
class Work:
    """What a job has left to do."""

    incarnation: int
    left: float | None
    since: float | None

    def due(self) -> float | None:
        """Return when it is done."""
        return None if self.left is None or self.since is None else self.since + self.left


class Puppets:
    """The local world, whose jobs end by the clock of the test."""

    def __init__(self, inner: LocalWorld, clock: Clock, folder: Path) -> None:
        self._inner = inner
        self._clock = clock
        self._folder = folder
        self._work: dict[str, Work] = {}
        self._leaving: set[str] = set()

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Have them performed, and wait until that is done."""
        for action in actions:
            self._note(action, now)
        self._inner.perform(actions, now)
        assert self._inner.settled(LIMIT)

    def _note(self, action: Action, now: Seconds) -> None:
        job, work = action.job, self._work.get(action.job.id)
        if isinstance(action, Start):
            if work is None or work.incarnation != action.incarnation:
                left = job.spec.run_time
                os.mkfifo(self._fifo(job.id, action.incarnation))
                since = None if action.stopped else now
                self._work[job.id] = Work(
                    action.incarnation, None if left is None else left - job.begun_with, since
                )
        elif isinstance(action, Kill):
            if work is not None:
                self._leaving.add(job.id)
                del self._work[job.id]
        elif work is not None and isinstance(action, Suspend) and work.since is not None:
            work.left = None if work.left is None else work.left - (now - work.since)
            work.since = None
        elif work is not None and isinstance(action, Resume) and work.since is None:
            work.since = now

    def _fifo(self, job_id: str, incarnation: int) -> Path:
        return self._folder / f"{job_id}.{incarnation}"

    def wait(self, until: Seconds | None) -> Moment:
        """Let time pass until a job has done its work; wait until the world has heard its end."""
        dues = [due for work in self._work.values() if (due := work.due()) is not None]
        now = self._clock.now()
        events = self._until_over(set(self._leaving))
        if not events:
            missing = set()
            self._clock.wait(min([*dues, *([until] if until is not None else [])], default=now))
            now = self._clock.now()
            for job_id, work in list(self._work.items()):
                due = work.due()
                if due is not None and due <= now + 1e-6:
                    del self._work[job_id]
                    missing.add(job_id)
                    handle = os.open(self._fifo(job_id, work.incarnation), os.O_RDWR)
                    os.write(handle, b"done\n")
                    self._handles.append(handle)
            events = self._until_over(missing)
        return now, events

    _handles: ClassVar[list[int]] = []

    def _until_over(self, missing: set[str]) -> list[Event]:
        """Return the events up to the ends of these jobs."""
        events: list[Event] = []
        deadline = time.monotonic() + LIMIT
        while True:
            for event in self._inner.wait(self._clock.now())[1]:
                events.append(event)
                if isinstance(event, Finished | Cleaned):
                    missing.discard(event.job_id)
                    self._leaving.discard(event.job_id)
                assert not isinstance(event, Failed), event
            if not missing:
                return events
            assert time.monotonic() < deadline, f"no end of {missing}"
            time.sleep(0.001)

    def survey(self) -> Survey:
        """Look."""
        return self._inner.survey()

    def close(self) -> None:
        """End."""
        self._inner.close()
        while self._handles:
            os.close(self._handles.pop())


class TestContract(WorldContract):
    """With real processes."""

    __test__ = True
    plugin = "world/local"
    module: ClassVar[Any] = local
    settings: ClassVar[dict[str, Any]] = {"kill_wait": 5.0, "bind": False}
    examples = 3
    trials = 5

    def job(self, spec: JobSpec) -> JobSpec:
        """Return a job that waits for its word."""
        script = 'exec 3<>"$FOLDER/$MAKEWAY_JOB"; read word <&3'
        return attrs.evolve(spec, command=("sh", "-c", f"FOLDER={self._folder}; {script}"))

    def _run(self, *arguments: Any, **options: Any) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            self._folder = Path(folder)
            return super()._run(*arguments, **options)

    def world(self, config: Config, state: State) -> Any:
        """Build it with its strings."""
        world = super().world(config, state)
        assert isinstance(world, LocalWorld)
        folder = getattr(self, "_folder", None)
        return world if folder is None else Puppets(world, state.clock, folder)

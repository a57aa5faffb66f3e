"""A world for tests of the daemon: plain child processes, which die with it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from makeway.hookspecs import hookimpl
from makeway.model import Cluster, JobState, Seconds
from makeway.worlds.api import Moment, Seen, State, Survey, WorldFactory
from makeway.worlds.events import Action, Cleaned, Event, Finished, Kill, Resume, SendSignal, Start, Suspend
from makeway_local_world import submission

LOOK = 0.05


class Plain:
    """Runs each job as a child in a session of its own."""

    def __init__(self, cluster: Cluster, settings: object, state: State) -> None:
        del cluster, settings
        self._clock, self._directory = state.clock, state.directory
        self._running: dict[str, tuple[subprocess.Popen[bytes], int]] = {}
        self._stopped: set[str] = set()
        self._news: list[Event] = []
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def perform(self, actions: Sequence[Action], now: Seconds) -> None:
        """Do all at once."""
        for action in actions:
            job = action.job.id
            if isinstance(action, Start):
                self._start(action)
            elif isinstance(action, Kill):
                self._signal(job, signal.SIGKILL)
                if job in self._running:
                    self._running.pop(job)[0].wait()
                self._news.append(Cleaned(job, None, action.incarnation))
            elif isinstance(action, Suspend):
                self._stopped.add(job)
                self._signal(job, signal.SIGSTOP)
            elif isinstance(action, Resume):
                self._stopped.discard(job)
                self._signal(job, signal.SIGCONT)
            elif isinstance(action, SendSignal):
                self._signal(job, signal.Signals[f"SIG{action.signal}"])

    def _start(self, action: Start) -> None:
        spec = action.job.spec
        stored = submission.load(self._directory, spec.id)
        names = submission.Names(
            job_id=spec.id,
            array_id=spec.array_id,
            array_task=spec.array_task if spec.array_id else None,
            name=spec.name,
            incarnation=action.incarnation,
        )
        command = list(stored.command)
        if stored.script is not None:
            script = submission.directory_of(self._directory, spec.id) / "script"
            script.write_text(stored.script)
            script.chmod(0o700)
            command.insert(0, str(script))
        with open(submission.paths(stored, names)[0], "ab") as output:
            process = subprocess.Popen(
                command,
                cwd=stored.cwd,
                env=dict(stored.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._running[spec.id] = process, action.incarnation

    def _signal(self, job: str, number: int) -> None:
        if job in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running[job][0].pid, number)

    def wait(self, until: Seconds | None) -> Moment | None:
        """Look for ends now and then."""
        while True:
            for job, (process, incarnation) in list(self._running.items()):
                if process.poll() is not None:
                    del self._running[job]
                    state = JobState.COMPLETED if process.returncode == 0 else JobState.FAILED
                    self._news.append(Finished(job, state, True, incarnation))
            now = self._clock.now()
            if self._news or (until is not None and now >= until):
                break
            left = LOOK if until is None else min(LOOK, until - now)
            if select.select([self._read], [], [], left)[0]:
                os.read(self._read, 4096)
                break
        events, self._news = self._news, []
        return self._clock.now(), events

    def survey(self) -> Survey:
        """Name what runs."""
        seen: dict[str, Any] = {
            job: Seen(
                job_id=job,
                state=JobState.SUSPENDED if job in self._stopped else JobState.RUNNING,
                incarnation=incarnation,
            )
            for job, (_, incarnation) in self._running.items()
        }
        return Survey(at=self._clock.now(), jobs=seen)

    def wake(self) -> None:
        """End a wait."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"x")


@hookimpl
def makeway_world() -> WorldFactory:
    """Offer it."""
    return Plain

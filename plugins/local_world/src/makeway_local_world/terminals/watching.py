"""See what becomes of a job while its user sits at its terminal: a thread that asks the daemon."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time

from makeway_local_world.commands.client import Absent, Daemon, Refused, job_route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOOK = 0.5
"""Seconds after which a job is looked at again, if it has not ended before."""


class Watch:
    """Tells of a job when it stands otherwise than before."""

    def __init__(self, daemon: Daemon, job: str) -> None:
        self._daemon = daemon
        self._job = job
        self._found: queue.SimpleQueue[dict[str, Any] | BaseException] = queue.SimpleQueue()
        self.wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Becomes readable when there is something to tell."""
        threading.Thread(target=self._live, name="watch", daemon=True).start()

    def news(self) -> list[dict[str, Any]]:
        """Return how the job stood at each look that found something new.

        :raises Failed: it can be looked at no more.
        """
        with contextlib.suppress(BlockingIOError):
            os.read(self.wake, 512)
        found = []
        while not self._found.empty():
            each = self._found.get()
            if isinstance(each, BaseException):
                raise each
            found.append(each)
        return found

    def _live(self) -> None:
        before: tuple[Any, ...] = ()
        over = False
        while not over:
            try:
                answer = self._daemon.get(job_route(self._job, "wait"), longest=LOOK)
            except Absent:
                time.sleep(LOOK)  # jobs go on without it
                continue
            except Refused as refused:
                self._tell(refused)
                return
            except OSError:
                time.sleep(LOOK)
                continue
            (job,) = answer["jobs"]
            over = bool(answer["ended"])
            now = (over, job["state"], job.get("incarnation"), str(job.get("displaced")))
            if now != before:
                before = now
                self._tell({**job, "over": over})

    def _tell(self, what: dict[str, Any] | BaseException) -> None:
        self._found.put(what)
        with contextlib.suppress(BlockingIOError):
            os.write(self._woken, b"x")

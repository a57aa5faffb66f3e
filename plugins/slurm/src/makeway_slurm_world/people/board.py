"""What all users may know: the queue as the policy sees it, which jobs make way for which, and why one waits.

The loop that decides pins it up; a reader gets what was pinned up last. Instants are Unix time, lengths seconds.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from makeway.errors import JournalError
from makeway.model import Seconds
from makeway.record import Line
from makeway.worlds.api import Step
from makeway_engine.engine import Engine
from makeway_live.past import Past
from makeway_live.views import Displacers, Shown

_log = logging.getLogger("makeway")
PATIENCE = 5.0
"""Seconds for which a user who asks waits for the queue as it is now; then for the one that was pinned up last."""
EVERY = 10.0
"""Seconds between two writings of the file."""
_MOST = 8
_BEEN = {"suspend": "was suspended", "requeue": "was requeued", "cancel": "was cancelled"}


class Board:
    """Holds what was pinned up last."""

    def __init__(
        self, journal: Path, file: Path | None = None, wake: Callable[[], None] = lambda: None
    ) -> None:
        """Begin with nothing.

        :param file: all users may read it; None: there is none.
        :param wake: lets the loop turn soon; called from any thread.
        """
        self.past = Past(journal)
        self.wake = wake
        self._file = file
        self._file_at = 0.0
        self._unwritten = ""
        """Why the file could not be written last; empty: it could."""
        self._displacers = Displacers()
        self._pinned: dict[str, Any] | None = None
        self._turn = threading.Condition()
        self._wanted = False
        self._steps = -1
        self._decided = -1, False
        """The number of steps, and whether the last is still to be written down."""

    # ---------------------------------------------------------------------------------- the loop
    def heard(self, line: Line) -> None:
        """Take note of a line of the record."""
        self._displacers.heard(line)

    def turned(
        self, engine: Engine, steps: int, now: Seconds, wall: float, unwritten: Step | None = None
    ) -> None:
        """Pin the queue up, if a user wants to see it; called after each turn of the loop.

        :param steps: how many steps the engine has made.
        :param unwritten: a step that could not be written down: what it decided has not been done.
        """
        decided = steps, unwritten is not None
        write = self._file is not None and decided != self._decided and wall >= self._file_at + EVERY
        with self._turn:
            if self._wanted or write or self._pinned is None:
                shown = Shown(engine, self._displacers, wall - now, now, unwritten)
                self._pinned = {"at": round(wall, 3), "jobs": shown.jobs()}
                self._wanted = False
            self._steps, self._decided = steps, decided
            self._turn.notify_all()
            pinned = self._pinned
        if write:
            self._file_at = wall
            self._write(pinned)

    def _write(self, pinned: Mapping[str, Any]) -> None:
        """Replace the file; a disk that is full is no reason to stop deciding, but is said once."""
        assert self._file is not None
        draft = self._file.with_name(self._file.name + ".new")
        try:
            draft.write_text(json.dumps(pinned, indent=1), encoding="utf-8")
            draft.chmod(0o644)
            os.replace(draft, self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            why = error.strerror or str(error)
            if why != self._unwritten:
                _log.warning("%s is not written, and will be tried again: %s", self._file, why)
            self._unwritten = why
        else:
            if self._unwritten:
                _log.warning("%s is written again", self._file)
            self._unwritten = ""

    def close(self) -> None:
        """Let go of the journal."""
        self.past.close()

    # ----------------------------------------------------------------------------- who asks
    def queue(self, user: str | None = None) -> dict[str, Any]:
        """Return the jobs that have not ended, as they are now; ``stale``: as they were."""
        until = time.monotonic() + PATIENCE
        with self._turn:
            self._wanted = True
            self.wake()
            while self._wanted and (left := until - time.monotonic()) > 0:
                self._turn.wait(left)
            found = self._pinned or {"at": time.time(), "jobs": []}
            jobs = [job for job in found["jobs"] if user is None or job["user"] == user]
            return {"at": found["at"], "jobs": jobs, **({"stale": True} if self._wanted else {})}

    def steps(self, after: int) -> int:
        """Wait for a step after one, a while; return the number of the last."""
        with self._turn:
            if self._steps == after:
                self._turn.wait(PATIENCE)
            return self._steps

    def job(self, job_id: str) -> dict[str, Any] | None:
        """Return a job, live or ended; None: it is unknown."""
        live = next((job for job in self.queue()["jobs"] if job["id"] == job_id), None)
        return live or self.past.job(job_id)

    def why(self, job_id: str) -> list[str] | None:
        """Return in sentences why a job does not run, and who made way for it; None: it is unknown."""
        job = self.job(job_id)
        if job is None:
            return None
        lines = self.past.lines_of(job_id)
        return list(_sentences(job, lines, self.past.zero()))

    def history(self, since: float, until: float, user: str | None, limit: int) -> dict[str, Any]:
        """Return jobs that ended between two instants, the latest last."""
        try:
            return {"jobs": self.past.ended(since, until, user, limit)}
        except JournalError:
            return {"jobs": []}


# -------------------------------------------------------------------------------------- sentences
def _sentences(job: Mapping[str, Any], lines: list[dict[str, Any]], zero: float) -> Iterator[str]:
    name = f" ({job['name']})" if job.get("name") else ""
    where = f" on {job['nodes']}" if job.get("nodes") else ""
    yield f"job {job['id']}{name} of {job['user']}: {str(job['state']).lower()}{where}, partition {job['partition']}"
    if job["state"] == "PENDING" and job.get("reason") not in ("", "None", None):
        yield f"it waits: {job['reason']}"
    by = job.get("displaced")
    if by and by["by"]:
        verb = "makes" if job["state"] == "SUSPENDED" else "made"
        yield f"it {verb} way for job {by['by']} since {_when(by['at'])}"
    if job["state"] == "RUNNING" and job.get("ends_at"):
        yield f"it reaches its time limit at {_when(job['ends_at'])}"
    me = job["id"]
    for line in [each for each in lines if each["kind"] == "preempt"][-_MOST:]:
        at, why = _when(line["at"] + zero), f": {line['why']}" if line.get("why") else ""
        if line["job"] == me:
            what = _BEEN.get(line["mode"], f"made way by {line['mode']}")
            target = f" for job {line['preemptor']}" if line.get("preemptor") else ""
            yield f"at {at} it {what}{target}{why} [{line['by']}]"
        else:
            yield f"at {at} it displaced job {line['job']} by {line['mode']}{why} [{line['by']}]"
    for line in [each for each in lines if each["kind"] in ("failed", "not_preempted", "policy_error")][
        -_MOST:
    ]:
        yield f"at {_when(line['at'] + zero)}: {line.get('why') or line.get('reason') or line['kind']}"


def _when(at: float) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.localtime(at))

"""Be told that something happened: a site's hook script touches a file (slurm-live 3).

PrologSlurmctld, EpilogSlurmctld and job_submit/lua can do so. It is a hint to look now, and never the source of truth:
a world that misses it looks when it is time anyway.
"""

from __future__ import annotations

from pathlib import Path

from makeway.model import Seconds
from makeway.worlds.clock import Clock

GRAIN: Seconds = 0.2
"""Seconds between two looks at the file; a storm of hints causes no more looks at the queue than that."""
SETTLE: Seconds = 1.0
"""Seconds from a hint to the look after it: EpilogSlurmctld runs while the job is still completing."""


class Nudge:
    """Watches one file."""

    def __init__(self, path: str) -> None:
        """Remember how it stands.

        :param path: empty: there is none, and no nudge ever comes.
        """
        self._path = Path(path) if path else None
        self._last = self._mark()

    def _mark(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _moved(self) -> bool:
        return self._mark() not in (None, self._last)

    def came(self) -> bool:
        """Say whether the file was touched since this was asked last."""
        moved = self._moved()
        if moved:
            self._last = self._mark()
        return moved

    def wait(self, clock: Clock, until: Seconds) -> None:
        """Wait until an instant, a `wake`, or a touch of the file."""
        if self._path is None:
            clock.wait(until)
            return
        while not self._moved() and (now := clock.now()) < until:
            grain = min(until, now + GRAIN)
            clock.wait(grain)
            if clock.now() < grain:
                return  # we were woken

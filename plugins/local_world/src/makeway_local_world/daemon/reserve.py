"""Keep some room on the disk, so that ends of jobs can be written down when it is full (local-world 6.2).

A file of a few MiB lies in the state directory. When a step cannot be written since the disk is full, the file is
deleted, and the step is written. From then on nothing is started and nothing is displaced until there is room for the
file again, and some more.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

SIZE = 4 << 20
"""Bytes that are kept."""
MARGIN = 4 << 20
"""Bytes beyond these that must be free before jobs are started again."""
_NAME = "reserve"


class Reserve:
    """The file that keeps room."""

    def __init__(self, state: Path, size: int = SIZE, margin: int = MARGIN) -> None:
        self.path = state / _NAME
        self._size = size
        self._margin = margin
        self.why = ""
        """Why nothing is started; empty: there is room."""
        self.take()

    def take(self) -> bool:
        """Set room aside, if there is enough; say whether it is there."""
        with contextlib.suppress(OSError):
            if self.path.stat().st_size >= self._size:
                self.why = ""
                return True
        if self._free() < self._size + self._margin:
            self.why = (
                f"the disk is full: {self._free() >> 20} MiB are free on {self.path.parent}; free some space"
            )
            return False
        try:
            with open(self.path, "wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, self._size)
                os.fsync(stream.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self.path.unlink()
            self.why = f"{self.path}: {error.strerror}; free some space"
            return False
        self.why = ""
        return True

    def give(self, why: str) -> bool:
        """Give the room back since a step could not be written; say whether that may help."""
        try:
            self.path.unlink()
        except OSError:
            return False
        self.why = why
        return True

    def _free(self) -> int:
        try:
            found = os.statvfs(self.path.parent)
        except OSError:
            return 0
        return found.f_bavail * found.f_frsize

"""Let one daemon at a time have a state directory."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

from makeway.errors import MakewayError

_NAME = "daemon.lock"


class Taken(MakewayError):  # noqa: N818  # an answer, not a fault
    """Another daemon has the state directory."""


class Hold:
    """Holds the lock of a state directory for as long as the process lives, or until `release`."""

    def __init__(self, state: Path, about: dict[str, object]) -> None:
        """Take the lock.

        :param about: what others are told of this daemon.
        :raises Taken: another daemon has it; the text names it.
        :raises OSError: the file cannot be made.
        """
        self.path = state / _NAME
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise Taken(_told(state, read(state))) from None
        text = json.dumps({"pid": os.getpid(), "since": time.time(), **about})
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)


def read(state: Path) -> dict[str, object]:
    """Return what the daemon of a state directory says of itself; empty: none ever did."""
    try:
        found = json.loads((state / _NAME).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def held(state: Path) -> bool:
    """Say whether a daemon has the state directory now."""
    try:
        descriptor = os.open(state / _NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _told(state: Path, about: dict[str, object]) -> str:
    since = about.get("since")
    text = f"{state}: a daemon runs here already"
    if isinstance(since, int | float):
        text += f", process {about.get('pid')}, since {time.strftime('%F %T', time.localtime(since))}"
    return text

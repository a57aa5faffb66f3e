"""Have a program saved from outside: a socket in its directory, for its own user alone.

A save that was asked for here leaves the program standing still, so that what asked can end it; nothing that it
does afterwards is lost or done twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

_NAME = "door"
_LONG = 3600.0
"""Seconds for which the asking process waits; what runs this command has a limit of its own."""


class Door:
    """Listens in a directory, whose lock this process holds."""

    def __init__(self, directory: Path) -> None:
        self._waiting: list[socket.socket] = []
        self._socket = socket.socket(socket.AF_UNIX)
        (directory / _NAME).unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            with _short(directory) as name:
                self._socket.bind(name)
        finally:
            os.umask(before)
        self._socket.listen()
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Return what can be waited for."""
        return self._socket.fileno()

    def take(self) -> bool:
        """Let one in; return whether it may ask."""
        try:
            other, _ = self._socket.accept()
        except OSError:
            return False
        _, user, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user not in (os.getuid(), 0):
            other.close()
            return False
        other.settimeout(1.0)
        self._waiting.append(other)
        return True

    def answer(self, why: str | None) -> bool:
        """Tell all who wait whether the program was saved; return whether there was any.

        :param why: why it was not; None: it was.
        """
        waiting, self._waiting = self._waiting, []
        for other in waiting:
            with contextlib.suppress(OSError):
                other.sendall(json.dumps({"why": why}).encode() + b"\n")
            other.close()
        return bool(waiting)


def ask(directory: Path) -> int:
    """Have the program of a directory saved; say why that failed, and return the exit status."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(_LONG)
            with _short(directory) as name:
                asking.connect(name)
            with asking.makefile("rb") as answers:
                line = answers.readline(65536)
    except (FileNotFoundError, ConnectionRefusedError):
        return _failed(f"nothing runs with {directory}")
    except OSError as error:
        return _failed(f"{directory}: {error.strerror or error}")
    why = json.loads(line)["why"] if line else "it was ended meanwhile"
    return 0 if why is None else _failed(f"it cannot be saved: {why}")


def _failed(why: str) -> int:
    sys.stderr.write(f"makeway checkpointable: {why}\n")
    return 1


@contextlib.contextmanager
def _short(directory: Path) -> Iterator[str]:
    """Name the socket so that it fits: the kernel takes 107 bytes."""
    handle = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{_NAME}"
    finally:
        os.close(handle)

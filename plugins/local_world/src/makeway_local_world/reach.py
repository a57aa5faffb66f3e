"""Find the socket of a daemon, and make sure whose it is: all that a command has to know (local-world 6.1).

Commands begin and end within milliseconds, so this module imports nothing that takes long.
"""

from __future__ import annotations

import os
import socket
import stat
import struct

from makeway.fault import MakewayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from types import TracebackType

    Path = str | PathLike[str]

STATE = "MAKEWAY_STATE"
SOCKET = "MAKEWAY_SOCKET"
SYSTEM_STATE = "/var/lib/makeway"
SYSTEM_SOCKET = "/run/makeway/socket"
NAME = "socket"
"""Name of the socket in its directory."""
LONGEST = 107
"""Bytes of the longest path that a socket of Linux may have."""


class PlaceError(MakewayError):
    """A directory that cannot be used: whose it is, or what it is, is wrong."""


def usual_state(environ: Mapping[str, str]) -> str:
    """Return the state directory of a user's own daemon."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(environ.get("XDG_STATE_HOME") or os.path.join(home, ".local/state"), "makeway")


def usual_socket(environ: Mapping[str, str]) -> str:
    """Return the socket of a user's own daemon; it depends on nothing but the environment."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    return os.path.join(runtime, "makeway", NAME) if runtime else os.path.join(usual_state(environ), NAME)


def candidates(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return where a command looks for a daemon, in order: what was named, the user's own, the system's."""
    environ = os.environ if environ is None else environ
    if environ.get(SOCKET):
        return [environ[SOCKET]]
    if environ.get(STATE):
        return [os.path.join(environ[STATE], NAME)]
    own = [usual_socket(environ), os.path.join(usual_state(environ), NAME)]
    return [*dict.fromkeys(own), SYSTEM_SOCKET]


def check_owned(directory: Path, owners: tuple[int, ...] | None = None) -> None:
    """Check that a directory is one, and that only its owner may write to it.

    :param owners: who may own it; None: this user.
    :raises PlaceError: it is not so.
    """
    allowed = (os.geteuid(),) if owners is None else owners
    try:
        found = os.lstat(directory)
    except OSError as error:
        raise PlaceError(f"{directory}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise PlaceError(f"{directory}: it is no directory (links are not followed)")
    if found.st_uid not in allowed:
        raise PlaceError(f"{directory}: it belongs to user {found.st_uid}; allowed: {_users(allowed)}")
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise PlaceError(f"{directory}: others may write to it; allowed: mode 0755 or 0700")


def _users(uids: tuple[int, ...]) -> str:
    return ", ".join(str(uid) for uid in dict.fromkeys(uids))


class short:  # noqa: N801  # used as a function is
    """Name a path shortly enough for a socket, by way of its directory where need be.

    As a context: `contextlib` would take longer to import than all of this takes.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._directory: int | None = None

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= LONGEST:
            return self._path
        directory, name = os.path.split(self._path)
        self._directory = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._directory}/{name}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is not None:
            os.close(self._directory)


def peer(connection: socket.socket) -> tuple[int, int, int]:
    """Return pid, uid and gid of who is at the other end, as of when it connected or listened."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, gid = struct.unpack("3i", raw)
    return pid, uid, gid

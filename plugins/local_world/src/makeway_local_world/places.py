"""Say where a daemon keeps its state and where its socket is (local-world 6.1).

A system's daemon has ``/var/lib/makeway`` and ``/run/makeway/socket``. A user's own has
``$XDG_STATE_HOME/makeway`` and a socket in ``$XDG_RUNTIME_DIR/makeway``; without that variable, as in cron jobs, the
socket is in the state directory. A daemon whose state directory was named has its socket in there.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from makeway.errors import MakewayError

STATE = "MAKEWAY_STATE"
SOCKET = "MAKEWAY_SOCKET"
SYSTEM_STATE = Path("/var/lib/makeway")
SYSTEM_SOCKET = Path("/run/makeway/socket")
LONGEST = 107
"""Bytes of the longest path that a socket of Linux may have."""
_NAME = "socket"


class PlaceError(MakewayError):
    """A directory that cannot be used: whose it is, or what it is, is wrong."""


@attrs.frozen(kw_only=True)
class Places:
    """Where one daemon lives."""

    state: Path
    """The state directory."""
    socket: Path
    """Its socket."""
    system: bool = False
    """Whether it serves several people."""

    @classmethod
    def find(
        cls,
        *,
        system: bool = False,
        state: Path | None = None,
        socket: Path | None = None,
        configured: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Places:
        """Return where a daemon that is about to start shall live.

        :param state: what ``--state`` named; None: the variable MAKEWAY_STATE, else the configuration, else the usual.
        :param socket: what ``--socket`` named; None: the variable MAKEWAY_SOCKET, else as the state directory says.
        :param configured: ``[world] state``.
        """
        environ = os.environ if environ is None else environ
        named = state or _path(environ.get(STATE))
        place = named or _path(configured) or (SYSTEM_STATE if system else usual_state(environ))
        asked = socket or _path(environ.get(SOCKET))
        if asked is None:
            if named is not None:
                asked = named / _NAME
            else:
                asked = SYSTEM_SOCKET if system else usual_socket(environ)
        return cls(state=place.absolute(), socket=asked.absolute(), system=system)


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None


def usual_state(environ: Mapping[str, str]) -> Path:
    """Return the state directory of a user's own daemon."""
    base = environ.get("XDG_STATE_HOME") or str(
        Path(environ.get("HOME") or "~").expanduser() / ".local/state"
    )
    return Path(base) / "makeway"


def usual_socket(environ: Mapping[str, str]) -> Path:
    """Return the socket of a user's own daemon; it depends on nothing but the environment."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "makeway" / _NAME if runtime else usual_state(environ) / _NAME


def candidates(environ: Mapping[str, str] | None = None) -> list[Path]:
    """Return where a command looks for a daemon, in order: what was named, the user's own, the system's."""
    environ = os.environ if environ is None else environ
    if environ.get(SOCKET):
        return [Path(environ[SOCKET])]
    if environ.get(STATE):
        return [Path(environ[STATE]) / _NAME]
    own = [usual_socket(environ), usual_state(environ) / _NAME]
    return [*dict.fromkeys(own), SYSTEM_SOCKET]


# ------------------------------------------------------------------------------------ making
def make_private(directory: Path) -> None:
    """Make a directory that only this user may enter, or take one that is.

    :raises PlaceError: it is somebody else's, a link, no directory, or others may write there.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    check_owned(directory)
    directory.chmod(0o700)


def make_public(directory: Path) -> None:
    """Make a directory that everybody may enter and only this user may write to.

    :raises PlaceError: as `make_private`.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o755)
    check_owned(directory)
    directory.chmod(0o755)


def check_owned(directory: Path, owners: tuple[int, ...] | None = None) -> None:
    """Check that a directory is one, and that nobody but its owner may write to it.

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


_FOREIGN = {
    0x6969: "nfs",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x65735546: "fuse",
    0x5346414F: "afs",
    0x01021997: "9p",
}
"""File systems on which locks or SQLite's write-ahead log are not what they are on a disk."""


def check_file_system(directory: Path) -> None:
    """Refuse a state directory on a network's file system (local-world 1.2).

    :raises PlaceError: it lies on nfs, cifs, fuse, afs or 9p.
    """
    kind = _FOREIGN.get(_file_system(directory))
    if kind is not None:
        text = (
            f"it lies on {kind}, where locks are not safe; allowed: a directory on a local disk (--state DIR)"
        )
        raise PlaceError(f"{directory}: {text}")


def _file_system(directory: Path) -> int:
    """Return the number of a file system's type; 0: it cannot be found out."""
    import ctypes

    buffer = ctypes.create_string_buffer(256)
    library = ctypes.CDLL(None, use_errno=True)
    if library.statfs(os.fsencode(directory), buffer) != 0:
        return 0
    return int(struct.unpack_from("l", buffer)[0]) & 0xFFFFFFFF


# ------------------------------------------------------------------------------------ sockets
@contextlib.contextmanager
def short(path: Path) -> Iterator[str]:
    """Yield a name of `path` that is short enough for a socket, by way of its directory where need be."""
    text = os.fspath(path)
    if len(os.fsencode(text)) <= LONGEST:
        yield text
        return
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


def peer(connection: socket.socket) -> tuple[int, int, int]:
    """Return pid, uid and gid of who is at the other end, as of when it connected or listened."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, gid = struct.unpack("3i", raw)
    return pid, uid, gid


__all__ = [
    "LONGEST",
    "SOCKET",
    "STATE",
    "PlaceError",
    "Places",
    "candidates",
    "check_file_system",
    "check_owned",
    "make_private",
    "make_public",
    "peer",
    "short",
    "usual_socket",
    "usual_state",
]

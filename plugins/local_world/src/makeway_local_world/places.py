"""Say where a daemon keeps its state and where its socket is (local-world 6.1).

A system's daemon has ``/var/lib/makeway`` and ``/run/makeway/socket``. A user's own has
``$XDG_STATE_HOME/makeway`` and a socket in ``$XDG_RUNTIME_DIR/makeway``; without that variable, as in cron jobs, the
socket is in the state directory. A daemon whose state directory was named has its socket in there.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import attrs

from makeway_local_world.reach import (
    NAME,
    SOCKET,
    STATE,
    SYSTEM_SOCKET,
    SYSTEM_STATE,
    PlaceError,
    check_owned,
    usual_socket,
    usual_state,
)


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
        place = named or _path(configured) or Path(SYSTEM_STATE if system else usual_state(environ))
        asked = socket or _path(environ.get(SOCKET))
        if asked is None:
            if named is not None:
                asked = named / NAME
            else:
                asked = Path(SYSTEM_SOCKET if system else usual_socket(environ))
        return cls(state=place.absolute(), socket=asked.absolute(), system=system)


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None


# ------------------------------------------------------------------------------------ making
def make_private(directory: Path) -> None:
    """Make a directory that only this user may enter, or take one that is.

    :raises PlaceError: it is another user's, a link, no directory, or others may write there.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    check_owned(directory)
    directory.chmod(0o700)


def make_public(directory: Path) -> None:
    """Make a directory that all users may enter and only this user may write to.

    :raises PlaceError: as `make_private`.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o755)
    check_owned(directory)
    directory.chmod(0o755)


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

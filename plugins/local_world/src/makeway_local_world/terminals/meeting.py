"""Where a job and its user meet: a socket that no other user can reach, with words that both know.

A guest of a terminal sends frames, a letter and a length before each: ``d`` what was typed, ``w`` the size of the
window. What comes back is what the job prints, as it is. A guest of a job without a terminal sends its three streams.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct

from makeway.fault import MakewayError
from makeway_local_world.reach import peer

SOCKET = "socket"
TYPED, SIZE = b"d", b"w"
MOST = 4096
"""Bytes of a frame."""
_HEAD, _SIZE = struct.Struct("!cH"), struct.Struct("!HH")


class MeetingError(MakewayError):
    """The place is not this user's alone, or the other is not there."""


def new_place() -> str:
    """Make a directory of this user's alone, whose name no user can know before; its path is short enough.

    :raises OSError: it cannot be made.
    """
    path = f"/tmp/makeway-{os.urandom(8).hex()}"
    os.mkdir(path, 0o700)
    return path


def is_there(place: str) -> bool:
    """Say whether a directory is there, which is then this user's alone.

    :raises MeetingError: it is another user's as well, or cannot be looked at.
    """
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise MeetingError(f"{place}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise MeetingError(f"{place}: it is not a directory of this user's alone (mode 0700)")
    return True


def listen(place: str) -> socket.socket:
    """Wait for guests in a place, which is made if it is gone.

    :raises MeetingError: it is not this user's alone.
    :raises OSError: it cannot be made, or was taken away.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    is_there(place)
    path = os.path.join(place, SOCKET)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o077)
    try:
        found.bind(path)
    finally:
        os.umask(before)
    found.listen(4)
    found.setblocking(False)
    return found


def accept(listener: socket.socket) -> socket.socket | None:
    """Return a guest; None: there is none, or it is another user."""
    try:
        guest, _ = listener.accept()
    except OSError:
        return None
    if peer(guest)[1] != os.geteuid():
        guest.close()
        return None
    guest.setblocking(False)
    return guest


def call(place: str) -> socket.socket | None:
    """Go to a place; None: the other is not there yet.

    :raises MeetingError: it is not this user's alone, or another user is there.
    """
    if not is_there(place):  # looked at once: the job takes it away when it ends
        return None
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(2.0)  # a job that is stopped lets a few wait, and then no more
        line.connect(os.path.join(place, SOCKET))
        line.settimeout(None)
    except OSError:
        line.close()
        return None
    if peer(line)[1] != os.geteuid():
        line.close()
        raise MeetingError(f"{place}: another user answers there")
    return line


def leave(place: str) -> None:
    """Take a place away, as far as no other needs it."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(place, SOCKET))
    with contextlib.suppress(OSError):
        os.rmdir(place)


# -------------------------------------------------------------------------------------- frames
def typed(data: bytes) -> bytes:
    """Return frames of what was typed."""
    parts = (data[at : at + MOST] for at in range(0, len(data), MOST))
    return b"".join(_HEAD.pack(TYPED, len(part)) + part for part in parts)


def size(rows: int, columns: int) -> bytes:
    """Return a frame of the size of a window."""
    return _HEAD.pack(SIZE, _SIZE.size) + _SIZE.pack(rows & 0xFFFF, columns & 0xFFFF)


def frames(data: bytearray) -> list[tuple[bytes, bytes]]:
    """Take whole frames off the front of what came.

    :raises MeetingError: these are none.
    """
    found = []
    while len(data) >= _HEAD.size:
        kind, length = _HEAD.unpack_from(data)
        if kind not in (TYPED, SIZE) or length > MOST or (kind == SIZE and length != _SIZE.size):
            raise MeetingError("what came is no frame")
        end = _HEAD.size + length
        if len(data) < end:
            break
        found.append((kind, bytes(data[_HEAD.size : end])))
        del data[:end]
    return found


def rows_and_columns(frame: bytes) -> tuple[int, int]:
    """Return what a frame says of the size of a window."""
    rows, columns = _SIZE.unpack(frame)
    return int(rows), int(columns)


__all__ = [
    "MOST",
    "SIZE",
    "TYPED",
    "MeetingError",
    "accept",
    "call",
    "frames",
    "is_there",
    "leave",
    "listen",
    "new_place",
    "rows_and_columns",
    "size",
    "typed",
]

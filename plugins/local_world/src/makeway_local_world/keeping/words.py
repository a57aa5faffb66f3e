"""What daemon and keepers say to one another, and the files that they leave each other; all of it versioned.

A daemon reads words and files of its own version and of two versions back, since keepers are as old as their jobs.
Every message is one JSON object in one packet.

From the daemon: ``{"v", "id", "do", ...}``; `do` is stop, continue, kill, signal, warn, checkpoint, look.
From the keeper: ``{"v", "say", ...}``; an answer has the `id` of what it answers.
"""

from __future__ import annotations

from makeway_local_world.keeping.lean import read_json, socket, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
READABLE = (1,)
"""Versions of words and files that this makeway reads: its own and two back, as far as there are any."""
LONGEST = 65536
"""Bytes of one message."""
EXIT_SIZE = 4096
"""Bytes that are kept for the exit file before the job starts; what is not written yet is zero."""
SAVED_SIZE = 4096
"""The same of the file that says what of the job is saved; jobs that nothing saves have none."""
LONGEST_REASON = 300
"""Characters of a reason that is kept there, each of up to 12 bytes of JSON."""
LONGEST_MANDATE = 65536
"""Bytes of what root is to do for a start."""

_HEAD = b'{"v":%d,' % VERSION
STARTED, EXIT, SAVED, LOCK, SOCKET = "started", "exit", "saved", "lock", "socket"


class WordError(Exception):
    """A message or file of a version, or a form, that cannot be read."""


def pack(**words: Any) -> bytes:
    """Return a message."""
    return write_json({"v": VERSION, **words})


def runs(leader: int, state: str) -> bytes:
    """Return the word that every keeper says, as `pack` would, without touching what writes JSON."""
    return _HEAD + b'"say":"runs","leader":%d,"state":"%b"}' % (leader, state.encode("ascii"))


def hello(started: bytes, leader: int, state: str, ends_by: str, then: str | None) -> bytes:
    """Return what a keeper says to a caller: how the job stands, and all that the file `started` holds."""
    why = b"null" if then is None else write_json(then)
    how = leader, state.encode("ascii"), ends_by.encode("ascii"), why
    told = b'"say":"hello","leader":%d,"state":"%b","ends_by":"%b","then":%b,' % how
    return _HEAD + told + started.removeprefix(_HEAD)


def unpack(data: bytes) -> dict[str, Any]:
    """Read a message or file.

    :raises WordError: it is none, or of another version.
    """
    try:
        words = read_json(data)
    except (ValueError, RecursionError) as error:
        raise WordError(f"it is damaged: {error}") from None
    if not isinstance(words, dict) or words.get("v") not in READABLE:
        version = words.get("v") if isinstance(words, dict) else None
        allowed = ", ".join(map(str, READABLE))
        raise WordError(f"got version {version!r}; this makeway reads {allowed}")
    return words


def written(data: bytes) -> bytes | None:
    """Return what a file `started`, `exit` or `saved` says, once all of it is written; None: it is not."""
    told = data.rstrip(b"\0")
    return told if told.endswith(b"\n") else None


def send(line: socket.socket, data: bytes) -> bool:
    """Send a message without waiting; return whether it was taken."""
    try:
        line.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        return False
    return True


def receive(line: socket.socket) -> bytes:
    """Return the next message that is there; empty: the other end has hung up.

    Who hangs up with words unread resets the line, and what it said before is still there after that.

    :raises BlockingIOError: nothing is there.
    """
    for _ in range(2):
        try:
            return line.recv(LONGEST, socket.MSG_DONTWAIT)
        except BlockingIOError:
            raise
        except ConnectionResetError:
            continue
        except OSError:
            break
    return b""


__all__ = [
    "EXIT",
    "EXIT_SIZE",
    "LOCK",
    "LONGEST",
    "LONGEST_MANDATE",
    "LONGEST_REASON",
    "READABLE",
    "SAVED",
    "SAVED_SIZE",
    "SOCKET",
    "STARTED",
    "VERSION",
    "WordError",
    "hello",
    "pack",
    "receive",
    "runs",
    "send",
    "unpack",
    "written",
]

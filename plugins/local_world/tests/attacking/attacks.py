"""Ask a daemon as attackers do: raw bytes over its socket, many connections, and somebody innocent beside them."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from makeway_local_world.commands.client import Refused
from makeway_local_world.keeping import linux

ANN, BEN = 65534, 1
"""Users that every Linux has: nobody, and daemon."""
HALF = 5.0
"""Seconds after which a daemon that waits for more is told that nothing comes."""
PATIENCE = 300.0
"""Seconds after which a request is given up."""


def connected(path: Path) -> socket.socket:
    """Return a connection to a daemon."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(PATIENCE)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            made.connect(str(path))
            return made
        except BlockingIOError:
            assert time.monotonic() < until, "nobody lets anybody in"
            time.sleep(0.01)


def raw(path: Path, data: bytes, *, half: bool = False) -> bytes:
    """Send bytes, and return what comes back until the end, or until a whole answer is there.

    :param half: whether the end is told if nothing comes back for a while.
    """
    with connected(path) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        if half:
            connection.settimeout(HALF)
            try:
                return _answer(connection)
            except TimeoutError:
                connection.settimeout(PATIENCE)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
        return _answer(connection)


def _answer(connection: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionError):
        while True:
            head, blank, body = found.partition(b"\r\n\r\n")
            size = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            if blank and size and len(body) >= int(size[0].partition(b":")[2]):
                return found
            piece = connection.recv(1 << 16)
            if not piece:
                return found
            found += piece
    return found


def request(
    method: str, route: str, body: bytes | None = None, *, headers: bytes = b"", size: int | None = None
) -> bytes:
    """Return the bytes of a request.

    :param size: what it says of the length of its body; None: the truth.
    """
    head = f"{method} {route} HTTP/1.1\r\nHost: localhost\r\n".encode("utf-8", "surrogateescape") + headers
    if body is not None or size is not None:
        head += f"Content-Length: {len(body or b'') if size is None else size}\r\n".encode()
    return head + b"\r\n" + (body or b"")


def submission(**fields: Any) -> bytes:
    """Return the body of a submission that is right but for what is given."""
    whole = {"command": ["true"], "cwd": "/tmp", "output": "/dev/null", "hold": True, **fields}
    return json.dumps(whole).encode()


def status_of(answer: bytes) -> int:
    """Return the status of an answer; 0: there is none."""
    words = answer.split(b" ", 2)
    return int(words[1]) if answer.startswith(b"HTTP/1.") and words[1].isdigit() else 0


def error_of(answer: bytes) -> str:
    """Return what an answer says is wrong."""
    with contextlib.suppress(ValueError):
        return str(json.loads(answer.partition(b"\r\n\r\n")[2]).get("error", ""))
    return ""


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """Do something with the rights of a user in a child; return what it returns by way of JSON, or why it may not."""
    reading, writing = os.pipe()

    def tell() -> None:
        try:
            text = json.dumps({"value": work()})
        except Refused as error:
            text = json.dumps({"value": f"{error.status} {error}"})
        except PermissionError as error:
            text = json.dumps({"value": error.strerror})
        except BaseException as error:
            text = json.dumps({"error": repr(error)})
        with open(writing, "w") as stream:
            stream.write(text)

    child = _child(uid, tell)
    os.close(writing)
    with open(reading) as stream:
        told = json.loads(stream.read() or '{"error": "it ended"}')
    os.waitpid(child, 0)
    assert "error" not in told, told
    return told["value"]


@contextlib.contextmanager
def crowd(uid: int, work: Callable[[], Any]) -> Iterator[None]:
    """Have a user do something in the background; what it returns is held until the end."""
    ours, theirs = socket.socketpair()

    def hold() -> None:
        held = work()
        theirs.sendall(b"!")
        theirs.recv(1)
        del held

    child = _child(uid, hold)
    theirs.close()
    ours.settimeout(2 * PATIENCE)
    try:
        assert ours.recv(1) == b"!", "it failed"
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        ours.close()


def _child(uid: int, work: Callable[[], None]) -> int:
    """Do something in a child with the rights of a user; it never outlives this process. Return its number."""
    child = os.fork()
    if child:
        return child
    try:
        if uid != os.geteuid():
            os.setgroups([])
            os.setresgid(*[pwd.getpwuid(uid).pw_gid] * 3)
            os.setresuid(uid, uid, uid)
        linux.die_with_parent(signal.SIGKILL)
        work()
    finally:
        os._exit(0)

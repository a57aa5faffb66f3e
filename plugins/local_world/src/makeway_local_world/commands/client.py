"""Talk to a daemon over its unix socket.

===  =======================================================
  0  done
  1  refused, with the reason
  2  it cannot be asked like that: flags, files
  3  there is no daemon
===  =======================================================

A request is HTTP/1.0: the answer ends where the connection does, and no library has to be imported to read it.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import time

from makeway_local_world.commands import terminal
from makeway_local_world.commands.words import Failed
from makeway_local_world.reach import (
    SOCKET,
    STATE,
    SYSTEM_SOCKET,
    SYSTEM_STATE,
    PlaceError,
    candidates,
    check_owned,
    peer,
    short,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from makeway_local_world.reach import Path

REFUSED, USAGE, ABSENT = 1, 2, 3
TOO_MANY = 429
"""HTTP status of what a user asks beyond a user's share."""
TROUBLE = "makeway-trouble"
"""Header in which a daemon says why it starts nothing now."""
CROWDED = 20.0
"""Seconds for which a command tries to get in."""
PATIENCE = 120.0
"""Seconds for which an answer is waited for; those that take longer are asked for again."""
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


class Refused(Failed):
    """The daemon refused, and said why."""

    def __init__(self, text: str, status: int, data: Mapping[str, Any], wait: float = 1.0) -> None:
        super().__init__(text)
        self.status = status
        self.data = data
        self.wait = wait
        """Seconds after which it may be asked again, where that helps."""


class Absent(Failed):
    """There is no daemon."""

    exit_status = ABSENT


class Daemon:
    """A daemon, as commands see it."""

    def __init__(self, path: Path | None = None) -> None:
        """Find it.

        :param path: its socket; None: the first one that is there, of those where it may be.
        :raises Absent: there is none.
        :raises PlaceError: the socket lies where another user could have put it.
        """
        self.path = find() if path is None else os.fspath(path)
        self._told = ""

    def get(self, route: str, **query: Any) -> dict[str, Any]:
        """Ask for something."""
        return self._ask("GET", route, None, query)

    def post(self, route: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Have something done."""
        return self._ask("POST", route, body or {}, {})

    def _ask(
        self, method: str, route: str, body: Mapping[str, Any] | None, query: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask; where this user asks too much, wait and ask again, for that does nothing."""
        until = time.monotonic() + CROWDED
        while True:
            try:
                return self._ask_once(method, route, body, query)
            except Refused as refused:
                if refused.status != TOO_MANY or time.monotonic() > until:
                    raise
                time.sleep(refused.wait)

    def _ask_once(
        self, method: str, route: str, body: Mapping[str, Any] | None, query: Mapping[str, Any]
    ) -> dict[str, Any]:
        text = b"" if body is None else json.dumps(body).encode()
        try:
            with self._sent(method, _url(route, query), text, PATIENCE) as connection:
                raw = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            status, headers = _head(raw.partition(b"\r\n\r\n")[0])
        except OSError as error:
            if isinstance(error, ConnectionError | FileNotFoundError | TimeoutError):
                raise absent(self.path, error) from None
            raise
        self._warn(headers.get(TROUBLE))
        wait = headers.get("retry-after", "")
        return _answer(status, raw.partition(b"\r\n\r\n")[2], float(wait) if wait.isdecimal() else 1.0)

    def _sent(self, method: str, url: str, body: bytes, timeout: float | None) -> socket.socket:
        """Connect, see who is at the other end, one's own daemon or root's, and ask."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            with short(self.path) as name:
                _connect(connection, name)
            _, uid, _ = peer(connection)
            if uid not in (os.geteuid(), 0) and os.geteuid() != 0:
                raise PlaceError(
                    f"{self.path}: user {uid} answers there; allowed: your own daemon, or root's"
                )
            head = f"{method} {url} HTTP/1.0\r\nHost: localhost\r\n"
            if method == "POST":
                head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            try:
                connection.sendall(f"{head}\r\n".encode() + body)
            except BrokenPipeError:
                return connection  # it may be answered before it was heard
        except BaseException:
            connection.close()
            raise
        return connection

    def _warn(self, trouble: str | None) -> None:
        """Say once what is wrong with the machine."""
        if trouble and trouble != self._told:
            from urllib.parse import unquote

            self._told = trouble
            terminal.say(f"attention: nothing is started now: {unquote(trouble)}", err=True)

    def events(self, after: int | None = None, *, follow: bool = True) -> Iterator[dict[str, Any]]:
        """Yield what happens, as the daemon tells it: ``{"id": ..., "event": ..., "data": ...}``."""
        url = _url("/v1/events", {"follow": int(follow), "after": after})
        try:
            with self._sent("GET", url, b"", None) as connection, connection.makefile("rb") as stream:
                head = b"".join(iter(stream.readline, b"\r\n"))
                status, _ = _head(head.rstrip())
                if status != 200:
                    _answer(status, stream.read())
                event: dict[str, Any] = {}
                for raw in stream:
                    line = raw.decode().rstrip("\n")
                    name, _, value = line.partition(": ")
                    if line and name:
                        event[name] = value
                    elif event:
                        yield {
                            **event,
                            "id": int(event.get("id", 0)),
                            "data": json.loads(event.get("data", "{}")),
                        }
                        event = {}
        except (ConnectionError, FileNotFoundError) as error:
            raise absent(self.path, error) from None


def _connect(connection: socket.socket, name: str) -> None:
    """Connect; wait a little where too many others want to, too."""
    until = time.monotonic() + CROWDED
    while True:
        try:
            connection.connect(name)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError from None
            time.sleep(0.02)


def _head(raw: bytes) -> tuple[int, dict[str, str]]:
    """Return the status of an answer, and its headers by their names in small letters.

    :raises ConnectionError: this is no answer.
    """
    first, *lines = raw.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdecimal():
        raise ConnectionError("no answer")
    pairs = (line.partition(":") for line in lines)
    return int(words[1]), {name.lower(): value.strip() for name, _, value in pairs}


def find(environ: Mapping[str, str] | None = None) -> str:
    """Return the socket of the daemon that is meant.

    :raises Absent: there is none.
    :raises PlaceError: it lies where another user could have put it.
    """
    looked = candidates(environ)
    for path in looked:
        if _is_socket(path):
            above = os.path.dirname(path) or "."
            check_owned(above, (os.geteuid(), 0) if os.geteuid() else (os.stat(above).st_uid,))
            return path
    raise absent(looked[0], None)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def absent(path: Path, error: BaseException | None) -> Absent:
    """Return that there is no daemon, and what helps."""
    if isinstance(error, TimeoutError):
        return Absent(f"the daemon at {path} does not answer")
    named = next((f" ({name}={os.environ[name]})" for name in (SOCKET, STATE) if os.environ.get(name)), "")
    if not named and os.geteuid() and any(map(os.path.isdir, (SYSTEM_STATE, os.path.dirname(SYSTEM_SOCKET)))):
        ask = "ask an administrator to start it (makeway up --system)"
        return Absent(f"the daemon of this machine, {SYSTEM_SOCKET}, does not run; {ask}")
    other = "" if named else f", or name the socket of one in {SOCKET}"
    return Absent(f"no daemon runs at {path}{named}; start one: makeway up{other}")


def quoted(text: str) -> str:
    """Return a text as a part of an address."""
    return "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape")
    )


def _url(route: str, query: Mapping[str, Any]) -> str:
    text = "&".join(f"{key}={quoted(str(value))}" for key, value in query.items() if value is not None)
    return f"{route}?{text}" if text else route


def job_route(job_id: str, what: str = "") -> str:
    """Return the route of a job."""
    return f"/v1/jobs/{quoted(job_id)}" + (f"/{what}" if what else "")


def _answer(status: int, raw: bytes, wait: float = 1.0) -> dict[str, Any]:
    try:
        data = json.loads(raw or b"{}")
    except ValueError:
        data = {}
    if not isinstance(data, dict):
        data = {}
    if status < 400:
        return data
    text = str(data.get("error") or f"the daemon answers with HTTP status {status}")
    raise Refused(text, status, data, wait)


__all__ = ["ABSENT", "REFUSED", "USAGE", "Absent", "Daemon", "Refused", "absent", "find", "job_route"]

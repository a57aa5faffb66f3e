"""Talk to a daemon over its unix socket.

===  =======================================================
  0  done
  1  refused, with the reason
  2  it cannot be asked like that: flags, files
  3  there is no daemon
===  =======================================================
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

import click

from makeway.errors import MakewayError
from makeway_local_world.commands import terminal
from makeway_local_world.places import (
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

REFUSED, USAGE, ABSENT = 1, 2, 3
TOO_MANY = 429
"""HTTP status of what a user asks beyond a user's share."""
TROUBLE = "Makeway-Trouble"
"""Header in which a daemon says why it starts nothing now."""
CROWDED = 20.0
"""Seconds for which a command tries to get in."""
PATIENCE = 120.0
"""Seconds for which an answer is waited for; those that take longer are asked for again."""


class Refused(MakewayError):  # noqa: N818  # an answer, not a fault
    """The daemon refused, and said why."""

    def __init__(self, text: str, status: int, data: Mapping[str, Any], wait: float = 1.0) -> None:
        super().__init__(text)
        self.status = status
        self.data = data
        self.wait = wait
        """Seconds after which it may be asked again, where that helps."""


class Absent(click.ClickException):
    """There is no daemon."""

    exit_code = ABSENT

    def show(self, file: Any = None) -> None:
        """Say so as all of makeway's errors are said."""
        terminal.say(f"makeway: {self.message}", err=True)


class _Connection(http.client.HTTPConnection):
    """HTTP over a unix socket, to a daemon that can be trusted."""

    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect, and see who is at the other end: one's own daemon, or root's."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout)
        try:
            with short(self._path) as name:
                _connect(connection, name)
            _, uid, _ = peer(connection)
            if uid not in (os.geteuid(), 0) and os.geteuid() != 0:
                raise PlaceError(
                    f"{self._path}: user {uid} answers there; allowed: your own daemon, or root's"
                )
        except BaseException:
            connection.close()
            raise
        self.sock = connection


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


class Daemon:
    """A daemon, as commands see it."""

    def __init__(self, path: Path | None = None) -> None:
        """Find it.

        :param path: its socket; None: the first one that is there, of those where it may be.
        :raises Absent: there is none.
        :raises PlaceError: the socket lies where somebody else could have put it.
        """
        self.path = path or find()
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
        connection = _Connection(self.path, PATIENCE)
        try:
            text = None if body is None else json.dumps(body)
            with contextlib.suppress(BrokenPipeError):  # it may be answered before it was heard
                connection.request(method, _url(route, query), text, {"Content-Type": "application/json"})
            response = connection.getresponse()
            self._warn(response.headers.get(TROUBLE))
            wait = response.headers.get("Retry-After", "")
            return _answer(response.status, response.read(), float(wait) if wait.isdecimal() else 1.0)
        except (ConnectionError, FileNotFoundError, http.client.HTTPException, TimeoutError) as error:
            raise absent(self.path, error) from None
        finally:
            connection.close()

    def _warn(self, trouble: str | None) -> None:
        """Say once what is wrong with the machine."""
        if trouble and trouble != self._told:
            self._told = trouble
            terminal.say(f"attention: nothing is started now: {unquote(trouble)}", err=True)

    def events(self, after: int | None = None, *, follow: bool = True) -> Iterator[dict[str, Any]]:
        """Yield what happens, as the daemon tells it: ``{"id": ..., "event": ..., "data": ...}``."""
        query = {"follow": int(follow)} | ({} if after is None else {"after": after})
        connection = _Connection(self.path, None)
        try:
            connection.request("GET", _url("/v1/events", query))
            response = connection.getresponse()
            if response.status != 200:
                _answer(response.status, response.read())
            event: dict[str, Any] = {}
            for raw in response:
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
        except (ConnectionError, FileNotFoundError, http.client.HTTPException) as error:
            raise absent(self.path, error) from None
        finally:
            connection.close()


def find(environ: Mapping[str, str] | None = None) -> Path:
    """Return the socket of the daemon that is meant.

    :raises Absent: there is none.
    :raises PlaceError: it lies where somebody else could have put it.
    """
    looked = candidates(environ)
    for path in looked:
        if path.is_socket():
            check_owned(path.parent, (os.geteuid(), 0) if os.geteuid() else (path.parent.stat().st_uid,))
            return path
    raise absent(looked[0], None)


def absent(path: Path, error: BaseException | None) -> Absent:
    """Return that there is no daemon, and what helps."""
    if isinstance(error, TimeoutError):
        return Absent(f"the daemon at {path} does not answer")
    named = next((f" ({name}={os.environ[name]})" for name in (SOCKET, STATE) if os.environ.get(name)), "")
    if not named and os.geteuid() and any(each.is_dir() for each in (SYSTEM_STATE, SYSTEM_SOCKET.parent)):
        ask = "ask an administrator to start it (makeway up --system)"
        return Absent(f"the daemon of this machine, {SYSTEM_SOCKET}, does not run; {ask}")
    other = "" if named else f", or name the socket of one in {SOCKET}"
    return Absent(f"no daemon runs at {path}{named}; start one: makeway up{other}")


def _url(route: str, query: Mapping[str, Any]) -> str:
    text = urlencode({key: value for key, value in query.items() if value is not None})
    return f"{route}?{text}" if text else route


def job_route(job_id: str, what: str = "") -> str:
    """Return the route of a job."""
    return f"/v1/jobs/{quote(job_id, safe='')}" + (f"/{what}" if what else "")


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

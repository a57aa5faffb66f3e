"""Let connections in, and show those out that ask nothing, ask for ever, or do not listen (local-world 6.1).

A request has to come whole within a while, its body too. Each user has so many connections; if another comes, the
oldest of the same user that waits for nothing has to go.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable
from typing import Any

WHOLE_WITHIN = 20.0
"""Seconds in which a whole request has to come, after the connection was made or the last answer was given."""
HEARD_WITHIN = 20.0
"""Seconds for which an answer may lie there unread."""
BACKLOG = 1024
"""Connections that may wait to be taken in."""
KEPT_BACK = 256
"""Descriptors that are kept for files and keepers."""
AGAIN = 0.1
"""Seconds until the next look when no descriptor was left."""
NOBODY = -1
"""Stands for who cannot be known: on a port, all users of the machine."""
_CLOSED = (
    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n"
    "{more}\r\n{body}"
)
Inner = Any
"""aiohttp's protocol of a connection."""


def _answer(status: str, text: str, more: str = "") -> bytes:
    body = f'{{"error": "{text}"}}'
    return _CLOSED.format(status=status, size=len(body), more=more, body=body).encode()


_LATE = _answer("408 Request Timeout", f"no whole request came within {WHOLE_WITHIN:g} s")
_FULL = _answer(
    "429 Too Many Requests",
    "too many connections of this user; close some, or try again",
    "Retry-After: 1\r\n",
)


class Doorman:
    """Knows all connections, whose they are, and which of them wait for something."""

    def __init__(self, most_of_one: Callable[[], int], most: int | None = None) -> None:
        """Make it.

        :param most_of_one: how many connections a user may have now.
        :param most: how many all may have; None: as many as there are descriptors for.
        """
        self._loop = asyncio.get_running_loop()
        self._most_of_one = most_of_one
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        known = soft if soft > 0 else 1 << 20
        self._most = most or max(known // 4, known - KEPT_BACK)
        self._guests: dict[int, dict[Guest, None]] = {}

    async def serve(
        self, listener: socket.socket, make: Callable[[], Inner], whose: Callable[[socket.socket], int]
    ) -> None:
        """Let connections in until this is cancelled.

        :param make: makes aiohttp's protocol of a connection.
        :param whose: says which user is at the other end.
        """
        listener.setblocking(False)
        while True:
            try:
                connection, _ = await self._loop.sock_accept(listener)
            except OSError:  # no descriptor is left
                self._make_room(None)
                await asyncio.sleep(AGAIN)
                continue
            try:
                await self._let_in(connection, make, whose(connection))
            except OSError:
                connection.close()

    async def _let_in(self, connection: socket.socket, make: Callable[[], Inner], uid: int) -> None:
        connection.setblocking(False)
        own = self._guests.get(uid, {})
        if len(own) >= self._most_of_one() and not self._make_room(uid):
            with contextlib.suppress(OSError), connection:
                connection.send(_FULL)
            return
        if sum(map(len, self._guests.values())) >= self._most:
            self._make_room(None)
        guest = Guest(make(), self, uid)
        self._guests.setdefault(uid, {})[guest] = None
        await self._loop.connect_accepted_socket(lambda: guest, connection)

    def _make_room(self, uid: int | None) -> bool:
        """Show the oldest connection out that waits for nothing, of a user, or of who has most; say whether one was."""
        among = (
            [self._guests.get(uid, {})] if uid is not None else sorted(self._guests.values(), key=len)[::-1]
        )
        for guests in among:
            for guest in guests:
                if guest.silent:
                    guest.show_out()
                    return True
        return False

    def gone(self, guest: Guest) -> None:
        """Forget a connection."""
        own = self._guests.get(guest.uid, {})
        own.pop(guest, None)
        if not own:
            self._guests.pop(guest.uid, None)


class Guest(asyncio.Protocol):
    """One connection: aiohttp's protocol, watched."""

    def __init__(self, inner: Inner, doorman: Doorman, uid: int) -> None:
        self.uid = uid
        """Whose it is."""
        self.silent = True
        """Whether it waits for nothing: no whole request has come since the last answer."""
        self._inner = inner
        self._doorman = doorman
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._asked_by: asyncio.TimerHandle | None = None
        self._read_by: asyncio.TimerHandle | None = None

    def heard(self) -> None:
        """Take note that a whole request has come."""
        self.silent = False
        self._stop("_asked_by")

    def answered(self) -> None:
        """Take note that the answer is known: the next request may come."""
        self.silent = True
        self._stop("_asked_by")
        self._asked_by = self._loop.call_later(WHOLE_WITHIN, self._late)

    def show_out(self) -> None:
        """Close it now."""
        self._doorman.gone(self)
        if self._transport is not None:
            self._transport.abort()

    def _late(self) -> None:
        if not self._transport.is_closing() and not self._transport.get_write_buffer_size():
            self._transport.write(_LATE)
        self._transport.close()
        self._loop.call_later(1.0, self._transport.abort)

    def _stop(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)

    # ------------------------------------------------------------------- what asyncio calls
    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        self._transport = transport
        self.answered()
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._stop("_asked_by")
        self._stop("_read_by")
        self._doorman.gone(self)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """See asyncio."""
        return bool(self._inner.eof_received())

    def pause_writing(self) -> None:
        """See asyncio."""
        self._stop("_read_by")
        self._read_by = self._loop.call_later(HEARD_WITHIN, self.show_out)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio."""
        self._stop("_read_by")
        self._inner.resume_writing()


def guest_of(transport: asyncio.BaseTransport | None) -> Guest | None:
    """Return the connection of a transport; None: it is gone."""
    found = transport.get_protocol() if isinstance(transport, asyncio.Transport) else None
    return found if isinstance(found, Guest) else None

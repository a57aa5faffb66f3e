"""Share the daemon out between users: requests, bytes, and who computes; no user's requests hold up those of others.

Each user has an allowance of requests that grows with time. A request takes one from it, and one for each piece of
what it brings and gets, so a user who asks for much asks less often. Operators are trusted with that.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator

import attrs

from makeway.errors import MakewayError
from makeway_local_world.bookings import Amount

PIECE = 16 << 10
"""Bytes that count as a request of their own."""
BURST = 2.0
"""Seconds whose requests may come at once."""
LARGE = 64 << 10
"""Bytes of a body from which few of a user are taken at a time: they lie in memory while they come."""
LARGE_AT_ONCE = 4
STREAMS = 20
"""Streams of events that a user may follow: each looks at the journal after every step."""
SLOW_AT_ONCE = 1
"""Requests of a user that compute for long, such as `why`, at a time."""


@attrs.frozen(kw_only=True)
class Share:
    """How much of a daemon one user may have."""

    connections: int = 200
    requests: float = 200.0
    """A second."""
    jobs: int = 10_000
    """That wait or run."""
    storage: int = 256 << 20
    """Bytes that the submissions of these jobs take."""


@attrs.frozen(kw_only=True)
class Bounds:
    """What one user may book; operators are free of it."""

    many: int = 3
    """Bookings that are not over."""
    longest: float = 12 * 3600.0
    cpus: int = 0
    """At any one time; 0: any."""
    gpus: int = 0
    memory_mb: int = 0
    unused: float = 900.0
    """Seconds after which a booking that no job of its user is in falls back; 0: never."""

    @property
    def amount(self) -> Amount:
        """What one user may have booked at any one time; 0: any."""
        return Amount(self.cpus, self.gpus, self.memory_mb)


class TooMany(MakewayError):  # noqa: N818  # an answer, not a fault
    """A user asks for more than the share of one user."""

    def __init__(self, text: str, wait: float) -> None:
        self.wait = max(1, math.ceil(wait))
        """Seconds after which it may be asked again."""
        super().__init__(f"{text}; try again in {self.wait} s")


@attrs.define(eq=False)
class Account:
    """What one user has left."""

    left: float
    at: float
    """When that was."""
    large: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(LARGE_AT_ONCE))
    slow: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(SLOW_AT_ONCE))
    streams: int = 0
    """How many are followed."""

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """Follow a stream of events.

        :raises TooMany: this user follows too many.
        """
        if self.streams >= STREAMS:
            raise TooMany(f"too many streams of events; allowed: {STREAMS} of one user", 1.0)
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1


class Fairness:
    """The accounts of all users; used on the thread of the socket alone."""

    def __init__(
        self,
        share: Callable[[], Share],
        trusted: Callable[[int], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make it.

        :param share: how much one user may have.
        :param trusted: says of which users requests are not counted.
        """
        self._share = share
        self._trusted = trusted
        self._clock = clock
        self._accounts: dict[int, Account] = {}

    def of(self, uid: int) -> Account:
        """Return the account of a user, with what has grown since it was looked at last."""
        now, rate = self._clock(), self._share().requests
        account = self._accounts.get(uid)
        if account is None:
            account = self._accounts[uid] = Account(BURST * rate, now)
        account.left = min(BURST * rate, account.left + rate * (now - account.at))
        account.at = now
        return account

    def ask(self, uid: int) -> Account:
        """Take one request from what a user has left.

        :raises TooMany: nothing is left.
        """
        account = self.of(uid)
        if self._trusted(uid):
            return account
        if account.left < 1.0:
            rate = self._share().requests
            text = f"too many requests; allowed: {rate:g} a second of one user, fewer of large ones"
            raise TooMany(text, (1.0 - account.left) / rate)
        account.left -= 1.0
        return account

    def charge(self, uid: int, size: int) -> float:
        """Take what so many bytes cost; return how long it takes until the user may go on."""
        if self._trusted(uid):
            return 0.0
        account = self.of(uid)
        account.left -= size / PIECE
        return max(0.0, -account.left / self._share().requests)

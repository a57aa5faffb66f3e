"""Let browsers of this machine in to a port of the loopback, and no one else.

Every local user can reach such a port, and every page that the browser shows can send requests there. So: a token that
works once becomes a cookie (HttpOnly, SameSite=Strict) that stands for who asked for the page; Host and Origin have to
be ours; who changes anything has to come from our own page.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")

COOKIE = "makeway"
TOKEN_LASTS = 300.0
"""Seconds in which the address has to be opened."""
COOKIE_LASTS = 7 * 86400.0
MOST_PASSES = 20
"""Addresses that a user may have open, and as many browsers; if another comes, the oldest has to go."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SHIELD: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""


@attrs.frozen
class _Pass(Generic[T]):
    """What a token or a cookie stands for."""

    whom: T
    until: float


class Gate(Generic[T]):
    """Knows which browsers may come in, and for whom each stands."""

    def __init__(self, owner: Callable[[T], Hashable]) -> None:
        """Let nobody in so far.

        :param owner: of what a pass stands for; each has only so many.
        """
        self._owner = owner
        self._hosts: frozenset[str] = frozenset()
        self._port = 0
        self._tokens: dict[str, _Pass[T]] = {}
        self._cookies: dict[str, _Pass[T]] = {}

    def opened(self, port: int) -> None:
        """Take note of the port."""
        self._port = port
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})

    def address(self, whom: T) -> str:
        """Return an address for one caller; it works once, and for a while."""
        now = time.time()
        for table in (self._tokens, self._cookies):
            for name in [name for name, each in table.items() if each.until < now]:
                del table[name]
        token = secrets.token_urlsafe(32)
        self._give(self._tokens, token, _Pass(whom, now + TOKEN_LASTS))
        return f"http://127.0.0.1:{self._port}/?token={token}"

    def _give(self, table: dict[str, _Pass[T]], name: str, given: _Pass[T]) -> None:
        """Enter a token or a cookie; the oldest of the same owner has to go where there are too many."""
        mine = self._owner(given.whom)
        own = [each for each, known in table.items() if self._owner(known.whom) == mine]
        for each in own[: max(0, len(own) + 1 - MOST_PASSES)]:
            del table[each]
        table[name] = given

    def refusal(self, header: Callable[[str], str | None]) -> str:
        """Return why a request is not ours; empty: it is.

        :param header: returns a header of the request by its name in any case; None: it has none.
        """
        if header("Host") not in self._hosts:
            return "this is not the host that you look for"
        origin, site = header("Origin"), header("Sec-Fetch-Site")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return "another page may not ask that"
        if site not in (None, "same-origin", "none"):
            return "another page may not ask that"
        return ""

    def admit(self, token: str) -> str | None:
        """Take a token, once, and return a cookie for it; None: it was used before, or is too old."""
        known = next((each for each in self._tokens if hmac.compare_digest(each.encode(), _raw(token))), None)
        found = self._tokens.pop(known) if known is not None else None
        if found is None or found.until < time.time():
            return None
        cookie = secrets.token_urlsafe(32)
        self._give(self._cookies, cookie, _Pass(found.whom, time.time() + COOKIE_LASTS))
        return cookie

    def knows(self, cookie: str) -> bool:
        """Whether a browser with that cookie may come in."""
        found = self._cookies.get(cookie)
        return found is not None and found.until >= time.time()

    def whom(self, cookie: str) -> T | None:
        """Return for whom a browser with that cookie stands; None: it is not known."""
        return self._cookies[cookie].whom if self.knows(cookie) else None


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

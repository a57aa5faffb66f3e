"""Serve the page to browsers of this machine: on the loopback, behind a token, read-only unless asked for.

Every local user can reach a port of the loopback, and every page that the browser shows can send requests there. So:
a token that works once becomes a cookie (HttpOnly, SameSite=Strict) that stands for the user who asked for the page;
Host and Origin have to be ours; nothing is changed unless the page was made for it.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources

import attrs
from aiohttp import web

from makeway_local_world.daemon.app import (
    CALLER,
    FAIRNESS,
    READING,
    ROUTES,
    SERVER,
    SERVICE,
    STEPS,
    caller_of,
    failure,
    fair,
    told,
)
from makeway_local_world.daemon.bodies import LARGEST
from makeway_local_world.daemon.doorman import BACKLOG, NOBODY, Doorman
from makeway_local_world.daemon.fairness import Fairness
from makeway_local_world.daemon.intake import Refusal
from makeway_local_world.daemon.people import who_is
from makeway_local_world.daemon.reading import read
from makeway_local_world.daemon.service import Caller, Service
from makeway_local_world.daemon.steps import Steps
from makeway_report.parts import PICTURE, STYLE, joined

COOKIE = "makeway"
TOKEN_LASTS = 300.0
"""Seconds in which the address has to be opened."""
COOKIE_LASTS = 7 * 86400.0
MOST_PASSES = 20
"""Addresses that a user may have open, and as many browsers; if another comes, the oldest has to go."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OWN = ("live.js", "page.js")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.frozen
class _Pass:
    """What a token or a cookie stands for."""

    caller: Caller
    until: float


def _give(table: dict[str, _Pass], name: str, given: _Pass) -> None:
    """Enter a token or a cookie; the oldest of the same user has to go where there are too many."""
    own = [each for each, known in table.items() if known.caller.uid == given.caller.uid]
    for each in own[: max(0, len(own) + 1 - MOST_PASSES)]:
        del table[each]
    table[name] = given


class Pages:
    """The port for browsers, once somebody has asked for it."""

    def __init__(self, service: Service, steps: Steps, fairness: Fairness, doorman: Doorman) -> None:
        self._service = service
        self._steps = steps
        self._fairness = fairness
        self._doorman = doorman
        self._door: asyncio.Future[None] | None = None
        self._runner: web.AppRunner | None = None
        self._hosts: frozenset[str] = frozenset()
        self._port = 0
        self._tokens: dict[str, _Pass] = {}
        self._cookies: dict[str, _Pass] = {}

    async def open(self, caller: Caller, *, control: bool, port: int) -> str:
        """Return the address of a page for somebody; it works once, and for a while.

        :raises OSError: the port cannot be had.
        :raises Refusal: the page is at another port already.
        """
        if self._runner is None:
            await self._listen(port)
        if port not in (0, self._port):
            raise Refusal(f"port {port}: the page is at port {self._port} until the daemon ends")
        now = time.time()
        for table in (self._tokens, self._cookies):
            for name in [name for name, each in table.items() if each.until < now]:
                del table[name]
        token = secrets.token_urlsafe(32)
        _give(self._tokens, token, _Pass(attrs.evolve(caller, control=control), now + TOKEN_LASTS))
        return f"http://127.0.0.1:{self._port}/?token={token}"

    async def _listen(self, port: int) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._hosts = frozenset({f"127.0.0.1:{self._port}", f"localhost:{self._port}"})
        runner = web.AppRunner(self._application(), **SERVER)
        await runner.setup()
        assert runner.server is not None
        listener.listen(BACKLOG)
        self._listener = listener
        self._door = asyncio.ensure_future(self._doorman.serve(listener, runner.server, lambda _: NOBODY))
        self._runner = runner

    async def close(self) -> None:
        """Close the port."""
        if self._door is not None:
            self._door.cancel()
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST, middlewares=[self._guarded, told, fair])
        app[SERVICE] = self._service
        app[STEPS] = self._steps
        app[FAIRNESS] = self._fairness
        for method, path, handler in ROUTES:
            app.router.add_route(method, path, handler)
        for path in _FILES:
            app.router.add_get(path, _file)
        app.router.add_get("/v1/jobs/{id}/output", _output)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let nobody in but the browser that has the cookie, from our own page."""
        if request.headers.get("Host", "") not in self._hosts:
            return _shielded(failure(403, "this is not the host that you look for"))
        origin = request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return _shielded(failure(403, "another page may not ask that"))
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return _shielded(failure(403, "another page may not ask that"))
        token = request.query.get("token")
        if token is not None and request.path == "/":
            return _shielded(self._admit(token))
        found = self._cookies.get(request.cookies.get(COOKIE, ""))
        if found is None or found.until < time.time():
            return _shielded(failure(401, "ask for an address that works: makeway web"))
        if request.method not in READING and (not found.caller.control or origin is None):
            return _shielded(failure(403, "this page only shows; to change anything: makeway web --control"))
        request[CALLER] = found.caller
        return _shielded(await handler(request))

    def _admit(self, token: str) -> web.Response:
        """Take a token, once, and give a cookie for it."""
        known = next((each for each in self._tokens if hmac.compare_digest(each.encode(), _raw(token))), None)
        found = self._tokens.pop(known) if known is not None else None
        if found is None or found.until < time.time():
            return failure(401, "this address was used before, or is too old; ask for another: makeway web")
        cookie = secrets.token_urlsafe(32)
        _give(self._cookies, cookie, attrs.evolve(found, until=time.time() + COOKIE_LASTS))
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(
            COOKIE, cookie, httponly=True, samesite="Strict", path="/", max_age=int(COOKIE_LASTS)
        )
        return response


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _shielded(response: web.StreamResponse) -> web.StreamResponse:
    if not response.prepared:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"
    return response


def _own(name: str) -> str:
    return resources.files("makeway_local_world.daemon").joinpath("static", name).read_text("utf-8")


@functools.cache
def _script() -> str:
    """Return what draws on the report page, and what feeds it with what happens."""
    return "\n".join(['(() => {\n"use strict";', joined(PICTURE), *map(_own, _OWN), "})();"])


_FILES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "/": ("text/html", functools.partial(_own, "page.html")),
    "/page.js": ("text/javascript", _script),
    "/page.css": ("text/css", lambda: f"{joined([STYLE])}\n{_own('page.css')}"),
}


async def _output(request: web.Request) -> web.Response:
    """Show the end of what a job of the reader's own has printed; of others' jobs, where it is."""
    service, caller, job_id = request.app[SERVICE], caller_of(request), request.match_info["id"]
    job, about = await service.job(caller, job_id), await service.logs(caller, job_id)
    paths = list(dict.fromkeys((about["output"], about["error"])))
    if str(job["user"]) != caller.name:
        why = f"the page opens files of your own jobs only; makeway logs {job_id} opens it with your rights"
        return web.json_response({"files": [{"path": path, "why": why} for path in paths]})
    if about["state"] == "PENDING" and not job.get("incarnation"):
        return web.json_response({"files": []})
    async with request.app[FAIRNESS].of(caller.uid).slow:
        files = [await read(who_is(caller.uid, caller.gid), path) for path in paths]
    return web.json_response({"files": files})


async def _file(request: web.Request) -> web.Response:
    kind, text = _FILES[request.path]
    return web.Response(text=text(), content_type=kind)


__all__ = ["COOKIE", "Pages"]

"""Serve the page to browsers of this machine: on the loopback, behind a token, read-only unless asked for.

`makeway_app.loopback` says who gets in; nothing is changed unless the page was made for it.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources

import attrs
from aiohttp import web

from makeway_app.loopback import COOKIE, COOKIE_LASTS, SHIELD, Gate
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

_OWN = ("live.js", "page.js")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages:
    """The port for browsers, once a user has asked for it."""

    def __init__(self, service: Service, steps: Steps, fairness: Fairness, doorman: Doorman) -> None:
        self._service = service
        self._steps = steps
        self._fairness = fairness
        self._doorman = doorman
        self._door: asyncio.Future[None] | None = None
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._gate: Gate[Caller] = Gate(lambda caller: caller.uid)

    async def open(self, caller: Caller, *, control: bool, port: int) -> str:
        """Return the address of a page for a user; it works once, and for a while.

        :raises OSError: the port cannot be had.
        :raises Refusal: the page is at another port already.
        """
        if self._runner is None:
            await self._listen(port)
        if port not in (0, self._port):
            raise Refusal(f"port {port}: the page is at port {self._port} until the daemon ends")
        return self._gate.address(attrs.evolve(caller, control=control))

    async def _listen(self, port: int) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._gate.opened(self._port)
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
        """Let only the browser in that has the cookie, from our own page."""
        refused = self._gate.refusal(request.headers.get)
        if refused:
            return _shielded(failure(403, refused))
        token = request.query.get("token")
        if token is not None and request.path == "/":
            return _shielded(self._admit(token))
        caller = self._gate.whom(request.cookies.get(COOKIE, ""))
        if caller is None:
            return _shielded(failure(401, "ask for an address that works: makeway web"))
        if request.method not in READING and (not caller.control or "Origin" not in request.headers):
            return _shielded(failure(403, "this page only shows; to change anything: makeway web --control"))
        request[CALLER] = caller
        return _shielded(await handler(request))

    def _admit(self, token: str) -> web.Response:
        """Take a token, once, and give a cookie for it."""
        cookie = self._gate.admit(token)
        if cookie is None:
            return failure(401, "this address was used before, or is too old; ask for another: makeway web")
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(
            COOKIE, cookie, httponly=True, samesite="Strict", path="/", max_age=int(COOKIE_LASTS)
        )
        return response


def _shielded(response: web.StreamResponse) -> web.StreamResponse:
    if not response.prepared:
        response.headers.update(SHIELD)
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

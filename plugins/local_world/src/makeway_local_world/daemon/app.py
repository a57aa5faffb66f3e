"""Offer the service over HTTP: the routes, who asks, and what errors look like.

Every answer is JSON. An error is ``{"error": text}`` with a status that commands turn into exit statuses.
openapi.json, beside this module, describes the routes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import resources
from typing import Any, TypeVar
from urllib.parse import quote

from aiohttp import web

from makeway.errors import ConfigError, JournalError, MakewayError, PluginError, PolicyError
from makeway_local_world.bookings import Amount
from makeway_local_world.daemon import bodies
from makeway_local_world.daemon.bodies import (
    LARGEST,
    BookingBody,
    DrainBody,
    HistoryQuery,
    LastQuery,
    OrderBody,
    PageBody,
    QueueQuery,
    ReloadBody,
    RequestQuery,
    WaitQuery,
)
from makeway_local_world.daemon.desk import Unwritten
from makeway_local_world.daemon.doorman import WHOLE_WITHIN, guest_of
from makeway_local_world.daemon.fairness import LARGE, Fairness, TooMany
from makeway_local_world.daemon.intake import Refusal
from makeway_local_world.daemon.outlook import Outlook
from makeway_local_world.daemon.people import Forbidden, forbid, home_of
from makeway_local_world.daemon.service import Caller, Full, NoJob, Service
from makeway_local_world.daemon.steps import Steps
from makeway_local_world.daemon.stream import events
from makeway_local_world.daemon.verbs import Order
from makeway_local_world.reach import peer
from makeway_local_world.submission import SubmissionError

LONGEST_POLL = 55.0
"""Seconds after which a request that waits for a job is answered, to be asked again."""
SERVICE: web.AppKey[Service] = web.AppKey("service", Service)
T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CALLER = "caller"
TROUBLE = "Makeway-Trouble"
"""Header of every answer while nothing is started, with the reason (percent-encoded)."""
_log = logging.getLogger("makeway")


STEPS: web.AppKey[Steps] = web.AppKey("steps", Steps)
OPENER: web.AppKey[Callable[..., Awaitable[str]]] = web.AppKey("opener")
FAIRNESS: web.AppKey[Fairness] = web.AppKey("fairness", Fairness)
_SILENT = logging.Logger("makeway.http", logging.CRITICAL + 1)
"""What is no HTTP is answered, and not told: a sender would write the log."""
SERVER: Mapping[str, Any] = {
    "handle_signals": False,
    "access_log": None,
    "shutdown_timeout": 2.0,
    "keepalive_timeout": WHOLE_WITHIN,
    "auto_decompress": False,
    "logger": _SILENT,
}
"""How aiohttp serves; a body that is packed small and large in memory is not unpacked."""


def caller_of(request: web.Request) -> Caller:
    """Return who asks, as the middleware found out."""
    found: Caller = request[CALLER]
    return found


# ----------------------------------------------------------------------------- middlewares
@web.middleware
async def by_peer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Take the caller from the socket: what the kernel says of the other end."""
    sock = request.transport.get_extra_info("socket") if request.transport is not None else None
    if sock is None:
        raise web.HTTPForbidden()
    _, uid, gid = peer(sock)
    if not request.app[SERVICE].rules.may_connect(uid):
        return failure(403, "this daemon serves its own user only")
    request[CALLER] = Caller(uid=uid, gid=gid)
    return await handler(request)


@web.middleware
async def fair(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Take a whole request in, and do what it asks for, as far as its user has a share left."""
    fairness, uid = request.app[FAIRNESS], caller_of(request).uid
    account = fairness.ask(uid)
    guest = guest_of(request.transport)
    large = request.body_exists and (request.content_length is None or request.content_length > LARGE)
    slow = request.match_info.handler in SLOW
    async with account.large if large else contextlib.nullcontext():
        body = await request.read()
        fairness.charge(uid, len(body))
        if guest is not None:
            guest.heard()
        try:
            async with account.slow if slow else contextlib.nullcontext():
                response = await handler(request)
        finally:
            if guest is not None:
                guest.answered()
    if isinstance(response, web.Response) and isinstance(response.body, bytes):
        fairness.charge(uid, len(response.body))
    return response


@web.middleware
async def told(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn what is raised into an answer, and say in each what is wrong with the machine."""
    response = await _answered(request, handler)
    trouble = request.app[SERVICE].trouble
    if trouble and not response.prepared:
        response.headers[TROUBLE] = quote(trouble)
    return response


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status >= 400:
            return failure(error.status, error.text or error.reason)
        raise
    except ConfigError as error:
        return failure(400, str(error), problems=[str(each) for each in error.problems])
    except (Unwritten, Full, JournalError) as error:
        return failure(507, f"nothing can be stored: {error}")
    except OSError as error:
        return failure(507, f"nothing can be stored: {error.strerror or error}")
    except TooMany as error:
        response = failure(429, str(error))
        response.headers["Retry-After"] = str(error.wait)
        return response
    except Forbidden as error:
        return failure(403, str(error))
    except NoJob as error:
        return failure(404, str(error))
    except (Refusal, SubmissionError, PluginError, PolicyError, MakewayError) as error:
        return failure(409, str(error))
    except ValueError as error:
        return failure(400, str(error))
    except asyncio.CancelledError:
        raise
    except Exception as error:
        _log.exception("a request failed")
        return failure(500, f"internal error, please report it: {type(error).__name__}: {error}")


def failure(status: int, text: str, **more: Any) -> web.Response:
    """Return an error."""
    return web.json_response({"error": text, **more}, status=status)


def query_of(request: web.Request, cls: type[T]) -> T:
    """Return what the query of a request asks for."""
    return bodies.query_of(request.query.items(), cls)


# -------------------------------------------------------------------------------- handlers
async def about(request: web.Request) -> web.Response:
    """Say what the daemon is, and how it is."""
    service, caller = request.app[SERVICE], caller_of(request)
    reader = {
        "name": caller.name,
        "operator": service.rules.is_operator(caller.uid),
        "home": home_of(caller.uid),
    }
    return web.json_response(service.about() | {"control": caller.control, "reader": reader})


async def queue(request: web.Request) -> web.Response:
    """List the jobs that have not ended."""
    found = await request.app[SERVICE].queue(caller_of(request), query_of(request, QueueQuery).user)
    return web.json_response(found)


async def submit(request: web.Request) -> web.Response:
    """Submit a job; the same key makes no second one."""
    _must_control(request)
    wanted = bodies.request_of(await request.read())
    taken = await request.app[SERVICE].submit(caller_of(request), wanted)
    return web.json_response(taken.as_dict(), status=200 if taken.repeated else 201)


async def job(request: web.Request) -> web.Response:
    """Show one job, also one that has ended."""
    found = await request.app[SERVICE].job(caller_of(request), request.match_info["id"])
    return web.json_response(found)


async def order(request: web.Request) -> web.Response:
    """Have something done to jobs: cancel, suspend, hold and so on."""
    _must_control(request)
    wanted = bodies.body_of(await request.read(), OrderBody)
    given = Order(
        verb=wanted.verb,
        jobs=wanted.jobs,
        user=wanted.user,
        everything=wanted.all,
        partition=wanted.partition,
        name=wanted.name,
        state=wanted.state,
        value=wanted.value,
        changes=tuple(wanted.changes.items()),
        command=wanted.command,
    )
    return web.json_response(await request.app[SERVICE].order(caller_of(request), given))


async def wait(request: web.Request) -> web.Response:
    """Wait for the end of a job; answered after a while in any case, to be asked again."""
    service, steps = request.app[SERVICE], request.app[STEPS]
    caller, job_id = caller_of(request), request.match_info["id"]
    loop = asyncio.get_running_loop()
    until = loop.time() + min(LONGEST_POLL, query_of(request, WaitQuery).longest)
    names = await service.tasks(job_id)
    awaited: Sequence[str] = names
    while True:
        awaited = await service.not_ended(awaited)
        left = until - loop.time()
        if not awaited or left <= 0 or steps.closing:
            break
        await steps.next(min(left, 5.0))
    return web.json_response({"ended": not awaited, "jobs": await service.jobs(caller, names)})


async def last(request: web.Request) -> web.Response:
    """Say which job, or array, the caller submitted last."""
    terminal = bool(query_of(request, LastQuery).terminal)
    return web.json_response({"id": await request.app[SERVICE].last(caller_of(request), terminal=terminal)})


async def why(request: web.Request) -> web.Response:
    """Say why a job does not run, who did that, and about when it will."""
    return web.json_response(
        await Outlook(request.app[SERVICE]).why(caller_of(request), request.match_info["id"])
    )


async def victims(request: web.Request) -> web.Response:
    """Say which jobs a job would displace now, without submitting it."""
    wanted = bodies.request_of(await request.read(), runs=False)
    return web.json_response(await Outlook(request.app[SERVICE]).victims(caller_of(request), wanted))


async def logs(request: web.Request) -> web.Response:
    """Say where the output of a job is."""
    return web.json_response(await request.app[SERVICE].logs(caller_of(request), request.match_info["id"]))


async def again(request: web.Request) -> web.Response:
    """Say what another submission like that of a job asks for; for its owner."""
    query = query_of(request, RequestQuery)
    return web.json_response(
        await request.app[SERVICE].request(
            caller_of(request), request.match_info["id"], failed=bool(query.failed)
        )
    )


async def stream(request: web.Request) -> web.StreamResponse:
    """Tell what happens, as server-sent events that go on from Last-Event-ID."""
    fairness, caller = request.app[FAIRNESS], caller_of(request)

    def spent(size: int) -> float:
        return fairness.charge(caller.uid, size)

    with fairness.of(caller.uid).stream():
        return await events(request, request.app[SERVICE], request.app[STEPS], caller, spent)


async def drain(request: web.Request) -> web.Response:
    """Start nothing any more; for operators."""
    _operators(request, "drain the machine")
    body = bodies.body_of(await request.read(), DrainBody)
    return web.json_response(await request.app[SERVICE].drain(caller_of(request), body.reason))


async def undrain(request: web.Request) -> web.Response:
    """Start jobs again; for operators."""
    _operators(request, "undrain the machine")
    return web.json_response(await request.app[SERVICE].undrain())


async def bookings(request: web.Request) -> web.Response:
    """List what is booked."""
    return web.json_response(request.app[SERVICE].calendar.shown())


async def book(request: web.Request) -> web.Response:
    """Book CPUs, GPUs and memory for a time to come."""
    _must_control(request)
    body = bodies.body_of(await request.read(), BookingBody)
    found = await request.app[SERVICE].calendar.book(
        caller_of(request).uid, Amount(body.cpus, body.gpus, body.memory_mb), body.start, body.end
    )
    return web.json_response(found)


async def unbook(request: web.Request) -> web.Response:
    """Give a booking back; for its user, and operators."""
    _must_control(request)
    return web.json_response(
        await request.app[SERVICE].calendar.cancel(caller_of(request).uid, request.match_info["id"])
    )


async def history(request: web.Request) -> web.Response:
    """List jobs that have ended."""
    query = query_of(request, HistoryQuery)
    found = await request.app[SERVICE].history(
        caller_of(request), query.since, query.until, query.user, query.limit
    )
    return web.json_response(found)


async def reload(request: web.Request) -> web.Response:
    """Go on under another configuration; for operators."""
    _operators(request, "change the configuration")
    body = bodies.body_of(await request.read(), ReloadBody)
    return web.json_response(await request.app[SERVICE].reload(body.config, body.source))


async def down(request: web.Request) -> web.Response:
    """End the daemon, not the jobs; for operators."""
    _operators(request, "end the daemon")
    service = request.app[SERVICE]
    asyncio.get_running_loop().call_later(0.05, service.desk.stop)  # once this is answered
    return web.json_response({"pid": service.about()["pid"]})


async def pages(request: web.Request) -> web.Response:
    """Make an address of the page for a browser; it works once."""
    body = bodies.body_of(await request.read(), PageBody)
    caller, opener = caller_of(request), request.app[OPENER]
    port = request.app[SERVICE].rules.port_for(caller.uid, body.port)
    try:
        url = await opener(caller, control=body.control, port=port)
    except OSError as error:
        raise Refusal(f"port {port}: {error.strerror}") from None
    return web.json_response({"url": url})


async def openapi(request: web.Request) -> web.Response:
    """Describe all this."""
    del request
    text = resources.files("makeway_local_world.daemon").joinpath("openapi.json").read_text("utf-8")
    return web.Response(text=text, content_type="application/json")


def _must_control(request: web.Request) -> None:
    if not caller_of(request).control:
        raise Forbidden("this page only shows; start it with `makeway web --control` to change anything")


def _operators(request: web.Request, what: str) -> None:
    _must_control(request)
    forbid(request.app[SERVICE].rules, caller_of(request).uid, what)


ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/v1/daemon", about),
    ("GET", "/v1/last", last),
    ("GET", "/v1/jobs", queue),
    ("POST", "/v1/jobs", submit),
    ("GET", "/v1/jobs/{id}", job),
    ("GET", "/v1/jobs/{id}/wait", wait),
    ("GET", "/v1/jobs/{id}/logs", logs),
    ("GET", "/v1/jobs/{id}/request", again),
    ("GET", "/v1/jobs/{id}/why", why),
    ("POST", "/v1/victims", victims),
    ("POST", "/v1/commands", order),
    ("GET", "/v1/bookings", bookings),
    ("POST", "/v1/bookings", book),
    ("POST", "/v1/bookings/{id}/cancel", unbook),
    ("GET", "/v1/events", stream),
    ("GET", "/v1/history", history),
    ("POST", "/v1/reload", reload),
    ("POST", "/v1/drain", drain),
    ("POST", "/v1/undrain", undrain),
    ("POST", "/v1/down", down),
    ("GET", "/v1/openapi.json", openapi),
)
"""What the socket and the page offer; the socket alone also makes addresses of pages."""
SLOW = (again, why, victims, history)
"""What computes for long: one of each user at a time."""
READING = ("GET", "HEAD")
"""Methods that change nothing."""


def application(
    service: Service, steps: Steps, fairness: Fairness, opener: Callable[..., Awaitable[str]]
) -> web.Application:
    """Return the application of a daemon.

    :param opener: makes an address for a browser.
    """
    app = web.Application(client_max_size=LARGEST, middlewares=[told, by_peer, fair])
    app[SERVICE] = service
    app[STEPS] = steps
    app[FAIRNESS] = fairness
    for method, path, handler in ROUTES:
        app.router.add_route(method, path, handler)
    app[OPENER] = opener
    app.router.add_post("/v1/web", pages)
    return app


__all__ = [
    "CALLER",
    "FAIRNESS",
    "READING",
    "ROUTES",
    "SERVER",
    "SERVICE",
    "STEPS",
    "Steps",
    "application",
    "caller_of",
    "failure",
    "fair",
    "told",
]

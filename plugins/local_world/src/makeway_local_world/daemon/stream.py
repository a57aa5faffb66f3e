"""Tell what happens as it happens: server-sent events, read from the journal.

The id of an event is the number of its step, so a client that was cut off goes on where it was. Nothing is buffered
for a slow reader: it reads from the journal at its own pace, and the engine never waits for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from makeway_local_world.daemon.bodies import EventsQuery, query_of
from makeway_local_world.daemon.service import Caller, Service
from makeway_local_world.daemon.steps import Steps

MOST = 200
"""Steps that are read at a time."""
BEAT = 15.0
"""Seconds of silence after which a comment shows that the connection lives."""


async def events(
    request: web.Request, service: Service, steps: Steps, caller: Caller, spent: Callable[[int], float]
) -> web.StreamResponse:
    """Answer with steps and their lines of the record, from a step on, until the client goes.

    :param spent: told how many bytes were written; says how long to wait before more.
    """
    query = dict(request.query.items())
    if request.headers.get("Last-Event-ID"):
        query["after"] = request.headers["Last-Event-ID"]
    asked = query_of(query.items(), EventsQuery)
    given, follow = asked.after, bool(asked.follow)
    last = given if given is not None else service.desk.step
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    first = await service.elsewhere(service.past.first_step)
    if given is not None and last + 1 < first:
        await response.write(_event("gap", first - 1, {"after": last, "first": first}))
        last = first - 1
    try:
        while not steps.closing:
            found = await service.elsewhere(service.past.steps_after, last, MOST)
            for number, wall, lines in found:
                last = number
                shown = [line for line in lines if _may_see(service, caller, line)]
                if shown:
                    told = _event("step", number, {"wall": wall, "lines": shown})
                    await response.write(told)
                    await asyncio.sleep(spent(len(told)))
            if len(found) == MOST:
                continue
            if not follow:
                break
            if service.desk.step <= last:
                await steps.next(BEAT)
                if service.desk.step <= last:
                    await response.write(b": still here\n\n")
    except (ConnectionError, asyncio.CancelledError):
        pass
    return response


def _event(kind: str, number: int, data: Any) -> bytes:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _may_see(service: Service, caller: Caller, line: dict[str, Any]) -> bool:
    """Say whether a line may be shown: in private mode only operators see what others submitted."""
    if not service.rules.private or service.rules.is_operator(caller.uid):
        return True
    return service.displacers.owner(line["job"]) == caller.name

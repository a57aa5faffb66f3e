"""Run the thread of the socket: aiohttp's loop, and what keeps it open to those who have something to ask."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web

from makeway_local_world.daemon.app import application
from makeway_local_world.daemon.service import Service
from makeway_local_world.daemon.steps import Steps
from makeway_local_world.daemon.web import Pages

SILENT_FOR = 20.0
"""Seconds after which a connection that has asked nothing is closed."""
MOST_SILENT = 400
"""Most connections that have asked nothing yet; the oldest of them has to go when another comes."""
BACKLOG = 1024
"""Connections that may wait to be taken in."""
AGAIN = 2.0
"""Seconds between two looks whether a full disk has room again."""
_log = logging.getLogger("makeway")


class Front:
    """The thread that talks to commands."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started = threading.Event()
        """Set once commands are answered, or never will be."""
        self.failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def run(self, listener: socket.socket) -> None:
        """Serve until `stop`; the body of the thread."""
        try:
            asyncio.run(self._main(listener))
        except BaseException as error:
            _log.exception("the socket's thread failed")
            self.failure = error
            self.service.desk.stop()
        finally:
            self.started.set()

    def stop(self) -> None:
        """End the thread; called from another one."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)

    async def _main(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        steps = Steps()
        self.service.stepped = steps.stepped
        doorman = Doorman(self._loop)
        pages = Pages(self.service, steps, doorman.spoke)
        runner = web.AppRunner(
            application(self.service, steps, doorman.spoke, pages.open),
            handle_signals=False,
            access_log=None,
            shutdown_timeout=2.0,
            keepalive_timeout=30.0,
        )
        await runner.setup()
        assert runner.server is not None
        server = await self._loop.create_unix_server(
            doorman.watched(runner.server), sock=listener, backlog=BACKLOG
        )
        try:
            first = asyncio.ensure_future(self._mend())  # answered once the engine runs
            self.service.troubled = lambda: self._soon(self._mend)
            self.started.set()
            await self._stop.wait()
            first.cancel()
        finally:
            server.close()
            await steps.close()
            await pages.close()
            await runner.cleanup()

    def _soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have something done on this thread; called from another one."""
        loop = self._loop
        assert loop is not None
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: self._tasks.append(loop.create_task(work())))

    async def _mend(self) -> None:
        """Look again and again while something is wrong, and only then."""
        while not await self.service.mend():
            await asyncio.sleep(AGAIN)
        self._tasks.clear()


class Doorman:
    """Shows connections out that ask nothing (spec local-world 6.1)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._silent: dict[Any, asyncio.TimerHandle] = {}

    def watched(self, make: Callable[[], Any]) -> Callable[[], Any]:
        """Return what makes protocols of connections, each of which has to ask something soon."""

        def made() -> Any:
            handler = make()
            if len(self._silent) >= MOST_SILENT:
                self._show_out(next(iter(self._silent)))
            self._silent[handler] = self._loop.call_later(SILENT_FOR, self._show_out, handler)
            return handler

        return made

    def spoke(self, handler: Any) -> None:
        """Take note that a whole request has come from a connection."""
        timer = self._silent.pop(handler, None)
        if timer is not None:
            timer.cancel()

    def _show_out(self, handler: Any) -> None:
        self.spoke(handler)
        transport = getattr(handler, "transport", None)
        if transport is not None:
            transport.abort()


__all__ = ["MOST_SILENT", "SILENT_FOR", "Doorman", "Front"]

"""Run the thread of the socket: aiohttp's loop, and what keeps it open to those who have something to ask."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web

from makeway_local_world.daemon.app import SERVER, application
from makeway_local_world.daemon.doorman import BACKLOG, Doorman
from makeway_local_world.daemon.fairness import Fairness
from makeway_local_world.daemon.service import Service
from makeway_local_world.daemon.steps import Steps
from makeway_local_world.daemon.web import Pages
from makeway_local_world.reach import peer

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
        fairness = Fairness(lambda: self.service.rules.share, lambda uid: self.service.rules.is_operator(uid))
        doorman = Doorman(lambda: self.service.rules.share.connections)
        pages = Pages(self.service, steps, fairness, doorman)
        runner = web.AppRunner(application(self.service, steps, fairness, pages.open), **SERVER)
        await runner.setup()
        assert runner.server is not None
        listener.listen(BACKLOG)
        door = asyncio.ensure_future(doorman.serve(listener, runner.server, lambda sock: peer(sock)[1]))
        calendar = asyncio.ensure_future(self.service.calendar.keep())
        try:
            first = asyncio.ensure_future(self._mend())  # answered once the engine runs
            self.service.troubled = lambda: self._soon(self._mend)
            self.started.set()
            await self._stop.wait()
            first.cancel()
        finally:
            door.cancel()
            calendar.cancel()
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

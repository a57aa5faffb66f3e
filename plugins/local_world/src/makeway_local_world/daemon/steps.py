"""Wake who waits for the next step of the engine."""

from __future__ import annotations

import asyncio


class Steps:
    """Wakes who waits for the next step of the engine."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Future[None] = self._loop.create_future()
        self._coming = False
        """Whether the loop is about to tell of a step."""
        self.closing = False

    def stepped(self, _: int) -> None:
        """Tell all; called from the engine's thread."""
        if not self._coming and not self._loop.is_closed():
            self._coming = True
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._coming = False
        before, self._next = self._next, self._loop.create_future()
        before.set_result(None)

    async def close(self) -> None:
        """Let all who wait go."""
        self.closing = True
        self._tell()

    async def next(self, longest: float) -> None:
        """Wait at most `longest` for the next step."""
        if not self.closing:
            await asyncio.wait([self._next], timeout=longest)

"""Wake who waits for the next step of the engine."""

from __future__ import annotations

import asyncio


class Steps:
    """Wakes who waits for the next step of the engine."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        self.closing = False

    def stepped(self, _: int) -> None:
        """Tell all; called from the engine's thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._soon)

    def _soon(self) -> None:
        self._task = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        async with self._condition:
            self._condition.notify_all()

    async def close(self) -> None:
        """Let all who wait go."""
        self.closing = True
        await self._tell()

    async def next(self, longest: float) -> None:
        """Wait at most `longest` for the next step."""

        async def wait() -> None:
            async with self._condition:
                if not self.closing:
                    await self._condition.wait()

        try:
            await asyncio.wait_for(wait(), longest)
        except TimeoutError:
            return

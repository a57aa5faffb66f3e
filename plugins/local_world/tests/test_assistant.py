"""An assistant uses the queue by the protocol's own client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Site = Any
mcp = pytest.importorskip("mcp")
stdio = pytest.importorskip("mcp.client.stdio")


def _talk(site: Site, steps: Callable[[Any], Awaitable[None]], *options: str) -> None:
    async def run() -> None:
        program = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "makeway", "mcp", *options], env=site.environ
        )
        async with stdio.stdio_client(program) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            await steps(session)

    asyncio.run(run())


def test_an_assistant_submits_waits_and_reads(shared: Site) -> None:
    """With --control; without it nothing that changes a job is offered."""

    async def changes(session: Any) -> None:
        given = {"command": "echo said; exit 3", "cwd": str(shared.directory)}
        answer = await session.call_tool("submit", given)
        (text,) = answer.content
        job = shared.until(lambda: shared.ended())[0]
        assert f'"id": "{job["id"]}"' in text.text
        assert job["exit_code"] == 3
        (text,) = (await session.call_tool("logs", {"job_id": job["id"]})).content
        assert text.text == "said"
        refused = await session.call_tool("why", {"job_id": "99"})
        assert "there is no job 99" in refused.content[0].text

    async def looks(session: Any) -> None:
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names == {"queue", "machine", "job", "why", "logs", "history"}

    _talk(shared, changes, "--control")
    _talk(shared, looks)

"""Offer the daemon's API as tools of an MCP server: what ``makeway mcp`` runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from makeway.errors import MakewayError
from makeway_local_world.commands.client import Daemon, job_route
from makeway_local_world.commands.output import end_of
from makeway_local_world.commands.submit import environment

MOST_LINES = 1000
_ABOUT = (
    "The queue of one machine that several people share. Times are seconds and Unix time. A job of a higher "
    "partition may displace another; `why` says who displaced a job, and about when it goes on."
)


def made(daemon: Daemon, *, control: bool) -> MCPServer[Any]:
    """Return the server.

    :param control: whether it may change anything.
    """
    server: MCPServer[Any] = MCPServer("makeway", instructions=_ABOUT)

    def queue() -> dict[str, Any]:
        """List the jobs that have not ended: which run, which wait and why, which make way for which."""
        return daemon.get("/v1/jobs")

    def machine() -> dict[str, Any]:
        """Say what the machine has (CPUs, GPUs, partitions), and whether anything is wrong with it."""
        return daemon.get("/v1/daemon")

    def job(job_id: str) -> dict[str, Any]:
        """Show one job, also one that has ended."""
        return daemon.get(job_route(job_id))

    def why(job_id: str) -> dict[str, Any]:
        """Say why a job does not run, who did that, and about when it will."""
        return daemon.get(job_route(job_id, "why"))

    def logs(job_id: str, lines: int = 100) -> str:
        """Return the last lines that a job has printed."""
        about = daemon.get(job_route(job_id, "logs"))
        return end_of(about["output"], max(1, min(lines, MOST_LINES)))

    def history(since: float = 0.0, limit: int = 100) -> dict[str, Any]:
        """List jobs that have ended since an instant of Unix time, with exit codes."""
        return daemon.get("/v1/history", since=since, limit=max(1, min(limit, MOST_LINES)))

    def submit(
        command: str,
        cwd: str,
        name: str = "assistant",
        partition: str | None = None,
        cpus: int = 1,
        gpus: int = 0,
        memory_mb: int | None = None,
        time_limit: float | None = None,
    ) -> dict[str, Any]:
        """Submit a line for /bin/sh, which starts in `cwd`; return the id of the job."""
        request: dict[str, Any] = {
            "command": ["/bin/sh", "-c", command],
            "name": name,
            "cwd": cwd,
            "cpus_per_task": cpus,
            "gpus": gpus,
            "memory_mb": memory_mb,
            "time_limit": time_limit,
            "environment": environment("ALL", os.environ),
        }
        if partition is not None:
            request["partitions"] = [partition]
        return daemon.post("/v1/jobs", request)

    def change(verb: str, jobs: list[str]) -> dict[str, Any]:
        """Do something to jobs: cancel, hold, release, suspend, resume, requeue or top."""
        return daemon.post("/v1/commands", {"verb": verb, "jobs": jobs})

    def told(tool: Callable[..., Any]) -> Callable[..., Any]:
        """Have the assistant read what the daemon refused, and why."""

        @functools.wraps(tool)
        def run(*values: Any, **named: Any) -> Any:
            try:
                return tool(*values, **named)
            except (MakewayError, OSError) as error:
                raise ToolError(str(error)) from None

        return run

    looks: list[Callable[..., Any]] = [queue, machine, job, why, logs, history]
    changes: list[Callable[..., Any]] = [submit, change] if control else []
    for tool in looks + changes:
        server.add_tool(told(tool))
    return server


def serve(daemon: Daemon, *, control: bool) -> None:
    """Talk over standard input and output until the other end goes."""
    made(daemon, control=control).run("stdio")

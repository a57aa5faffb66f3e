"""``makeway down``: end a daemon."""

from __future__ import annotations

import time

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import REFUSED, Daemon
from makeway_local_world.commands.words import Option, command, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


@command(
    "down",
    Option("--kill", flag=True, help="Cancel all jobs first, and wait until they are gone."),
    Option("--timeout", reads=seconds, default=60.0, shown=True, metavar="SECONDS", help="How long to wait."),
    options.JSON,
)
def down(kill: bool, timeout: float, as_json: bool) -> int:
    """End the daemon. Jobs go on without it, and the next daemon finds them again."""
    from pathlib import Path

    from makeway_local_world.daemon import holding

    server = Daemon()
    about = server.get("/v1/daemon")
    until = time.monotonic() + timeout
    left = 0
    if kill:
        server.post("/v1/drain", {"reason": "makeway down --kill"})
        for jobs in _live(server, until):
            left = len(jobs)
            server.post("/v1/commands", {"verb": "cancel", "all": True})  # again: one may wait anew since
        server.post("/v1/undrain")
        if left:
            terminal.say(f"makeway: {left} jobs are still there; the daemon goes on", err=True)
            return REFUSED
    server.post("/v1/down")
    state = Path(str(about["state"]))
    while holding.held(state) and time.monotonic() < until:
        time.sleep(0.02)
    if holding.held(state):
        terminal.say(f"makeway: process {about['pid']} still runs; it ends after its step", err=True)
        return REFUSED
    if as_json:
        terminal.put({"pid": about["pid"], "killed": kill})
    return 0


def _live(server: Daemon, until: float) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the live jobs, again and again until there are none."""
    while True:
        jobs = server.get("/v1/jobs")["jobs"]
        yield jobs
        if not jobs or time.monotonic() > until:
            return
        time.sleep(0.1)

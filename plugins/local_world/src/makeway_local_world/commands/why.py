"""``makeway why``: which jobs displaced a job or hold it back, what would have to happen, about when."""

from __future__ import annotations

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon, job_route
from makeway_local_world.commands.words import command


@command("why", options.JOB_OR_LAST, options.JSON)
def why(job: str | None, as_json: bool) -> None:
    """Say why a job does not run: which jobs displaced it or hold it back, what would have to happen, about when.

    Without JOB, the one that you submitted last.
    """
    server = Daemon()
    answer = server.get(job_route(job or options.last_job(server), "why"))
    if as_json:
        terminal.put(answer)
        return
    head, *rest = answer["told"]
    terminal.say(head, *(f"  {line}" for line in rest))

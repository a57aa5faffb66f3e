"""``makeway queue``: who runs, who waits and why, who makes way for whom."""

from __future__ import annotations

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.words import Option, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STATES = {"PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETING": "CG"}
_HEADINGS = ("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "LEFT", "CPUS", "NODELIST(REASON)")
_RIGHT = ("JOBID", "TIME", "LEFT", "CPUS")


@command(
    "queue",
    Option("-u", "--user", bare="", metavar="USER", offers="users", help="Jobs of one user; alone: yours."),
    Option("-w", "--watch", flag=True, help="Show it again whenever something happens, until Ctrl-C."),
    options.JSON,
)
def queue(user: str | None, watch: bool, as_json: bool) -> None:
    """Show the jobs that have not ended: who runs, who waits and why, who makes way for whom."""
    server = Daemon()
    whose = options.login() if user == "" else user
    if not watch:
        _show(server, whose, as_json)
        return
    _watch(server, whose, as_json)


def _show(server: Daemon, user: str | None, as_json: bool) -> None:
    found = server.get("/v1/jobs", user=user)
    if as_json:
        terminal.put(found)
        return
    terminal.say(*table(found))


def table(found: dict[str, Any]) -> list[str]:
    """Return the queue as lines of a table."""
    lines = []
    if found.get("stale"):
        lines.append("the daemon is busy: this was the queue a moment ago")
    rows = [_row(job, found["at"]) for job in found["jobs"]]
    return [*lines, *terminal.table(_HEADINGS, rows, _RIGHT)]


def _row(job: dict[str, Any], at: float) -> tuple[str, ...]:
    word = job["word"]
    left = job["ends_at"] - at if job.get("ends_at") else None
    return (
        job["id"],
        job["partition"],
        job["name"][:20],
        job["user"],
        _STATES.get(word, word),
        options.short_time(job["ran"]),
        options.short_time(max(0.0, left)) if left is not None else "",
        str(job["cpus"]),
        _place(job),
    )


def _place(job: dict[str, Any]) -> str:
    """Return where a job is, or why it waits, and who it makes way for."""
    by = job.get("displaced")
    reason = job["reason"]
    if by and by["by"] and job["state"] != "RUNNING":
        what = {"suspend": "suspended", "requeue": "requeued"}.get(by["how"], by["how"])
        reason = f"{what} for {by['by']}"
    elif job["state"] == "SUSPENDED" and job["suspended_by"] == "admin":
        reason = "suspended by a person"
    text = f"{job['nodes']}" if job["nodes"] else ""
    return f"{text} ({reason})".strip() if reason and reason != "None" else text


def _watch(server: Daemon, user: str | None, as_json: bool) -> None:
    """Show the queue after each event."""
    import threading

    changed = threading.Event()
    over: list[BaseException] = []

    def listen() -> None:
        try:
            for _ in server.events():
                changed.set()
        except BaseException as error:
            over.append(error)
        changed.set()

    threading.Thread(target=listen, daemon=True).start()
    try:
        while True:
            if not as_json:
                terminal.clear()
            _show(server, user, as_json)
            changed.wait(1.0 if not as_json else None)
            changed.clear()
            if over:
                raise over[0]
    except KeyboardInterrupt:
        return


__all__ = ["queue", "table"]

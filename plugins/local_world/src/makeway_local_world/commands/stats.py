"""``makeway stats``: who used the machine, who waited, and from which users it was taken."""

from __future__ import annotations

import time

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.history import past_instant
from makeway_local_world.commands.words import Option, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MOST = 1_000_000
"""Jobs that are counted."""
_HEADINGS = ("USER", "JOBS", "BAD", "CPU-HOURS", "LOST", "GPU-HOURS", "WAIT", "STOPPED", "REQUEUES")
_HOUR = 3600.0


def _past(text: str) -> float:
    return past_instant(text, time.time())


@command(
    "stats",
    Option(
        "-S", "--since", reads=_past, metavar="INSTANT", help="Ended after: yesterday, 7days, which is usual."
    ),
    Option("-u", "--user", bare="", metavar="USER", offers="users", help="One user; alone: you."),
    options.JSON,
)
def stats(since: float | None, user: str | None, as_json: bool) -> None:
    """Show by user what jobs that have ended used, how long they waited, and how long they made way."""
    begin = _past("7days") if since is None else since
    whose = options.login() if user == "" else user
    jobs = Daemon().get("/v1/history", since=begin, until=time.time() + 1.0, user=whose, limit=MOST)["jobs"]
    found = by_user(jobs)
    if as_json:
        terminal.put({"since": begin, "users": found})
        return
    rows = [
        (
            name,
            str(each["jobs"]),
            str(each["bad"]),
            f"{each['cpu_hours']:.1f}",
            f"{each['lost']:.1f}",
            f"{each['gpu_hours']:.1f}",
            options.short_time(each["wait"]),
            options.short_time(each["stopped"]),
            str(each["requeues"]),
        )
        for name, each in found.items()
    ]
    terminal.say(*terminal.table(_HEADINGS, rows, _HEADINGS[1:]))


def by_user(jobs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return user -> what that user's jobs come to, the one that used most first.

    ``lost`` are CPU-hours that requeues and cancels threw away; ``wait`` is the mean from submission to the last start
    of those that started; ``stopped`` the sum of suspensions.
    """
    found: dict[str, dict[str, Any]] = {}
    for job in jobs:
        each = found.setdefault(
            job["user"],
            {
                "jobs": 0,
                "bad": 0,
                "cpu_hours": 0.0,
                "lost": 0.0,
                "gpu_hours": 0.0,
                "stopped": 0.0,
                "requeues": 0,
                "waits": [],
            },
        )
        gpus = sum(count for name, count in job["gres"].items() if name.partition(":")[0] == "gpu")
        each["jobs"] += 1
        each["bad"] += job["state"] != "COMPLETED"
        each["cpu_hours"] += job["ran"] * job["cpus"] / _HOUR
        each["lost"] += job["lost"] * job["cpus"] / _HOUR
        each["gpu_hours"] += job["ran"] * gpus * job["node_count"] / _HOUR
        each["stopped"] += job["suspended"]
        each["requeues"] += job["requeues"]
        if job["started_at"] is not None:
            each["waits"].append(max(0.0, job["started_at"] - job["submitted_at"]))
    for each in found.values():
        waits = each.pop("waits")
        each["wait"] = sum(waits) / len(waits) if waits else 0.0
    return dict(sorted(found.items(), key=lambda pair: (-pair[1]["cpu_hours"], pair[0])))

"""``makeway queue``: which jobs run, which wait and why, which make way for which."""

from __future__ import annotations

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.words import Option, command
from makeway_local_world.handed import ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STATES = {"PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETING": "CG"}
_HEADINGS = ("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "LEFT", "CPUS", "GPUS", "NODELIST(REASON)")
_GPUS = _HEADINGS.index("GPUS")
RIGHT = ("JOBID", "TIME", "LEFT", "CPUS")


@command(
    "queue",
    Option("-u", "--user", bare="", metavar="USER", offers="users", help="Jobs of one user; alone: yours."),
    Option("-w", "--watch", flag=True, help="Show it again whenever something happens, until Ctrl-C."),
    Option(
        "-r", "--array", to="tasks", flag=True, help="A line for each task of an array, also while it waits."
    ),
    options.JSON,
)
def queue(user: str | None, watch: bool, tasks: bool, as_json: bool) -> None:
    """Show the jobs that have not ended: which run, which wait and why, which make way for which."""
    server = Daemon()
    whose = options.login() if user == "" else user
    if not watch:
        _show(server, whose, as_json, tasks)
        return
    _watch(server, whose, as_json, tasks)


def _show(server: Daemon, user: str | None, as_json: bool, tasks: bool) -> None:
    found = server.get("/v1/jobs", user=user)
    if as_json:
        terminal.put(found)
        return
    terminal.say(*table(found, tasks=tasks))


def table(found: dict[str, Any], *, tasks: bool = False) -> list[str]:
    """Return the queue as lines of a table.

    :param tasks: whether each task of an array that waits has a line of its own.
    """
    lines = []
    if found.get("stale"):
        lines.append("the daemon is busy: this was the queue a moment ago")
    headings, rows = cells(found, tasks=tasks)
    return [*lines, *terminal.table(headings, rows, RIGHT)]


def cells(found: dict[str, Any], *, tasks: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headings of the queue and its rows; of an array that waits, the first cell is ``17_[0-9]``."""
    rows = [_row(job, found["at"]) for job in found["jobs"]]
    headings: tuple[str, ...] = _HEADINGS
    if not any(row[_GPUS] for row in rows):  # no job wants any, perhaps since there are none
        rows = [row[:_GPUS] + row[_GPUS + 1 :] for row in rows]
        headings = headings[:_GPUS] + headings[_GPUS + 1 :]
    if not tasks:
        rows = _folded(found["jobs"], rows)
    return headings, rows


def _folded(jobs: list[dict[str, Any]], rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Let one line stand for all tasks of an array that wait alike: ``17_[0-1999]``, as squeue has it."""
    together: dict[tuple[str, ...], list[int]] = {}
    for job, row in zip(jobs, rows, strict=True):
        alike = job["array"] is not None and job["state"] == "PENDING"
        key = (f"{job['array']}_[]", *row[1:]) if alike else row
        together.setdefault(key, []).append(job["task"] if alike else 0)
    return [
        (f"{key[0][:-1]}{ranges(tasks)}]", *key[1:]) if key[0].endswith("_[]") else key
        for key, tasks in together.items()
    ]


def gpus(job: dict[str, Any]) -> str:
    """Return how many GPUs a job has or wants, and which it has: ``2 (0,1)``; empty: none."""
    count = sum(each for name, each in job["gres"].items() if name.partition(":")[0] == "gpu")
    count *= job["node_count"]
    which = ",".join(
        str(each["uuid"] if each["index"] is None else each["index"]) for each in job.get("gpus", ())
    )
    return (f"{count} ({which})" if which else str(count)) if count else ""


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
        gpus(job),
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
    elif job["state"] == "SUSPENDED" and job["suspended_by"] == "use":
        reason = "suspended: its node is in use"
    text = f"{job['nodes']}" if job["nodes"] else ""
    return f"{text} ({reason})".strip() if reason and reason != "None" else text


def _watch(server: Daemon, user: str | None, as_json: bool, tasks: bool) -> None:
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
            _show(server, user, as_json, tasks)
            changed.wait(1.0 if not as_json else None)
            changed.clear()
            if over:
                raise over[0]
    except KeyboardInterrupt:
        return

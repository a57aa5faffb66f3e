"""``makeway history``: jobs that have ended, as a table or as the rows that ``sacct -P`` prints."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from typing import Any

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.queue import gpus
from makeway_local_world.commands.submit import instant
from makeway_local_world.commands.words import Option, command, whole

DAY = 86400.0
SACCT = (
    "JobID JobName User Group Account Partition QOS Submit Eligible Start End Elapsed Suspended Timelimit "
    "NNodes NCPUS ReqNodes ReqCPUS ReqMem ReqTRES Restarts State ExitCode NodeList"
).split()
_HEADINGS = (
    "JOBID",
    "PARTITION",
    "NAME",
    "USER",
    "STATE",
    "EXIT",
    "START",
    "END",
    "ELAPSED",
    "STOPPED",
    "CPUS",
    "GPUS",
)
_RIGHT = ("JOBID", "EXIT", "ELAPSED", "STOPPED", "CPUS")


def past_instant(text: str, now: float) -> float:
    """Return an instant as Unix time; a time of the day is today's, or yesterday's if that is to come.

    :raises ValueError: it is none.
    """
    today = time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1))
    word = text.strip().lower()
    if word in ("today", "yesterday", "now"):
        return {"today": today, "yesterday": today - DAY, "now": now}[word]
    for unit, size in (
        ("days", DAY),
        ("day", DAY),
        ("hours", 3600.0),
        ("hour", 3600.0),
        ("minutes", 60.0),
        ("minute", 60.0),
        ("d", DAY),
        ("h", 3600.0),
    ):
        number = word.removeprefix("now-").removesuffix(unit).strip()
        if word.endswith(unit) and number.isdigit():
            return now - int(number) * size
    try:
        found = instant(text, now)
    except ValueError:
        raise ValueError(
            f"got {text!r}; allowed: yesterday, 2days, now-3hours, 18:30, 2026-11-24, 2026-11-24T18:30"
        ) from None
    return found - DAY if found > now and ":" in text and "-" not in text else found


def _past(text: str) -> float:
    return past_instant(text, time.time())


@command(
    "history",
    Option(
        "-S",
        "--since",
        reads=_past,
        default="today",
        shown=True,
        metavar="INSTANT",
        help="Ended after: yesterday, 2days.",
    ),
    Option("-E", "--until", reads=_past, default="now", shown=True, metavar="INSTANT", help="Ended before."),
    Option("-u", "--user", bare="", metavar="USER", offers="users", help="Jobs of one user; alone: yours."),
    Option(
        "-n",
        "--limit",
        reads=whole(1, 1_000_000),
        default=1000,
        shown=True,
        metavar="N",
        help="Only the last.",
    ),
    Option(
        "-P",
        "--parsable",
        flag=True,
        help="Rows as `sacct -P` prints them, in UTC; `makeway replay` reads them.",
    ),
    options.JSON,
)
def history(
    since: float | str, until: float | str, user: str | None, limit: int, parsable: bool, as_json: bool
) -> None:
    """Show jobs that have ended."""
    whose = options.login() if user == "" else user
    begin, end = (_past(each) if isinstance(each, str) else each for each in (since, until))
    found = Daemon().get("/v1/history", since=begin, until=end + 1.0, user=whose, limit=limit)
    if as_json:
        terminal.put(found)
    elif parsable:
        terminal.say("|".join(SACCT))
        for job in found["jobs"]:
            terminal.say("|".join(_clean(cell) for cell in sacct_row(job)))
    else:
        terminal.say(*table(found["jobs"]))


def table(jobs: Sequence[dict[str, Any]]) -> list[str]:
    """Return jobs that have ended as lines of a table."""
    headings: tuple[str, ...] = _HEADINGS
    rows = [_row(job) for job in jobs]
    if not any(row[-1] for row in rows):
        rows, headings = [row[:-1] for row in rows], headings[:-1]
    return terminal.table(headings, rows, _RIGHT)


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    return (
        job["id"],
        job["partition"],
        job["name"][:20],
        job["user"],
        job["state"],
        exit_text(job),
        _clock(job["started_at"]),
        _clock(job["ended_at"]),
        options.short_time(job["ran"]),
        options.short_time(job["suspended"]) if job["suspended"] else "",
        str(job["cpus"]),
        gpus(job),
    )


def exit_text(job: dict[str, Any]) -> str:
    """Return exit code and signal as Slurm shows them; empty: they are not known."""
    if job.get("exit_code") is None:
        return ""
    return f"{job['exit_code']}:{job.get('exit_signal') or 0}"


def _clock(at: float | None) -> str:
    return "" if at is None else time.strftime("%m-%d %H:%M:%S", time.localtime(at))


# ---------------------------------------------------------------------------------- sacct's rows
def sacct_row(job: dict[str, Any]) -> list[str]:
    """Return the cells of a row, in the order of `SACCT`."""
    nodes, cpus = job["node_count"], job["cpus"]
    tres = [f"cpu={cpus}", f"node={nodes}"]
    tres += [f"gres/{name}={count * nodes}" for name, count in sorted(job["gres"].items())]
    limit = job["time_limit"]
    cells = {
        "JobID": job["id"],
        "JobName": job["name"],
        "User": job["user"],
        "Group": job["group"] or "",
        "Account": job["account"] or "",
        "Partition": job["partition"],
        "QOS": job["qos"] or "",
        "Submit": _date(job["submitted_at"]),
        "Eligible": _date(job["submitted_at"]),
        "Start": _date(job["started_at"]),
        "End": _date(job["ended_at"]),
        "Elapsed": _span(job["ran"]),
        "Suspended": _span(job["suspended"]),
        "Timelimit": "Partition_Limit" if limit is None else _span(limit),
        "NNodes": str(nodes),
        "NCPUS": str(cpus),
        "ReqNodes": str(nodes),
        "ReqCPUS": str(cpus),
        "ReqMem": _memory(job),
        "ReqTRES": ",".join(tres),
        "Restarts": str(job["requeues"]),
        "State": job["state"],
        "ExitCode": exit_text(job) or "0:0",
        "NodeList": job["nodes"] or "None assigned",
    }
    return [cells[name] for name in SACCT]


def _clean(text: str) -> str:
    return " ".join(text.replace("|", "/").split()) if "|" in text or not text.isprintable() else text


def _date(at: float | None) -> str:
    if at is None:
        return "Unknown"
    return datetime.datetime.fromtimestamp(round(at), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _span(seconds: float) -> str:
    days, rest = divmod(round(seconds), 86400)
    shown = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{shown}" if days else shown


def _memory(job: dict[str, Any]) -> str:
    if job.get("memory_mb_per_cpu"):
        return f"{job['memory_mb_per_cpu']}Mc"
    return f"{job['memory_mb']}Mn" if job["memory_mb"] else ""

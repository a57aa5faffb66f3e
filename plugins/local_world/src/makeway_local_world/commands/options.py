"""What several commands share: ``--json``, ids with completion, lengths of time, sizes of memory."""

from __future__ import annotations

import os
import re

from makeway_local_world.commands.words import Argument, Failed, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from makeway_local_world.commands.client import Daemon

_LENGTH = r"(?:(\d+)-)?(\d+)(?::(\d{1,2}))?(?::(\d{1,2}))?"
_UNITS = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}
JSON = Option("--json", to="as_json", flag=True, help="Print the answer as JSON.")
JOB = Argument("job", "JOB", offers="jobs")
JOB_OR_LAST = Argument("job", "[JOB]", required=False, offers="jobs")
JOBS_OR_LAST = Argument("jobs", "[JOB...]", many=True, required=False, offers="jobs")
JOBS = Argument("jobs", "JOB...", many=True, offers="jobs")


def login() -> str:
    """Return the name of this user, as the daemon has it."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def last_job(daemon: Daemon, *, terminal: bool = False) -> str:
    """Return the job, or the array, that this user submitted last.

    :param terminal: whether only jobs count that have a terminal, and have not ended.
    :raises Failed: there is none.
    """
    found = daemon.get("/v1/last", terminal=int(terminal))["id"]
    if found is None and terminal:
        raise Failed("no job of yours has a terminal now; makeway run --pty gives one")
    if found is None:
        raise Failed("you have submitted no job yet; name one")
    return str(found)


# ---------------------------------------------------------------------------------- completion
def offered(what: str, begun: str) -> Iterator[tuple[str, str]]:
    """Yield what may stand where a word was begun, with a text for each; nothing if there is no daemon."""
    from makeway.escapes import printable
    from makeway_local_world.commands.client import Daemon

    try:
        if what == "partitions":
            found = [(name, "") for name in Daemon().get("/v1/daemon")["partitions"]]
        else:
            jobs = Daemon().get("/v1/jobs")["jobs"]
            if what == "users":
                found = [(name, "") for name in sorted({job["user"] for job in jobs})]
            else:
                found = [(job["id"], printable(f"{job['name']} {job['word']}")) for job in jobs]
    except Exception:  # completion must stay silent, whatever is wrong
        return
    yield from (pair for pair in found if pair[0].startswith(begun))


# -------------------------------------------------------------------------------------- values
def length(text: str) -> float:
    """Read a length of time as sbatch does: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on.

    :raises ValueError: it is something else.
    """
    match = re.fullmatch(_LENGTH, text.strip())
    if match is None:
        raise ValueError(
            f"got {text!r}; allowed: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS[:MINUTES[:SECONDS]]"
        )
    days, first, second, third = (None if part is None else int(part) for part in match.groups())
    assert first is not None
    if days is not None:
        return float(days * 86400 + first * 3600 + (second or 0) * 60 + (third or 0))
    if third is not None:
        return float(first * 3600 + (second or 0) * 60 + third)
    return float(first * 60 + (second or 0))


def megabytes(text: str) -> int:
    """Read a size of memory: a number of megabytes, or one with K, M, G or T behind it.

    :raises ValueError: it is something else.
    """
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)B?", text.strip().upper())
    if match is None:
        raise ValueError(f"got {text!r}; allowed: megabytes, or a number with K, M, G or T, as in 4G")
    size = int(match[1]) * _UNITS[match[2]]
    return max(1, -int(-size // 1)) if size else 0


def gigabytes(megabytes: int) -> str:
    """Return a size of memory as `megabytes` reads it: 4G, 1500M."""
    whole, rest = divmod(megabytes, 1024)
    return f"{megabytes}M" if rest else f"{whole}G" if whole else "0"


def short_time(seconds: float | None) -> str:
    """Return a length as squeue shows it: 0:27, 1:02:03, 1-02:03:04."""
    if seconds is None:
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    if days:
        return f"{days}-{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"

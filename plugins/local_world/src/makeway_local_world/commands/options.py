"""What several commands share: ``--json``, ids with completion, lengths of time, sizes of memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from makeway.escapes import printable
from makeway_local_world.commands.client import Daemon

if TYPE_CHECKING:
    Kind = click.ParamType[Any]
else:
    Kind = click.ParamType

Command = Callable[..., Any]
_LENGTH = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d{1,2}))?(?::(\d{1,2}))?")
_UNITS = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")(command)


# ---------------------------------------------------------------------------------- completion
def complete_jobs(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[click.shell_completion.CompletionItem]:
    """Offer ids of live jobs, with their names; nothing if there is no daemon."""
    del ctx, param
    from click.shell_completion import CompletionItem

    try:
        jobs = Daemon().get("/v1/jobs")["jobs"]
    except Exception:  # completion must stay silent, whatever is wrong
        return []
    return [
        CompletionItem(job["id"], help=printable(f"{job['name']} {job['word']}"))
        for job in jobs
        if str(job["id"]).startswith(incomplete)
    ]


def complete_partitions(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[click.shell_completion.CompletionItem]:
    """Offer the partitions of the daemon's configuration; nothing if there is no daemon."""
    del ctx, param
    from click.shell_completion import CompletionItem

    try:
        names = Daemon().get("/v1/daemon")["partitions"]
    except Exception:  # completion must stay silent, whatever is wrong
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def jobs_argument(*, required: bool = True) -> Callable[[Command], Command]:
    """Add ``JOB...``."""
    return click.argument("jobs", metavar="JOB...", nargs=-1, required=required, shell_complete=complete_jobs)


def job_argument(command: Command) -> Command:
    """Add ``JOB``."""
    return click.argument("job", metavar="JOB", shell_complete=complete_jobs)(command)


# -------------------------------------------------------------------------------------- values
def seconds_of(text: str) -> float:
    """Read a length of time as sbatch does: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on.

    :raises ValueError: it is something else.
    """
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"got {text!r}; allowed: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS[:MINUTES[:SECONDS]]"
        )
    days, first, second, third = (None if part is None else int(part) for part in match.groups())
    assert first is not None
    if days is not None:
        return days * 86400 + first * 3600 + (second or 0) * 60 + (third or 0)
    if third is not None:
        return first * 3600 + (second or 0) * 60 + third
    return first * 60 + (second or 0)


def megabytes_of(text: str) -> int:
    """Read a size of memory: a number of megabytes, or one with K, M, G or T behind it.

    :raises ValueError: it is something else.
    """
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)B?", text.strip().upper())
    if match is None:
        raise ValueError(f"got {text!r}; allowed: megabytes, or a number with K, M, G or T, as in 4G")
    size = int(match[1]) * _UNITS[match[2]]
    return max(1, -int(-size // 1)) if size else 0


class Length(Kind):
    """A length of time."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read it."""
        if isinstance(value, float):
            return value
        try:
            return float(seconds_of(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Memory(Kind):
    """A size of memory."""

    name = "memory"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read it."""
        if isinstance(value, int):
            return value
        try:
            return megabytes_of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def short_time(seconds: float | None) -> str:
    """Return a length as squeue shows it: 0:27, 1:02:03, 1-02:03:04."""
    if seconds is None:
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    if days:
        return f"{days}-{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


__all__ = [
    "Kind",
    "Length",
    "Memory",
    "complete_jobs",
    "complete_partitions",
    "job_argument",
    "jobs_argument",
    "json_option",
    "megabytes_of",
    "seconds_of",
    "short_time",
]

"""``makeway reserve``: book CPUs, GPUs and memory for a time to come, and see what is booked."""

from __future__ import annotations

import time

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Daemon
from makeway_local_world.commands.submit import instant
from makeway_local_world.commands.words import Option, Wrong, command, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_HEADINGS = ("ID", "USER", "GPUS", "CPUS", "MEM", "FROM", "TO", "")


def _at(text: str, day: float) -> float:
    """Return an instant; a time of the day is that of a day, whatever has passed of it.

    :raises ValueError: it is none.
    """
    if ":" in text and "t" not in text.lower():
        return instant(text, time.mktime((*time.localtime(day)[:3], 0, 0, 0, 0, 0, -1)))
    return instant(text, time.time())


def _read(option: str, text: str | None, day: float) -> float:
    """Read the begin or the end of a booking.

    :raises Wrong: it is missing, or none.
    """
    if text is None:
        raise Wrong(f"{option} is missing; a booking has --from and --to")
    try:
        return _at(text, day)
    except ValueError as error:
        raise Wrong(f"Invalid value for '{option}': {error}") from None


@command(
    "reserve",
    Option("--gpus", reads=whole(0), default=0, metavar="N", help="GPUs to book."),
    Option(
        "-c",
        "--cpus",
        reads=whole(0),
        default=0,
        metavar="N",
        help="CPUs to book; without it the share of the CPUs that belongs to the GPUs, one at least.",
    ),
    Option(
        "--mem",
        to="memory_mb",
        reads=options.megabytes,
        default=0,
        metavar="MEMORY",
        help="Memory to book, as in 4G; a bare number is megabytes.",
    ),
    Option(
        "--from",
        to="start",
        metavar="INSTANT",
        help="When it begins: 14:00, which is today, 2026-11-24T14:00, now, now+2hours.",
    ),
    Option("--to", to="end", metavar="INSTANT", help="When it ends: 16:00 of that day, 2026-11-24T16:00."),
    Option("--cancel", reads=whole(1), metavar="ID", help="Give a booking back."),
    options.JSON,
)
def reserve(
    gpus: int,
    cpus: int,
    memory_mb: int,
    start: str | None,
    end: str | None,
    cancel: int | None,
    as_json: bool,
) -> None:
    """Book CPUs, GPUs and memory for a time to come; without options, show what is booked.

    In that time your jobs have what is booked. No other job whose time limit reaches into it is started on that, and
    jobs that run there make way.
    """
    if cancel is not None:
        if gpus or cpus or memory_mb or start is not None or end is not None:
            raise Wrong("--cancel stands alone")
        told, what = Daemon().post(f"/v1/bookings/{cancel}/cancel"), "cancelled booking"
    elif not (gpus or cpus or memory_mb) and start is None and end is None:
        _show(Daemon().get("/v1/bookings"), as_json)
        return
    elif not (gpus or cpus or memory_mb):
        raise Wrong("name what to book: --gpus N, --cpus N, --mem MEMORY")
    else:
        begin = _read("--from", start, time.time())
        what_for = {"start": begin, "end": _read("--to", end, begin)}
        wanted = {"gpus": gpus, "cpus": cpus, "memory_mb": memory_mb, **what_for}
        told, what = Daemon().post("/v1/bookings", wanted), "booking"
    if as_json:
        terminal.put(told)
    else:
        terminal.say(f"{what} {told['id']}: {said(told)}")


def _show(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        terminal.put(found)
        return
    now = time.time()
    rows = [
        (
            str(each["id"]),
            each["user"],
            str(each["gpus"]),
            str(each["cpus"]),
            options.gigabytes(each["memory_mb"]),
            _minute(each["start"]),
            _minute(each["end"]),
            "now" if each["start"] <= now else "",
        )
        for each in found["bookings"]
    ]
    terminal.say(*terminal.table(_HEADINGS, rows, ("ID", "GPUS", "CPUS", "MEM")))


def said(booking: Mapping[str, Any]) -> str:
    """Return a booking in words."""
    counts = [(booking["gpus"], "GPU"), (booking["cpus"], "CPU")]
    parts = [f"{count} {name}{'s' if count > 1 else ''}" for count, name in counts if count]
    if booking["memory_mb"]:
        parts.append(f"{options.gigabytes(booking['memory_mb'])} of memory")
    what = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"{what} from {_minute(booking['start'])} to {_minute(booking['end'])}"


def _minute(at: float) -> str:
    return time.strftime("%F %H:%M", time.localtime(at))

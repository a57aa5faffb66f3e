"""Tell prime time and dedicated time (sections 1.2, 2.6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from makeway.errors import nearest
from makeway.model import Seconds

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = 24 * 60
_WEEK = 7 * _DAY
_TIMES = re.compile(r"(\d{2}):(\d{2})-(\d{2}):(\d{2})")
Window = tuple[int, int]
"""First minute of the week, from Monday 00:00, and the minute after the last."""


def windows_of(text: str) -> list[Window]:
    """Read ``Mon-Fri 06:00-17:30``; one that ends before it begins goes over midnight.

    :raises ValueError: naming what is wrong.
    """
    days, _, times = text.strip().rpartition(" ")
    match = _TIMES.fullmatch(times)
    if match is None:
        raise ValueError(f"got {text!r}; allowed: [DAYS ]HH:MM-HH:MM, as 'Mon-Fri 06:00-17:30'")
    hour, minute, to_hour, to_minute = map(int, match.groups())
    begin, end = hour * 60 + minute, to_hour * 60 + to_minute
    if max(minute, to_minute) > 59 or max(begin, end) > _DAY or begin in (end, _DAY):
        raise ValueError(f"got {text!r}; allowed: times from 00:00 to 24:00 that differ")
    length = (end - begin) % _DAY or _DAY
    return [(day * _DAY + begin, day * _DAY + begin + length) for day in _days(days, text)]


def _days(words: str, text: str) -> list[int]:
    if not words:
        return list(range(7))
    found: set[int] = set()
    for word in words.split(","):
        ends = word.strip().split("-")
        for end in ends:
            if end not in DAYS or len(ends) > 2:
                raise ValueError(f"got {text!r}; allowed days: {', '.join(DAYS)}{nearest(end, DAYS)}")
        first, last = DAYS.index(ends[0]), DAYS.index(ends[-1])
        found |= {(first + step) % 7 for step in range((last - first) % 7 + 1)}
    return sorted(found)


def is_open(windows: Sequence[Window], unix: float) -> tuple[bool, Seconds | None]:
    """Say whether any of `windows` is open, and in how many seconds that changes; None: never.

    :param unix: the site's own clock, as if it were UTC.
    """
    moment = datetime.fromtimestamp(unix, UTC)
    now = moment.weekday() * _DAY + moment.hour * 60 + moment.minute
    seconds = moment.second + moment.microsecond / 1e6

    def at(minute: int) -> bool:
        return any(begin <= minute < end or begin <= minute + _WEEK < end for begin, end in windows)

    state = at(now)
    edges = sorted({(edge - now - 1) % _WEEK + 1 for window in windows for edge in window})
    change = next((edge for edge in edges if at((now + edge) % _WEEK) is not state), None)
    return state, None if change is None else change * 60.0 - seconds

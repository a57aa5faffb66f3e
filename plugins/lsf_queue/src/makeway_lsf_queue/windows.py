"""Understand time windows: ``begin-end``, each ``[day:]hour[:minute]``, 0 is Sunday (lsf 9.2 no. 12)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from makeway.model import Seconds
from makeway_lsf_queue.values import WrongValueError

WEEK = 7 * 24 * 60
DAY = 24 * 60
Window = tuple[int, int, int]
"""First and last minute, and the length of the cycle that they belong to (a day or a week)."""


@attrs.frozen
class Clock:
    """A minute of the week."""

    minute: int = 0
    """0 is midnight between Saturday and Sunday."""

    @classmethod
    def at(cls, hour: int, minute: int = 0, day: int = 0) -> Clock:
        """Return the minute of a day of the week, Sunday unless said."""
        return cls(day * DAY + hour * 60 + minute)


def windows_of(text: str) -> list[Window] | None:
    """Return the windows in `text`; None: it cannot be understood."""
    found = [_window(word) for word in text.split()]
    return None if None in found or not found else [each for each in found if each is not None]


def time_windows(text: str) -> tuple[Window, ...]:
    """Return the windows of RUN_WINDOW or DISPATCH_WINDOW.

    :raises WrongValueError: one cannot be understood, or would never be open.
    """
    for word in text.split() or [text]:
        window = _window(word)
        if window is None:
            raise WrongValueError(f"got {word!r}; {_ALLOWED}")
        if window[0] == window[1]:
            raise WrongValueError(f"got {word!r}, which is never open; {_ALLOWED}")
    return tuple(windows_of(text) or ())


_ALLOWED = (
    "allowed: begin-end, separated by blanks, both as hour, hour:minute or day:hour:minute (0 is Sunday)"
)


def _window(word: str) -> Window | None:
    begin, dash, end = word.partition("-")
    first, last = _instant(begin), _instant(end)
    if not dash or first is None or last is None or first[1] != last[1]:
        return None
    return first[0], last[0], WEEK if first[1] == 3 else DAY


def _instant(text: str) -> tuple[int, int] | None:
    """Return the minute, and how many fields were given (1, 2 or 3)."""
    match = re.fullmatch(r"(?:(?:([0-6]):)?(\d{1,2}):)?(\d{1,2})", text)
    if match is None:
        return None
    day, hour, last = match.groups()
    if hour is None:
        minute, fields = int(last) * 60, 1
        valid = int(last) <= 24
    else:
        minute, fields = int(day or 0) * DAY + int(hour) * 60 + int(last), 3 if day else 2
        valid = int(hour) <= 24 and int(last) < 60
    return (minute, fields) if valid else None


def is_open(windows: Sequence[Window], clock: Clock) -> bool:
    """Whether any of `windows` is open at `clock`; one that ends before it begins goes over midnight."""
    for begin, end, cycle in windows:
        now = clock.minute % cycle
        if begin <= now < end or (begin > end and (now >= begin or now < end)):
            return True
    return False


def next_change(windows: Sequence[Window], second: Seconds) -> Seconds | None:
    """Return how long after a `second` of the week `windows` next open or close; None: never."""
    now = is_open(windows, Clock(int(second // 60)))
    edges = {
        (edge + shift) % WEEK
        for *edges, cycle in windows
        for edge in edges
        for shift in range(0, WEEK, cycle)
    }
    waits = [
        (60.0 * edge - second) % (60.0 * WEEK) or 60.0 * WEEK
        for edge in edges
        if is_open(windows, Clock(edge)) != now
    ]
    return min(waits, default=None)

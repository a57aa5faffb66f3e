"""Understand hours of the week: ``Mon-Fri 08:00-18:00``, ``Sat,Sun 00:00-24:00``, ``22:00-06:00``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import attrs

from makeway.errors import nearest

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIMES = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
_DAY = 24 * 60


@attrs.frozen
class Window:
    """The same minutes on some days of the week; one that ends before it begins goes over midnight."""

    days: frozenset[int]
    """0 is Monday; the day on which the window begins."""
    begin: int
    """Minute of the day."""
    end: int
    """Minute of the day, 1440 for midnight; that minute no longer belongs to it."""

    def ends_at(self, local: datetime) -> datetime | None:
        """Return when the window in which `local` lies ends; None: it lies in none.

        :param local: time at the site; what comes back has the same time zone.
        """
        minute = local.hour * 60 + local.minute
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        if self.end > self.begin:
            inside, days = self.begin <= minute < self.end, 0
        elif minute >= self.begin:
            inside, days = True, 1
        else:
            inside, days = minute < self.end, 0
            if (local.weekday() - 1) % 7 not in self.days:
                return None  # it would have begun on the day before
            return midnight + timedelta(minutes=self.end) if inside else None
        if not inside or local.weekday() not in self.days:
            return None
        return midnight + timedelta(days=days, minutes=self.end)


@functools.lru_cache(maxsize=1024)
def window_of(text: str) -> Window:
    """Read one window.

    :raises ValueError: saying what is allowed.
    """
    days, _, times = text.strip().rpartition(" ")
    match = _TIMES.fullmatch(times)
    if match is None:
        raise ValueError(f"got {text!r}; allowed: [DAYS ]HH:MM-HH:MM, as 'Mon-Fri 08:00-18:00'")
    first, last = (_minute(text, *match.group(at, at + 1)) for at in (1, 3))
    if first in (_DAY, last):
        raise ValueError(f"got {text!r}, which is no time at all; a whole day is 00:00-24:00")
    return Window(_days(days, text), first, last)


def _minute(text: str, hour: str, minute: str) -> int:
    found = int(hour) * 60 + int(minute)
    if int(minute) > 59 or found > _DAY:
        raise ValueError(f"got {text!r}: no such time as {hour}:{minute}; allowed: 00:00 to 24:00")
    return found


def _days(words: str, text: str) -> frozenset[int]:
    if not words.strip():
        return frozenset(range(7))
    found: set[int] = set()
    for word in words.split(","):
        first, dash, last = word.strip().partition("-")
        begin = _day(first, text)
        length = (_day(last, text) - begin) % 7 if dash else 0
        found |= {(begin + step) % 7 for step in range(length + 1)}
    return frozenset(found)


def _day(word: str, text: str) -> int:
    if word not in DAYS:
        raise ValueError(f"got {text!r}: no day {word!r}; allowed: {', '.join(DAYS)}{nearest(word, DAYS)}")
    return DAYS.index(word)


def open_until(hours: Iterable[str], local: datetime) -> datetime | None:
    """Return when the windows in which `local` lies end, the last of them; None: it lies in none."""
    ends = [end for text in hours if (end := window_of(text).ends_at(local)) is not None]
    return max(ends, default=None)

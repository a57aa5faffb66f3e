"""Read single values as the daemons do: numbers, yes and no, minutes, percentages (lsf 4.1, 9.2)."""

from __future__ import annotations

import math
import re

import attrs

from makeway.errors import nearest
from makeway.model import Seconds

INFINITE = 2147483647
"""INFINIT_INT: what a limit that is not set amounts to."""


class WrongValueError(ValueError):
    """A value that the daemons would not take; its text says what is allowed."""


def integer(text: str, least: int = 0, most: int = INFINITE - 1) -> int:
    """Return a whole number.

    :raises WrongValueError: it is none, or out of range.
    """
    if not re.fullmatch(r"[+-]?\d{1,18}", text.strip()) or not least <= int(text) <= most:
        raise WrongValueError(f"got {text!r}; allowed: a whole number from {least} to {most}")
    return int(text)


def decimal(text: str) -> float:
    """Return a number of 0 or more (PJOB_LIMIT, JL/P).

    :raises WrongValueError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise WrongValueError(f"got {text!r}; allowed: a number of 0 or more")
    return value


def flag(text: str) -> bool:
    """Return y, yes, n, no in any case (9.2 no. 9).

    :raises WrongValueError: it is another word; the daemons take it for no.
    """
    word = text.strip().lower()
    if word not in ("y", "yes", "n", "no"):
        raise WrongValueError(f"got {text!r}; allowed: Y or N; it counts as N")
    return word in ("y", "yes")


def minutes(text: str) -> Seconds:
    """Return a number of minutes in seconds.

    :raises WrongValueError: it is none.
    """
    return 60.0 * integer(text, 0)


def seconds(text: str) -> Seconds:
    """Return a number of seconds.

    :raises WrongValueError: it is none.
    """
    return float(integer(text, 0))


def run_limits(text: str) -> tuple[Seconds | None, Seconds]:
    """Return RUNLIMIT: the default, or None, and the most; ``[default] max``, each ``[hour:]minute[/host]``.

    :raises WrongValueError: it cannot be understood.
    """
    words = [word.partition("/")[0] for word in text.split()]
    times = [duration(word) for word in words]
    if len(times) == 1:
        return None, times[0]
    if len(times) == 2:
        return min(times), max(times)
    raise WrongValueError(f"got {text!r}; allowed: one or two of [hour:]minute")


def duration(text: str) -> Seconds:
    """Return ``[hour:]minute`` in seconds.

    :raises WrongValueError: it cannot be understood.
    """
    match = re.fullmatch(r"(?:(\d{1,6}):)?(\d{1,8})", text.strip())
    if match is None:
        raise WrongValueError(f"got {text!r}; allowed: [hour:]minute")
    return (int(match.group(1) or 0) * 60 + int(match.group(2))) * 60.0


@attrs.frozen
class Portion:
    """A length of time: fixed, or a share of a job's duration."""

    fixed: Seconds | None = None
    share: float | None = None
    """Between 0 and 1, without both ends."""

    def of(self, duration: Seconds | None) -> Seconds | None:
        """Return it in seconds for a job of `duration`; None: a share of what is not known."""
        if self.share is None:
            return self.fixed
        return None if duration is None else self.share * duration

    def __str__(self) -> str:
        if self.share is not None:
            return f"{100 * self.share:g}%"
        return f"{(self.fixed or 0) / 60:g} min"


def portion(text: str) -> Portion:
    """Return minutes, or a percentage strictly between 0 and 100 (4.3).

    :raises WrongValueError: it is neither.
    """
    word = text.strip()
    if word.endswith("%"):
        try:
            share = float(word[:-1]) / 100
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            raise WrongValueError(f"got {text!r}; allowed: minutes, or 1% to 99%")
        return Portion(share=share)
    return Portion(fixed=minutes(word))


def words(text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Return blank-separated keywords in capitals.

    :raises WrongValueError: one is unknown.
    """
    found = tuple(word.upper() for word in text.split())
    wrong = [word for word in found if word not in allowed]
    if wrong:
        raise WrongValueError(f"got {wrong[0]!r}; allowed: {' '.join(allowed)}{nearest(wrong[0], allowed)}")
    return found

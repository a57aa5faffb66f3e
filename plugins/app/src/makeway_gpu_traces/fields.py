"""Read the fields of one row: whole numbers, amounts, instants."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping

from makeway.readers.lines import shown

Fields = Mapping[str, str]
"""Column -> text, without blanks around it."""

MOST = 1e12
"""Larger numbers cannot be meant."""
_UNKNOWN = ("", "none", "null", "nan", "unknown")


class BadRowError(Exception):
    """A row that cannot be used; its text is the reason."""

    def __init__(self, reason: str, *, usual: bool = False) -> None:
        super().__init__(reason)
        self.usual = usual


def known(text: str) -> bool:
    """Return whether a field says anything."""
    return text.lower() not in _UNKNOWN


def amount(fields: Fields, column: str) -> float:
    """Return a number of 0 or more.

    :raises BadRowError: it is none.
    """
    text = fields[column]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST or "_" in text:
        raise BadRowError(f"{column}: got {shown(text)}; allowed: 0 or more")
    return value


def whole(fields: Fields, column: str, least: int = 0) -> int:
    """Return a whole number of `least` or more; ``8.0`` is one.

    :raises BadRowError: it is none.
    """
    value = amount(fields, column)
    if value < least or value != int(value):
        raise BadRowError(f"{column}: got {shown(fields[column])}; allowed: whole numbers from {least}")
    return int(value)


def word(fields: Fields, column: str) -> str:
    """Return a name.

    :raises BadRowError: it is empty.
    """
    if not known(fields[column]):
        raise BadRowError(f"{column}: it is empty")
    return fields[column]


def instant(text: str, what: str) -> float:
    """Return a date and time as Unix time; without a zone it is UTC.

    :raises BadRowError: it is none.
    """
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise BadRowError(f"{what}: got {shown(text)}; allowed: a date and time") from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=datetime.UTC)).timestamp()


def cores(thousandths: float) -> int:
    """Return whole cores, at least one."""
    return max(1, math.ceil(thousandths / 1000))

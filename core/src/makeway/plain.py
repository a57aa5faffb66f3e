"""Take single values of settings strictly, and tell which kind of value a type asks for."""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from makeway.bounds import LARGEST
from makeway.errors import nearest

_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


class Wrong(Exception):  # noqa: N818  # becomes a line of a message
    """A value of the wrong kind; its text is the whole message."""


def exactly(plain: type) -> Any:
    """Return what takes a value of the type `plain` itself, and no other."""

    def check(value: Any, _: Any) -> Any:
        if type(value) is not plain:
            raise Wrong(f"got {shown(value)}; allowed: {_PLAIN[plain]}")
        if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
            raise Wrong(f"got {shown(value)}; allowed: -{LARGEST} to {LARGEST}")
        return value

    return check


def number(value: Any, _: Any) -> float:
    """Take a number, whole or not; true and NaN are none."""
    if type(value) not in (int, float) or value != value:  # NaN is no number either
        raise Wrong(f"got {shown(value)}; allowed: {_PLAIN[float]}")
    try:
        return float(value)
    except OverflowError:
        raise Wrong("the number is too large") from None


_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}
_PART = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]+)\s*")
_CLOCK = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,6}):([0-9]{2})(?::([0-9]{2}))?")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,2})")


def duration(value: Any, _: Any) -> float:
    """Take a length of time: a number of seconds, or what people write: ``2h``, ``1 h 30 min``, ``1-12:00:00``."""
    if not isinstance(value, str):
        return number(value, _)
    seconds = seconds_of(value)
    if seconds is None:
        raise Wrong(f"got {shown(value)}; allowed: {A_LENGTH}")
    return seconds


A_LENGTH = "a number of seconds, or a length of time such as 2h, 90min or 1-12:00:00"


def seconds_of(text: str) -> float | None:
    """Return the seconds of a length of time with units or colons; None: it is none.

    As in Slurm 1:30 is a minute and a half, and 1-12 a day and a half.
    """
    text = text.strip().lower()
    if match := _CLOCK.fullmatch(text):
        days, first, second, third = (int(part or 0) for part in match.groups())
        if match[4] is None and match[1] is None:
            return float(60 * first + second)
        return float(86400 * days + 3600 * first + 60 * second + third)
    if match := _DAYS.fullmatch(text):
        return float(86400 * int(match[1]) + 3600 * int(match[2]))
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _UNITS:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    return total if text else None


def is_enum(wanted: Any) -> bool:
    """Whether an enumeration is wanted."""
    return isinstance(wanted, type) and issubclass(wanted, enum.Enum)


def member(value: Any, wanted: Any) -> Any:
    """Return the member whose value is written."""
    options = {str(each.value): each for each in wanted}
    if isinstance(value, str) and value in options:
        return options[value]
    close = nearest(str(value), options)
    raise Wrong(f"got {shown(value)}; allowed: {', '.join(options)}{close}")


def is_literal(wanted: Any) -> bool:
    """Whether one of a closed set is wanted."""
    return typing.get_origin(wanted) is typing.Literal


def literal(value: Any, wanted: Any) -> Any:
    """Take one of a closed set; true is not 1."""
    options = typing.get_args(wanted)
    for option in options:
        if type(value) is type(option) and value == option:
            return option
    allowed = ", ".join(_toml(option) for option in options)
    close = nearest(value, map(str, options)) if isinstance(value, str) else ""
    raise Wrong(f"got {shown(value)}; allowed: {allowed}{close}")


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_sequence(wanted: Any) -> bool:
    """Whether a list of something is wanted."""
    return typing.get_origin(wanted) in (tuple, frozenset, list)


def is_mapping(wanted: Any) -> bool:
    """Whether a table of something is wanted."""
    origin = typing.get_origin(wanted)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def is_union(wanted: Any) -> bool:
    """Whether one of several is wanted."""
    return typing.get_origin(wanted) in (typing.Union, types.UnionType)


def shown(value: Any) -> str:
    """Return a value as messages show it, short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

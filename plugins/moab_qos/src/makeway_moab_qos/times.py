"""Read lengths of time, numbers and booleans as Moab and Maui do (moab 9)."""

from __future__ import annotations

import re

INFINITY = 1e11
"""What ``INFINITY`` stands for: longer than anything that can be replayed."""

_FIELDS = (1, 60, 3600, 86400)
_WORDS = {
    **dict.fromkeys(("TRUE", "ON", "YES", "1"), True),
    **dict.fromkeys(("FALSE", "OFF", "NO", "0"), False),
}


def seconds(text: str, *, maui: bool = False) -> float:
    """Read ``[[[DD:]HH:]MM:]SS``; Maui takes two fields as ``HH:MM`` (Q13).

    :raises ValueError: it is none.
    """
    word = text.strip()
    if word.upper() == "INFINITY":
        return INFINITY
    if "_" in word:
        raise ValueError(f"got {text!r}, an absolute date; allowed: [[[DD:]HH:]MM:]SS")
    fields = word.split(":")
    if not 1 <= len(fields) <= 4 or not all(re.fullmatch(r"\d+(\.\d+)?", field) for field in fields):
        raise ValueError(f"got {text!r}; allowed: [[[DD:]HH:]MM:]SS or INFINITY")
    if maui and len(fields) == 2:
        fields.append("0")
    return min(
        INFINITY, sum(float(field) * unit for field, unit in zip(reversed(fields), _FIELDS, strict=False))
    )


def is_two_fields(text: str) -> bool:
    """Whether a time is one of those that Maui reads in another way."""
    return text.count(":") == 1


def boolean(text: str, *, maui: bool = False) -> bool:
    """Read TRUE, FALSE, ON, OFF, YES, NO, 1 or 0.

    :raises ValueError: it is none.
    """
    value = _WORDS.get(text if maui else text.upper())
    if value is None:
        raise ValueError(f"got {text!r}; allowed: TRUE, FALSE, ON, OFF, YES, NO, 1, 0")
    return value


def integer(text: str) -> int:
    """Read a decimal, hexadecimal (0x) or octal (leading 0) number.

    :raises ValueError: it is none.
    """
    match = re.fullmatch(r"([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]+|\d+)", text.strip())
    if match is None:
        raise ValueError(f"got {text!r}; allowed: a whole number")
    sign, digits = match.groups()
    if digits[:2] in ("0x", "0X"):
        value = int(digits, 16)
    else:
        value = int(digits, 8 if digits[0] == "0" and len(digits) > 1 else 10)
    return -value if sign == "-" else value


def number(text: str) -> float:
    """Read a number with or without a fraction.

    :raises ValueError: it is none.
    """
    try:
        return float(integer(text))
    except ValueError:
        pass
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text.strip()) is None:
        raise ValueError(f"got {text!r}; allowed: a number")
    return float(text)

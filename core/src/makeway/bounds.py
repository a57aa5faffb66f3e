"""Hold what people's files may be within bounds, the same for all readers: how deep, how many values, how large.

A file of a kilobyte may stand for a billion values (aliases of YAML), for tables in tables in tables, or for a number
that fills a page. A reader of such a format measures it here, or has it parsed here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from makeway.errors import ConfigError, Problem, reason_of

DEEPEST = 100
"""Most levels of tables and lists within one another."""
MOST_VALUES = 2_000_000
"""Most values of one file, each counted as often as the file refers to it."""
MOST_DIGITS = 400
"""Most digits of a number; no floating number has more in front of its point."""
LARGEST = 2**63 - 1
"""The largest whole number that settings take, and with a sign the smallest."""
_LONG_KEY = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")
_LONG_NUMBER = re.compile(rf"(?<![0-9_])[0-9_]{{{MOST_DIGITS}}}")


def toml_of(text: str, source: str) -> dict[str, Any]:
    """Parse TOML.

    :raises ConfigError: it is none, or beyond the bounds; names the line where that is known.
    """
    if (found := _LONG_KEY.search(text)) is not None:
        _too_deep(source, text, found.start())
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        digits = None if isinstance(error, tomllib.TOMLDecodeError) else _LONG_NUMBER.search(text)
        if digits is not None:
            wrong = f"a number of more than {MOST_DIGITS} digits; allowed: fewer"
            raise ConfigError(source, [Problem(_line(source, text, digits.start()), wrong)]) from None
        raise ConfigError(source, [Problem("", f"not valid TOML: {reason_of(error)}")]) from None
    measure(data, source)
    return data


def json_of(text: str, source: str, constant: Callable[[str], Any] | None = None) -> Any:
    """Parse JSON.

    :param constant: takes ``NaN`` and ``Infinity``, which are no JSON; None: they are numbers.
    :raises ConfigError: it is none.
    """
    try:
        return json.loads(text, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise ConfigError(source, [Problem("", f"not valid JSON: {reason_of(error)}")]) from None


def measure(
    root: Any, source: str, parts: Callable[[Any], Iterable[Any]] | None = None, where: str = ""
) -> None:
    """Check the size of a tree of values; one that is referred to several times counts each time, and costs once.

    :param parts: returns what a value is made of; None: values of tables, and items of lists.
    :param where: place of the tree, for messages.
    :raises ConfigError: it is too deep, holds itself, or holds too many values.
    """
    inside = parts or _parts
    sizes: dict[int, int] = {}
    waiting: list[tuple[Any, bool]] = [(root, False)]
    depth = 0
    open_: set[int] = set()
    while waiting:
        value, done = waiting.pop()
        name = id(value)
        if done:
            depth -= 1
            open_.discard(name)
            sizes[name] = 1 + sum(sizes.get(id(part), 1) for part in inside(value))
            if sizes[name] > MOST_VALUES:
                raise ConfigError(
                    source,
                    [Problem(where, f"it stands for more than {MOST_VALUES:,} values; allowed: fewer")],
                )
            continue
        if name in open_:
            raise ConfigError(source, [Problem(where, "a value that holds itself")])
        if name in sizes:
            continue
        below = [
            part for part in inside(value) if parts is not None or isinstance(part, Mapping | list | tuple)
        ]
        if depth >= DEEPEST:
            raise ConfigError(source, [Problem(where, _DEEP)])
        depth += 1
        open_.add(name)
        waiting.append((value, True))
        waiting += [(part, False) for part in below]


_DEEP = f"nested too deeply; allowed: {DEEPEST} levels"


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _too_deep(source: str, text: str, at: int) -> None:
    raise ConfigError(source, [Problem(_line(source, text, at), f"a key {_DEEP}")])


def _line(source: str, text: str, at: int) -> str:
    return f"{source}:{text.count(chr(10), 0, at) + 1}"

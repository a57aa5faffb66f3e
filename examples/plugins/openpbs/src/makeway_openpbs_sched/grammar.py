"""Take sched_config and the output of qmgr apart (sections 6.1 and 6.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

PRIME_WORDS = ("prime", "non_prime", "all", "none")
_OPTION = re.compile(r"\s*([A-Za-z_][\w.]*)\s*:\s*(\"[^\"]*\"|'[^']*'|\S+)(?:\s+(\S+))?\s*")
_QMGR = re.compile(r"\s*(\w+)\s+(\w+)(?:\s+(.*?))?\s*")
_SETTING = re.compile(r"([A-Za-z_][\w.]*)\s*(\+=|-=|=)\s*(.*)")


@attrs.frozen
class Line:
    """A line, continuation lines joined."""

    place: str
    """``file:line``."""
    text: str


@attrs.frozen
class Option:
    """A line of sched_config."""

    place: str
    name: str
    value: str
    prime: str
    """prime, non_prime, all or none; all where the line says nothing."""
    oddity: str = ""
    """What is wrong with the word behind the value; empty: nothing."""


@attrs.frozen
class Command:
    """A line of qmgr."""

    place: str
    verb: str
    """create, set or unset."""
    kind: str
    """sched, server, queue, node, ..."""
    name: str
    """Which one; empty: the only one."""
    attribute: str = ""
    sign: str = ""
    """``=``, ``+=`` or ``-=``; empty: there is no value."""
    value: str = ""


def lines_of(text: str, name: str) -> Iterator[Line]:
    """Yield lines that are no comments and not empty, with those that a backslash continues joined."""
    begun, joined = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        begun = begun or number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        joined += line
        if joined.strip() and joined.lstrip()[0] not in "#*":
            yield Line(f"{name}:{begun}", joined)
        begun, joined = 0, ""
    if joined.strip() and joined.lstrip()[0] not in "#*":
        yield Line(f"{name}:{begun}", joined)


def option_of(line: Line) -> Option | None:
    """Read a line of sched_config; None: it is broken."""
    match = _OPTION.fullmatch(line.text)
    if match is None:
        return None
    name, value, word = match.groups()
    if value[0] in "\"'":
        value = value[1:-1]
    prime = (word or "all").lower()
    if prime not in PRIME_WORDS or (word and word not in (prime, prime.upper())):
        return Option(line.place, name, value, "all", f"{word!r} is none of {', '.join(PRIME_WORDS)}")
    return Option(line.place, name, value, prime)


def command_of(line: Line) -> Command | None:
    """Read a line of qmgr; None: it is none that says anything of the configuration."""
    match = _QMGR.fullmatch(line.text)
    if match is None:
        return None
    verb, kind, rest = match.groups()
    rest = rest or ""
    if verb == "create":
        return Command(line.place, verb, kind, rest.split()[0] if rest else "")
    if verb not in ("set", "unset"):
        return None
    name, attribute = "", rest
    # ``set sched max = 1`` has no name, ``set queue workq max = 1`` has one.
    first, _, others = rest.partition(" ")
    if _named(first, others, verb):
        name, attribute = first, others.strip()
    setting = _SETTING.fullmatch(attribute)
    if setting is not None:
        value = setting[3].strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        return Command(line.place, verb, kind, name, setting[1], setting[2], value[1:-1] if quoted else value)
    return Command(line.place, verb, kind, name, attribute.strip()) if verb == "unset" else None


def _named(first: str, others: str, verb: str) -> bool:
    """Whether the first word is the name of an object, not of an attribute."""
    follows = others.strip()
    if verb == "unset":
        return bool(follows)
    return bool(follows) and not follows.startswith(("=", "+=", "-=")) and "=" not in first

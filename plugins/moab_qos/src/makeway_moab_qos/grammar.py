"""Take a moab.cfg or maui.cfg apart into parameters and attributes (moab 9).

::

    PARAM value            RESERVATIONPOLICY NEVER
    PARAM[index] value     RMPOLLINTERVAL=00:01:00   # the sign counts as a blank
    PARAM[index] ATTR=value ATTR+=value ATTR-='two words' ATTR[index]=value
    #INCLUDE other.cfg     appended at the end; any other # starts a comment, wherever it stands
    a backslash at the end joins lines

Under Maui's profile a parameter must start in the first column (Q21), and case counts (Q14).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from makeway.errors import ConfigError, Problem
from makeway.foreign import Source

_ENTRY = re.compile(r"([A-Za-z_][\w.\-]*+)(?:\s*\[([^\]]*)\])?(?:\s*=\s*|\s+|$)(.*)", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"""(?<![\w.\-])([A-Za-z_][\w.]*+(?:-[\w.]++)*+(?:\[[^\[\]\s]*+\])?+)\s*+"""
    r"""(\+=|-=|=)\s*+("[^"]*"?|'[^']*'?|(?:"[^"]*"|'[^']*'|\S)*+)"""
)
_INCLUDE = re.compile(r"^\s*#INCLUDE\s+(\S+)")
_MOST_INCLUDES = 100


@attrs.frozen(kw_only=True)
class Entry:
    """One parameter with its value, as written."""

    param: str
    """Upper case, save under Maui's profile, where case counts."""
    index: str
    """Empty: the global one."""
    value: str
    place: str
    """``file:line``"""
    spelled: str
    """The parameter as written."""


@attrs.frozen(kw_only=True)
class Attribute:
    """One ``NAME=value`` of an entry."""

    name: str
    """With its own index, if it has one: ``MAXPROC[USER]``. Upper case, save under Maui's profile."""
    op: str
    value: str


@attrs.frozen(kw_only=True)
class Parsed:
    """A file with all that it includes."""

    entries: tuple[Entry, ...]
    ignored: tuple[tuple[str, str], ...] = ()
    """Place and text of lines that are no entries."""


def parse(source: Source, *, maui: bool = False) -> Parsed:
    """Read a file and what it includes.

    :raises ConfigError: an included file cannot be read, or includes go in a circle.
    """
    entries: list[Entry] = []
    ignored: list[tuple[str, str]] = []
    todo = [(source, "")]
    for count, (each, asked) in enumerate(todo):
        if count > _MOST_INCLUDES:
            raise ConfigError(source.name, [Problem("", f"more than {_MOST_INCLUDES} included files")])
        for number, line in _joined(_text_of(each, asked)):
            place = f"{each.name}:{number}"
            for name in _included(line):
                todo.append((each.beside(name), f"{place}: #INCLUDE: cannot read {name}"))
            _take(line.partition("#")[0], place, entries, ignored, maui=maui)
    return Parsed(entries=tuple(entries), ignored=tuple(ignored))


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with the number of their first part; blanks for whatever cannot be printed."""
    parts: list[str] = []
    first = 1
    for number, raw in enumerate(text.split("\n"), start=1):
        line = "".join(char if char.isprintable() else " " for char in raw.rstrip("\r"))
        if not parts:
            first = number
        bare = line.rstrip()
        if bare.endswith("\\") and "#" not in bare:
            parts.append(bare[:-1].rstrip())
            continue
        parts.append(line)
        yield first, " ".join([parts[0], *(part.strip() for part in parts[1:])])
        parts = []
    if parts:
        yield first, " ".join(parts)


def _text_of(source: Source, asked: str) -> str:
    """Return the text of a file.

    :param asked: the line that includes it; empty: none does.
    :raises ConfigError: it cannot be read.
    """
    try:
        return source.text
    except ConfigError as error:
        if not asked:
            raise
        problems = [Problem("", f"{asked}: {problem.message}") for problem in error.problems]
        raise ConfigError(source.name, problems) from None


def _included(line: str) -> list[str]:
    match = _INCLUDE.match(line)
    return [match.group(1)] if match else []


def _take(line: str, place: str, entries: list[Entry], ignored: list[tuple[str, str]], *, maui: bool) -> None:
    text = line.strip()
    if not text:
        return
    match = _ENTRY.fullmatch(text)
    if match is None or (maui and line[0] in " \t"):
        ignored.append((place, text))
        return
    spelled, index, value = match.groups()
    entries.append(
        Entry(
            param=spelled if maui else spelled.upper(),
            index=(index or "").strip(),
            value=value.strip(),
            place=place,
            spelled=spelled,
        )
    )


def attributes(entry: Entry, *, maui: bool = False) -> tuple[list[Attribute], list[str]]:
    """Return the attributes of an entry, and the words that are none."""
    found: list[Attribute] = []
    stray: list[str] = []
    at = 0
    for match in _ATTRIBUTE.finditer(entry.value):
        stray += entry.value[at : match.start()].split()
        at = match.end()
        name, op, value = match.groups()
        found.append(Attribute(name=name if maui else name.upper(), op=op, value=value.strip("\"'")))
    stray += entry.value[at:].split()
    return found, stray


def names_of(text: str) -> tuple[str, ...]:
    """Split a list of names: commas, or colons."""
    return tuple(dict.fromkeys(word for word in re.split(r"[,:\s]+", text) if word))


def flags_of(text: str) -> tuple[str, ...]:
    """Split a list of flags: commas, colons or vertical bars."""
    return tuple(dict.fromkeys(word for word in re.split(r"[,:|\s]+", text) if word))


def combined(attribute: Attribute, before: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    """Return what ``=``, ``+=`` and ``-=`` make of a list."""
    if attribute.op == "+=":
        return tuple(dict.fromkeys((*before, *given)))
    if attribute.op == "-=":
        return tuple(name for name in before if name not in given)
    return given

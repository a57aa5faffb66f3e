"""Find the nodes that a list of hosts names: names, ranges in brackets, regular expressions.

An entry with a sign that no name has, such as ``^`` or ``*``, is a POSIX regular expression (moab 2.1); every
other one is a name or a range such as ``n[1-8]``. ``ALL`` names all nodes.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Iterable

from makeway.hostlist import expand_hostlist

_SIGNS = frozenset("^$*+?(){}|\\")
"""What makes an entry a regular expression."""
_CLASSES = {"alnum": "A-Za-z0-9", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z"}
"""POSIX names of sets of characters, as Python spells them."""
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_NUMBERS = re.compile(r"\d\d-|-\d\d")


def entries(text: str) -> tuple[str, ...]:
    """Split a list at commas and blanks outside of brackets and parentheses."""
    found, depth, begun = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "[(") - (char in "])")
        if char in ", \t" and depth <= 0:
            found.append(text[begun:at])
            begun = at + 1
    found.append(text[begun:])
    return tuple(entry for entry in found if entry)


def is_expression(entry: str) -> bool:
    """Whether an entry of a list is a regular expression."""
    return not _SIGNS.isdisjoint(entry)


def check_hosts(text: str) -> None:
    """Refuse a list that cannot be read.

    :raises ValueError: it names the entry and what is wrong about it.
    """
    for entry in entries(text):
        if is_expression(entry):
            _pattern(entry)
        elif entry.upper() != "ALL":
            expand_hostlist(entry)


def matching(text: str, known: Iterable[str], *, whole: bool = False) -> tuple[str, ...]:
    """Return the nodes among `known` that a list names, in their order.

    :param whole: whether a regular expression has to match a whole name rather than a part of it.
    :raises ValueError: the list cannot be read.
    """
    names = tuple(known)
    found: set[str] = set()
    for entry in entries(text):
        if is_expression(entry):
            pattern = _pattern(entry)
            match = pattern.fullmatch if whole else pattern.search
            found.update(name for name in names if match(name))
        elif entry.upper() == "ALL":
            found.update(names)
        else:
            found.update(expand_hostlist(entry))
    return tuple(name for name in names if name in found)


def strangers(text: str, known: Iterable[str], *, whole: bool = False) -> tuple[str, ...]:
    """Return the entries of a list that name no node among `known`."""
    names = tuple(known)
    return tuple(entry for entry in entries(text) if not matching(entry, names, whole=whole))


def misread_brackets(text: str) -> tuple[str, ...]:
    """Return the brackets of regular expressions that look like a range of numbers: ``[0-13]`` is 0, 1 or 3."""
    return tuple(
        bracket
        for entry in entries(text)
        if is_expression(entry)
        for bracket in _BRACKETS.findall(entry)
        if _NUMBERS.search(bracket)
    )


@functools.cache
def _pattern(entry: str) -> re.Pattern[str]:
    """Compile a regular expression.

    :raises ValueError: it is none.
    """
    spelled = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), entry)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Python may give "[a&&b]" a meaning one day
            return re.compile(spelled.replace("[[", r"[\["))
    except re.error as error:
        raise ValueError(f"{entry!r} is no regular expression: {error.msg}") from None

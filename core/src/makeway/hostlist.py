"""Expand and fold lists of host names such as ``n[01-03,7],login``, and sort names naturally.

The ranges are ClusterShell's work (RangeSet). Its NodeSet is not used: it sorts, folds names with
two numbers slowly, and takes more than Slurm does (set operators, groups, steps, wildcards).
The size is counted before anything is expanded.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator

from ClusterShell.RangeSet import (  # type: ignore[import-untyped]  # ships no types
    RangeSet,
    RangeSetException,
)

MAX_HOSTS = 1_000_000
"""The most names that one list may stand for."""

NaturalKey = tuple[tuple[tuple[str, int, str], ...], str]

_SHOWN = 60
_MAX_DIGITS = 18
_DIGITS = re.compile(r"([0-9]+)")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ITEM = re.compile(r"(?:[^\[\],\s]|\[[^\[\]]*\])+|[\[\]]")
_GROUP = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def expand_hostlist(text: str) -> list[str]:
    """Return the names that `text` stands for, in the order written, each once.

    Commas and blanks separate items; zero padding is kept (``n[01-03]``). Empty text, empty list.

    :raises ValueError: the text is no host list, or stands for more than `MAX_HOSTS` names.
    """
    names: dict[str, None] = {}
    room = MAX_HOSTS
    pieces = [(item, _split_groups(item, text)) for item in _ITEM.findall(text)]
    for _, parts in pieces:
        room -= math.prod(sum(_size(entry, text) for entry in part) for part in parts)
        if room < 0:
            raise ValueError(f"host list {_shown(text)} stands for more than {MAX_HOSTS:,} hosts")
    for item, parts in pieces:
        names.update(dict.fromkeys(_expand_item(item, parts, text)))
    return list(names)


def fold_hostlist(names: Iterable[str]) -> str:
    """Return the shortest list in Slurm's style, sorted: ``n[1-3,5]``.

    As Slurm does, only the last number of a name is folded: ``r1n[1-2],r2n[1-2]``.

    :raises ValueError: a name holds characters that no host name has.
    """
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{_shown(name)} is not a host name")
        prefix, number, suffix = _split_last_number(name)
        groups.setdefault((prefix, suffix, bool(number)), []).append(number)
    folded = (_fold_group(*around[:2], numbers) for around, numbers in groups.items())
    return ",".join(text for _, text in sorted(folded))


def natural_key(name: str) -> NaturalKey:
    """Return a sort key that counts digits as numbers: n2 before n10, n2 before n02."""
    words = _DIGITS.split(name)
    numbers = [digits.lstrip("0") for digits in words[1::2]]
    pairs = itertools.zip_longest(words[::2], numbers, fillvalue="")
    return tuple((word, len(number), number) for word, number in pairs), _padding_last(name)


def _padding_last(name: str) -> str:
    """Order names that differ in zero padding only: the shorter one first."""
    return f"{len(name):09d}{name}"


def _split_groups(item: str, text: str) -> list[list[str]]:
    """Return the entries of each bracket of `item`; one plain entry if it has none."""
    if item in ("[", "]"):
        raise _malformed(text, f"unbalanced {item!r}")
    if not _NAME.fullmatch(_GROUP.sub("0", item)):
        raise _malformed(text, f"{_shown(item)} is not a host name or range")
    return [group.split(",") for group in _GROUP.findall(item)] or [["0"]]


def _size(entry: str, text: str) -> int:
    """Count the numbers of one range, ``3`` or ``01-10``."""
    match = _RANGE.fullmatch(entry)
    if match is None:
        raise _malformed(text, f"{_shown(entry)} is not a number or a range such as 1-4")
    first, last = match[1], match[2] or match[1]
    if max(len(first), len(last)) > _MAX_DIGITS:
        raise _malformed(text, f"{_shown(entry)} has more than {_MAX_DIGITS} digits")
    if int(last) < int(first):
        raise _malformed(text, f"range {_shown(entry)} runs backwards")
    return int(last) - int(first) + 1


def _expand_item(item: str, parts: list[list[str]], text: str) -> Iterator[str]:
    """Expand one item; the last bracket turns fastest."""
    if "[" not in item:
        yield item
        return
    literals = _GROUP.split(item)[::2]
    if len(parts) == 1:
        before, after = literals
        yield from (f"{before}{number}{after}" for number in _numbers(parts[0], text))
        return
    for chosen in itertools.product(*([*_numbers(part, text)] for part in parts)):
        joined = itertools.zip_longest(literals, chosen, fillvalue="")
        yield "".join(itertools.chain.from_iterable(joined))


def _numbers(part: list[str], text: str) -> Iterator[str]:
    """Expand one bracket range by range, since a whole RangeSet would sort them."""
    for entry in part:
        first, _, last = entry.partition("-")
        last = last or first
        padded = any(len(each) > 1 and each[0] == "0" for each in (first, last))
        if not padded or len(first) == len(last):
            width = len(first) if padded else 0
            yield from (f"{number:0{width}d}" for number in range(int(first), int(last) + 1))
            continue
        try:  # numbers padded to different widths
            yield from RangeSet(entry).striter()
        except RangeSetException as error:
            raise _malformed(text, str(error)) from error


def _split_last_number(name: str) -> tuple[str, str, str]:
    """Return what stands before, in and after the last number; no number: an empty one."""
    words = _DIGITS.split(name)
    if len(words) < 3 or len(words[-2]) > _MAX_DIGITS:
        return name, "", ""
    return "".join(words[:-2]), words[-2], words[-1]


def _fold_group(prefix: str, suffix: str, numbers: list[str]) -> tuple[NaturalKey, str]:
    """Fold names that differ in their last number only; return their place and their text."""
    ranges = RangeSet.fromlist(numbers if numbers[0] else [])
    middle = f"[{ranges}]" if len(ranges) > 1 else numbers[0]
    first = min((prefix + number + suffix for number in numbers), key=natural_key)
    return natural_key(first), prefix + middle + suffix


def _malformed(text: str, reason: str) -> ValueError:
    return ValueError(f"host list {_shown(text)}: {reason}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")

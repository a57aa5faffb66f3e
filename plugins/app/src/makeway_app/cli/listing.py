"""List the parameters of a foreign file that are not modelled: one a line, each file named once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from makeway.foreign import LeftOut
from makeway.obstacle import counted

_SHOWN = 5
"""Most lines named for one parameter."""


def listed(found: Sequence[LeftOut], what: str) -> Iterator[str]:
    """Yield a heading for each file, and a line for each parameter.

    :param what: what is said of them all: ``not modelled, may matter``.
    """
    for file, rows in _by_file(found).items():
        yield f"{what}: {counted(len(rows), 'parameter')}{f' of {file}' if file else ''}"
        yield from (f"  {name}{_lines(numbers)}" for name, numbers in rows.items())


def in_short(found: Sequence[LeftOut], file: str) -> str:
    """Say how many there are; empty: none."""
    if not found:
        return ""
    verb = "is" if len(found) == 1 else "are"
    return f"{counted(len(found), 'parameter')} of {file} that may matter {verb} not modelled; makeway check lists them"


def _by_file(found: Sequence[LeftOut]) -> dict[str, dict[str, list[str]]]:
    files: dict[str, dict[str, list[str]]] = {}
    for each in found:
        for place in each.places or ("",):
            file, _, line = place.rpartition(":")
            files.setdefault(file, {}).setdefault(each.name, []).append(line)
    return files


def _lines(numbers: Sequence[str]) -> str:
    if not any(numbers):
        return ""
    shown = ", ".join(numbers[:_SHOWN])
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f" (line{'s' if len(numbers) > 1 else ''} {shown}{more})"

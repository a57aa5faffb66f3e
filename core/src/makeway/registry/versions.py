"""Say which versions of makeway a distribution asks for, and whether one is among them.

``packaging`` knows the grammar of both. It is imported only for what is not as plain as ``makeway-core<0.2,>=0.1``:
its import costs a start as much as reading a small site.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

OWN = ("makeway", "makeway-core")
_NUMBER = r"\d+(?:\.\d+)*"
_CLAUSE = rf"(?:<=|>=|==|!=|<|>){_NUMBER}"
_PLAIN_CLAUSES = re.compile(rf"{_CLAUSE}(?:,{_CLAUSE})*")
_PLAIN_VERSION = re.compile(_NUMBER)
_PLAIN_REQUIREMENT = re.compile(rf"([a-z0-9-]+)({_CLAUSE}(?:,{_CLAUSE})*)?")
_OURS = re.compile(r"\s*makeway(?:[-_.]+core)?(?![\w.-])", re.IGNORECASE)
_HOLDS: Mapping[str, Callable[[list[int], list[int]], bool]] = {
    "<=": lambda one, other: one <= other,
    ">=": lambda one, other: one >= other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
}


@functools.cache
def wanted_by(requires: tuple[str, ...]) -> str:
    """Return what a distribution asks of ``makeway-core`` or ``makeway``; extras and other platforms do not count.

    :param requires: its requirements, as its metadata have them.
    :returns: the clauses, as ``>=0.1,<0.2``; empty: any version will do.
    """
    wanted: list[str] = []
    for text in filter(_OURS.match, requires):
        plain = _PLAIN_REQUIREMENT.fullmatch(text)
        wanted += plain[2].split(",") if plain and plain[2] else [] if plain else clauses_of(text)
    return ",".join(sorted(wanted, reverse=True))


def clauses_of(text: str) -> list[str]:
    """Return the same of one requirement, whatever it looks like; one that cannot be read asks for nothing."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return []  # the installer's business
    if canonicalize_name(requirement.name) not in OWN:
        return []
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return []
    return [str(each) for each in requirement.specifier]


def fits(version: str, clauses: str) -> bool:
    """Say whether a version is among those that are asked for; the ones before a release are, too.

    :raises ValueError: the clauses cannot be read.
    """
    if not (_PLAIN_VERSION.fullmatch(version) and _PLAIN_CLAUSES.fullmatch(clauses)):
        return fits_by_packaging(version, clauses)
    have = _release(version)
    for clause in clauses.split(","):
        sign = clause[:2] if clause[1] == "=" else clause[:1]
        if not _HOLDS[sign](have, _release(clause[len(sign) :])):
            return False
    return True


def fits_by_packaging(version: str, clauses: str) -> bool:
    """Say the same for whatever clauses."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(clauses).contains(version, prereleases=True)
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from None


def _release(number: str) -> list[int]:
    """Return the parts of a release, without zeros at its end: 0.1.0 is 0.1."""
    parts = [int(part) for part in number.split(".")]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts

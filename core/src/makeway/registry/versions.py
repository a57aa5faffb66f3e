"""Say which versions of makeway a distribution asks for, and whether one is among them."""

from __future__ import annotations

import functools

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

OWN = ("makeway", "makeway-core")


@functools.cache
def wanted_by(requires: tuple[str, ...]) -> str:
    """Return what a distribution asks of ``makeway-core`` or ``makeway``; extras and other platforms do not count.

    :param requires: its requirements, as its metadata have them; one that cannot be read asks for nothing.
    :returns: the clauses, as ``>=0.1,<0.2``; empty: any version will do.
    """
    wanted: list[str] = []
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # the installer's business
        marker = requirement.marker
        if canonicalize_name(requirement.name) in OWN and (marker is None or marker.evaluate({"extra": ""})):
            wanted += map(str, requirement.specifier)
    return ",".join(sorted(wanted, reverse=True))


def fits(version: str, clauses: str) -> bool:
    """Say whether a version is among those that are asked for; the ones before a release are, too.

    :raises ValueError: the clauses cannot be read.
    """
    try:
        return SpecifierSet(clauses).contains(version, prereleases=True)
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from None

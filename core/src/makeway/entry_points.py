"""Look at the entry points of the installed distributions: each look reads a file of every one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any, ClassVar


class _Look:
    """What the last look has found."""

    kept: bool = False
    """Whether what is found answers later questions, too."""
    every: Any = None
    """All entry points, whatever this release of Python keeps them in; None: nothing has asked yet."""
    groups: ClassVar[dict[str, Any]] = {}
    """Those of each group that was asked for, kept as long as `every`."""


_LOOK = _Look()


@contextlib.contextmanager
def one_look() -> Iterator[None]:
    """Look at the installed distributions once for all questions inside, when the first is asked."""
    before = _LOOK.kept
    _LOOK.kept = True
    try:
        yield
    finally:
        _LOOK.kept = before
        if not before:
            _LOOK.every = None
            _LOOK.groups.clear()


def points(group: str, name: str | None = None) -> Iterable[metadata.EntryPoint]:
    """Return what is offered in a group, under one name or under all."""
    if not _LOOK.kept:
        found: Any = metadata.entry_points(group=group)
    elif group in _LOOK.groups:
        found = _LOOK.groups[group]
    else:
        if _LOOK.every is None:
            _LOOK.every = metadata.entry_points()
        found = _LOOK.groups[group] = _LOOK.every.select(group=group)
    return [point for point in found if name in (None, point.name)]

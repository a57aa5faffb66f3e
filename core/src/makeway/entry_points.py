"""Look at the entry points of the installed distributions: each look reads a file of every one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any


class _Look:
    """What the last look has found."""

    every: Any = None
    """All entry points, whatever this release of Python keeps them in; None: each question looks anew."""


_LOOK = _Look()


@contextlib.contextmanager
def one_look() -> Iterator[None]:
    """Look at the installed distributions once for all questions inside."""
    before = _LOOK.every
    _LOOK.every = metadata.entry_points() if before is None else before
    try:
        yield
    finally:
        _LOOK.every = before


def points(group: str, name: str | None = None) -> Iterable[metadata.EntryPoint]:
    """Return what is offered in a group, under one name or under all."""
    asked = {"group": group} if name is None else {"group": group, "name": name}
    look: Any = metadata.entry_points if _LOOK.every is None else _LOOK.every.select
    found: Iterable[metadata.EntryPoint] = look(**asked)
    return found

"""Say which distribution brings what is missing."""

from __future__ import annotations

import fnmatch
import functools
import pkgutil
import tomllib
from collections.abc import Mapping
from typing import Any

_Brought = Mapping[str, Any]


@functools.cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    text = pkgutil.get_data("makeway", "catalogue.toml")
    assert text is not None
    return tomllib.loads(text.decode())


def _catalogue() -> Mapping[str, _Brought]:
    return _tables()["distributions"]


def sections() -> Mapping[str, list[str]]:
    """Return the sections of ``makeway --help``: heading -> commands of this project, in order."""
    return _tables()["sections"]


def reader_of(file: str, kind: str = "files") -> str | None:
    """Return what to install for files of this name, the policies that they name among it; None: not known.

    :param kind: ``files`` of configurations, or ``workloads``.
    """
    for dist, brought in _catalogue().items():
        if any(fnmatch.fnmatchcase(file, pattern) for pattern in brought.get(kind, ())):
            return f"makeway[{brought['extra']}]" if "extra" in brought else dist
    return None


def bringer(kind: str, name: str) -> str | None:
    """Return the distribution of this project that brings something; None: not known.

    :param kind: ``plugins``, ``commands``, ``formats``, ``pages``, ``views`` or ``options``.
    """
    return next((dist for dist, brought in _catalogue().items() if name in brought.get(kind, ())), None)


def summary(command: str) -> str:
    """Return what a command of this project does, in a sentence; empty: not known.

    The list of commands shows it, so that no command is imported to be listed.
    """
    found = (brought.get("commands", {}).get(command) for brought in _catalogue().values())
    return next((text for text in found if text), "")


def commands() -> list[str]:
    """Return the commands of this project, installed or not."""
    return [name for brought in _catalogue().values() for name in brought.get("commands", ())]


def formats() -> list[str]:
    """Return the formats of workloads that distributions of this project read."""
    return [name for brought in _catalogue().values() for name in brought.get("formats", ())]


def missing(option: str) -> str:
    """Say which distribution an option needs that is not installed."""
    dist = bringer("options", option)
    hint = f"; 'pip install {dist}' brings one" if dist else ""
    return f"{option} needs a distribution that knows what it is about, and none is installed{hint}"

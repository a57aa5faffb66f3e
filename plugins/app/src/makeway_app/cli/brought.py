"""Find commands, writers of pages, and views for the terminal, that other distributions bring.

A distribution offers a command by an entry point of the group ``makeway.commands``: name of the command -> a click
command, or what names in ``face`` (``module:function``) what makes one of it. Writers of pages are in the group
``makeway.pages``, views in ``makeway.views``. They are imported when they are used. So is what an error needs: every
start of ``makeway`` that is not over before imports this module.
"""

from __future__ import annotations

import pkgutil
from importlib import metadata
from typing import Any

import click

from makeway import catalogue

COMMANDS = "makeway.commands"
PAGES = "makeway.pages"
VIEWS = "makeway.views"


def names(group: str) -> list[str]:
    """Return the names offered in `group`."""
    return sorted({point.name for point in metadata.entry_points(group=group)})


_IN_A_CLONE = {"makeway-testing": "pip install ./testing"}
"""Package that README does not install -> how it is had beside README's packages."""


def package_of(group: str, name: str) -> str | None:
    """Return the package of this project that brings something, installed or not; None: none does."""
    return catalogue.bringer(group.rpartition(".")[2], name)


def load(group: str, name: str) -> Any:
    """Import what is offered under `name`.

    :raises PluginError: nothing does, two do, or it cannot be imported.
    """
    from makeway.errors import PluginError

    points = {point.value: point for point in metadata.entry_points(group=group, name=name)}
    if not points:
        package = package_of(group, name) or f"makeway-{name}"
        clone = f"; in a clone of makeway, {_IN_A_CLONE[package]}" if package in _IN_A_CLONE else ""
        raise PluginError(f"{name!r} needs the package {package}: pip install {package}{clone}")
    if len(points) > 1:
        raise PluginError(
            f"several distributions offer {name!r} ({', '.join(sorted(points))}); uninstall one"
        )
    (point,) = points.values()
    try:
        return point.load()
    except Exception as error:
        who = point.dist.name if point.dist is not None else point.value
        raise PluginError(f"{name!r} of {who} cannot be imported: {type(error).__name__}: {error}") from error


def command(name: str) -> click.Command:
    """Import the command called `name`.

    :raises PluginError: as `load`; what is offered is no command.
    """
    from makeway.errors import PluginError

    found = load(COMMANDS, name)
    if isinstance(maker := getattr(found, "face", None), str):
        found = pkgutil.resolve_name(maker)(found)
    if not isinstance(found, click.Command):
        raise PluginError(f"the command {name!r} is {found!r:.80}; allowed: a click command")
    return found

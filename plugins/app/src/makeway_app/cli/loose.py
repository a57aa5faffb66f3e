"""Plugins in loose files: ``--plugin NAME=FILE``, for a policy that is no distribution yet."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from makeway.errors import OutOfTime, PluginError
from makeway.registry.finding import check_declaration, place_of


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    for text in values:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise click.BadParameter(f"got {text!r}; allowed: NAME=FILE, as preempt/mine=mine.py", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice", ctx, param)
        found[name] = Path(file)
    return found


def plugin_option(command: Any) -> Any:
    """Add ``--plugin``."""
    return click.option(
        "--plugin",
        "plugin_files",
        multiple=True,
        callback=_pairs,
        metavar="NAME=FILE",
        help="Use this Python file as the plugin NAME, without installing it. Repeatable.",
    )(command)


def load_files(files: Mapping[str, Path]) -> dict[str, Any]:
    """Import files as plugins by name.

    :raises PluginError: one cannot be imported, or is for another version of the contract.
    """
    return {name: _load(name, path) for name, path in files.items()}


def _load(name: str, path: Path) -> Any:
    who = f"plugin {name!r} in {path}"
    if not path.is_file():
        raise PluginError(f"{who}: no such file")
    module_name = "_makeway_file_" + re.sub(r"\W", "_", name)
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{who}: it is no Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # as an import would: dataclasses and the like look themselves up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit, OutOfTime) as error:
        kind = f"{type(error).__name__}: {error}" if not isinstance(error, OutOfTime) else str(error)
        raise PluginError(f"{who} cannot be imported: {kind}{place_of(error)}") from error
    check_declaration(who, module)
    return module

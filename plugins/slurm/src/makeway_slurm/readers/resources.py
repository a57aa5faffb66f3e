"""Read resources.yaml, which since 25.05 describes hierarchical resources: none is modelled, so each is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from makeway.errors import ConfigError, Problem
from makeway_slurm.readers.conf_parts import Setting, shown
from makeway_slurm.readers.yaml_tables import Table, read_tables

FILE = "resources.yaml"
SINCE = "25.05"
"""First release that reads it."""
_KEYS = ("resource", "mode", "topology", "variables", "disable_hres", "layers")
_LAYER = ("layer_name", "parent_name", "nodes", "count", "disable_layer", "base")
_MODES = ("MODE_1", "MODE_2", "MODE_3")


def read_resources(path: Path) -> list[Setting]:
    """Return the resources that the file names, each with its place.

    :raises ConfigError: with all that is wrong with it.
    """
    tables = read_tables(path)
    problems = [problem for table in tables for problem in _wrong(table)]
    if problems:
        raise ConfigError(path.name, problems)
    return [table.setting("resource") for table in tables]


def _wrong(table: Table) -> Iterator[Problem]:
    yield from table.wrong(_KEYS, "resource")
    mode = table.text("mode")
    if mode.upper() not in _MODES:
        yield table.setting("mode").problem(f"got {shown(mode)}; allowed: {', '.join(_MODES)}")
    for layer in table.tables("layers"):
        yield from layer.wrong(_LAYER)

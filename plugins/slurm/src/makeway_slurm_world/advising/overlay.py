"""Lay a configuration file over what was read from a running cluster.

A file that has ``[[node]]`` tables is a configuration of its own. Any other says only what differs: its ``[policy]``
stands in place of the cluster's, single values of other tables win, and ``[[partition]]`` and ``[[qos]]`` tables are
matched by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.bounds import toml_of
from makeway.config import Config, validate, without_none
from makeway.errors import ConfigError, Problem, nearest
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.readers.lines import read_text
from makeway.settings import structure, unstructure
from makeway_slurm_world.driving.settings import Settings

_BY_NAME = ("partition", "qos")


def laid_over(config: Config, path: Path | None) -> Config:
    """Return `config` with what a file changes of it.

    :param path: TOML; None: nothing is changed.
    :raises ConfigError: it cannot be read, or the two do not go together.
    """
    if path is None:
        return config
    tables = _tables(path)
    if "node" in tables:
        found = structure(tables, Config, str(path))
    else:
        merged = _merged(without_none(unstructure(config)), tables, path)
        found = structure(merged, Config, str(path))
    validate(found, str(path))
    return found


def settings_in(path: Path | None) -> Settings:
    """Return ``[world.settings]`` of a file, for a world that is Slurm; None: their defaults.

    :raises ConfigError: it cannot be read, or one is wrong.
    """
    world = _tables(path).get("world", {}) if path is not None else {}
    table = world.get("settings", {}) if isinstance(world, Mapping) else {}
    return structure(table, Settings, f"{path}: world.settings")


def _tables(path: Path) -> dict[str, Any]:
    return toml_of(read_text(path), str(path))


def _merged(live: dict[str, Any], tables: Mapping[str, Any], path: Path) -> dict[str, Any]:
    found = dict(live)
    for key, value in tables.items():
        if key in _BY_NAME:
            found[key] = _by_name(key, live.get(key, []), value, path)
        elif key == "policy":
            found[key] = {"select": live["policy"].get("select", "select/linear"), **_kept(live), **value}
        elif isinstance(value, Mapping) and isinstance(live.get(key), Mapping):
            found[key] = {**live[key], **value}
        else:
            found[key] = value
    return found


def _kept(live: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the cluster's own policy is about its nodes, not about who goes first."""
    return {key: value for key, value in live["policy"].items() if key in ("select_parameters", "mcs")}


def _by_name(
    key: str, live: Sequence[Mapping[str, Any]], changes: Any, path: Path
) -> list[Mapping[str, Any]]:
    found = {each["name"]: dict(each) for each in live}
    for at, change in enumerate(changes if isinstance(changes, list) else []):
        name = change.get("name") if isinstance(change, Mapping) else None
        where = f"{key}[{at}].name"
        if not isinstance(name, str):
            raise ConfigError(str(path), [Problem(where, "missing")])
        if key == "partition" and name not in found:
            text = f"the cluster has no partition {name!r}{nearest(name, found)}"
            raise ConfigError(str(path), [Problem(where, text)])
        found[name] = {**found.get(name, {}), **change}
    return list(found.values())


def restricted(config: Config, nodes: Sequence[str]) -> Config:
    """Return a configuration that knows only some of the nodes, and the partitions on them.

    :raises ConfigError: the cluster has not all of them.
    """
    wanted = set(nodes)
    tables = []
    for table in config.node:
        names = [name for name in expand_hostlist(table.name) if name in wanted]
        if names:
            tables.append(attrs.evolve(table, name=fold_hostlist(names)))
    here = {name for table in tables for name in expand_hostlist(table.name)}
    missing = sorted(wanted - here)
    if missing or not wanted:
        everything = [name for table in config.node for name in expand_hostlist(table.name)]
        hint = nearest(missing[0], everything) if missing else ""
        text = f"the cluster has no node {missing[0]!r}{hint}" if missing else "no nodes are named"
        raise ConfigError("--nodes", [Problem("", text)])
    partitions = []
    for partition in config.partition:
        if partition.nodes == "ALL":
            partitions.append(partition)
            continue
        names = [name for name in expand_hostlist(partition.nodes) if name in here]
        if names:
            partitions.append(attrs.evolve(partition, nodes=fold_hostlist(names)))
    return attrs.evolve(config, node=tuple(tables), partition=tuple(partitions))

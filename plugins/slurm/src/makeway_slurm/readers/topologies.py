"""Read topology.yaml, which since 25.05 says which topologies there are; partitions name those that they go by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from makeway.errors import ConfigError, Problem
from makeway_slurm.readers.conf_parts import Setting
from makeway_slurm.readers.yaml_tables import Table, read_tables

FILE = "topology.yaml"
SINCE = "25.05"
"""First release that reads it."""
_KINDS = ("tree", "flat", "block", "ring", "torus3d")
_KEYS = ("topology", "cluster_default", *_KINDS)
_SWITCH = {"switch": "SwitchName", "nodes": "Nodes", "children": "Switches"}
"""Key of a switch -> that of topology.conf."""


@attrs.frozen(kw_only=True)
class Topology:
    """One of the topologies of a cluster."""

    name: str
    kind: str
    at: Setting
    """Where its kind stands."""
    switches: Sequence[Mapping[str, str]] = ()
    """Those of a tree, in the words of topology.conf."""
    default: bool = False
    """Whether partitions that name none go by it."""


def read_topologies(path: Path) -> tuple[Topology, ...]:
    """Return the topologies of the file; the first that is the default is marked as such.

    :raises ConfigError: with all that is wrong with it.
    """
    problems: list[Problem] = []
    found: list[Topology] = []
    for table in read_tables(path):
        problems += table.wrong(_KEYS, "topology")
        kinds = [kind for kind in _KINDS if kind in table]
        where = Problem(f"{path.name}:{table.line}", "")
        if len(kinds) != 1:
            got = " and ".join(kinds) or "none"
            problems.append(attrs.evolve(where, message=f"got {got}; allowed: one of {', '.join(_KINDS)}"))
            continue
        name = table.text("topology")
        if any(each.name == name for each in found):
            problems.append(table.setting("topology").problem(f"{name!r} stands there twice"))
        switches: list[Mapping[str, str]] = []
        if kinds == ["tree"]:
            problems += _switches(table, switches)
        default = table.is_on("cluster_default") and not any(each.default for each in found)
        at = attrs.evolve(table.setting(kinds[0]), value=kinds[0])
        found.append(Topology(name=name, kind=kinds[0], at=at, switches=switches, default=default))
    if problems:
        raise ConfigError(path.name, problems)
    return tuple(found)


def _switches(table: Table, into: list[Mapping[str, str]]) -> Iterator[Problem]:
    """Add the switches of a tree; yield what is wrong with them."""
    trees = table.tables("tree")
    for tree in trees:
        yield from tree.wrong(("switches",))
        for switch in tree.tables("switches"):
            yield from switch.wrong((*_SWITCH, "link_speed"), "switch")
            into.append({word: switch.text(key) for key, word in _SWITCH.items() if switch.text(key)})
    if not into:
        yield table.setting("tree").problem("it has no switches")

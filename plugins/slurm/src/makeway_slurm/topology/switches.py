"""Read the switches of ``cluster.attributes.topology``, in the words of topology.conf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.errors import ConfigError, Problem, nearest
from makeway.hostlist import expand_hostlist
from makeway.model import Cluster

ATTRIBUTE = "topology"
"""Key of ``[cluster.attributes]`` that holds the tables."""
_WHERE = f"cluster.attributes.{ATTRIBUTE}"
TOPOLOGY = "Topology"
"""Key of a switch that names its tree; without it the tree is that of all partitions that name none."""
_KEYS = ("SwitchName", "Nodes", "Switches", "LinkSpeed", TOPOLOGY)


@attrs.frozen(kw_only=True)
class Switch:
    """One switch, with all nodes below it."""

    name: str
    nodes: NodeBits
    level: int
    """0: a leaf."""


def trees_of(cluster: Cluster) -> Mapping[str, tuple[Switch, ...]]:
    """Return the switches of each tree of a cluster, leaves first, each level in the order of the tables.

    :raises ConfigError: with all that is wrong with the tables.
    """
    tables = cluster.attributes.get(ATTRIBUTE, ())
    if not isinstance(tables, list | tuple):
        raise ConfigError("configuration", [Problem(_WHERE, "expected a list of tables")])
    problems: list[Problem] = []
    trees: dict[str, dict[str, Mapping[str, Any]]] = {}
    for at, table in enumerate(tables):
        named = trees.setdefault(str(table.get(TOPOLOGY, "")) if isinstance(table, Mapping) else "", {})
        wrong = _wrong(table, named)
        if wrong:
            problems.append(Problem(f"{_WHERE}[{at}]", wrong))
        else:
            named |= dict.fromkeys(expand_hostlist(str(table["SwitchName"])), table)
    if problems:
        raise ConfigError("configuration", problems)
    index = {node.name: node.index for node in cluster.nodes}
    found = {name: _tree(named, index, problems) for name, named in trees.items()}
    if problems:
        raise ConfigError("configuration", problems)
    return found


def _tree(
    named: Mapping[str, Mapping[str, Any]], index: Mapping[str, int], problems: list[Problem]
) -> tuple[Switch, ...]:
    """Return the switches of one tree."""
    found: dict[str, Switch] = {}
    for name in named:
        _add(name, named, index, found, (), problems)
    return tuple(sorted((found[name] for name in named if name in found), key=lambda switch: switch.level))


def _wrong(table: Any, named: Mapping[str, Any]) -> str:
    if not isinstance(table, Mapping):
        return f"got {table!r:.40}; expected a table"
    for key in table:
        if key not in _KEYS:
            return f"got {key!r}; allowed: {', '.join(_KEYS)}{nearest(str(key), _KEYS)}"
    name = str(table.get("SwitchName", ""))
    if not name:
        return "SwitchName is missing"
    if name in named:
        return f"switch {name!r} stands there twice"
    if not table.get("Nodes") and not table.get("Switches"):
        return f"switch {name!r} has neither Nodes nor Switches"
    return ""


def _add(
    name: str,
    named: Mapping[str, Mapping[str, Any]],
    index: Mapping[str, int],
    found: dict[str, Switch],
    above: Sequence[str],
    problems: list[Problem],
) -> Switch:
    """Build a switch after those below it."""
    if name in found:
        return found[name]
    table, level, nodes = named[name], 0, 0
    for node in expand_hostlist(str(table.get("Nodes") or "")) if table.get("Nodes") else ():
        if node in index:
            nodes |= bitmap.of([index[node]])
        elif len(index) <= 1000:
            problems.append(Problem(_WHERE, f"switch {name!r}: {node!r} is no node{nearest(node, index)}"))
    for below in expand_hostlist(str(table.get("Switches") or "")) if table.get("Switches") else ():
        if below not in named or below in (*above, name):
            why = "is no switch" if below not in named else "lies above it as well"
            problems.append(Problem(_WHERE, f"switch {name!r}: {below!r} {why}{nearest(below, named)}"))
            continue
        child = _add(below, named, index, found, (*above, name), problems)
        nodes |= child.nodes
        level = max(level, child.level + 1)
    made = found[name] = Switch(name=name, nodes=nodes, level=level)
    return made

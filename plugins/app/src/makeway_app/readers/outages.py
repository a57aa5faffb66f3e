"""Read which nodes are out of service or in use during a run: the ``[[outage]]`` tables of a configuration."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import attrs

from makeway import bitmap, registry
from makeway.bounds import toml_of
from makeway.config import Config, OutageTable, build_cluster
from makeway.errors import ConfigError, Problem, nearest
from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.model import Partition, Seconds
from makeway.obstacle import length
from makeway.plain import A_LENGTH
from makeway.readers.lines import read_text
from makeway.settings import structure
from makeway.worlds.events import Event, NodesDown, NodesDrained, NodesQuiet, NodesUp, NodesUsed
from makeway_app.readers.uses import unix_time, uses_in

STATES = ("down", "drain")
"""What keeps nodes from all jobs."""
USE = "use"
_ALLOWED = (*STATES, USE)
_YEAR = 366 * 86400.0
_MOST = 1_000_000
"""Outages that one table may draw."""


class _Stretch(NamedTuple):
    """One node is out of service."""

    node: int
    state: str
    start: Seconds
    end: Seconds


def outages_of(config: Config, source: str, start_wall: float | None = None) -> list[tuple[Seconds, Event]]:
    """Return when nodes are lost and come back, in order of time.

    A node that is down for one reason and drained for another is down; it is back once all of them are over. For
    each partition that makes way for people a use lasts until no one has used the node for as long as that wants.

    :param start_wall: Unix time of second 0. None: the workload does not say.
    :raises ConfigError: with all problems.
    """
    if not config.outage:
        return []
    cluster = build_cluster(config)
    known = {node.name: node.index for node in cluster.nodes}
    vacating = [each for each in cluster.partitions if each.vacate_on_use]
    problems: list[Problem] = []
    stretches: list[_Stretch] = []
    for at, table in enumerate(config.outage):
        try:
            if table.state == USE and not vacating:
                raise _Wrong("state", _NOT_VACATING)
            stretches += _stretches(table, known, start_wall)
        except _Wrong as error:
            problems.append(Problem(f"outage[{at}].{error.key}", error.text))
    if problems:
        raise ConfigError(source, problems)
    uses = [each for each in stretches if each.state == USE]
    if not uses:
        return list(_events(stretches))
    events = [*_events([each for each in stretches if each.state != USE])]
    for partition in vacating:
        events += _uses(uses, partition)
    return sorted(events, key=lambda each: each[0])


_NOT_VACATING = (
    "got 'use', and no partition makes way for people; allowed: down or drain, or a partition with vacate_on_use, "
    "as by --set partition.NAME.vacate_on_use=terminal"
)


def _uses(uses: Sequence[_Stretch], partition: Partition) -> Iterator[tuple[Seconds, Event]]:
    """Yield what jobs of a partition are told of people: when they come, and when they have been quiet for long."""
    by_node: dict[int, list[tuple[Seconds, Seconds]]] = {}
    for each in uses:
        if partition.nodes >> each.node & 1 and each.end + partition.quiet > 0:
            by_node.setdefault(each.node, []).append((max(0.0, each.start), each.end + partition.quiet))
    for node, times in by_node.items():
        times.sort()
        start, end = times[0]
        for begins, ends in [*times[1:], (math.inf, math.inf)]:
            if begins <= end and begins < math.inf:
                end = max(end, ends)
                continue
            yield start, NodesUsed(1 << node, partition.name, f"since {length(start)}")
            if end < math.inf:
                yield end, NodesQuiet(1 << node, partition.name)
            start, end = begins, ends


class _Wrong(Exception):  # noqa: N818  # becomes a line of a message
    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key, self.text = key, text


def _stretches(table: OutageTable, known: Mapping[str, int], start_wall: float | None) -> Iterator[_Stretch]:
    """Yield what a table says of each node.

    :raises _Wrong: of a value that is not allowed.
    """
    if table.state not in _ALLOWED:
        raise _Wrong(
            "state", f"got {table.state!r}; allowed: {', '.join(_ALLOWED)}{nearest(table.state, _ALLOWED)}"
        )
    if table.notice and table.state == USE:
        raise _Wrong("notice", f"got {table.notice:g}; people give none; allowed: 0")
    nodes = _nodes(table.nodes, known)
    start = _instant("at", table.at, start_wall)
    until = None if table.until is None else _instant("until", table.until, start_wall)
    if until is not None and until <= start:
        raise _Wrong("until", f"got {table.until}; allowed: later than at")
    for key, value, least in (("lasts", table.lasts, "more than"), ("every", table.every, "more than")):
        if value is not None and value <= 0:
            raise _Wrong(key, f"got {value:g}; allowed: {least} 0")
    if table.notice < 0:
        raise _Wrong("notice", f"got {table.notice:g}; allowed: 0 or more")
    if table.every is not None:
        found = _drawn(table, nodes, start, until)
    else:
        if until is not None and table.lasts is not None:
            raise _Wrong("lasts", "until says when the nodes are back; leave one of them out")
        end = until if table.lasts is None else start + table.lasts
        found = ((node, start, math.inf if end is None else end) for node in nodes.values())
    for node, lost, back in found:
        if table.notice:
            yield _Stretch(node, "drain", lost - table.notice, lost)
        yield _Stretch(node, table.state, lost, back)


def _drawn(
    table: OutageTable, nodes: Mapping[str, int], start: Seconds, until: Seconds | None
) -> Iterator[tuple[int, Seconds, Seconds]]:
    """Yield node, start and end of outages that are drawn: the time in service is exponential."""
    assert table.every is not None
    if table.lasts is None:
        raise _Wrong("lasts", "is missing: for how long a node is lost each time")
    until = start + _YEAR if until is None else until
    if len(nodes) * (until - start) / (table.every + table.lasts) > _MOST:
        raise _Wrong("every", f"got {table.every:g}; allowed: no more than {_MOST:,} outages in all")
    for name, node in nodes.items():
        chance = Random(f"{table.seed}/{name}")
        lost = start + chance.expovariate(1 / table.every)
        while lost < until:
            yield node, lost, lost + table.lasts
            lost += table.lasts + chance.expovariate(1 / table.every)


def _nodes(text: str, known: Mapping[str, int]) -> Mapping[str, int]:
    if text.upper() == "ALL":
        return known
    try:
        names = expand_hostlist(text)
    except ValueError as error:
        raise _Wrong("nodes", str(error)) from None
    for name in names:
        if name not in known:
            raise _Wrong("nodes", f"no node named {name!r}{nearest(name, known)}")
    return {name: known[name] for name in names}


def _instant(key: str, value: float | str, start_wall: float | None) -> Seconds:
    if not isinstance(value, str):
        if value < 0 or math.isinf(value):
            raise _Wrong(key, f"got {value:g}; allowed: 0 or more")
        return value
    wall = unix_time(value)
    if wall is None:
        raise _Wrong(key, f"got {value!r}; allowed: {A_LENGTH}, or a date such as 2026-06-01T12:00:00")
    if start_wall is None:
        raise _Wrong(key, f"got {value!r}, but the workload has no dates; allowed: {A_LENGTH}")
    return wall - start_wall


def outages_from(files: Sequence[Path], config: Config) -> tuple[tuple[OutageTable, ...], list[str]]:
    """Read the files of ``--outages``; return what is about nodes of `config`, and what was left out.

    :raises ConfigError: one cannot be read.
    """
    known = {name for table in config.node for name in expand_hostlist(table.name)}
    found: list[OutageTable] = []
    notes: list[str] = []
    for path in files:
        if path.suffix == ".toml":
            found += structure(toml_of(read_text(path), str(path)), _File, str(path)).outage
            continue
        tables, odd = uses_in(path, known) or registry.tool("outages", "--outages").outages_in(path)
        notes += [f"{path}: {text}" for text in odd]
        gone: dict[str, None] = {}
        for table in tables:
            names = expand_hostlist(table.nodes)
            gone.update(dict.fromkeys(name for name in names if name not in known))
            if here := [name for name in names if name in known]:
                found.append(
                    table if len(here) == len(names) else attrs.evolve(table, nodes=fold_hostlist(here))
                )
        if gone:
            notes.append(f"{path}: the site has no such nodes, which are left out: {fold_hostlist(gone)}")
    return tuple(found), notes


@attrs.frozen(kw_only=True)
class _File:
    outage: tuple[OutageTable, ...]


def _events(stretches: list[_Stretch]) -> Iterator[tuple[Seconds, Event]]:
    """Yield what the world says of its nodes: of each, the worst that holds at the time."""
    turns = [
        (max(0.0, at), each.node, each.state, by)
        for each in stretches
        if each.end > 0
        for at, by in ((each.start, 1), (each.end, -1))
        if at < math.inf
    ]
    turns.sort()
    holding: Counter[tuple[int, str]] = Counter()
    now: dict[int, str] = {}
    for instant, together in itertools.groupby(turns, key=lambda turn: turn[0]):
        touched = set()
        for _, node, state, by in together:
            holding[node, state] += by
            touched.add(node)
        changed: dict[str, list[int]] = {}
        for node in sorted(touched):
            state = next((each for each in STATES if holding[node, each]), "up")
            if state != now.get(node, "up"):
                now[node] = state
                changed.setdefault(state, []).append(node)
        for state, kind in (("up", NodesUp), ("drain", NodesDrained), ("down", NodesDown)):
            if state in changed:
                yield instant, kind(bitmap.of(changed[state]))

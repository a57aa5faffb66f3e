"""Build what a configuration describes: the cluster, and the clockwork of its schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import attrs

from makeway import bitmap, vendors
from makeway.clockwork import Clockwork
from makeway.config.tables import Config, NodeTable, PartitionTable, QosTable
from makeway.config.words import parse_mode, parse_oversubscribe
from makeway.errors import ConfigError, Problem, nearest
from makeway.hostlist import expand_hostlist, natural_key
from makeway.model import (
    Cluster,
    Node,
    Partition,
    Qos,
)
from makeway.settings import structure


def build_clockwork(value: str | Mapping[str, Any]) -> Clockwork:
    """Return the clockwork of a preset name or of a table.

    :raises ConfigError: on an unknown preset or key, or a value out of range.
    """
    table = {"preset": value} if isinstance(value, str) else dict(value)
    preset = table.pop("preset", "ideal")
    presets = vendors.clockworks()
    if preset not in presets:
        options = ", ".join(presets)
        close = nearest(str(preset), presets)
        problem = Problem("scheduler.clockwork", f"got {preset!r}; allowed: {options}{close}")
        raise ConfigError("config", [problem])
    base = attrs.asdict(presets[preset])
    return structure({**base, **table}, Clockwork, "config", "scheduler.clockwork")


def build_cluster(config: Config) -> Cluster:
    """Build the cluster, nodes in index order; `config` has been validated."""
    nodes = _build_nodes(config.node)
    index_of = {node.name: node.index for node in nodes}
    partitions = tuple(_build_partition(at, table, index_of) for at, table in enumerate(config.partition))
    table = config.cluster
    return Cluster(
        name=table.name,
        nodes=nodes,
        partitions=partitions,
        qos=tuple(_build_qos(at, qos) for at, qos in enumerate(config.qos)),
        licenses=dict(table.licenses),
        def_mem_per_cpu=table.def_mem_per_cpu,
        def_mem_per_node=table.def_mem_per_node,
        max_mem_per_cpu=table.max_mem_per_cpu,
        max_mem_per_node=table.max_mem_per_node,
        attributes=dict(table.attributes),
    )


def _build_nodes(tables: Sequence[NodeTable]) -> tuple[Node, ...]:
    described = [
        (name, record, table) for record, table in enumerate(tables) for name in expand_hostlist(table.name)
    ]
    described.sort(key=lambda item: natural_key(item[0]))
    return tuple(
        _build_node(index, name, record, table) for index, (name, record, table) in enumerate(described)
    )


def _build_node(index: int, name: str, record: int, table: NodeTable) -> Node:
    threads, sockets = table.threads_per_core, table.sockets
    cores = table.cores_per_socket or max(1, (table.cpus or 1) // (sockets * threads))
    return Node(
        name=name,
        index=index,
        cpus=table.cpus or sockets * cores * threads,
        sockets=sockets,
        cores_per_socket=cores,
        threads_per_core=threads,
        memory_mb=table.memory_mb,
        mem_spec_limit_mb=table.mem_spec_limit_mb,
        weight=table.weight,
        features=frozenset(table.features),
        gres=dict(table.gres),
        up=table.up,
        record=record,
        load=table.load,
        attributes=dict(table.attributes),
    )


def _build_partition(at: int, table: PartitionTable, index_of: Mapping[str, int]) -> Partition:
    if table.nodes.upper() == "ALL":
        nodes = bitmap.full(len(index_of))
    else:
        nodes = bitmap.of([index_of[name] for name in expand_hostlist(table.nodes)])
    values = attrs.asdict(table, recurse=False)
    values |= {
        "index": at,
        "nodes": nodes,
        "oversubscribe": parse_oversubscribe(table.oversubscribe),
        "preempt_mode": None if table.preempt_mode is None else parse_mode(table.preempt_mode),
    }
    return Partition(**values)


def _build_qos(at: int, table: QosTable) -> Qos:
    values = attrs.asdict(table, recurse=False)
    values |= {
        "index": at,
        "preempt": frozenset(table.preempt),
        "flags": frozenset(table.flags),
        "preempt_mode": None if table.preempt_mode is None else parse_mode(table.preempt_mode),
    }
    return Qos(**values)


def short_name(path: str) -> str:
    """Return the last part of a path, for messages."""
    return PurePath(path).name or path

"""Leave out values that the daemons ignore with a message, so that defaults apply (lsf 9.2 no. 8 and 9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from makeway import bitmap
from makeway.hostlist import expand_hostlist
from makeway.model import Cluster, Node, Partition
from makeway_lsf_queue import values
from makeway_lsf_queue.compiling import LIMITS, build_site
from makeway_lsf_queue.reader.tables import Draft
from makeway_lsf_queue.settings import Settings
from makeway_lsf_queue.values import WrongValueError


def slots(text: str) -> int:
    """Return MXJ; ``!`` is the number of processors, which is not known here: 1."""
    return 1 if text == "!" else values.integer(text)


def cluster_of(tables: Mapping[str, Any]) -> Cluster:
    """Return what the rules need of the cluster that `tables` describe."""
    names = [node["name"] for node in tables.get("node", ())]
    index = {name: at for at, name in enumerate(names)}
    nodes = tuple(
        Node(name=node["name"], index=at, cpus=node["cpus"], attributes=node.get("attributes", {}))
        for at, node in enumerate(tables.get("node", ()))
    )
    partitions = []
    for at, table in enumerate(tables["partition"]):
        listed = expand_hostlist(table["nodes"]) if table.get("nodes") else names
        partitions.append(
            Partition(
                name=table["name"],
                index=at,
                nodes=bitmap.of([index[name] for name in listed]),
                priority_tier=table.get("priority_tier", 1),
                max_time=table.get("max_time"),
                attributes=table.get("attributes", {}),
            )
        )
    return Cluster(nodes=nodes, partitions=tuple(partitions))


def drop_wrong_values(draft: Draft, said: list[str]) -> None:
    """Drop values that cannot be understood, each with file, line and what would be right."""
    trial = cluster_of({"partition": [{"name": n, "attributes": t} for n, t in draft.queues.items()]})
    settings = Settings(params=draft.params, applications=draft.applications, lsf_conf=draft.lsf_conf)
    for problem in build_site(trial, settings).problems:
        head, _, key = problem.where.rpartition(".")
        table, place = _find(draft, head, key)
        if key in table:
            del table[key]
            said.append(f"{place}: {key}: {problem.message}; the line is ignored")
    _drop_wrong_numbers(draft, said)


def _find(draft: Draft, head: str, key: str) -> tuple[dict[str, str], str]:
    """Return the table that a problem is about, and where the file says so."""
    queue = re.fullmatch(r"partition\[(\d+)\]\.attributes", head)
    if queue is not None:
        name = list(draft.queues)[int(queue.group(1))]
        return draft.queues[name], draft.places.get(("queue", name, key), "lsb.queues")
    if ".applications." in head:
        name = head.partition(".applications.")[2]
        return draft.applications[name], draft.places.get(("app", name, key), "lsb.applications")
    if head == "lsf.conf":
        return draft.lsf_conf, "lsf.conf"
    return draft.params, draft.places.get(("params", "", key), "lsb.params")


def _drop_wrong_numbers(draft: Draft, said: list[str]) -> None:
    """The same for tables whose values are only looked at when jobs are counted."""
    limits = {str(at): table for at, table in enumerate(draft.limits)}
    reads: tuple[tuple[str, dict[str, dict[str, str]], dict[str, Callable[[str], object]]], ...] = (
        ("lsb.users", draft.users, {"MAX_JOBS": values.integer, "JL/P": values.decimal}),
        ("lsb.hosts", draft.hosts, {"MXJ": slots, "JL/U": values.integer, "MIG": values.integer}),
        ("limit", limits, dict(LIMITS)),
    )
    for kind, named, checks in reads:
        for name, table in named.items():
            for key, read in checks.items():
                if key not in table:
                    continue
                try:
                    read(table[key])
                except WrongValueError as error:
                    del table[key]
                    place = draft.places.get((kind, name, ""), kind)
                    said.append(f"{place}: {key}: {error}; it is ignored")

"""Build nodes, configurations, workloads and single jobs in one line each.

What a test is not about is filled in. Configurations are given flat, so that they combine with ``|``::

    TIERS = {"preempt": "preempt/partition_prio", "partitions": tiers(low=1, hi=2)}
    config(one_node(cpus=4), TIERS | {"preempt_mode": "suspend,gang", "timeslice": 10})
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.config import (
    Config,
    NodeTable,
    PolicyTable,
    SchedulerTable,
    build_cluster,
    validate,
)
from makeway.errors import unknown
from makeway.hostlist import expand_hostlist
from makeway.model import (
    Allocation,
    Cluster,
    Job,
    JobSpec,
    JobState,
    Partition,
    PreemptMode,
    Qos,
    Seconds,
)
from makeway.preemption import PreemptionTable
from makeway.settings import structure, unstructure
from makeway.worlds.events import Command, Event, NodesDown, NodesDrained, NodesUp
from makeway_app.readers.native import workload_of_tables

Machine = tuple[NodeTable, ...]
"""Nodes of a cluster, as configured."""
Settings = Mapping[str, Any]
"""A flat configuration; see `config`."""

SOURCE = "test"
_POLICY = tuple(f.name for f in attrs.fields(PolicyTable) if f.name not in ("preemption", "mcs"))
_PREEMPTION = tuple(f.name for f in attrs.fields(PreemptionTable))
_SCHEDULER = tuple(f.name for f in attrs.fields(SchedulerTable) if f.name != "type")
_OWN = ("partitions", "qos", "scheduler", "timeslice", "licenses", "mcs")
_LISTS = ("preempt_mode", "protect", "plugins", "select_parameters", "flags")
_NODE_EVENTS: Mapping[str, Callable[[NodeBits], Event]] = {
    "down": NodesDown,
    "drain": NodesDrained,
    "up": NodesUp,
}


# --------------------------------------------------------------------------------------- machine
def node(name: str, **keys: Any) -> NodeTable:
    """Describe one node, or several by a host list; keys as in ``[[node]]``, 4 CPUs unless given."""
    if not {"cpus", "sockets", "cores_per_socket"} & keys.keys():
        keys["cpus"] = 4
    return structure({"name": name, **keys}, NodeTable, SOURCE, "node")


def cluster(nodes: int | Sequence[NodeTable] = 1, **keys: Any) -> Machine:
    """Return so many nodes n1, n2, ... of 4 CPUs each unless `keys` (as in ``[[node]]``) say more; or those given."""
    if not isinstance(nodes, int):
        return tuple(nodes)
    return (node("n1" if nodes == 1 else f"n[1-{nodes}]", **keys),)


def one_node(**keys: Any) -> Machine:
    """Return a cluster of the node n1, of 4 CPUs unless `keys` say more."""
    return cluster(1, **keys)


# ------------------------------------------------------------------------------------ configuration
def tiers(**of: int) -> dict[str, dict[str, Any]]:
    """Return one partition over all nodes per name, with its priority tier."""
    return {name: {"priority_tier": tier} for name, tier in of.items()}


def preempting(policy: str, mode: str = "requeue", /, **own: Any) -> dict[str, Any]:
    """Return flat settings in which `policy` says what makes way, in `mode`, with settings of its `own`."""
    return {"preempt": policy, "preempt_mode": mode, "settings": {policy: own}}


def config(machine: Machine | None = None, settings: Settings | None = None, **more: Any) -> Config:
    """Build a configuration out of flat `settings`; `more` are settings too and win.

    ``partitions`` and ``qos`` map names to tables, ``scheduler`` is its type, ``timeslice`` the
    length of a gang's turn, if there is a gang, ``priority`` the name of a plugin; all else is a key of ``[policy]``,
    ``[policy.preemption]`` or ``[scheduler]``. Lists of words may be written as
    ``"suspend,gang"``. Without partitions there is one, ``batch``.

    :raises ValueError: if a key is unknown.
    :raises ConfigError: if a value is wrong.
    """
    given = {**(settings or {}), **more}
    options = {*_OWN, *_POLICY, *_PREEMPTION, *_SCHEDULER}
    for key in given:
        if key not in options:
            raise ValueError(unknown("setting", key, options))
    partitions = given.get("partitions") or {"batch": {"default": True}}
    policy = _worded({key: given[key] for key in _POLICY if key in given})
    policy["preemption"] = {key: given[key] for key in _PREEMPTION if key in given}
    if "mcs" in given:
        policy["mcs"] = given["mcs"]
    if "timeslice" in given and "gang" in [*policy.get("preempt_mode", ()), *policy]:
        own = dict(policy.get("settings", {}))
        own["gang/timeslice"] = {"timeslice": float(given["timeslice"])}
        policy["settings"] = own
    scheduler = {key: given[key] for key in _SCHEDULER if key in given}
    if "/" in str(given.get("priority", "")):
        del scheduler["priority"]  # the name of a plugin is the policy's; a bare word is an older spelling
    else:
        policy.pop("priority", None)
    if "scheduler" in given:
        scheduler["type"] = given["scheduler"]
    tables = {
        "cluster": {"licenses": given.get("licenses", {})},
        "node": [unstructure(table) for table in machine or one_node()],
        "partition": [{"name": name, **_worded(table)} for name, table in partitions.items()],
        "qos": [
            {"name": name, **_worded(table, (*_LISTS, "preempt"))}
            for name, table in given.get("qos", {}).items()
        ],
        "policy": policy,
        "scheduler": scheduler,
    }
    built = structure(tables, Config, SOURCE)
    validate(built, SOURCE)
    return built


def _worded(table: Mapping[str, Any], lists: Sequence[str] = _LISTS) -> dict[str, Any]:
    """Split words where a key takes a list."""
    return {
        key: value.split(",") if key in lists and isinstance(value, str) else value
        for key, value in table.items()
    }


# ------------------------------------------------------------------------------------------ tables
def table(text: str) -> list[dict[str, Any]]:
    """Read rows of blank-separated words below a line of column names.

    A word is a TOML value (``4``, ``0.5``, ``true``, ``"a"``, ``{name="USR1"}``), else text; ``-``
    leaves the key out.

    :raises ValueError: if a row is longer or shorter than the heading.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    heading, *rows = lines
    for row in rows:
        if len(row) != len(heading):
            raise ValueError(f"{len(heading)} columns but {len(row)} words: {' '.join(row)}")
    return [
        {key: _value(word) for key, word in zip(heading, row, strict=True) if word != "-"} for row in rows
    ]


def _value(word: str) -> Any:
    try:
        return tomllib.loads(f"value = {word}")["value"]
    except tomllib.TOMLDecodeError:
        return word


def jobs(text: str) -> list[JobSpec]:
    """Read a workload from a table; keys as in ``[[job]]``, with ``job`` for the id.

    Lists take commas: ``depends_on`` is ``a,b``; a signal is written as for Slurm: ``B:USR1@300``.

    :raises ConfigError: with all problems.
    """
    return list(workload_of_tables([_job_table(row) for row in table(text)], SOURCE).jobs)


def _job_table(row: Mapping[str, Any]) -> dict[str, Any]:
    listed = dict(row)
    if "job" in listed:
        listed["id"] = str(listed.pop("job"))
    for key in ("depends_on", "partition"):
        if isinstance(listed.get(key), str) and "," in listed[key]:
            listed[key] = listed[key].split(",")
    if "depends_on" in listed and not isinstance(listed["depends_on"], list):
        listed["depends_on"] = str(listed["depends_on"])
    if isinstance(listed.get("signal"), str):
        listed["signal"] = _signal(listed["signal"])
    return listed


def _signal(text: str) -> dict[str, Any]:
    """Read ``[R][B]:name@lead``."""
    flags, colon, rest = text.rpartition(":")
    name, at, lead = rest.partition("@")
    found: dict[str, Any] = {"name": name, "batch_only": "B" in flags if colon else False}
    found["borrows_reservation"] = "R" in flags if colon else False
    return found | ({"lead": float(lead)} if at else {})


def commands(text: str, cluster: Cluster) -> list[tuple[Seconds, Event]]:
    """Read what people and nodes do from lines such as ``10 suspend low`` and ``5 drain n[1-2]``.

    A third word is the command's value: ``10 priority low 500``. A last word says whose command it is, if it is not
    an administrator's: ``10 release low @ann``.

    :raises ValueError: if a line is too short or names a node that does not exist.
    """
    found: list[tuple[Seconds, Event]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        at, name, about, *value = line.split()
        if name in _NODE_EVENTS:
            event: Event = _NODE_EVENTS[name](_nodes(about, cluster))
            found.append((float(at), event))
        else:
            user = value.pop()[1:] if value and value[-1].startswith("@") else None
            found.append((float(at), Command(name, about, user, " ".join(value))))
    return found


def _nodes(text: str, cluster: Cluster) -> NodeBits:
    indices = []
    for name in expand_hostlist(text):
        found = cluster.node(name)
        if found is None:
            raise ValueError(unknown("node", name, (known.name for known in cluster.nodes)))
        indices.append(found.index)
    return bitmap.of(indices)


# -------------------------------------------------------------------------------------- single jobs
def job(id: str = "1", **keys: Any) -> Job:
    """Build a job as a policy sees it, pending unless it is given `nodes` or a state.

    Fields of `Job` and of `JobSpec` may be given. Besides, ``partition`` and ``qos`` may be names (of
    a partition of tier 1 without nodes, and a QOS without rules), and ``nodes`` is a number of
    nodes, or their indices.
    """
    holds = keys.pop("nodes", None)
    named = {key: keys.pop(key) for key in ("partition", "qos") if key in keys}
    partition = named.get("partition", "batch")
    if isinstance(partition, str):
        partition = Partition(name=partition)
    qos = named.get("qos")
    if isinstance(qos, str):
        qos = Qos(name=qos)
    of_spec = {f.name for f in attrs.fields(JobSpec)} - {"partitions", "qos", "priority"}
    given = {key: keys.pop(key) for key in tuple(keys) if key in of_spec and key != "submit_at"}
    spec = JobSpec(id=id, partitions=(partition.name,), **given)
    values: dict[str, Any] = {
        "spec": spec,
        "id": id,
        "index": int(id) if id.isdigit() else 1,
        "user": spec.user,
        "account": spec.account,
        "partitions": (partition,),
        "partition": partition,
        "qos": qos,
        "submit_at": 0.0,
        "eligible_at": 0.0,
        "time_limit": spec.time_limit,
        "priority": 1000,
        "requeueable": spec.batch and spec.requeue is not False,
        "size": spec.min_nodes,
    }
    if holds is not None:
        values |= _running(holds, spec)
    return Job(**{**values, **keys})


def _running(holds: int | Sequence[int], spec: JobSpec) -> dict[str, Any]:
    indices = tuple(range(holds) if isinstance(holds, int) else sorted(holds))
    allocation = Allocation(nodes=bitmap.of(indices), node_indices=indices, licenses=dict(spec.licenses))
    return {
        "allocation": allocation,
        "state": JobState.RUNNING,
        "started_at": 0.0,
        "resumed_at": 0.0,
    }


__all__ = [
    "Machine",
    "PreemptMode",
    "Settings",
    "build_cluster",
    "cluster",
    "commands",
    "config",
    "job",
    "jobs",
    "node",
    "one_node",
    "table",
    "tiers",
]

"""Read the machines of these clusters, for ``makeway import``: what the traces say of nodes, and Helios' quotas."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem
from makeway.foreign import ForeignConfig, Source
from makeway_gpu_traces.alibaba import MILLI
from makeway_gpu_traces.fields import BadRowError, Fields, amount, cores, whole, word
from makeway_gpu_traces.trace import header

HELIOS_GPUS = 8
"""GPUs of each node of Helios: all quotas are multiples of it."""
HELIOS_CPUS = 48
_POLICY: Mapping[str, Any] = {"select": "select/cons_tres", "select_parameters": ["CR_Core_Memory"]}
_NUMBERED = re.compile(r"(|.*\D)(\d+)")


def _openb(row: Fields) -> dict[str, Any]:
    gpus = whole(row, "gpu")
    return {
        "name": word(row, "sn"),
        "cpus": cores(amount(row, "cpu_milli")),
        "memory_mb": int(amount(row, "memory_mib")),
        **({"gres": {"gpu": gpus, MILLI: 1000 * gpus}} if gpus else {}),
        **({"features": [row["model"]]} if row["model"] else {}),
    }


def _spot(row: Fields) -> dict[str, Any]:
    gpus = whole(row, "gpu_capacity_num")
    return {
        "name": word(row, "node_name"),
        "cpus": max(1, whole(row, "cpu_num")),
        **({"gres": {"gpu": gpus}} if gpus else {}),
        "features": [word(row, "gpu_model")],
    }


def _philly(row: Fields) -> dict[str, Any]:
    gpus = whole(row, "number of GPUs", least=1)
    return {"name": word(row, "machineId"), "cpus": gpus, "gres": {"gpu": gpus}}


@attrs.frozen(kw_only=True)
class Machines:
    """Reads a list of nodes; see `makeway.foreign.ForeignReader`."""

    name: str
    needed: frozenset[str]
    node: Callable[[Fields], dict[str, Any]]
    """Returns the ``[[node]]`` table of a row."""
    memory: bool = False
    """Whether it says how much memory nodes have."""
    warnings: tuple[str, ...] = ()
    qos: tuple[tuple[str, int], ...] = ()
    """Service classes of its jobs, with priorities."""
    names_all_nodes: bool = True

    def claims(self, name: str, head: str) -> bool:
        """Recognise the header."""
        del name
        return self.needed <= set(header(head))

    def translate(self, source: Source) -> ForeignConfig:
        """Turn rows into nodes; like nodes with numbered names become one table.

        :raises ConfigError: with all rows that are none.
        """
        found: list[dict[str, Any]] = []
        problems: list[Problem] = []
        for line, row in _rows(source):
            try:
                found.append(self.node(row))
            except BadRowError as reason:
                problems.append(Problem(f"{source.name}:{line}", str(reason)))
        names = Counter(each["name"] for each in found)
        problems += [
            Problem(source.name, f"node {name!r} is there twice")
            for name, count in names.items()
            if count > 1
        ]
        if not found and not problems:
            problems.append(Problem(source.name, "there are no nodes, only a header"))
        if problems:
            raise ConfigError(source.name, problems)
        memory = "CR_Core_Memory" if self.memory else "CR_Core"
        tables: dict[str, Any] = {
            "node": list(_grouped(found)),
            "partition": [{"name": "all", "default": True}],
            "policy": {**_POLICY, "select_parameters": [memory]},
        }
        if self.qos:
            tables["qos"] = [{"name": name, "priority": priority} for name, priority in self.qos]
        return ForeignConfig(tables=tables, warnings=self.warnings)


OPENB_NODES = Machines(
    name="openb nodes",
    needed=frozenset("sn cpu_milli memory_mib gpu model".split()),
    node=_openb,
    memory=True,
    qos=(("LS", 2), ("Guaranteed", 2), ("Burstable", 1), ("BE", 0)),
)
SPOT_NODES = Machines(
    name="alibaba-spot nodes",
    needed=frozenset("gpu_model gpu_capacity_num cpu_num node_name".split()),
    node=_spot,
    qos=(("HP", 1), ("Spot", 0)),
)
PHILLY_NODES = Machines(
    name="philly machines",
    needed=frozenset(["machineId", "number of GPUs", "single GPU mem"]),
    node=_philly,
    warnings=("the list names no cores: each node has as many as GPUs, as jobs of this trace ask for",),
)


def _rows(source: Source) -> Iterator[tuple[int, Fields]]:
    """Yield each row with its line; columns that it lacks are empty.

    :raises ConfigError: a field is longer than any field of a table.
    """
    reader = csv.DictReader(
        io.StringIO(source.text), fieldnames=header(source.text), restval="", skipinitialspace=True
    )
    try:
        next(reader, None)
        for row in reader:
            yield reader.line_num, {key: value.strip() for key, value in row.items() if key is not None}
    except csv.Error as error:
        where = f"{source.name}:{reader.reader.line_num}"
        raise ConfigError(source.name, [Problem(where, f"cannot be read as CSV: {error}")]) from None


def _grouped(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield tables of nodes; neighbours that differ in the last number of their names alone become one."""
    run: list[tuple[str, str]] = []
    shape: dict[str, Any] = {}
    for node in nodes:
        rest = {key: value for key, value in node.items() if key != "name"}
        match = _NUMBERED.fullmatch(node["name"])
        if run and match is not None and rest == shape and _follows(run[-1], (match[1], match[2])):
            run.append((match[1], match[2]))
            continue
        if run:
            yield {"name": _range(run), **shape}
        run, shape = ([(match[1], match[2])] if match is not None else [(node["name"], "")]), rest
    if run:
        yield {"name": _range(run), **shape}


def _follows(last: tuple[str, str], this: tuple[str, str]) -> bool:
    return (
        last[0] == this[0]
        and bool(last[1])
        and len(last[1]) == len(this[1])
        and int(this[1]) == int(last[1]) + 1
    )


def _range(run: list[tuple[str, str]]) -> str:
    stem, first = run[0]
    return f"{stem}{first}" if len(run) == 1 else f"{stem}[{first}-{run[-1][1]}]"


# --------------------------------------------------------------------------------------- quotas
@attrs.frozen
class Quotas:
    """Reads Helios' ``cluster_gpu_number.csv``: GPUs of each virtual cluster, day by day.

    The quotas that hold on most days count; that they change is said in a warning. Virtual clusters become queues of
    one cohort, so that they lend what they do not use.
    """

    name: str = "helios quotas"
    names_all_nodes: bool = True

    def claims(self, name: str, head: str) -> bool:
        """Recognise the header: a date, virtual clusters, and their total."""
        del name
        columns = header(head)
        return len(columns) > 2 and columns[0] == "date" and columns[-1] == "total"

    def translate(self, source: Source) -> ForeignConfig:
        """Turn the quotas of most days into queues, and their total into nodes.

        :raises ConfigError: with all rows that are no quotas.
        """
        days, problems = Counter[tuple[tuple[str, int], ...]](), list[Problem]()
        for line, row in _rows(source):
            try:
                days[tuple((name, whole(row, name)) for name in row if name not in ("date", "total"))] += 1
            except BadRowError as reason:
                problems.append(Problem(f"{source.name}:{line}", str(reason)))
        if not days and not problems:
            problems.append(Problem(source.name, "there are no quotas, only a header"))
        if problems:
            raise ConfigError(source.name, problems)
        (quotas, held), *_ = days.most_common(1)
        total = sum(gpus for _, gpus in quotas)
        return ForeignConfig(tables=_cohort(quotas, total), warnings=_said(held, days.total(), total))


def _said(held: int, days: int, total: int) -> tuple[str, ...]:
    """Return what is taken from the file, and what is not."""
    assumed = f"nodes are not listed: {total:,} GPUs in nodes of {HELIOS_GPUS} with {HELIOS_CPUS} cores each"
    if held == days:
        return (assumed,)
    return (
        assumed,
        f"quotas change from day to day: those of {held} of {days} days hold for the whole replay",
    )


def _cohort(quotas: tuple[tuple[str, int], ...], total: int) -> dict[str, Any]:
    count = max(1, -(-total // HELIOS_GPUS))
    queues = [
        {
            "name": name,
            "cohort": "all",
            "within_queue": "LowerPriority",
            "reclaim": "Any",
            "quotas": [{"flavor": "default", "resource": "nvidia.com/gpu", "nominal": gpus}],
        }
        for name, gpus in quotas
    ]
    nodes = f"n[1-{count}]" if count > 1 else "n1"
    return {
        "node": [{"name": nodes, "cpus": HELIOS_CPUS, "gres": {"gpu": HELIOS_GPUS}}],
        "partition": [{"name": name} for name, _ in quotas],
        "policy": {
            "select": "kueue/quota",
            "preempt": "kueue/cohort",
            "preempt_mode": ["requeue"],
            "settings": {"kueue/cohort": {"queue": queues}},
        },
        "scheduler": {"type": "greedy", "clockwork": {"preset": "ideal", "keep_freed": False}},
    }


HELIOS_QUOTAS = Quotas()

"""Make jobs of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from makeway.arrays import parse_array, tasks_of
from makeway.hostlist import expand_hostlist
from makeway.model import Exclusive, JobSpec, UserSignal
from makeway_app.readers.native.tables import OF_JOB, SAID_TWICE, SAME, ComponentTable, JobTable


def specs_of(job: str, table: JobTable, source: str) -> Iterator[JobSpec]:
    """Yield the job, or its components."""
    common = {key: getattr(table, key) for key in OF_JOB} | {
        "submit_at": table.submit,
        "begin_at": table.begin,
        "signal": None if table.signal is None else UserSignal(**attrs.asdict(table.signal)),
        "depends_on": words_of(table.depends_on),
        "flags": frozenset(table.flags),
        "source": source,
    }
    if not table.component:
        spec = JobSpec(id=job, **common, **_request(table))
        yield from (spec,) if table.array is None else tasks_of(spec, parse_array(table.array))
    for at, part in enumerate(table.component):
        whole = _inherited(part, table)
        yield JobSpec(id=f"{job}+{at}", het_id=job, het_offset=at, **common, **_request(whole))


def _inherited(part: ComponentTable, job: JobTable) -> ComponentTable:
    """Fill in from the job what the component leaves out, never against what it says."""
    own = attrs.asdict(part, recurse=False)
    said = {key for key, value in own.items() if value is not None}
    for group in (SAID_TWICE[:2], SAID_TWICE[2:4], SAID_TWICE[4:]):
        keys = {key for pair in group for key in pair}
        if keys & said:
            said |= keys
    filled = {key: own[key] if key in said else getattr(job, key) for key in own}
    return ComponentTable(**filled)


def _request(table: ComponentTable) -> dict[str, Any]:
    """Return what is asked for, as fields of JobSpec."""
    asked = {key: value for key in SAME if (value := getattr(table, key)) is not None}
    if table.nodes is not None:
        asked |= {"min_nodes": table.nodes, "max_nodes": table.nodes}
    elif table.min_nodes is not None:
        asked["min_nodes"] = table.min_nodes
    if table.cpus is not None:
        asked["tasks"] = table.cpus
    if table.memory_mb is not None:
        asked["memory_mb_per_node"] = table.memory_mb
    command = table.command
    return asked | {
        "partitions": words_of(table.partition),
        "exclusive": _exclusive(table.exclusive),
        "required_nodes": hosts_of(table.required_nodes),
        "excluded_nodes": hosts_of(table.excluded_nodes),
        "command": ("/bin/sh", "-c", command) if isinstance(command, str) else command or (),
    }


def _exclusive(value: bool | str | None) -> Exclusive | None:
    if isinstance(value, str):
        return Exclusive(value)
    return Exclusive.NODE if value else None


def words_of(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return a list; text is split at commas."""
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def hosts_of(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the hosts of one host list or several.

    :raises ValueError: one is no host list.
    """
    lists = (value,) if isinstance(value, str) else value or ()
    return tuple(dict.fromkeys(host for text in lists for host in expand_hostlist(text)))

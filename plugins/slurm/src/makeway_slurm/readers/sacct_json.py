"""Turn what ``sacct --json`` prints into the columns of ``sacct -P``.

The shape has changed with releases: plain numbers became objects with ``set``, ``infinite`` and ``number``, and a state
became a list of words. Both shapes are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from makeway.bounds import json_of
from makeway.errors import ConfigError, Problem
from makeway.readers.lines import read_text

_BEGINS = re.compile(r'\s*\{\s*"(?:jobs|meta|plugin)"\s*:')


def is_json(head: str) -> bool:
    """Whether a file begins as ``sacct --json`` does."""
    return _BEGINS.match(head) is not None


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the columns of each job, with its place in the list, from 1.

    :raises ConfigError: it is no JSON, or holds no list of jobs.
    """
    found = json_of(read_text(path), str(path))
    jobs = found.get("jobs") if isinstance(found, dict) else None
    if not isinstance(jobs, list):
        raise ConfigError(
            str(path), [Problem("jobs", "got none; allowed: the list that sacct --json prints")]
        )
    for at, job in enumerate(jobs, 1):
        yield at, _columns(job if isinstance(job, dict) else {})


def _columns(job: Mapping[str, Any]) -> dict[str, str]:
    times, needs = _table(job, "time"), _table(job, "required")
    state = _table(job, "state")
    current = state.get("current")
    tres = _table(job, "tres")
    columns = {
        "jobid": _id(job),
        "user": job.get("user"),
        "group": job.get("group"),
        "account": job.get("account"),
        "partition": job.get("partition"),
        "qos": job.get("qos"),
        "jobname": job.get("name"),
        "cluster": job.get("cluster"),
        "submit": _number(times.get("submission")),
        "eligible": _number(times.get("eligible")),
        "start": _number(times.get("start")),
        "end": _number(times.get("end")),
        "elapsedraw": _number(times.get("elapsed"), zero=True),
        "timelimitraw": _number(times.get("limit")),
        "nnodes": _number(job.get("allocation_nodes")),
        "reqcpus": _number(needs.get("CPUs")),
        "reqmem": _memory(needs),
        "reqtres": _tres(tres.get("requested")),
        "alloctres": _tres(tres.get("allocated")),
        "nodelist": job.get("nodes"),
        "licenses": job.get("licenses"),
        "reservation": _table(job, "reservation").get("name"),
        "priority": _number(job.get("priority")),
        "restarts": _number(job.get("restart_cnt"), zero=True),
        "reason": state.get("reason"),
        "state": current[0] if isinstance(current, list) and current else current,
    }
    return {name: value for name, value in columns.items() if isinstance(value, str)}


def _table(job: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = job.get(key)
    return value if isinstance(value, dict) else {}


def _number(value: Any, *, zero: bool = False) -> str | None:
    """Return a number as text; None: it is not set, or 0 where that says that it is not known."""
    if isinstance(value, dict):
        if value.get("infinite"):
            return "UNLIMITED"
        value = value.get("number") if value.get("set", True) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (value == 0 and not zero):
        return None
    return str(value)


def _id(job: Mapping[str, Any]) -> str:
    het, array = _table(job, "het"), _table(job, "array")
    leader, offset = _number(het.get("job_id")), _number(het.get("job_offset"), zero=True)
    if leader is not None and offset is not None:
        return f"{leader}+{offset}"
    whole, task = _number(array.get("job_id")), _number(array.get("task_id"), zero=True)
    if whole is not None and task is not None:
        return f"{whole}_{task}"
    return _number(job.get("job_id")) or ""


def _memory(needs: Mapping[str, Any]) -> str | None:
    """Return megabytes as old sacct writes them: per node or per CPU."""
    for key, sign in (("memory_per_node", "n"), ("memory_per_cpu", "c")):
        amount = _number(needs.get(key))
        if amount is not None and amount.isdigit():
            return f"{amount}M{sign}"
    return None


def _tres(listed: Any) -> str | None:
    if not isinstance(listed, list):
        return None
    said = []
    for each in listed:
        count = _number(each.get("count")) if isinstance(each, dict) else None
        if count is not None:
            kind, name = str(each.get("type", "")), str(each.get("name") or "")
            said.append(f"{kind}{f'/{name}' if name else ''}={count}{'M' if kind == 'mem' else ''}")
    return ",".join(said)

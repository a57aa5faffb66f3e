"""Turn a record into tables: jobs, intervals, waits, preemptions, decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from makeway.hostlist import expand_hostlist
from makeway_report.record_file import RecordFile

Row = tuple[Any, ...]
Made = Callable[[RecordFile], Iterator[Row]]


@attrs.frozen
class Table:
    """A table: its name, its columns with their types, and what makes its rows."""

    name: str
    columns: Mapping[str, type]
    rows: Made


def cores_of(interval: Mapping[str, Any]) -> int:
    """Return how many CPUs an interval holds; 0: the record does not say."""
    total = 0
    for text in (interval.get("cpus") or {}).values():
        for part in text.split(",") if text else ():
            first, _, last = part.partition("-")
            total += int(last or first) - int(first) + 1
    return total


def runs_of(job: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """Return the starts of a job: for each its intervals in which it held nodes."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    for each in job["intervals"]:
        if "nodes" in each:
            found.setdefault(each["restart"], []).append(each)
    return list(found.values())


def ran(run: list[Mapping[str, Any]]) -> float:
    """Return the seconds of running of one start."""
    return float(sum(each["end"] - each["start"] for each in run if each["state"] == "RUNNING"))


_JOBS: Mapping[str, type] = {
    **dict.fromkeys(("id", "name", "user", "group", "account", "partition", "qos", "displaces_as"), str),
    **dict.fromkeys(("nodes", "cpus"), int),
    **dict.fromkeys(("time_limit", "submit", "first_start", "end", "wait", "ran", "suspended"), float),
    "final_state": str,
    "reason": str,
    "restarts": int,
    "core_seconds_lost": float,
}


def _jobs(record: RecordFile) -> Iterator[Row]:
    for job_id, job in record.jobs():
        asked, runs = job["requested"], runs_of(job)
        first = runs[0][0]["start"] if runs else None
        stopped = job["intervals"][-1]["end"] if job["intervals"] else None
        suspended = math.fsum(e["end"] - e["start"] for run in runs for e in run if e["state"] == "SUSPENDED")
        yield (
            job_id,
            job["name"],
            *(job.get(name) for name in ("user", "group", "account", "partition", "qos", "displaces_as")),
            asked["nodes"],
            asked["cpus"],
            asked["time_limit"],
            job["submit"],
            first,
            stopped,
            None if first is None else round(first - job["submit"], 6),
            round(sum(map(ran, runs)), 6),
            round(suspended, 6),
            job["final_state"],
            job["reason"],
            job["restarts"],
            job["core_seconds_lost"],
        )


_INTERVALS = {
    "job": str,
    "state": str,
    "start": float,
    "end": float,
    "restart": int,
    "nodes": str,
    "node_count": int,
    "cpus": int,
}


def _intervals(record: RecordFile) -> Iterator[Row]:
    for job_id, job in record.jobs():
        for each in job["intervals"]:
            nodes = each.get("nodes")
            number = len(expand_hostlist(nodes)) if nodes else None
            cores = cores_of(each) if nodes else None
            yield job_id, each["state"], each["start"], each["end"], each["restart"], nodes, number, cores


_WAITS = {"job": str, "start": float, "end": float, "reason": str}


def _waits(record: RecordFile) -> Iterator[Row]:
    for job_id, job in record.jobs():
        for each in job["waits"]:
            yield job_id, each["start"], each["end"], each["reason"]


_PREEMPTIONS = {"at": float, "preemptor": str, "victim": str, "mode": str, "by": str, "why": str}


def _preemptions(record: RecordFile) -> Iterator[Row]:
    for each in record.preemptions():
        yield tuple(each[name] for name in _PREEMPTIONS)


_DECISIONS: Mapping[str, type] = {
    "job": str,
    "at": float,
    "outcome": str,
    "partition": str,
    **dict.fromkeys(("reason", "detail", "placement", "by", "method"), str),
    "candidate_count": int,
    "candidates": str,
    "protected_count": int,
    "victims": str,
}


def _decisions(record: RecordFile) -> Iterator[Row]:
    for job_id, job in record.jobs():
        for each in job["decisions"]:
            yield (
                job_id,
                each["at"],
                *(each.get(name) for name in ("outcome", "partition", "reason", "detail", "placement")),
                each.get("by"),
                each.get("method"),
                each.get("candidate_count", 0),
                _named(each.get("candidates", ())),
                each.get("protected_count", 0),
                _named(each.get("victims", ())),
            )


def _named(pairs: Any) -> str:
    """Return jobs with their modes as text: ``485:requeue 486:requeue``."""
    return " ".join(f"{job}:{mode}" for job, mode in pairs)


TABLES = (
    Table("jobs", _JOBS, _jobs),
    Table("intervals", _INTERVALS, _intervals),
    Table("waits", _WAITS, _waits),
    Table("preemptions", _PREEMPTIONS, _preemptions),
    Table("decisions", _DECISIONS, _decisions),
)

"""Write Chrome's trace events, which Perfetto opens (ui.perfetto.dev).

A process is a partition, a track is a node with the jobs that began there; jobs that share a node have tracks
beside one another, because slices of one track must not overlap. Arrows lead from preemptor to victim.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from makeway.hostlist import expand_hostlist
from makeway_report.export.rows import cores_of, runs_of
from makeway_report.record_file import RecordFile

Event = dict[str, Any]
_CLUSTER = 0
"""Process of the counters, and of the marks of preemptions."""
_SECOND = 1_000_000
"""Trace events count microseconds."""


def write_perfetto(record: RecordFile, to: Callable[[str], object]) -> list[str]:
    """Write the trace; nothing is left out."""
    about = {
        "workload": record.heading["workload"],
        "label": record.heading["label"],
        "epoch": record.heading["epoch"],
    }
    to(f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":[')
    before = "\n"
    for event in _events(record):
        to(before + json.dumps(event, separators=(",", ":")))
        before = ",\n"
    to("\n]}\n")
    return []


def _events(record: RecordFile) -> Iterator[Event]:
    processes = {each["name"]: at for at, each in enumerate(record.cluster["partitions"], 1)}
    yield _named("process_name", _CLUSTER, 0, str(record.cluster["name"] or "cluster"))
    for name, pid in processes.items():
        yield _named("process_name", pid, 0, f"partition {name}")
    starts: list[tuple[float, float, str, str, int, list[Mapping[str, Any]]]] = []
    changes: list[tuple[float, int, int]] = []
    for job_id, job in record.jobs():
        pid = processes.get(job["partition"], _CLUSTER)
        for run in runs_of(job):
            node = expand_hostlist(run[0]["nodes"])[0]
            starts.append((run[0]["start"], run[-1]["end"], job_id, node, pid, run))
        for each in job["intervals"]:
            cores = cores_of(each) if each["state"] == "RUNNING" else 0
            waits = int(each["state"] == "PENDING")
            changes += [(each["start"], cores, waits), (each["end"], -cores, -waits)]
    yield from _slices(starts)
    yield from _counters(changes)
    yield from _preemptions(record)


def _slices(starts: list[tuple[float, float, str, str, int, list[Mapping[str, Any]]]]) -> Iterator[Event]:
    """Yield the starts of jobs, each on the first track of its node that is free."""
    starts.sort(key=lambda each: (each[0], each[1], each[2]))
    free: dict[tuple[int, str], list[int]] = {}
    busy: dict[tuple[int, str], list[tuple[float, int]]] = {}
    tracks: dict[tuple[int, str, int], int] = {}
    for start, end, job_id, node, pid, run in starts:
        place = (pid, node)
        ends, slots = busy.setdefault(place, []), free.setdefault(place, [])
        while ends and ends[0][0] <= start:
            heapq.heappush(slots, heapq.heappop(ends)[1])
        slot = heapq.heappop(slots) if slots else len(ends)
        heapq.heappush(ends, (end, slot))
        track = tracks.get((*place, slot))
        if track is None:
            track = tracks[*place, slot] = len(tracks) + 1
            yield _named("thread_name", pid, track, node if not slot else f"{node}, lane {slot + 1}")
        for each in run:
            suspended = each["state"] == "SUSPENDED"
            yield {
                "ph": "X",
                "name": job_id if each["state"] == "RUNNING" else f"{job_id} ({each['state'].lower()})",
                "cat": each["state"].lower(),
                "pid": pid,
                "tid": track,
                "ts": _ticks(each["start"]),
                "dur": _ticks(each["end"]) - _ticks(each["start"]),
                "args": {"job": job_id, "nodes": each["nodes"], "restart": each["restart"]},
                **({"cname": "grey"} if suspended else {}),
            }


def _counters(changes: list[tuple[float, int, int]]) -> Iterator[Event]:
    """Yield cores in use and jobs waiting, at each instant at which they change."""
    changes.sort()
    cores = waiting = 0
    for at, (instant, more, waits) in enumerate(changes):
        cores += more
        waiting += waits
        if at + 1 == len(changes) or changes[at + 1][0] > instant:
            base = {"ph": "C", "pid": _CLUSTER, "tid": 0, "ts": _ticks(instant)}
            yield {**base, "name": "cores in use", "args": {"cores": cores}}
            yield {**base, "name": "jobs waiting", "args": {"jobs": waiting}}


def _preemptions(record: RecordFile) -> Iterator[Event]:
    """Yield two marks and an arrow for each preemption; marks of one instant stand a microsecond apart."""
    takes, gives = 1_000_000, 1_000_001
    yield _named("thread_name", _CLUSTER, takes, "preemptors")
    yield _named("thread_name", _CLUSTER, gives, "victims")
    free = 0
    for number, each in enumerate(record.preemptions()):
        free = instant = max(free, _ticks(each["at"]))
        args = {name: each[name] for name in ("preemptor", "victim", "mode", "by", "why")}
        for track, who, phase in (
            (takes, each["preemptor"] or "(no job)", "s"),
            (gives, each["victim"], "f"),
        ):
            base = {"pid": _CLUSTER, "tid": track, "ts": instant, "cat": "preemption"}
            yield {**base, "ph": "X", "name": who, "dur": 1, "args": args}
            yield {
                **base,
                "ph": phase,
                "name": each["mode"],
                "id": number,
                **({"bp": "e"} if phase == "f" else {}),
            }
        free += 1


def _named(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _ticks(seconds: float) -> int:
    return round(seconds * _SECOND)

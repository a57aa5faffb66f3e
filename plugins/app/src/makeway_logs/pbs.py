"""Read the accounting of OpenPBS, PBS Professional and Torque: ``server_priv/accounting/20250601``.

A line is ``date;type;job;key=value key=value ...``. An E tells all of a job that has ended: times in Unix time, what it
asked for (``Resource_List``) and used. An R tells of a run after which the job was queued again. A job that was deleted
before it started has a Q and a D, which do not say what it asked for. Other types are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import Line, shown
from makeway_logs.rows import LATEST, BadRowError, Ended, read_accounting

_LINE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)")
_PAIR = re.compile(r"""(?<![\w.])([A-Za-z_][\w.]*+)=("[^"]*"|'[^']*'|\S*)""")
_ID = re.compile(r"(\d{1,18})(?:\[(\d{1,9})?\])?(?:\.\S*)?")
_MEMORY = re.compile(r"(\d{1,18})([kmgtp]?)([bw]?)", re.IGNORECASE)
_FACTOR = {"": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}
_WORD = 8
"""Bytes of a word, which PBS counts memory in where it says so."""


@attrs.define(kw_only=True)
class PbsReader:
    """Reads PBS accounting, all of it before the first job."""

    name: str = "pbs"
    reads_machine_only: bool = True

    def claims(self, path: Path, head: str) -> bool:
        """Recognise a date, a type of one letter and a job between semicolons."""
        del path
        first = next((line for line in head.splitlines() if line.strip()), "")
        return _LINE.fullmatch(first.strip()) is not None

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read `path`.

        :raises ConfigError: it cannot be read.
        """
        return read_accounting(path, options, _jobs)


def _jobs(lines: Iterator[Line], workload: Workload) -> Iterator[Ended]:
    queued: dict[str, int] = {}
    """Jobs that have not ended so far, with the line that told of them."""
    runs: dict[str, list[dict[str, Any]]] = {}
    gone: dict[str, int] = {}
    for number, line in lines:
        match = _LINE.fullmatch(line.strip())
        if match is None:
            workload.reject(number, f"got {shown(line)}; allowed: date;type;job;key=value ...")
            continue
        _, kind, job, rest = match.groups()
        kind = kind.upper()
        if kind in "QS":
            queued.setdefault(job, number)
        elif kind in "DA":
            gone[job] = number
        elif kind in "ER":
            try:
                said = _pairs(rest)
                if kind == "R":
                    _rerun(job, said, runs)
                    continue
                yield _ended(number, job, said, runs.get(job, []))
            except BadRowError as reason:
                workload.reject(number, str(reason), job, usual=reason.usual)
            queued.pop(job, None)
    for job, number in queued.items():
        if job in gone:
            text = "it was deleted before it started, and the log does not say what it asked for"
        else:
            text = "it had not ended when the log did: how long it runs is not known"
        workload.reject(number, text, job, usual=True)


def _pairs(text: str) -> dict[str, str]:
    return {key: value.strip("\"'") for key, value in _PAIR.findall(text)}


def _rerun(job: str, said: Mapping[str, str], runs: dict[str, list[dict[str, Any]]]) -> None:
    start, end = _when(said, "start"), _when(said, "end")
    if start is None or end is None or end < start:
        return
    mine = runs.setdefault(job, [])
    free = mine[-1]["end"] if mine else _when(said, "qtime") or _when(said, "ctime") or start
    mine.append({"wait": max(0.0, start - free), "ran": end - start, "state": "REQUEUED", "end": end})


def _ended(number: int, job: str, said: Mapping[str, str], earlier: list[dict[str, Any]]) -> Ended:
    match = _ID.fullmatch(job)
    if match is None or (match[2] is None and "[" in job):
        if match is not None:
            raise BadRowError(
                f"{shown(job)} stands for an array, whose tasks have rows of their own", usual=True
            )
        raise BadRowError(f"job id: got {shown(job)}; allowed: 12.server or 12[3].server")
    submit = _when(said, "qtime") or _when(said, "ctime")
    start, end = _when(said, "start"), _when(said, "end")
    if submit is None:
        raise BadRowError("no submit time: neither qtime nor ctime")
    if end is None:
        raise BadRowError("no end")
    if start is not None and not start <= end:
        raise BadRowError(f"it starts at {start:.0f}, after its end at {end:.0f}")
    used = _span(said, "resources_used.walltime")
    ran = used if used is not None else 0.0 if start is None else end - start
    cpus, nodes = _size(said)
    memory = _memory(said.get("Resource_List.mem", ""))
    restarts = max(len(earlier), _whole(said.get("run_count", "1")) - 1)
    status = said.get("Exit_status", "0")
    return Ended(
        line=number,
        id=match[1] if match[2] is None else f"{match[1]}[{match[2]}]",
        order=(int(match[1]), int(match[2] or 0)),
        user=said.get("user") or "unknown",
        group=said.get("group") or None,
        account=said.get("account") or said.get("project", "").removeprefix("_pbs_project_default") or None,
        name=said.get("jobname", ""),
        queue=said.get("queue", ""),
        submit=submit,
        begin=_when(said, "etime"),
        start=start,
        end=end,
        run=ran,
        limit=_span(said, "Resource_List.walltime"),
        cpus=cpus,
        nodes=nodes,
        memory_mb=None if memory is None else -int(-memory / nodes // 1),
        gpus=_whole(said.get("Resource_List.ngpus", "0")),
        state="COMPLETED" if status == "0" else "FAILED",
        restarts=restarts,
        array=(match[1], int(match[2])) if match[2] is not None else None,
        earlier=tuple(earlier),
    )


def _size(said: Mapping[str, str]) -> tuple[int, int]:
    """Return CPUs and nodes asked for, as far as the row says; a chunk of ``select`` may share a node with others."""
    nodes = _whole(said.get("Resource_List.nodect", "0"))
    cpus = _whole(said.get("Resource_List.ncpus", "0"))
    if not cpus:
        for part in (said.get("Resource_List.select") or said.get("Resource_List.nodes") or "").split("+"):
            first, *rest = part.split(":")
            count = _whole(first) or 1
            of_each = next(
                (word.partition("=")[2] for word in rest if word.startswith(("ncpus=", "ppn="))), "1"
            )
            cpus += count * (_whole(of_each) or 1)
    hosts = {slot.partition("/")[0] for slot in said.get("exec_host", "").split("+") if slot}
    nodes = min(nodes, len(hosts)) if nodes and hosts else nodes or len(hosts) or 1
    return max(cpus, nodes, 1), nodes


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _when(said: Mapping[str, str], key: str) -> float | None:
    text = said.get(key, "")
    if not text or text == "0":
        return None
    found = float(text) if text.isascii() and text.isdigit() else 0.0
    if not 0 < found <= LATEST:
        raise BadRowError(f"{key}: got {shown(text)}; allowed: seconds since 1970")
    return found


def _span(said: Mapping[str, str], key: str) -> float | None:
    text = said.get(key, "")
    if not text:
        return None
    parts = text.split(":")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() and len(part) < 12 for part in parts):
        raise BadRowError(f"{key}: got {shown(text)}; allowed: seconds or HH:MM:SS")
    seconds = 0.0
    for part, unit in zip(reversed(parts), (1, 60, 3600, 86400), strict=False):
        seconds += int(part) * unit
    return seconds


def _memory(text: str) -> float | None:
    """Return megabytes of ``22400mb`` or ``4gb``; None: it says nothing."""
    match = _MEMORY.fullmatch(text)
    if match is None:
        return None
    return float(match[1]) * _FACTOR[match[2].lower()] * (_WORD if match[3].lower() == "w" else 1)

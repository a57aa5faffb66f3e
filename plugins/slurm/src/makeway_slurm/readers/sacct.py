"""Read what Slurm's accounting prints: ``sacct -P``, ``sacct --json``, or Open XDMoD's 26 columns without a header.

Any columns in any order will do, as long as they give an id, a submit time, a run time and a size.
Steps are left out. Times carry no zone and are taken as UTC. Rows come in any order, so all are
read before the first job.

A job that was cancelled before it started waits, and is withdrawn when the log says; it starts nowhere. A requeued job
has a row for each of its runs with ``sacct -D``: it was submitted as the first one says, and runs as the last one does.

Old Slurm prints memory per CPU as an overflowed number per node (``2147486448Mn`` is 2800 MB with
the bit 2**31 set). It is believed only where the requested TRES agree; else it is left out.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec
from makeway.obstacle import counted
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import Line, read_head, read_lines, shown
from makeway.readers.mapping import Machine, machine_of
from makeway_slurm.readers.sacct_json import is_json, json_rows
from makeway_slurm.readers.sacct_rows import (
    ELAPSED,
    JOB_ID,
    NOTHING,
    PENDING_ARRAY,
    STEP,
    BadRowError,
    Layout,
    unix_time,
    whole_rows,
)
from makeway_slurm.readers.values import parse_time

_XDMOD = """
    jobid jobidraw cluster partition qos account group gid user uid submit eligible start end
    elapsed exitcode state nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname
"""
XDMOD_COLUMNS = tuple(_XDMOD.split())
"""Columns of a dump without a header, as Open XDMoD writes them."""

_MOST_SECONDS = 1e10
_MOST_CPUS = 10_000_000
_MOST_MEGABYTES = 2**50
_PER_CPU = 2**31
"""The bit that marks memory per CPU in Slurm's books."""
_EARLIEST, _LATEST = 0.0, 7_258_118_400.0
"""1970 to 2200."""
_MEMORY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTP]?)([nc]?)")
_FACTOR = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30}
_LICENSE = re.compile(r"([^\s:,;|=]+?)(?:[:=]([0-9]{1,9}))?")
_NO_TIME_LIMIT = frozenset(("partition_limit", "invalid", *NOTHING))
_NOT_RUN = frozenset(("PENDING", "REQUEUED", "CONFIGURING"))
"""States of rows that do not say how long the job runs; it may have others."""
_CANCELLED = "CANCELLED"
_OUT_OF_MEMORY = "OUT_OF_MEMORY"
_CUT_SHORT = frozenset(("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED", "RUNNING", "SUSPENDED", "RESIZING"))
"""States in which the run time on record is less than the job wanted."""
_REQUEUED = (
    "has several rows: it has its first submission and its last run",
    "have several rows: each has its first submission and its last run",
)
_USAGE = ("gpumem", "gpuutil")
"""Generic resources that are measurements, not requests."""
_NEEDED = {
    "an id": ("jobid", "jobidraw"),
    "a submit time": ("submit",),
    "a run time": ("elapsed", "elapsedraw", "end"),
    "a size": ("nnodes", "ncpus", "alloccpus", "reqcpus", "reqnodes", "reqtres", "alloctres"),
}


@attrs.frozen
class _Row:
    """One job on record."""

    line: int
    id: str
    het: tuple[str, int] | None
    """Shared id and place of a component of a heterogeneous job; None: an ordinary job."""
    order: tuple[int, ...]
    """The numbers of the id."""
    fields: Mapping[str, str]
    submit: float
    eligible: float | None
    start: float | None
    end: float | None
    run: float
    state: str
    first_start: float | None = None
    """Start of the first of several runs; None: it is the only one, or not known."""
    runs: tuple[_Row, ...] = ()
    """The rows of all its runs, where it has several; empty: it has one row."""

    @property
    def withdrawn_at(self) -> float | None:
        """When it was cancelled without having started; None: it started."""
        return None if self.has_run else self.end

    @property
    def has_run(self) -> bool:
        """Whether it ever started; older releases give a job that was cancelled first its end as its start."""
        if self.run > 0 or self.state in _CUT_SHORT:
            return True
        if self.start is None:
            return not _says_starts(self.fields) and self.state != _CANCELLED
        nowhere = self.fields.get("nodelist", "").lower() == "none assigned"
        return not nowhere and not (self.state == _CANCELLED and self.start == self.end)


class SacctReader:
    """Reads sacct's output, all of it before the first job."""

    name = "sacct"
    reads_machine_only = True
    """Of a configuration it looks at nodes, partitions, QOS and ``[workload]`` only: a sweep may read once."""

    def claims(self, path: Path, head: str) -> bool:
        """Recognise a header with JobID, 26 fields that begin with an id, or ``*.sacct``."""
        first = next((line for line in head.splitlines() if line.strip()), "")
        return ".sacct" in path.suffixes or _is_header(first) or _is_bare(first) or is_json(head)

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read `path` and put the jobs in order of submission.

        :raises ConfigError: it cannot be read, has no rows, or lacks columns.
        """
        workload = Workload(name=path.name, jobs=iter(()), most_rejected=options.most_rejected)
        peaks: dict[int, float] = {}
        if is_json(read_head(path)):
            found = _json_rows(path, workload)
        else:
            layout, lines = _read_layout(path, read_lines(path, options.progress))
            found = _usable_rows(whole_rows(lines, layout), layout, workload, peaks)
        every = sorted(found, key=lambda row: (row.submit, row.order, row.line))
        rows = list(_one_each(every, workload))
        workload.rejected.sort(key=lambda rejected: rejected.line)
        rows.sort(key=lambda row: (row.submit, row.order, row.line))
        workload.total = len(rows)
        if rows:
            workload.start_wall = rows[0].submit
        machine = machine_of(options.config)
        whole = _whole_het_jobs(rows, workload)
        table = options.config.workload
        if table.over_memory_kill and rows and not peaks:
            workload.notes.append(
                "how much memory jobs had is not in the log (MaxRSS of their steps), so that none is cancelled for it"
            )
        over_at = table.over_memory_at if table.over_memory_kill else None
        workload.jobs = (_spec(row, workload, machine, whole, peaks, over_at) for row in rows)
        workload.details.update(_details(every, workload.start_wall or 0.0))
        return workload


def read_rows(path: Path, lines: Iterator[Line]) -> Iterator[dict[str, str]]:
    """Yield the fields of each job's row by column, in small letters; what is no row of a job is passed over.

    :raises ConfigError: there is no header, or it lacks columns.
    """
    layout, rest = _read_layout(path, lines)
    for _, line in whole_rows(rest, layout):
        if layout.is_header(line):
            continue
        try:
            fields = layout.fields(line)
        except BadRowError:
            continue
        if JOB_ID.fullmatch(_job_id(fields)):
            yield fields


# -------------------------------------------------------------------------------------- columns
def _is_header(line: str) -> bool:
    names = {name.strip().lower() for name in line.split("|")}
    return len(names) >= 2 and not names.isdisjoint(("jobid", "jobidraw"))


def _is_bare(line: str) -> bool:
    parts = line.split("|")
    return len(parts) >= len(XDMOD_COLUMNS) and JOB_ID.fullmatch(parts[0].strip()) is not None


def _read_layout(path: Path, lines: Iterator[Line]) -> tuple[Layout, Iterator[Line]]:
    """Return the layout, and the lines after the header.

    :raises ConfigError: there is none, it lacks columns, or nothing follows it.
    """
    rows = (line for line in lines if line[1].strip())
    first = next(rows, None)
    if first is None:
        raise ConfigError(str(path), [Problem("", "the file is empty")])
    if not _is_header(first[1]):
        if "|" not in first[1] or len(first[1].split("|")) < len(XDMOD_COLUMNS):
            raise ConfigError(str(path), [_no_header(path, first)])
        return Layout(XDMOD_COLUMNS), itertools.chain([first], rows)
    columns = tuple(name.strip().lower() for name in first[1].split("|"))
    problems = list(_column_problems(f"{path.name}:{first[0]}", columns))
    if problems:
        raise ConfigError(str(path), problems)
    second = next(rows, None)
    if second is None:
        raise ConfigError(str(path), [Problem("", "no jobs, only a header")])
    return Layout(columns), itertools.chain([second], rows)


def _no_header(path: Path, line: Line) -> Problem:
    words = [word.strip().lower() for word in line[1].split("|")]
    if {"submit", "start", "end", "state"} & set(words):
        return Problem(
            f"{path.name}:{line[0]}", "no column JobID; add it to the fields that sacct is to print (-o)"
        )
    allowed = f"the output of 'sacct -P', or {len(XDMOD_COLUMNS)} fields separated by '|'"
    return Problem(f"{path.name}:{line[0]}", f"got {shown(line[1])}; allowed: {allowed}")


def _column_problems(where: str, columns: Sequence[str]) -> Iterator[Problem]:
    for what, options in _NEEDED.items():
        if not set(options) & set(columns):
            near = [each for each in columns if difflib.get_close_matches(each, options, 1, 0.75)]
            given = f"; nearest: {', '.join(map(shown, near))}" if near else ""
            yield Problem(where, f"no column gives {what}; allowed: {', '.join(options)}{given}")
    for name in sorted({name for name in columns if name and columns.count(name) > 1}):
        yield Problem(where, f"column {shown(name)} is there twice")


# ----------------------------------------------------------------------------------------- rows
def _usable_rows(
    lines: Iterator[Line], layout: Layout, workload: Workload, peaks: dict[int, float]
) -> Iterator[_Row]:
    """Yield the rows of jobs.

    :param peaks: gets the most memory in MB that a step of a job had, by the line of the job.
    """
    steps = spread = 0
    latest: dict[str, int] = {}
    for number, line in lines:
        if layout.is_header(line):
            continue
        spread += "\n" in line
        fields: Mapping[str, str] = {}
        try:
            fields = layout.fields(line)
            job = _job_id(fields)
            if STEP.fullmatch(job):
                steps += 1
                job, at = job.partition(".")[0], 0
            else:
                row = _row(number, fields)
                at = latest[job] = number
            if (at or job in latest) and (peak := _peak(fields.get("maxrss", ""))) is not None:
                line_of_job = latest[job]
                peaks[line_of_job] = max(peak, peaks.get(line_of_job, 0.0))
            if not at:
                continue
        except BadRowError as reason:
            workload.reject(number, str(reason), _job_id(fields), usual=reason.usual)
            continue
        yield row
    if spread:
        rows = "row that spreads" if spread == 1 else "rows that spread"
        workload.notes.append(f"{spread:,} {rows} over several lines put together")
    if steps:
        workload.notes.append(f"{steps:,} job step{'' if steps == 1 else 's'} left out")


def _json_rows(path: Path, workload: Workload) -> Iterator[_Row]:
    for number, fields in json_rows(path):
        try:
            yield _row(number, fields)
        except BadRowError as reason:
            workload.reject(number, str(reason), _job_id(fields), usual=reason.usual)


def _one_each(rows: Sequence[_Row], workload: Workload) -> Iterator[_Row]:
    """Yield one row for each job: of several runs the last one, with the submission of the first.

    A row that cannot be the job's is rejected.
    """
    runs_of: dict[str, list[_Row]] = {}
    for row in rows:
        runs = runs_of.setdefault(row.id, [])
        if runs and (why := _is_no_run(row, runs)):
            workload.reject(row.line, why, row.id)
        else:
            runs.append(row)
    requeued = never = 0
    for job, runs in runs_of.items():
        ordered = sorted(runs, key=lambda row: (row.submit, row.start is None, row.start or 0.0, row.line))
        known = [row for row in ordered if row.state not in _NOT_RUN]
        ran = [row for row in known if row.has_run]
        last = (ran or known or ordered)[-1]
        if last.state in _NOT_RUN:
            text = f"state {last.state}: how long it runs is not known"
            workload.reject(last.line, text, job, usual=True)
            continue
        if not ran and last.end is None:
            text = "it never started, and the log does not say when it was withdrawn"
            workload.reject(last.line, text, job, usual=True)
            continue
        never += not ran
        requeued += len(runs) > 1
        first = ordered[0]
        yield (
            last
            if first is last
            else attrs.evolve(
                last,
                submit=first.submit,
                eligible=first.eligible,
                first_start=first.start,
                runs=tuple(row for row in ordered if row.start is not None and row.has_run),
            )
        )
    if requeued:
        workload.notes.append(f"{counted(requeued, 'job')} {_REQUEUED[requeued > 1]}")
    workload.never_started(never)


def _is_no_run(row: _Row, runs: Sequence[_Row]) -> str:
    """Say why a row is no other run of the job whose rows came before; empty: it is one."""
    for other in runs:
        if (row.submit, row.start) == (other.submit, other.start):
            return (
                f"job {shown(row.id)} was there before: line {other.line} has the same submission and start"
            )
    user = runs[0].fields.get("user") or runs[0].fields.get("uid")
    if (row.fields.get("user") or row.fields.get("uid")) != user:
        return f"job {shown(row.id)} was there before: line {runs[0].line} is of another user"
    return ""


def _says_starts(fields: Mapping[str, str]) -> bool:
    """Whether the log has a column of starts."""
    return "start" in fields


def _job_id(fields: Mapping[str, str]) -> str:
    return fields.get("jobid") or fields.get("jobidraw") or ""


def _row(line: int, fields: Mapping[str, str]) -> _Row:
    """Check what a job cannot do without.

    :raises BadRowError: with the reason.
    """
    job = _job_id(fields)
    match = JOB_ID.fullmatch(job)
    if match is None:
        raise _bad_id(job)
    state = (fields.get("state") or "COMPLETED").split()[0].rstrip("+").upper()
    submit = _when(fields, "submit")
    if submit is None:
        raise BadRowError("no submit time")
    start, end = _when(fields, "start"), _when(fields, "end")
    return _Row(
        line=line,
        id=job,
        het=(match[1], int(match[3])) if match[3] is not None else None,
        order=tuple(int(part or 0) for part in match.groups()),
        fields=fields,
        submit=submit,
        eligible=_when(fields, "eligible"),
        start=start,
        end=end,
        run=_run_time(fields, start, end, state),
        state=state,
    )


def _bad_id(job: str) -> BadRowError:
    if PENDING_ARRAY.fullmatch(job):
        return BadRowError(f"{shown(job)} stands for array tasks that have not run", usual=True)
    return BadRowError(f"job id: got {shown(job)}; allowed: 12, 12_3 or 12+1")


def _when(fields: Mapping[str, str], key: str) -> float | None:
    """Return a time as Unix time, read as UTC; None: not known.

    :raises BadRowError: it is no time between 1970 and 2200.
    """
    text = fields.get(key, "")
    if text.lower() in NOTHING:
        return None
    value = unix_time(text)
    if value is None or not _EARLIEST <= value <= _LATEST:
        allowed = "2017-01-31T12:00:00 or Unknown"
        raise BadRowError(f"{key}: got {shown(text)}; allowed: {allowed}")
    return value


def _run_time(fields: Mapping[str, str], start: float | None, end: float | None, state: str) -> float:
    for key in ("elapsed", "elapsedraw"):
        text = fields.get(key, "")
        if text.lower() in NOTHING:
            continue
        seconds = _seconds(text, raw=key == "elapsedraw")
        if seconds is None:
            allowed = "seconds" if key == "elapsedraw" else "[D-]HH:MM:SS"
            raise BadRowError(f"{key}: got {shown(text)}; allowed: {allowed}")
        return seconds
    if start is None and state in (_CANCELLED, *_NOT_RUN):
        return 0.0
    if start is None or end is None or end < start:
        raise BadRowError("no run time: neither elapsed nor start and end")
    return end - start


def _seconds(text: str, raw: bool) -> float | None:
    """Read ``[D-]HH:MM:SS``, or plain seconds if `raw`; None: it is neither."""
    if raw:
        good = text.isascii() and text.isdigit() and len(text) <= 11
        seconds = float(text) if good else None
    else:
        match = ELAPSED.fullmatch(text)
        seconds = float(parse_time(text.split(".")[0]) or 0) if match else None
    return seconds if seconds is not None and seconds <= _MOST_SECONDS else None


# ------------------------------------------------------------------------------------- one job
def _spec(
    row: _Row,
    workload: Workload,
    machine: Machine,
    whole: set[str],
    peaks: Mapping[int, float],
    over_at: float | None,
) -> JobSpec:
    """Return one job.

    :param peaks: the most memory in MB that each job had, by line; one that is not in it did not say.
    :param over_at: how far into its run a job is cancelled that had more than it asked for; None: it is not.
    """
    fields = row.fields
    shape, memory = _shape(row, workload, machine, memory=over_at is not None)
    over = over_at is not None and _is_over(peaks.get(row.line), memory, shape)
    run, attributes = row.run, _attributes(row, workload.start_wall or 0.0)
    if over and over_at is not None:
        attributes["ends_as"] = _OUT_OF_MEMORY
        if row.state != _OUT_OF_MEMORY:  # else the log knows when
            run *= over_at
    zero = workload.start_wall or 0.0
    eligible = row.eligible
    het = row.het if row.het is not None and row.het[0] in whole else None
    return JobSpec(
        id=row.id,
        name=fields.get("jobname", ""),
        user=fields.get("user") or fields.get("uid") or "unknown",
        group=fields.get("group") or None,
        account=fields.get("account") or None,
        partitions=tuple(part for part in fields.get("partition", "").split(",") if part),
        qos=_known(fields.get("qos", "")),
        submit_at=row.submit - zero,
        begin_at=eligible - zero if eligible is not None and eligible > row.submit else None,
        run_time=run,
        withdrawn_at=None if row.withdrawn_at is None else max(row.withdrawn_at, row.submit) - zero,
        time_limit=_time_limit(row, workload),
        het_id=het[0] if het else None,
        het_offset=het[1] if het else 0,
        **_array(row.id),
        wall_submit=row.submit,
        source=f"{workload.name}:{row.line}",
        licenses=_licenses(row, workload),
        reservation=_known(fields.get("reservation", "")),
        attributes=attributes,
        **shape,
    )


def _array(job_id: str) -> dict[str, Any]:
    """Return which task of which array a row is about; how many were let work at a time, the log does not say."""
    match = JOB_ID.fullmatch(job_id)
    if match is None or match[2] is None:
        return {}
    return {"array_id": match[1], "array_task": int(match[2])}


def _known(text: str) -> str | None:
    return None if text.lower() in NOTHING else text


def _time_limit(row: _Row, workload: Workload) -> float | None:
    """Return the limit; None: the partition's, or none at all."""
    for key in ("timelimit", "timelimitraw"):
        text = row.fields.get(key, "")
        if text.lower() in _NO_TIME_LIMIT:
            continue
        try:
            seconds = parse_time(text)
        except ValueError:
            seconds = -1
        if seconds is not None and not 0 <= seconds <= _MOST_SECONDS:
            _note(workload, f"{key} {shown(text)} is no time limit and left out", row)
            continue
        return None if seconds is None else float(seconds)
    return None


def _shape(
    row: _Row, workload: Workload, machine: Machine, *, memory: bool
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return nodes, tasks, memory and generic resources, as asked for rather than as given; and its memory again.

    :param memory: whether that is wanted even where no node says how much it has, so that jobs ask for none.
    """
    asked = _tres(row.fields.get("reqtres", "")) or _tres(row.fields.get("alloctres", ""))
    given = row.fields.get
    ran_on = _count(row, workload, [given("nnodes"), given("allocnodes")])
    nodes = _count(row, workload, [given("reqnodes"), asked.get("node")]) or max(1, ran_on)
    texts = [given("reqcpus"), asked.get("cpu"), given("ncpus"), given("alloccpus")]
    cpus = _count(row, workload, texts)
    shape: dict[str, Any] = {"min_nodes": nodes, "tasks": max(cpus, nodes) if cpus else None}
    most = max(nodes, ran_on)
    if not cpus or cpus <= most * machine.node_cpus:
        shape["max_nodes"] = most
    megabytes = _memory(row, workload, asked, nodes, cpus) if machine.memory_stated or memory else {}
    if machine.memory_stated:
        shape |= megabytes
    return shape | _gres(asked, nodes), megabytes


def _is_over(peak: float | None, memory: Mapping[str, int], shape: Mapping[str, Any]) -> bool:
    """Whether a job had more memory than it asked for; of a job that asked for none, or for all, that is not said."""
    asked = memory.get("memory_mb_per_node")
    if asked is None:
        cpus = -(-(shape["tasks"] or 1) // shape["min_nodes"])
        asked = memory.get("memory_mb_per_cpu", 0) * cpus
    return peak is not None and 0 < asked < peak


def _peak(text: str) -> float | None:
    """Return MaxRSS in MB: without a unit it is in bytes; None: it is not said."""
    match = _MEMORY.fullmatch(text)
    if match is None or match[3]:
        return None
    return float(match[1]) * (_FACTOR[match[2]] if match[2] else 2.0**-20)


def _count(row: _Row, workload: Workload, texts: Sequence[str | None]) -> int:
    """Return the first of `texts` that is a positive number; 0: none is."""
    for text in texts:
        if not text or text == "0":
            continue
        value = _whole(text)
        if value is not None and value <= _MOST_CPUS:
            return value
        _note(workload, f"count {shown(text)} makes no sense and is left out", row)
    return 0


def _whole(text: str) -> int | None:
    """Return a count such as ``12`` or ``2K``; None: it is none."""
    factor = {"K": 1024, "M": 1024**2}.get(text[-1:], 1)
    digits = text.rstrip("KM")
    good = digits.isascii() and digits.isdigit() and len(digits) <= 12
    return int(digits) * factor if good else None


def _tres(text: str) -> dict[str, str]:
    """Split ``cpu=8,mem=22400M,gres/gpu:a100=2``."""
    pairs = (word.partition("=") for word in text.split(","))
    return {key.strip().lower(): value.strip() for key, _, value in pairs if value.strip()}


def _memory(row: _Row, workload: Workload, asked: Mapping[str, str], nodes: int, cpus: int) -> dict[str, int]:
    """Return the memory asked for: per CPU, per node, or (newer Slurm) each node's share of it."""
    text = row.fields.get("reqmem", "") or asked.get("mem", "")
    match = _MEMORY.fullmatch(text.rstrip("?"))
    if match is None:
        if text.lower() not in NOTHING:
            _note(workload, f"memory {shown(text)} makes no sense and is left out", row)
        return {}
    megabytes = float(match[1]) * _FACTOR[match[2]]
    if match[3] and megabytes >= _PER_CPU:
        return _overflowed(row, workload, asked, cpus, megabytes - _PER_CPU)
    if megabytes > _MOST_MEGABYTES:
        _note(workload, f"memory {shown(text)} makes no sense and is left out", row)
        return {}
    if match[3] == "c":
        return {"memory_mb_per_cpu": _up(megabytes)} if megabytes else {}
    if match[3] == "n":
        return {"memory_mb_per_node": _up(megabytes)}
    return {"memory_mb_per_node": _up(megabytes / nodes)} if megabytes else {}


def _overflowed(
    row: _Row, workload: Workload, asked: Mapping[str, str], cpus: int, per_cpu: float
) -> dict[str, int]:
    """Return memory per CPU if the requested TRES confirm it; leave it out if not."""
    match = _MEMORY.fullmatch(asked.get("mem", ""))
    total = float(match[1]) * _FACTOR[match[2]] if match else 0.0
    if cpus and total == per_cpu * cpus:
        _note(workload, "reqmem overflowed; taken as memory per CPU, as ReqTRES confirm", row)
        return {"memory_mb_per_cpu": _up(per_cpu)}
    _note(workload, "reqmem overflowed and is left out", row)
    return {}


def _up(megabytes: float) -> int:
    return -int(-megabytes // 1)


def _gres(asked: Mapping[str, str], nodes: int) -> dict[str, dict[str, int]]:
    """Return generic resources: per node where they divide, else over the whole job.

    Typed ones count for their name as well, as in ``parse_gres``: a name that is there too counts them, and maybe more.
    """
    total: dict[str, int] = {}
    for key, text in asked.items():
        name = key.removeprefix("gres/")
        count = _whole(text)
        if name != key and count and name not in _USAGE:
            total[name] = count
    of_types: dict[str, int] = {}
    for name, count in total.items():
        kind, typed, _ = name.partition(":")
        if typed:
            of_types[kind] = of_types.get(kind, 0) + count
    for kind, count in of_types.items():
        total[kind] = max(count, total.get(kind, 0))
    per_node = {name: count // nodes for name, count in sorted(total.items()) if count % nodes == 0}
    rest = {name: count for name, count in sorted(total.items()) if count % nodes}
    return {key: value for key, value in (("gres", per_node), ("gres_total", rest)) if value}


def _licenses(row: _Row, workload: Workload) -> dict[str, int]:
    """Return licences from the column, or from the allocated TRES."""
    counts: dict[str, int] = {}
    for word in row.fields.get("licenses", "").split(","):
        match = _LICENSE.fullmatch(word.strip())
        if match is not None and word.strip().lower() not in NOTHING:
            counts[match[1]] = counts.get(match[1], 0) + int(match[2] or 1)
        elif word.strip().lower() not in NOTHING:
            _note(workload, f"licence {shown(word)} makes no sense and is left out", row)
    if counts:
        return counts
    tres = _tres(row.fields.get("reqtres", "")) | _tres(row.fields.get("alloctres", ""))
    named = sorted((key, _whole(text)) for key, text in tres.items() if key.startswith("license/"))
    return {key.removeprefix("license/"): count for key, count in named if count}


def _attributes(row: _Row, zero: float) -> dict[str, Any]:
    said: dict[str, Any] = {"state": row.state}
    nodes = row.fields.get("nodelist", "")
    start = row.start if row.first_start is None else row.first_start
    if nodes.lower() == "none assigned" or not row.has_run:
        said["never_started"] = True
    elif start is not None:
        said["wait"] = start - row.submit
    if _known(nodes) is not None:
        said["nodes"] = nodes
    for key in ("reason", "restarts", "exitcode", "cluster", "priority"):
        value = _known(row.fields.get(key, ""))
        if value is not None:
            said[key] = value
    if len(row.runs) > 1:
        said["runs"] = _runs_told(row.runs)
    if row.state in _CUT_SHORT:
        said["truncated"] = True
    return said


def _runs_told(runs: Sequence[_Row]) -> list[dict[str, Any]]:
    """Tell of each run how long the job waited for it, since its submission or the end of the run before, and ran."""
    told: list[dict[str, Any]] = []
    free = 0.0
    for each in runs:
        start = each.start or 0.0
        told.append({"wait": start - max(each.submit, free), "ran": each.run, "state": each.state})
        free = min(start + each.run, each.end or math.inf)
    return told


def _details(rows: Sequence[_Row], zero: float) -> dict[str, dict[str, Any]]:
    """Tell of the jobs that really were preempted; instants as in the replay."""
    return {
        row.id: {
            "state": row.state,
            "start": None if row.start is None else row.start - zero,
            "end": None if row.end is None else row.end - zero,
            "nodes": _known(row.fields.get("nodelist", "")) or "",
        }
        for row in rows
        if row.state == "PREEMPTED"
    }


def _whole_het_jobs(rows: Sequence[_Row], workload: Workload) -> set[str]:
    """Return the ids of heterogeneous jobs that have all components from 0 on."""
    places: dict[str, list[int]] = {}
    for row in rows:
        if row.het is not None:
            places.setdefault(row.het[0], []).append(row.het[1])
    whole = {job for job, found in places.items() if sorted(found) == [*range(len(found))]}
    for job in [job for job in places if job not in whole][:20]:
        workload.notes.append(f"heterogeneous job {job} is not whole; its parts count as jobs")
    return whole


def _note(workload: Workload, text: str, row: _Row) -> None:
    """Note `text` once, with the place where it was first met."""
    if not any(note.startswith(text) for note in workload.notes) and len(workload.notes) < 100:
        workload.notes.append(f"{text} (first: line {row.line}, job {row.id})")

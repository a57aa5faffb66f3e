"""Read the Standard Workload Format of the Parallel Workloads Archive, and MetaCentrum's extension.

A data line has 18 blank-separated columns; -1 means "not known". Size is column 8 (processors asked
for), or column 5 (processors used) where that is not known; run time is column 4; estimate is
column 9, or the run time. A job without size, or with a negative run time, is rejected; a job of no
length stays. A job that was cancelled before it started (status 5, run time 0 or -1) waits for its wait time (column
3) and is withdrawn. That a size, a run time, or the wait of such a job is not known, is usual; any other number that
cannot be meant is a fault of the file.

MetaCentrum's traces, as the Alea simulator has them, append the nodes used in braces (19), the name
of the queue (20) and the request (21, ``2:ppn=8:infiniband#excl``). They count memory in bytes per
node (10), where the standard says KB per processor.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import attrs

from makeway.errors import ConfigError, Problem
from makeway.model import Exclusive, JobSpec, SpecDraft, submitted
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import Line, read_lines, shown
from makeway.readers.mapping import Machine, machine_of
from makeway.readers.seen import Seen
from makeway_logs.metacentrum import is_metacentrum, request_of

COLUMNS = 18
_MOST_PROCESSORS = 10_000_000
_MOST_SECONDS = 1e11
_MOST_MEMORY = 1e18
_MOST_KNOWN = 1 << 12
"""Ways to fill the columns of `_SAID` that are remembered."""
_UNIX_TIME = 1e8
"""Submit times from here on (1973) are Unix times, unless the header gives the start."""
_NOT_KNOWN = -1.0
_CANCELLED = "5"
_PARTIAL = ("2", "3", "4")
"""Status of a line on a part of a job, between checkpoints; the whole has its own line."""
_ODD = (*_PARTIAL, _CANCELLED)
"""Status of lines that are looked at closely."""
_HEADER = re.compile(r";\s*([A-Za-z][A-Za-z0-9 _-]{0,40}?)\s*:(?:\s+(.*))?")
_SAID = {10: "status", 13: "executable", 14: "queue", 15: "partition", 16: "preceding_job"}
"""Columns (from 0) that are kept in `JobSpec.attributes`."""
_SAYING = operator.itemgetter(*_SAID)

MemoryUnit = Literal["auto", "kb_per_processor", "bytes_per_node"]


class _BadRowError(Exception):
    """A row that cannot be used; its text is the reason."""

    def __init__(self, reason: str, *, usual: bool = False) -> None:
        super().__init__(reason)
        self.usual = usual


_Row = tuple[float, int, list[str], float, int, float]
"""A data line that can be used: submit time, line, columns, run time, size, requested time. A tuple is made soonest.

A run time below 0 is that of a job that was withdrawn before it started."""


@attrs.define(kw_only=True)
class SwfReader:
    """Reads SWF files, as a stream unless they are out of order."""

    name: str = "swf"
    memory_unit: MemoryUnit = "auto"
    """What column 10 counts; auto: by whether the line is one of MetaCentrum's."""
    reads_machine_only: bool = True
    """Whether of a configuration only nodes and ``[workload]`` matter to it."""

    def claims(self, path: Path, head: str) -> bool:
        """Recognise 18 numbers in the first data line, or the name ``*.swf``."""
        if ".swf" in path.suffixes:
            return True
        data = (line for line in head.splitlines() if line.strip() and not line.startswith(";"))
        columns = next(data, "").split()[:COLUMNS]
        return len(columns) == COLUMNS and all(map(_is_number, columns))

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Open `path`: look over it once for damage and order, then stream it.

        :raises ConfigError: it cannot be read, or holds no data line.
        """
        ordered, rows_there = _survey(path)
        lines = read_lines(path, options.progress)
        header, first = _read_header(path, lines)
        workload = Workload(
            name=path.name,
            jobs=iter(()),
            header=header,
            total=rows_there,
            most_rejected=options.most_rejected,
        )
        rows = _usable_rows(itertools.chain([first], lines), workload, early=options.config.workload.warm)
        if not ordered:
            rows = _sorted_rows(rows, workload)
        workload.jobs = self._jobs(rows, workload, machine_of(options.config))
        return _started(workload)

    def _jobs(self, rows: Iterator[_Row], workload: Workload, machine: Machine) -> Iterator[JobSpec]:
        start, wall, name = None, None, workload.name
        said = _Said()
        for submit, line, columns, run, size, estimate in rows:
            if start is None:
                start = submit
                wall = workload.start_wall = _wall_start(workload.header, start)
                workload.begin = -start if start < 0 else None
            submit_at = submit - start
            attributes = said.of(columns)
            user = columns[11] if columns[11] != "-1" else "unknown"
            group = columns[12] if columns[12] != "-1" else None
            limit = estimate if estimate > 0 else run if run >= 0 else None
            wall_submit = None if wall is None else wall + submit_at
            source = f"{name}:{line}"
            draft = SpecDraft(
                id=columns[0],
                user=user,
                group=group,
                partitions=_partitions(columns, machine),
                submit_at=submit_at,
                run_time=max(0.0, run),
                withdrawn_at=submit_at + float(columns[2]) if run < 0 else None,
                time_limit=limit,
                wall_submit=wall_submit,
                source=source,
                attributes=attributes,
                **self._shape(columns, size, attributes, machine),
            )
            yield submitted(draft)

    def _shape(
        self, columns: list[str], size: int, attributes: dict[str, Any], machine: Machine
    ) -> dict[str, Any]:
        """Return the fields of JobSpec that say how many and what kind of nodes; `attributes` may get more."""
        request = request_of(columns)
        chunks = request.chunks if request is not None else ()
        shape = _processors(size, chunks, machine)
        if machine.memory_stated:
            nodes = sum(count for count, _ in chunks) or 1
            shape |= self._memory(columns, size, nodes, shape)
        if request is not None:
            if request.exclusive:
                shape["exclusive"] = Exclusive.NODE
            if request.properties:
                attributes["properties"] = request.properties
                shape["features"] = "&".join(p for p in request.properties if p in machine.features)
        return shape

    def _memory(self, columns: list[str], size: int, nodes: int, shape: dict[str, Any]) -> dict[str, int]:
        """Return the memory asked for; `nodes` is how many the request names."""
        amount = _number(columns, 9, "requested memory")
        if amount <= 0:
            return {}
        unit = self.memory_unit
        if unit == "kb_per_processor" or (unit == "auto" and not is_metacentrum(columns)):
            return {"memory_mb_per_cpu": _at_least_one(amount / 1024)}
        if "tasks_per_node" in shape:
            return {"memory_mb_per_node": _at_least_one(amount / 2**20)}
        return {"memory_mb_per_cpu": _at_least_one(amount * nodes / 2**20 / size)}


# -------------------------------------------------------------------------------------- reading
def _survey(path: Path) -> tuple[bool, int]:
    """Return whether submit times ascend, and the number of rows; read to the end, so that damage shows at once."""
    ordered, last, rows = True, 0.0, 0
    for _, line in read_lines(path):
        rows += not line.startswith(";")
        columns = line.split(None, 2)
        if len(columns) == 3 and ordered and not line.startswith(";"):
            try:
                submit = float(columns[1])
            except ValueError:
                continue
            ordered = submit >= last
            last = submit
    return ordered, rows


def _read_header(path: Path, lines: Iterator[Line]) -> tuple[dict[str, str], Line]:
    """Return what the header says, and the first data line."""
    header: dict[str, str] = {}
    key = ""
    for number, line in lines:
        text = line.strip()
        if text and not text.startswith(";"):
            return header, (number, line)
        match = _HEADER.fullmatch(text)
        if match is not None:
            key, said = match[1], match[2] or ""
        else:
            said = text.lstrip("; \t")
        if key and said:
            header[key] = f"{header[key]}\n{said}" if key in header else said
    message = f"no jobs, only a header; allowed: lines of {COLUMNS} columns"
    raise ConfigError(str(path), [Problem("", message)])


def _usable_rows(lines: Iterator[Line], workload: Workload, *, early: bool) -> Iterator[_Row]:
    """Yield the rows that can be used.

    :param early: whether submit times before the span of the log are allowed.
    """
    is_new = Seen().is_new
    glance = _Glance()
    for number, line in lines:
        columns = line.split()
        row = glance.at(number, line, columns) or _looked_at(number, columns, workload, early=early)
        if row is None:
            continue
        if is_new(columns[0]):
            yield row
        else:
            workload.reject(number, f"job {shown(columns[0])} was there before", columns[0])


class _Glance:
    """Take lines of 18 columns in which nothing is odd."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        """Column 8 of such lines -> processors."""

    def at(self, number: int, line: str, columns: list[str]) -> _Row | None:
        """Return the row of a line; None: it may be one, or not, and is to be looked at closely."""
        if len(columns) != COLUMNS or not line.isascii() or "_" in line or columns[10] in _ODD:
            return None
        job, size = columns[0], self._sizes.get(columns[7])
        try:
            submit, run, estimate = float(columns[1]), float(columns[3]), float(columns[8])
            memory = float(columns[9])
            if size is None:
                size = self._size(columns[7])
        except ValueError:
            return None
        good = (
            size
            and job.isdigit()
            and len(job) <= 18
            and 0.0 <= submit <= _MOST_SECONDS
            and 0.0 <= run <= _MOST_SECONDS
            and -_MOST_SECONDS <= estimate <= _MOST_SECONDS
            and -_MOST_MEMORY <= memory <= _MOST_MEMORY
        )
        return (submit, number, columns, run, size, estimate) if good else None

    def _size(self, text: str) -> int:
        """Return column 8 as a number of processors; 0: it is none."""
        size = float(text)
        if not 0.0 < size <= _MOST_PROCESSORS or size != int(size):
            return 0
        return self._sizes.setdefault(text, int(size))


def _looked_at(number: int, columns: list[str], workload: Workload, *, early: bool) -> _Row | None:
    """Return the row of a line; None: it is none, or cannot be used, which the workload is told."""
    if not columns or columns[0].startswith(";"):
        return None
    if len(columns) >= COLUMNS and columns[10] in _PARTIAL:
        _note_partial(workload, number, columns[10])
        return None
    try:
        return _checked(number, columns, early=early)
    except _BadRowError as reason:
        workload.reject(number, str(reason), columns[0], usual=reason.usual)
        return None


def _checked(line: int, columns: list[str], *, early: bool) -> _Row:
    """Check all numbers that a job is made of.

    :raises _BadRowError: with the reason.
    """
    if len(columns) < COLUMNS:
        raise _BadRowError(f"{len(columns)} columns; allowed: {COLUMNS} or more")
    if not columns[0].isascii() or not columns[0].isdigit() or len(columns[0]) > 18:
        raise _BadRowError(f"job number: got {shown(columns[0])}; allowed: a whole number")
    submit = _number(columns, 1, "submit time")
    run = _number(columns, 3, "run time")
    size = _size(columns)
    estimate = _number(columns, 8, "requested time")
    _number(columns, 9, "requested memory")
    if submit == _NOT_KNOWN or (submit < 0 and not early):
        hint = "" if early or submit == _NOT_KNOWN else ", or workload.warm = true"
        raise _BadRowError(f"submit time is {columns[1]}; allowed: 0 or more{hint}")
    if size <= 0:
        usual = size == _NOT_KNOWN or columns[10] == _CANCELLED
        raise _BadRowError(f"no size (columns 8 and 5: {_given(columns, 7, 4)})", usual=usual)
    if columns[10] == _CANCELLED and run in (0.0, _NOT_KNOWN):
        if _number(columns, 2, "wait time") < 0:
            text = "it was cancelled before it started, and the wait time does not say when"
            raise _BadRowError(text, usual=True)
        return submit, line, columns, _NOT_KNOWN, size, estimate
    if run < 0:
        raise _BadRowError(f"run time is {columns[3]}; allowed: 0 or more", usual=run == _NOT_KNOWN)
    return submit, line, columns, run, size, estimate


def _given(columns: list[str], *places: int) -> str:
    return ", ".join(columns[at] for at in places)


def _size(columns: list[str]) -> int:
    size = _number(columns, 7, "requested processors")
    if size <= 0:
        size = _number(columns, 4, "processors")
    if size > _MOST_PROCESSORS or size != int(size):
        allowed = f"whole numbers up to {_MOST_PROCESSORS:,}"
        raise _BadRowError(f"processors: got {_given(columns, 7, 4)}; allowed: {allowed}")
    return int(size)


def _number(columns: list[str], at: int, what: str) -> float:
    """Return a column as a number.

    :raises _BadRowError: it is none, or none that can be meant.
    """
    text = columns[at]
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    most = _MOST_MEMORY if at == 9 else _MOST_SECONDS
    if not -most <= value <= most or "_" in text or not text.isascii():
        allowed = f"a number up to {most:g}"
        raise _BadRowError(f"{what} (column {at + 1}): got {shown(text)}; allowed: {allowed}")
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sorted_rows(rows: Iterator[_Row], workload: Workload) -> Iterator[_Row]:
    listed = list(rows)
    ordered = sorted(listed, key=lambda row: row[:2])
    moved = sum(a is not b for a, b in zip(listed, ordered, strict=True))
    if moved:
        workload.notes.append(f"submit times do not ascend; sorted in memory, {moved} lines moved")
    return iter(ordered)


def _started(workload: Workload) -> Workload:
    """Read up to the first job, so that `start_wall` is known."""
    first = list(itertools.islice(workload.jobs, 1))
    workload.jobs = itertools.chain(first, workload.jobs)
    return workload


def _note_partial(workload: Workload, line: int, status: str) -> None:
    note = "lines on parts of a job (status 2 to 4) are left out; its whole has a line of its own"
    if not any(known.startswith(note) for known in workload.notes):
        workload.notes.append(f"{note} (first: line {line}, status {status})")


def _wall_start(header: dict[str, str], submit: float) -> float | None:
    """Return the Unix time of a first `submit`; None: the trace does not say."""
    try:
        start = float(header.get("UnixStartTime", "0").split()[0])
    except (ValueError, IndexError):
        start = 0.0
    if submit >= _UNIX_TIME:
        return submit
    return start + submit if 0 < start < _MOST_SECONDS else None


# ------------------------------------------------------------------------------------ one job
def _processors(size: int, chunks: tuple[tuple[int, int], ...], machine: Machine) -> dict[str, Any]:
    """Turn processors into nodes: as the request says if it fits the nodes, else by division."""
    if machine.one_cpu_nodes or machine.cpus_per_node == 1:
        nodes = machine.nodes_for(size)
        return {"min_nodes": nodes, "max_nodes": nodes}
    agrees = sum(nodes * each for nodes, each in chunks) == size
    if agrees and max(each for _, each in chunks) <= machine.node_cpus:
        nodes = sum(nodes for nodes, _ in chunks)
        shape = {"tasks": size, "min_nodes": nodes, "max_nodes": nodes}
        if len(chunks) == 1:
            shape["tasks_per_node"] = chunks[0][1]
        return shape
    return {"tasks": size, "min_nodes": machine.nodes_for(size)}


def _partitions(columns: list[str], machine: Machine) -> tuple[str, ...]:
    """Return the queue if it has a name; a number is none, unless a partition here is called so."""
    queue = columns[19] if is_metacentrum(columns) else columns[14]
    return (queue,) if is_metacentrum(columns) or queue in machine.partitions else ()


class _Said:
    """What columns say that is kept in `JobSpec.attributes`; many lines say the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], dict[str, Any]] = {}

    def of(self, columns: list[str]) -> dict[str, Any]:
        """Return the attributes of a line's job."""
        key = _SAYING(columns)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = {
                what: text for what, text in zip(_SAID.values(), key, strict=True) if text != "-1"
            }
        said = known.copy()
        wait = columns[2]
        if wait.isdigit() and len(wait) < 12 and wait.isascii():
            said["wait"] = float(wait)
        if len(columns) > COLUMNS and is_metacentrum(columns):
            said["queue"] = columns[19]
        return said


def _at_least_one(megabytes: float) -> int:
    return max(1, -int(-megabytes // 1))

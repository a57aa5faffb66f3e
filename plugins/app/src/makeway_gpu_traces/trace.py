"""Read files of rows with a header as a stream, or sorted where submit times do not ascend.

A `Format` says what one row means; whatever it raises as `BadRowError` is counted with its reason, and the other rows
are used. A file out of order is held as text while it is read, not as jobs.
"""

from __future__ import annotations

import csv
import itertools
import math
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import Line, read_lines
from makeway.readers.seen import Seen
from makeway_gpu_traces.fields import BadRowError, Fields


class Format(Protocol):
    """One kind of trace."""

    @property
    def name(self) -> str:
        """Short, as in ``--format philly``."""

    @property
    def needed(self) -> frozenset[str]:
        """Columns that tell the format from all others."""

    @property
    def dated(self) -> bool:
        """Whether submit times are Unix times; else they count from the start of the trace."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of every replay of it."""

    def submitted(self, fields: Fields) -> float:
        """Return when a job was submitted.

        :raises BadRowError: the row does not say.
        """

    def job(self, fields: Fields, number: int) -> dict[str, Any]:
        """Return the arguments of its `JobSpec`, but for times of submission and the source.

        :param number: place of the row among all rows, from 1, for jobs without an id.
        :raises BadRowError: with the reason.
        """


@attrs.frozen
class _Row:
    number: int
    """Place among all rows, from 1."""
    line: int
    submit: float
    fields: Fields


@attrs.frozen
class TraceReader:
    """Reads files of one format; see `makeway.readers.api.WorkloadReader`."""

    format: Format

    @property
    def name(self) -> str:
        """Short, as in ``--format philly``."""
        return self.format.name

    def claims(self, path: Path, head: str) -> bool:
        """Recognise the header."""
        del path
        return self.format.needed <= set(header(head))

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Open `path`: look over it once for order and damage, then stream it.

        :raises ConfigError: it cannot be read, has another header, or breaks off.
        """
        order = _order(path, self.format)
        rows = _rows(path, self.format, options)
        workload = Workload(
            name=path.name,
            jobs=iter(()),
            most_rejected=options.most_rejected,
            notes=list(self.format.notes),
        )
        if order is not None:
            rows = _sorted(path, self.format, order)
            workload.notes.append(f"submit times do not ascend; {len(order):,} rows were sorted")
        jobs = self._jobs(rows, workload)
        first = list(itertools.islice(jobs, 1))
        workload.jobs = itertools.chain(first, jobs)
        return workload

    def _jobs(self, rows: Iterator[_Row], workload: Workload) -> Iterator[JobSpec]:
        seen, start = Seen(), math.nan
        for row in rows:
            try:
                if math.isnan(row.submit):
                    self.format.submitted(row.fields)  # raises with the reason
                found = self.format.job(row.fields, row.number)
                if found["id"] in seen:
                    raise BadRowError(f"job {found['id']!r} was there before")
            except BadRowError as reason:
                workload.reject(row.line, str(reason), row.fields.get("job_id", ""), usual=reason.usual)
                continue
            seen.add(found["id"])
            if math.isnan(start):
                start = row.submit if self.format.dated else 0.0
                workload.start_wall = start if self.format.dated else None
            yield JobSpec(
                **found,
                submit_at=row.submit - start,
                wall_submit=row.submit if self.format.dated else None,
                source=f"{workload.name}:{row.line}",
            )


# -------------------------------------------------------------------------------------- the file
def header(text: str) -> list[str]:
    """Return the columns that the first line names."""
    line = text.lstrip("\ufeff").split("\n", 1)[0].strip()
    return [each.strip() for each in _cells(line)] if line else []


def table(path: Path, options: ReadOptions | None = None) -> tuple[list[str], Iterator[Line]]:
    """Return the columns of `path` and its further lines.

    :raises ConfigError: it cannot be read, or has no header.
    """
    lines = read_lines(path, options.progress if options is not None else None)
    _, first = next(lines, (1, ""))
    columns = header(first)
    if not columns:
        raise ConfigError(
            str(path), [Problem(f"{path.name}:1", "there is no header with the names of columns")]
        )
    return columns, lines


def _cells(line: str) -> list[str]:
    """Return the fields of a line; none: one is longer than any field of a table."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _fields(columns: Sequence[str], line: str) -> Fields:
    """Return one row; columns that it lacks are empty."""
    return dict(itertools.zip_longest(columns, map(str.strip, _cells(line)[: len(columns)]), fillvalue=""))


def _submit(format: Format, columns: Sequence[str], line: str) -> float:
    """Return the submit time of a row; not a number: it does not say."""
    try:
        return format.submitted(_fields(columns, line))
    except BadRowError:
        return math.nan


def _checked(path: Path, format: Format, columns: list[str]) -> None:
    missing = sorted(format.needed - set(columns))
    if missing:
        text = f"the header has no column {missing[0]!r}; needed for {format.name}: {', '.join(sorted(format.needed))}"
        raise ConfigError(str(path), [Problem(f"{path.name}:1", text)])


def _rows(path: Path, format: Format, options: ReadOptions) -> Iterator[_Row]:
    columns, lines = table(path, options)
    for number, (at, line) in enumerate(((at, line) for at, line in lines if line.strip()), 1):
        yield _Row(number, at, _submit(format, columns, line), _fields(columns, line))


def _order(path: Path, format: Format) -> list[int] | None:
    """Return the places of all rows by submission; None: they are in order already."""
    columns, lines = table(path)
    _checked(path, format, columns)
    submits = array("d", (_submit(format, columns, line) for _, line in lines if line.strip()))
    known = [submit for submit in submits if not math.isnan(submit)]
    if all(a <= b for a, b in itertools.pairwise(known)):
        return None
    # A row without a submit time comes first: it is rejected.
    return sorted(range(len(submits)), key=lambda at: -math.inf if math.isnan(submits[at]) else submits[at])


def _sorted(path: Path, format: Format, order: Sequence[int]) -> Iterator[_Row]:
    columns, lines = table(path)
    texts = [(at, line) for at, line in lines if line.strip()]
    for place in order:
        at, line = texts[place]
        yield _Row(place + 1, at, _submit(format, columns, line), _fields(columns, line))

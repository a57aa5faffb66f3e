"""Write the tables of a record into a folder, as CSV or as Parquet."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from makeway.errors import ConfigError, Problem
from makeway_app.cli.outputs import Output
from makeway_report.export.rows import TABLES, Row, Table
from makeway_report.record_file import RecordFile

_BATCH = 20_000
"""Rows that are turned into columns at a time."""


class _Lines:
    """What a CSV writer writes to."""

    def __init__(self, output: Output) -> None:
        self.write = output.write


def write_csv(record: RecordFile, folder: Path) -> list[Path]:
    """Write a file per table; what has no value is empty.

    :raises ConfigError, OSError: one cannot be written.
    """
    written = []
    for table in TABLES:
        path = _within(folder) / f"{table.name}.csv"
        with Output(str(path)) as output:
            writer = csv.writer(_Lines(output), lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows(table.rows(record))
        written.append(path)
    return written


def write_parquet(record: RecordFile, folder: Path) -> list[Path]:
    """Write a file per table; what has no value is null.

    :raises ConfigError, OSError: pyarrow is not installed, or a file cannot be written.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        text = "needs pyarrow: pip install 'makeway[parquet]'"
        raise ConfigError("--to parquet", [Problem("", text)]) from None
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    written = []
    for table in TABLES:
        path = _within(folder) / f"{table.name}.parquet"
        schema = pyarrow.schema([(name, kinds[kind]) for name, kind in table.columns.items()])
        part = path.with_name(f".{path.name}.part")
        try:
            with pyarrow.parquet.ParquetWriter(part, schema, compression="zstd") as writer:
                for columns in _batches(table, record):
                    writer.write_table(pyarrow.table(columns, schema=schema))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        written.append(path)
    return written


def _batches(table: Table, record: RecordFile) -> Iterator[dict[str, list[Any]]]:
    rows: Iterator[Row] = table.rows(record)
    while batch := list(itertools.islice(rows, _BATCH)):
        yield dict(zip(table.columns, map(list, zip(*batch, strict=True)), strict=True))


def _within(folder: Path) -> Path:
    """Make the folder.

    :raises ConfigError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = Problem("", f"cannot be written: {error.strerror}")
        raise ConfigError(f"--output {folder}", [problem]) from None
    return folder

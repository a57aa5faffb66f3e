"""``makeway export``: a record in the format of another tool."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from makeway.errors import ConfigError, Problem
from makeway_app.cli.outputs import STDOUT, Output, check_names
from makeway_app.cli.terminal import note
from makeway_report.export.evalys import write_evalys
from makeway_report.export.files import write_csv, write_parquet
from makeway_report.export.perfetto import write_perfetto
from makeway_report.export.sacct import write_sacct
from makeway_report.record_file import RecordFile, read_record, understanding

Writer = Callable[[RecordFile, Callable[[str], object]], list[str]]
FILES: Mapping[str, Writer] = {"perfetto": write_perfetto, "evalys": write_evalys, "sacct": write_sacct}
FOLDERS = {"csv": write_csv, "parquet": write_parquet}


@click.command()
@click.argument("record", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "kind",
    required=True,
    type=click.Choice(sorted([*FILES, *FOLDERS])),
    help="perfetto: a trace for ui.perfetto.dev; evalys: CSV for Evalys; sacct: rows as of sacct -P; csv and "
    "parquet: tables for notebooks.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE|DIR",
    help="Where it goes: a folder for csv and parquet, else a file; - is standard output, FILE.gz is compressed.",
)
def export(record: Path, kind: str, output: str) -> None:
    """Write the RECORD of a replay (`makeway replay --json`) in the format of another tool."""
    found = read_record(record)
    if kind in FOLDERS:
        if output == STDOUT:
            raise ConfigError(
                "--output", [Problem("", f"got -; allowed: a folder, for {kind} is several files")]
            )
        with understanding(record):
            written = FOLDERS[kind](found, Path(output))
        note("note", [f"{output}: {', '.join(path.name for path in written)}"])
        return
    check_names([("--output", output)], [record])
    with understanding(record):
        if output.endswith(".gz"):
            told = _compressed(found, FILES[kind], Path(output))
        else:
            with Output(output) as target:
                told = FILES[kind](found, target.write)
    note("note", told)


def _compressed(record: RecordFile, write: Writer, path: Path) -> list[str]:
    """Write a compressed file, whole or not at all.

    :raises ConfigError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        # Without a date in it, so that the same record makes the same file.
        with part.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
            told = write(record, lambda text: packed.write(text.encode()))
        part.replace(path)
    except OSError as error:
        raise ConfigError(str(path), [Problem("", f"cannot be written: {error.strerror}")]) from None
    finally:
        part.unlink(missing_ok=True)
    return told

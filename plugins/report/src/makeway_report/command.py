"""``makeway report``: turn records into one page."""

from __future__ import annotations

from pathlib import Path

import click

from makeway.cli.outputs import STDOUT, Output, check_names
from makeway.cli.terminal import note
from makeway.errors import ConfigError, Problem
from makeway.readers.record import read_record
from makeway_report.collect import collect
from makeway_report.page import labels, write_runs


@click.command()
@click.argument("records", metavar="RECORD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="Where the page goes; - is standard output."
)
@click.option("--title", default="", metavar="TEXT", help="Heading of the page; else the names of the runs.")
@click.option(
    "--label",
    "given",
    multiple=True,
    metavar="TEXT",
    help="What a run is called, once for each RECORD in their order; else by the names of the files.",
)
def report(records: tuple[Path, ...], output: str, title: str, given: tuple[str, ...]) -> None:
    """Show the RECORDs of replays (``makeway replay --json``) on one page.

    The page is one file that opens in any browser without a network: who ran where and when, who made way for
    whom and why, what it cost, and how the runs differ.
    """
    if given and len(given) != len(records):
        text = f"given {len(given)} times for {len(records)} records; allowed: once for each, or never"
        raise ConfigError("--label", [Problem("", text)])
    check_names([("--output", output)], records)
    opened = [(path, read_record(path)) for path in records]
    names = list(given) or labels(opened)
    with Output(output) as target:
        runs = [collect(record, label) for (_, record), label in zip(opened, names, strict=True)]
        write_runs(runs, target.write, title)
    if output != STDOUT:
        note("note", [f"{output}: {', '.join(names)}"])

"""``makeway report``: turn records into one page."""

from __future__ import annotations

from pathlib import Path

import click

from makeway.errors import ConfigError, Problem
from makeway_app.cli.outputs import STDOUT, Output, check_names
from makeway_app.cli.terminal import note
from makeway_report.page import labels, write_opened
from makeway_report.paper import check_figure, draw
from makeway_report.record_file import read_record, understanding


@click.command()
@click.argument("records", metavar="RECORD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="FILE", help="Where the page goes; - is standard output.")
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="KIND.FORMAT",
    help="Draw a figure for a paper: gantt, waits, utilisation or matrix, with the ending svg, png or pdf; a folder "
    "may stand before it. Repeatable.",
)
@click.option(
    "--columns",
    type=click.IntRange(1, 2),
    default=2,
    show_default=True,
    help="Width of figures, in columns of a page.",
)
@click.option("--title", default="", metavar="TEXT", help="Heading of the page; else the names of the runs.")
@click.option(
    "--label",
    "given",
    multiple=True,
    metavar="TEXT",
    help="What a run is called, once for each RECORD in their order; else by the names of the files.",
)
def report(
    records: tuple[Path, ...],
    output: str | None,
    figures: tuple[str, ...],
    columns: int,
    title: str,
    given: tuple[str, ...],
) -> None:
    """Show the RECORDs of replays (`makeway replay --json`) on one page.

    The page is one file that opens in any browser without a network: which jobs ran where and when, which made
    way for which and why, what it cost, and how the runs differ.
    """
    if given and len(given) != len(records):
        text = f"given {len(given)} times for {len(records)} records; allowed: once for each, or never"
        raise ConfigError("--label", [Problem("", text)])
    if output is None and not figures:
        raise click.UsageError("nothing to make: name a page (-o FILE) or a figure (--figure gantt.svg)")
    for name in figures:
        check_figure(name)
    check_names([("--output", output), *(("--figure", name) for name in figures)], records)
    opened = [(path, read_record(path)) for path in records]
    names = list(given) or labels(opened)
    named = [(record, label) for (_, record), label in zip(opened, names, strict=True)]
    with understanding(*records):
        for name in figures:
            draw(name, named, columns)
        if output is None:
            return
        with Output(output) as target:
            write_opened(named, target.write, title)
    if output != STDOUT:
        note("note", [f"{output}: {', '.join(names)}"])

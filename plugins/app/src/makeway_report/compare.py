"""``makeway compare``, and what ``makeway replay --compare --by-job`` shows: two runs job by job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import RenderableType
from rich.text import Text

from makeway_app.cli.outputs import STDOUT, Output, check_names
from makeway_app.cli.terminal import show
from makeway_app.report import clock, table
from makeway_report.changes import MOST, Changes
from makeway_report.changes import compare as compared
from makeway_report.page import labels
from makeway_report.record_file import RecordFile, read_record, understanding


@click.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("others", metavar="SECOND...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--most", type=click.IntRange(1, 10_000), default=MOST, show_default=True, help="Jobs to name.")
@click.option("--json", "json_file", metavar="FILE", help="Write the same as JSON; - is standard output.")
def compare(first: Path, others: tuple[Path, ...], most: int, json_file: str | None) -> None:
    """Say whose waiting changed most between the records FIRST and SECOND, and why.

    The reason is the first decision about the job that differs.
    """
    paths = (first, *others)
    check_names([("--json", json_file)], paths)
    opened = [(path, read_record(path)) for path in paths]
    names = labels(opened)
    records = [record for _, record in opened]
    with understanding(*paths):
        found = [
            compared(records[0], record, (names[0], name), most)
            for record, name in zip(records[1:], names[1:], strict=True)
        ]
    if json_file is not None:
        with Output(json_file) as output:
            output.write(json.dumps([each.as_dict() for each in found], indent=1, ensure_ascii=False) + "\n")
    if json_file != STDOUT:
        show(renderables(found))


def by_job(records: Sequence[tuple[Path, str]]) -> Iterator[RenderableType]:
    """Yield what ``makeway replay --by-job`` shows: each further run against the first.

    :param records: each with what its run is called.
    """
    opened: list[tuple[RecordFile, str]] = [(read_record(path), label) for path, label in records]
    (first, name), *others = opened
    return renderables([compared(first, other, (name, label)) for other, label in others])


def renderables(found: Sequence[Changes]) -> Iterator[RenderableType]:
    """Yield counts, a table and reasons for each comparison."""
    for each in found:
        alone = f", {each.alone:,} in one run only" if each.alone else ""
        yield Text(
            f"jobs that wait longer under {each.second} than under {each.first}: {each.longer:,}, "
            f"shorter: {each.shorter:,}, the same: {each.same:,}{alone}"
        )
        if not each.most:
            continue
        made = table("job", "user", each.first, each.second, "change", left=2)
        for job in each.most:
            change = job.after - job.before
            sign = "+" if change > 0 else "-"
            made.add_row(
                job.job, job.user, clock(job.before), clock(job.after), f"{sign}{clock(abs(change))}"
            )
        yield made
        lines = []
        for job in each.most:
            lines += [f"{job.job}", f"  {each.first}: {job.first}", f"  {each.second}: {job.second}"]
        yield Text("\n".join(["the first decision that differs", *lines]))

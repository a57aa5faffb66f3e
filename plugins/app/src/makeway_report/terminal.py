"""Draw a run in the terminal: jobs over nodes if there are few, and cores in use and jobs waiting as sparklines."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from rich.console import RenderableType
from rich.text import Text

from makeway.hostlist import expand_hostlist
from makeway_app.report import clock, instant
from makeway_report.places import Places
from makeway_report.record_file import RecordFile, read_record
from makeway_report.rest import Rest

MOST_NODES, MOST_JOBS = 40, 200
"""What a terminal can show job by job."""
_PLAIN_WIDTH = 100
"""Columns where there is no terminal."""
_COLOURS = ("blue", "dark_orange", "green", "magenta", "cyan", "red3")
_BLOCKS = " ▁▂▃▄▅▆▇█"
RUNNING, OVER, SUSPENDED, LOST = "=", "#", "-", "x"
"""What a bar is made of: running, running over a suspended job, suspended, running for nothing."""
LEGEND = (
    f"{RUNNING} running, {OVER} running over a suspended job, {SUSPENDED} suspended, "
    f"{LOST} run whose work was lost"
)


@attrs.frozen
class Piece:
    """A stretch of a job on a node."""

    start: float
    end: float
    job: str
    partition: str
    mark: str


def gantt(records: Sequence[tuple[Path, str]]) -> Iterator[RenderableType]:
    """Yield the pictures of runs.

    :param records: each with what its run is called.
    """
    for path, label in records:
        yield picture(read_record(path), label if len(records) > 1 else "", _width())


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH


def picture(record: RecordFile, label: str, width: int) -> Text:
    """Return the picture of one run, so many columns wide."""
    places = Places(record.cluster)
    jobs = []
    end, count = 0.0, 0
    for job_id, job in record.jobs():
        count += 1
        end = max([end, *(each["end"] for each in job["intervals"])])
        if count <= MOST_JOBS:
            jobs.append((job_id, job))
    names = places.names
    margin = max([8, *(len(name) for name in names[: MOST_NODES + 1])]) + 1
    across = max(20, width - margin)
    lines = [Text(label, style="bold")] if label else []
    if len(names) <= MOST_NODES and count <= MOST_JOBS:
        lines += _nodes(jobs, names, end, margin, across, record)
        lines.append(_axis(end, margin, across))
        lines.append(Text(LEGEND, style="dim"))
    else:
        told = f"{count:,} jobs on {len(names):,} nodes: jobs over nodes are drawn up to {MOST_JOBS} and {MOST_NODES}"
        lines.append(Text(f"{told}; makeway report draws all", style="dim"))
    lines += _sparklines(record, places, end, margin, across)
    lines.append(_axis(end, margin, across))
    return Text("\n").join(lines)


# ----------------------------------------------------------------------------------- jobs over nodes
def _nodes(
    jobs: Sequence[tuple[str, Mapping[str, Any]]],
    names: Sequence[str],
    end: float,
    margin: int,
    across: int,
    record: RecordFile,
) -> list[Text]:
    pieces: dict[str, list[Piece]] = {name: [] for name in names}
    for job_id, job in jobs:
        for each in job["intervals"]:
            if "nodes" not in each or each["state"] not in ("RUNNING", "SUSPENDED"):
                continue
            mark = SUSPENDED if each["state"] == "SUSPENDED" else RUNNING
            if mark == RUNNING and job["core_seconds_lost"] > 0 and each["restart"] < job["restarts"]:
                mark = LOST
            for node in expand_hostlist(each["nodes"]):
                piece = Piece(each["start"], each["end"], job_id, job["partition"], mark)
                pieces.setdefault(node, []).append(piece)
    tiers = sorted(record.cluster["partitions"], key=lambda each: -each["priority_tier"])
    colours = {each["name"]: _COLOURS[at % len(_COLOURS)] for at, each in enumerate(tiers)}
    return [_row(name, pieces[name], end, margin, across, colours) for name in names]


def _row(
    name: str, pieces: Sequence[Piece], end: float, margin: int, across: int, colours: Mapping[str, str]
) -> Text:
    """Return one node: in each cell the job that ran there longest, its id where it fits."""
    step = max(end, 1e-9) / across
    cells = [_cell(pieces, at * step, (at + 1) * step) for at in range(across)]
    row = Text(name.ljust(margin))
    at = 0
    while at < across:
        cell, first = cells[at], at
        while at < across and cells[at] == cell:
            at += 1
        size = at - first
        if cell is None:
            row.append(" " * size)
            continue
        job, partition, mark = cell
        text = job.center(size, mark) if len(job) <= size else mark * size
        colour = colours.get(partition, "white")
        row.append(text, style=f"dim {colour}" if mark == SUSPENDED else colour)
    return row


def _cell(pieces: Sequence[Piece], start: float, end: float) -> tuple[str, str, str] | None:
    """Return job, partition and mark of a cell; None: no job was there."""
    longest: dict[bool, tuple[float, Piece]] = {}
    for piece in pieces:
        share = min(end, piece.end) - max(start, piece.start)
        stopped = piece.mark == SUSPENDED
        if share > 0 and (stopped not in longest or share > longest[stopped][0]):
            longest[stopped] = (share, piece)
    if not longest:
        return None
    ran, stopped_ = longest.get(False), longest.get(True)
    if ran is None:
        assert stopped_ is not None
        return stopped_[1].job, stopped_[1].partition, SUSPENDED
    piece = ran[1]
    over = stopped_ is not None and stopped_[1].job != piece.job and piece.mark == RUNNING
    return piece.job, piece.partition, OVER if over else piece.mark


# -------------------------------------------------------------------------------------- sparklines
def _sparklines(record: RecordFile, places: Places, end: float, margin: int, across: int) -> list[Text]:
    sums = Rest(end)
    for _, job in record.jobs():
        sums.add(job, places)
    found = sums.as_json()
    total = record.cluster["cores"]
    used, waiting = (_means(found[name], across) for name in ("cores", "waiting"))
    most = max(waiting, default=0.0)
    return [
        Text("cores".ljust(margin) + _spark(used, total)),
        Text("waiting".ljust(margin) + _spark(waiting, most)),
        Text(
            f"{'':{margin}}cores in use, of {total:,}; jobs waiting, at most {most:,.0f} on average over a column",
            style="dim",
        ),
    ]


def _means(values: Sequence[float], across: int) -> list[float]:
    """Return the means of so many parts of equal length."""
    bounds = [round(at * len(values) / across) for at in range(across + 1)]
    pairs = itertools.pairwise(bounds)
    return [max(0.0, sum(values[low:high]) / max(1, high - low)) for low, high in pairs]


def _spark(values: Sequence[float], most: float) -> str:
    """Return a block per value; what is more than nothing is seen."""
    if most <= 0:
        return " " * len(values)
    top = len(_BLOCKS) - 1
    return "".join(
        _BLOCKS[min(top, max(int(value > most / 1000), round(top * value / most)))] for value in values
    )


def _axis(end: float, margin: int, across: int) -> Text:
    left, right = "0 s", clock(end) if end >= 60 else instant(end)
    return Text(f"{'':{margin}}{left}{right:>{across - len(left)}}", style="dim")

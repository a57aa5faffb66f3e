"""Replays of sacct's output that begin with the jobs that ran when it begins; figures by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from makeway_testing.command_line import Done, Run

CONFIG = """
[[node]]
name = "n[1-3]"
cpus = 4
[[partition]]
name = "batch"
default = true
oversubscribe = "NO"
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core"]
[scheduler]
clockwork = "ideal"
[workload]
warm = true
"""
HEADER = "JobID|User|Partition|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS|AllocTRES|State|NodeList"


def row(job: int, submit: str, start: str, end: str, size: tuple[int, int], nodes: str) -> str:
    """Return a line of sacct; times as ``HH:MM``."""

    def at(text: str) -> str:
        return f"2025-06-01T{text}:00" if text != "Unknown" else text

    def minutes(text: str) -> int:
        return int(text[:2]) * 60 + int(text[3:])

    ran = minutes(end) - minutes(start)
    return (
        f"{job}|ada|batch|{at(submit)}|{at(start)}|{at(end)}|{ran // 60:02}:{ran % 60:02}:00|05:00:00|"
        f"{size[0]}|{size[1]}|cpu={size[1]},node={size[0]}|COMPLETED|{nodes}"
    )


def replay(run: Run, folder: Path, *rows: str) -> tuple[Done, list[tuple[float, str, str, str]]]:
    """Replay rows; return how that went, and what happened to jobs."""
    (folder / "site.toml").write_text(CONFIG)
    (folder / "june.sacct").write_text("\n".join((HEADER, *rows)) + "\n")
    log = folder / "run.log"
    done = run("replay", folder / "site.toml", folder / "june.sacct", "--log", log)
    lines = map(json.loads, log.read_text().splitlines())
    return done, [
        (line["at"] / 60, line["job"], line["state"], line.get("nodes", ""))
        for line in lines
        if line.get("kind") == "state" and line["state"] != "PENDING"
    ]


def test_jobs_run_on_where_they_were(run: Run, tmp_path: Path) -> None:
    """The window begins at 10:00, with the first end. Jobs 2 and 3 hold a half of n3 each.

    Placed anew they would stand on n1, and 4 would start on n2 and n3.
    """
    done, found = replay(
        run,
        tmp_path,
        row(1, "08:00", "08:30", "10:00", (1, 4), "n1"),
        row(2, "08:00", "09:00", "11:00", (1, 2), "n3"),
        row(3, "09:30", "09:30", "12:00", (1, 2), "n3"),
        row(4, "09:50", "10:00", "10:10", (2, 8), "n[1-2]"),
        row(5, "10:05", "13:10", "13:30", (3, 12), "n[1-3]"),
    )
    assert done.status == 0, done.err
    assert found == [
        (0, "4", "RUNNING", "n[1-2]"),
        (10, "4", "COMPLETED", "n[1-2]"),
        (60, "2", "COMPLETED", "n3"),
        (120, "3", "COMPLETED", "n3"),
        (120, "5", "RUNNING", "n[1-3]"),
        (140, "5", "COMPLETED", "n[1-3]"),
    ]


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ("x7", "june.sacct:4: it ran at the start: no node named 'x7'"),
        ("n1", "june.sacct:4: it ran at the start: no room on n1 beside job 1, which ran there as well"),
        ("n[1", "june.sacct:4: it ran at the start: its nodes cannot be read"),
    ],
)
def test_rows_that_cannot_be_are_named(run: Run, tmp_path: Path, nodes: str, problem: str) -> None:
    """The others run all the same."""
    done, found = replay(
        run,
        tmp_path,
        row(1, "08:00", "08:30", "10:30", (1, 4), "n1"),
        row(9, "08:00", "08:30", "10:00", (1, 4), "n3"),
        row(2, "08:00", "09:00", "11:00", (1, 4), nodes),
        row(3, "10:10", "10:10", "11:00", (1, 4), "n2"),
    )
    assert done.status == 3
    assert problem in done.out
    assert {job for _, job, _, _ in found} == {"1", "3"}


def test_a_row_without_nodes_goes_where_there_is_room(run: Run, tmp_path: Path) -> None:
    """Job 1 is on n1 by the log; job 2 started earlier, but yields n1 to it."""
    done, found = replay(
        run,
        tmp_path,
        row(1, "08:00", "09:00", "10:20", (1, 4), "n1"),
        row(2, "08:00", "08:30", "11:00", (1, 4), ""),
        row(9, "08:00", "08:30", "10:00", (1, 4), "n3"),
    )
    assert done.status == 0, done.err
    assert found == [(20, "1", "COMPLETED", "n1"), (60, "2", "COMPLETED", "n2")]

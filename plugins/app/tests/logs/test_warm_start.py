"""Replays that begin with the jobs that ran when the log begins (``workload.warm``), on SWF; figures by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from makeway.config import Config, WorkloadTable, WorldTable
from makeway.errors import ConfigError
from makeway.readers.api import Workload
from makeway_app.cli.running import begun_warm
from makeway_app.replay import Options
from makeway_testing.command_line import Run

CONFIG = """
[[node]]
name = "n[1-4]"
cpus = 1
[[partition]]
name = "all"
default = true
[scheduler]
type = "easy"
clockwork = "ideal"
"""
WARM = ("--set", "workload.warm=true")


def row(number: int, submit: int, wait: int, run_time: int, size: int) -> str:
    """Return a line of SWF."""
    return f"{number} {submit} {wait} {run_time} {size} -1 -1 {size} {run_time} -1 1 1 1 1 1 1 -1 -1"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a configuration of four nodes."""
    (tmp_path / "site.toml").write_text(CONFIG)
    return tmp_path / "site.toml"


def log_of(site: Path, rows: Sequence[str]) -> Path:
    """Write a log beside the configuration."""
    path = site.with_name("log.swf")
    path.write_text("\n".join(rows) + "\n")
    return path


def moves(path: Path) -> list[tuple[float, str, str]]:
    """Return instant, job and state of what happened to jobs, but not their submissions."""
    lines = map(json.loads, path.read_text().splitlines())
    return [
        (line["at"], line["job"], line["state"])
        for line in lines
        if line.get("kind") == "state" and line["state"] != "PENDING"
    ]


def test_jobs_submitted_before_the_log_run_at_its_beginning(run: Run, site: Path, tmp_path: Path) -> None:
    """Job 4 is over; 1 and 2 hold three nodes; 3 waits for all four, so that 5 slips in."""
    rows = [row(1, -100, 10, 300, 2), row(2, -50, 40, 20, 1), row(3, -30, 40, 50, 4), row(4, -200, 0, 100, 4)]
    swf = log_of(site, [*rows, row(5, 5, 0, 30, 1)])
    log, result = tmp_path / "run.log", tmp_path / "run.json"
    done = run("replay", site, swf, *WARM, "--log", log, "--json", result)
    assert done.status == 0, done.err
    assert moves(log) == [
        (5.0, "5", "RUNNING"),
        (10.0, "2", "COMPLETED"),
        (35.0, "5", "COMPLETED"),
        (210.0, "1", "COMPLETED"),
        (210.0, "3", "RUNNING"),
        (260.0, "3", "COMPLETED"),
    ]
    said = json.loads(result.read_text())
    assert said["metrics"]["mean_wait"] == (240 + 0) / 2  # of jobs that started in this replay
    assert "2 jobs ran then, 1 waited, 1 had ended" in done.err


def test_without_such_rows_the_first_end_is_the_beginning(run: Run, site: Path, tmp_path: Path) -> None:
    """From second 70 of the log on, when job 3 ends, the log has all jobs that ran."""
    rows = [row(1, 0, 0, 100, 2), row(2, 10, 0, 200, 1), row(3, 20, 0, 50, 1), row(4, 60, 150, 10, 4)]
    swf = log_of(site, [*rows, row(5, 80, 130, 5, 4)])
    log = tmp_path / "run.log"
    done = run("replay", site, swf, *WARM, "--log", log)
    assert done.status == 0, done.err
    assert moves(log) == [
        (30.0, "1", "COMPLETED"),
        (140.0, "2", "COMPLETED"),
        (140.0, "4", "RUNNING"),
        (150.0, "4", "COMPLETED"),
        (150.0, "5", "RUNNING"),
        (155.0, "5", "COMPLETED"),
    ]
    assert "begins 70 s after the first submission: 2 jobs ran then, 1 waited, 1 had ended" in done.err


def test_a_job_that_has_no_room_is_named(run: Run, site: Path) -> None:
    """Three nodes and two do not fit on four; the one that started later is left out."""
    swf = log_of(site, [row(1, -9, 0, 50, 3), row(2, -8, 0, 50, 2), row(3, 0, 0, 5, 1)])
    done = run("replay", site, swf, *WARM)
    assert done.status == 3
    assert "log.swf:2: it ran at the start: no room is left for it" in done.out
    assert run("replay", site, swf, *WARM, "--allow-unusable").status == 0


def test_a_job_of_which_it_is_not_known_whether_it_ran(run: Run, site: Path) -> None:
    """That is usual for the format, and no fault."""
    swf = log_of(site, [row(1, -9, 0, 50, 1), row(2, -8, -1, 50, 1), row(3, 0, 0, 5, 1)])
    done = run("replay", site, swf, *WARM)
    assert done.status == 0
    assert "log.swf:2: submitted before the start, and the log does not say whether it ran" in done.out


def test_every_column_of_a_comparison_begins_alike(run: Run, site: Path) -> None:
    """The other configuration places the jobs again."""
    swf = log_of(site, [row(1, -9, 0, 50, 3), row(3, 0, 0, 5, 1)])
    done = run("replay", site, swf, *WARM, "--compare", "scheduler.type=builtin")
    assert done.status == 0, done.err
    assert done.err.count("1 job ran then") == 1


def test_cold_replays_name_the_setting(run: Run, site: Path) -> None:
    """A row from before the log is of no use to a replay that begins empty."""
    swf = log_of(site, [row(1, -9, 0, 50, 3), row(3, 0, 0, 5, 1)])
    done = run("replay", site, swf)
    assert done.status == 3
    assert "submit time is -9; allowed: 0 or more, or workload.warm = true" in done.out


def test_explain_begins_alike(run: Run, site: Path) -> None:
    """It tells of a job that waits for one that ran at the start."""
    swf = log_of(site, [row(1, -9, 0, 50, 4), row(3, 0, 41, 5, 1)])
    done = run("explain", site, swf, "--job", "3", *WARM)
    assert done.status == 0, done.err
    assert "41" in done.out


def test_commands_of_second_0_count(run: Run, site: Path, tmp_path: Path) -> None:
    """A job that ran at the start is cancelled at once."""
    swf = log_of(site, [row(1, -9, 0, 50, 4), row(3, 1, 41, 5, 1)])
    log = tmp_path / "run.log"
    done = run("replay", site, swf, *WARM, "--do", "0 cancel 1", "--log", log)
    assert done.status == 0, done.err
    assert (0.0, "1", "CANCELLED") in moves(log)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            ("--from", "STATE.json"),
            "workload.warm: got true, but the state of --from says who runs at the start",
        ),
        (("--world", "world/simulated"), ""),
    ],
)
def test_what_cannot_be_is_said(
    run: Run, site: Path, tmp_path: Path, more: tuple[str, str], problem: str
) -> None:
    """One line; the simulated world by name is fine."""
    (tmp_path / "STATE.json").write_text('{"makeway_state": 1}')
    swf = log_of(site, [row(1, -9, 0, 50, 3), row(3, 0, 0, 5, 1)])
    option, name = more
    done = run("replay", site, swf, *WARM, option, tmp_path / name if option == "--from" else name)
    assert (done.status != 0) is bool(problem), done.err
    assert problem in done.err


def test_other_worlds_begin_with_what_they_hold() -> None:
    """Only the world can place jobs there."""
    workload = Workload(name="log.swf", jobs=iter(()))
    config = Config(workload=WorkloadTable(warm=True), world=WorldTable(name="world/of_mine"))
    with pytest.raises(ConfigError, match="it is for the simulated world"):
        begun_warm(Options(), workload, config)


def test_a_workload_without_starts_cannot_begin_warm(run: Run, site: Path, tmp_path: Path) -> None:
    """makeway's own format says what was submitted, not what happened."""
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text('{"id": "1", "run_time": 5}\n')
    done = run("replay", site, jobs, *WARM)
    assert done.status == 2
    assert "workload.warm: got true, but jobs.jsonl does not say when its jobs started" in done.err

"""Replays that begin with a full machine: ``--state-at`` writes a state, ``--from`` goes on from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from makeway_testing.command_line import Run

CONFIG = """
[[node]]
name = "n[1-2]"
cpus = 4
[[partition]]
name = "low"
default = true
oversubscribe = "FORCE:1"
[[partition]]
name = "high"
priority_tier = 2
oversubscribe = "FORCE:1"
[policy]
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
[scheduler]
type = "easy"
"""
JOBS = "\n".join(
    json.dumps(
        {
            "id": str(at),
            "submit": at * 5.0,
            "run_time": 20.0 + at % 3 * 7,
            "time_limit": 500.0,
            "nodes": 1 + at % 2,
            "partition": "high" if at % 3 == 0 else "low",
        }
    )
    for at in range(1, 13)
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return a configuration and a workload."""
    (tmp_path / "site.toml").write_text(CONFIG)
    (tmp_path / "jobs.jsonl").write_text(JOBS)
    return tmp_path / "site.toml", tmp_path / "jobs.jsonl"


def moves(path: Path) -> list[dict[str, object]]:
    """Return what happened to jobs, by a log."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        {key: line[key] for key in ("at", "kind", "job", "state", "nodes", "preemptor") if key in line}
        for line in lines
        if line.get("kind") in ("state", "preempt")
    ]


@pytest.mark.parametrize("at", [12, 31, 47, 80])
def test_a_run_goes_on_from_its_state(run: Run, files: tuple[Path, Path], tmp_path: Path, at: int) -> None:
    """The second half is what the whole run did after that instant."""
    config, jobs = files
    state, whole, rest = tmp_path / "STATE.json", tmp_path / "whole.log", tmp_path / "rest.log"
    assert run("replay", config, jobs, "--state-at", at, state, "--log", whole).status == 0
    assert run("replay", config, jobs, "--from", state, "--log", rest).status == 0
    assert moves(rest) == [line for line in moves(whole) if float(str(line["at"])) > at]


def test_a_state_written_by_hand_is_a_full_machine(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    """The job that has run for 100 of its 130 s holds both nodes for 30 s more."""
    state, log = tmp_path / "STATE.json", tmp_path / "run.log"
    jobs = [
        {
            "spec": {"id": "old", "run_time": 130.0, "min_nodes": 2, "partitions": ["high"]},
            "state": "RUNNING",
            "started_at": -100.0,
            "allocation": {"nodes": "n[1-2]"},
        },
        {"spec": {"id": "new", "submit_at": -10.0, "run_time": 5.0, "partitions": ["high"]}},
    ]
    state.write_text(json.dumps({"makeway_state": 1, "jobs": jobs}))
    done = run("replay", files[0], "--from", state, "--log", log)
    assert done.status == 0, done.err
    found = [(line["at"], line["job"], line["state"]) for line in moves(log)]
    assert found == [
        (30.0, "old", "COMPLETED"),
        (30.0, "new", "RUNNING"),
        (35.0, "new", "COMPLETED"),
    ]


def test_another_policy_can_go_on_from_there(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    """Both columns begin with the same full machine."""
    config, jobs = files
    state = tmp_path / "STATE.json"
    run("replay", config, jobs, "--state-at", 12, state)
    done = run("replay", config, jobs, "--from", state, "--compare", "scheduler.type=builtin")
    assert done.status == 0, done.err
    assert "scheduler.type=builtin" in done.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--from", "nowhere.json"), "nowhere.json"),
        (("--from", "STATE.json", "--until", "3"), "--until: got 3, which is before the state, taken at 10"),
        (("--from", "STATE.json", "--world", "simulated"), "--from: is for the simulated world"),
    ],
)
def test_what_cannot_be_is_said(
    run: Run, files: tuple[Path, Path], tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    """One line with the option."""
    (tmp_path / "STATE.json").write_text('{"makeway_state": 1, "at": 10.0}')
    given = [str(tmp_path / each) if each.endswith(".json") else each for each in arguments]
    done = run("replay", *files, *given)
    assert done.status != 0
    assert problem in done.err

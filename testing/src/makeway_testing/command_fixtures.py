"""Fixtures for tests of commands: the command line, and a small cluster on which one job displaces the other.

A ``conftest.py`` imports those that its tests ask for. The configuration names ``preempt/partition_prio``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from makeway_testing.command_line import Install, Run, command_line, distributions

CONFIG = """
[[node]]
name = "n[1-2]"
cpus = 4

[[partition]]
name = "low"
default = true

[[partition]]
name = "high"
priority_tier = 2

[policy]
preempt = "preempt/partition_prio"
preempt_mode = ["requeue"]
"""

JOBS = """
[[job]]
id = 1
name = "long"
user = "ada"
nodes = 2
run_time = 100

[[job]]
id = 2
name = "rush"
user = "eve"
partition = "high"
nodes = 1
submit = 10
run_time = 20
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line; nothing but an exit may come out of it."""
    return command_line(monkeypatch)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a configuration of two nodes and two tiers, without jobs."""
    path = tmp_path / "cluster.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def with_jobs(tmp_path: Path) -> Path:
    """Write the same with two jobs, of which the second one displaces the first."""
    path = tmp_path / "with-jobs.toml"
    path.write_text(CONFIG + JOBS)
    return path


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Write the two jobs as a workload of their own."""
    path = tmp_path / "jobs.toml"
    path.write_text(JOBS)
    return path


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that puts a distribution with plugins on the path."""
    return distributions(tmp_path, monkeypatch)


def recorded(run: Run, *args: object) -> dict[str, Any]:
    """Return the record of a replay that ends well."""
    done = run("replay", *args, "--json", "-")
    assert done.status == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def states_of(record: Mapping[str, Any], job: str) -> list[tuple[str, float, float]]:
    """Return the states of a job in a record, each with its begin and end."""
    return [(each["state"], each["start"], each["end"]) for each in record["jobs"][job]["intervals"]]

"""``makeway verify`` from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Install = Callable[..., None]

SCENARIO = """
title = "a job"
duration = 30

[cluster]
nodes = [{ name = "n1", cpus = 1 }]
slurm_conf = '''
SelectType=select/linear
PartitionName=all Nodes=ALL Default=YES
'''

[[job]]
at = 1
name = "a"
runtime = 10
"""


def _recording(ended: float) -> dict[str, Any]:
    spans = [("RUNNING", 1.25, ended), ("COMPLETED", ended, 30.0)]
    intervals = [{"state": state, "start": start, "end": end, "nodes": ["n1"]} for state, start, end in spans]
    job = {"at": 1, "submitted": 1.0, "answered": 1.0, "job_id": 1, "intervals": intervals}
    return {
        "scenario": "one",
        "slurm_version": "22.05.8",
        "observed": 30.0,
        "jobs": {"a": job | {"final_state": "COMPLETED"}},
    }


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Write a scenario and its recording."""
    scenarios, recorded = tmp_path / "scenarios", tmp_path / "recorded"
    scenarios.mkdir()
    recorded.mkdir()
    (scenarios / "one.toml").write_text(SCENARIO)
    (recorded / "one.json").write_text(json.dumps(_recording(11.15)))
    return scenarios, recorded


def test_agrees(run: Run, folders: tuple[Path, Path]) -> None:
    """A file against a file, a file against a folder, a folder against a folder."""
    scenarios, recorded = folders
    for scenario in (scenarios, scenarios / "one.toml"):
        done = run("verify", scenario, "--recorded", recorded)
        assert done.status == 0, done.out
        assert "1 of 1 agree" in done.out
    assert run("verify", scenarios / "one.toml", "--recorded", recorded / "one.json").status == 0


def test_tells_differences(run: Run, folders: tuple[Path, Path]) -> None:
    """And fails."""
    scenarios, recorded = folders
    (recorded / "one.json").write_text(json.dumps(_recording(18.0)))
    done = run("verify", scenarios, "--recorded", recorded)
    assert done.status == 1
    assert "one  differs" in done.out
    assert "a: boundary at 18.00 s: recorded COMPLETED from 18.00" in done.out
    assert "0 of 1 agree" in done.out


def test_chooses_by_name(run: Run, folders: tuple[Path, Path]) -> None:
    """Nothing chosen is an error."""
    scenarios, recorded = folders
    (scenarios / "two.toml").write_text("broken")
    assert run("verify", scenarios, "--recorded", recorded).status == 2
    assert run("verify", scenarios, "--recorded", recorded, "--only", "o*").status == 0
    done = run("verify", scenarios, "--recorded", recorded, "--only", "x*")
    assert done.status == 2
    assert "no scenarios like 'x*' among 2" in done.err


def test_without_the_plugin(run: Run, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a failure, or a skip if that is wanted."""
    monkeypatch.setattr("makeway.registry.naming.installed", list)
    scenarios, recorded = folders
    done = run("verify", scenarios, "--recorded", recorded)
    assert done.status == 1
    assert "cannot play: no plugin named " in done.out
    assert "'select/linear'" in done.out
    done = run("verify", scenarios, "--recorded", recorded, "--skip-missing")
    assert done.status == 0
    assert "1 skipped" in done.out


MAUI = """
from makeway.foreign import Dialect, Judgement
from makeway.hookspecs import hookimpl
from makeway.model import JobSpec

class Recorded:
    release = "Maui 3.3"
    unmodelled = ()
    until = 50.0
    tables = {
        "node": [{"name": "n1"}],
        "partition": [{"name": "p"}],
        "policy": {"select": "select/linear"},
    }
    jobs = (JobSpec(id="1", name="a", run_time=100.0), JobSpec(id="2", name="b"))
    commands = ({"at": 10.0, "command": "cancel", "job": "1"},)
    def __init__(self, name, end):
        self.name, self.end = name, end
    def judge(self, played):
        ended = played.summary["jobs"]["1"]["intervals"][-1]["end"]
        if self.end == "odd":
            return Judgement(not_imitated="undefined behaviour")
        if played.most_jobs_on_a_node == 1 and ended == float(self.end):
            return Judgement()
        return Judgement(differences=(("a", ended, self.end, str(ended)),))

class Reader:
    name = "Maui recordings"
    def claims(self, name, head):
        return head.startswith("maui")
    def recorded(self, source):
        return Recorded(source.name, source.text.split()[1])

@hookimpl
def makeway_dialect():
    return Dialect(recordings=[Reader()])
"""


@pytest.mark.looks_anew
def test_recordings_of_another_scheduler(run: Run, install: Install, tmp_path: Path) -> None:
    """A plugin reads and judges, the command plays."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, end in (("one", "10"), ("two", "20"), ("three", "odd")):
        (folder / name).write_text(f"maui {end}\n")
    (folder / "other").write_text("something else\n")
    assert "no installed plugin knows a recording" in run("verify", folder).err
    install("makeway-maui", {"recordings/odd": "makeway_maui"}, {"makeway_maui": MAUI})
    assert run("verify", folder / "one").status == 0
    done = run("verify", folder)
    assert done.status == 1
    assert "a: states at 10.00 s: recorded 20, replayed 10.0" in done.out
    assert "three  skipped      undefined behaviour" in done.out
    assert "1 of 2 agree; 1 differs; 1 skipped" in done.out
    assert run("verify", folder, "--only", "o*").status == 0


def test_without_a_recording(run: Run, config: Path) -> None:
    """One clear error each, of what cannot be done as asked."""
    done = run("verify", config)
    assert (done.status, "need --recorded" in done.err) == (2, True)
    done = run("verify", "nope", "--recorded=nope")
    assert (done.status, "No such file" in done.err) == (2, True)

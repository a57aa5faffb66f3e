"""Replays agree with what real Slurm did: every scenario, both releases, none special-cased."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway_slurm.recordings.play import play
from makeway_slurm.recordings.recording import read_recording
from makeway_slurm.recordings.scenario import build_scenario, read_scenario_file
from makeway_slurm.recordings.verify import verify_one
from makeway_verify.verdicts import Outcome

HERE = Path(__file__).parent
FOLDERS = [
    (folder, results.name.removeprefix("results-"))
    for folder in ("oracle", "recordings")
    for results in sorted((HERE / folder).glob("results-*"))
]
LISTED = tomllib.loads((HERE / "oracle" / "deviations.toml").read_text())
DEVIATIONS: list[dict[str, Any]] = LISTED["deviation"]
BY_PURPOSE = {(entry["scenario"], entry["release"]): entry for entry in DEVIATIONS}


def cases() -> list[Any]:
    """List every scenario with a recording as (folder, release, name)."""
    found = []
    for folder, release in FOLDERS:
        for result in sorted((HERE / folder / f"results-{release}").glob("*.json")):
            if (HERE / folder / "scenarios" / f"{result.stem}.toml").exists():
                found.append(pytest.param(folder, release, result.stem, id=f"{result.stem}-{release}"))
    return found


def paths(folder: str, release: str, name: str) -> tuple[Path, Path]:
    """Return scenario and recording."""
    base = HERE / folder
    return base / "scenarios" / f"{name}.toml", base / f"results-{release}" / f"{name}.json"


@pytest.mark.parametrize(("folder", "release", "name"), cases())
def test_agrees_with_the_recording(folder: str, release: str, name: str) -> None:
    """State sequences, boundaries within 1.5 s, final states, restarts and nodes are the recorded ones."""
    verdict = verify_one(*paths(folder, release, name), play)
    if verdict.outcome is Outcome.SKIPPED:
        pytest.skip(verdict.why)
    if (name, release) in BY_PURPOSE:
        assert verdict.outcome is not Outcome.AGREES, "it agrees now; take it out of deviations.toml"
        return
    told = "\n".join(map(str, verdict.comparison.differences))
    assert verdict.outcome is Outcome.AGREES, told or verdict.why


SWITCHED = [entry for entry in DEVIATIONS if entry.get("rule")]


@pytest.mark.parametrize("entry", SWITCHED, ids=lambda entry: str(entry["scenario"]))
def test_slurm_s_behaviour_can_be_switched_on(entry: dict[str, Any]) -> None:
    """With the named rule in force the final states and restarts are the recorded ones."""
    scenario_path, recording_path = paths("oracle", entry["release"], entry["scenario"])
    scenario = build_scenario(read_scenario_file(scenario_path), read_recording(recording_path))
    scheduler = attrs.evolve(scenario.config.scheduler, rules={entry["rule"]: True})
    record = play(attrs.evolve(scenario, config=attrs.evolve(scenario.config, scheduler=scheduler)))
    recorded = json.loads(recording_path.read_text())["jobs"]
    for job in record["jobs"].values():
        assert job["final_state"] == recorded[job["name"]]["final_state"]
        assert job["restarts"] == recorded[job["name"]]["restarts"]

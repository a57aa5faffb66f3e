"""While a job is over its time, backfill tries others in its place or not, as recorded on three releases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from makeway.history import Line
from makeway_app.replay import Options, replay
from makeway_slurm.recordings.recording import read_recording
from makeway_slurm.recordings.scenario import build_scenario, read_scenario_file

HERE = Path(__file__).parent / "recordings"
WHILE_OVER_TIME = {"gang_backfill_over_time": (78.0, 109.0), "linear_backfill_over_time": (65.0, 84.0)}


@pytest.mark.parametrize("name", WHILE_OVER_TIME)
@pytest.mark.parametrize("release", ["22.05", "24.11", "26.05"])
def test_others_are_tried_as_recorded(name: str, release: str) -> None:
    """One that was tried in vain waits for resources until the next look; else each waits for the one before it."""
    path = HERE / f"results-{release}" / f"{name}.json"
    scenario = build_scenario(read_scenario_file(HERE / "scenarios" / f"{name}.toml"), read_recording(path))
    lines: list[Line] = []
    run = replay(scenario.config, scenario.jobs, [], Options(until=scenario.duration, sink=lines.append))
    number = {history.job.spec.name: job for job, history in run.recorder.histories.items()}
    first, last = WHILE_OVER_TIME[name]
    recorded = json.loads(path.read_text())["jobs"]
    for job in ("m2", "m3"):
        reasons = [each for interval in recorded[job]["intervals"] for each in interval["reasons"]]
        told = {reason for at, reason in reasons if first <= at <= last}
        ours = {line.data["reason"] for line in lines if line.job == number[job] and first <= line.at <= last}
        assert ("Resources" in ours) is ("Resources" in told), job

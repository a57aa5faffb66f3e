"""Recordings about priorities and limits of a real Slurm 22.05.8 agree to the last digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from makeway.errors import ConfigError
from makeway_slurm.recordings.priority.judge import verdict
from makeway_slurm.recordings.priority.recording import parse
from makeway_verify.command import verify
from makeway_verify.verdicts import Outcome

FOLDER = Path(__file__).with_name("priority")


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_recording(name: str) -> None:
    """Starts within a second, reasons, each cell of sprio and sshare."""
    found = verdict(FOLDER / f"{name}.json", skip_missing=False)
    assert found.outcome is Outcome.AGREES, "\n".join(map(str, found.comparison.differences)) + found.why


def judged(*words: str | Path) -> tuple[int, str]:
    """Return the exit status of ``makeway verify`` and what it printed."""
    done = CliRunner().invoke(verify, [str(word) for word in words])
    return done.exit_code, done.output


def test_a_folder_is_judged_by_the_command(tmp_path: Path) -> None:
    """Recordings hold their scenarios: a folder of them needs nothing else, nor does one that has them in results."""
    status, text = judged(FOLDER, "--only", "prio_*")
    count = len(list(FOLDER.glob("prio_*.json")))
    assert (status, f"{count} of {count} agree" in text) == (0, True), text
    results = tmp_path / "results"
    results.mkdir()
    for name in ("prio_factors.json", "README.md"):
        (results / name).write_bytes((FOLDER / name).read_bytes())
    status, text = judged(tmp_path)
    assert (status, "1 of 1 agree" in text) == (0, True), text


def test_a_recording_that_differs(tmp_path: Path) -> None:
    """One cell of sprio is another one: the status says so, and the line names it."""
    before = (FOLDER / "prio_factors.json").read_text(encoding="utf-8")
    key = '"priority": "'
    at = before.index(key, before.index('"what": "sprio"')) + len(key)
    (tmp_path / "one.json").write_text(before[:at] + "9" + before[at:], encoding="utf-8")
    status, text = judged(tmp_path / "one.json")
    assert (status, "prio_factors" in text, "differs" in text) == (1, True, True), text


def test_a_broken_recording(tmp_path: Path) -> None:
    """It is named, with what is wrong."""
    (tmp_path / "one.json").write_text('{\n "slurm_version": "22.05.8",\n "scenario": {', encoding="utf-8")
    done = CliRunner().invoke(verify, [str(tmp_path)])
    text = done.output + str(done.exception)
    assert done.exit_code
    assert "one.json" in text
    assert "not valid JSON" in text


@pytest.mark.parametrize(("told", "status"), [("Partition_Limit", 0), ("00:06:00", 1)])
def test_a_time_limit_that_was_recorded(tmp_path: Path, told: str, status: int) -> None:
    """It is compared, unless it is still that of the partition."""
    before = (FOLDER / "limit_tres.json").read_text(encoding="utf-8")
    (tmp_path / "one.json").write_text(before.replace('"00:05:00"', f'"{told}"'), encoding="utf-8")
    found, text = judged(tmp_path / "one.json")
    assert found == status, text


def test_a_time_limit_that_is_none() -> None:
    """It is named with its place."""
    before = (FOLDER / "limit_tres.json").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"jobs\.\w+\.last\.TimeLimit: got 'soon'; expected a time"):
        parse(before.replace('"00:05:00"', '"soon"'), "one.json")


@pytest.mark.parametrize(("deleted", "status"), [(True, 0), (False, 1)])
def test_a_reservation_that_was_deleted(tmp_path: Path, deleted: bool, status: int) -> None:
    """What asks for it is held in a state of its own (slurm-priority-and-limits 9 no. 6), and in that case alone."""
    told = json.loads((FOLDER / "resv_named.json").read_text(encoding="utf-8"))
    told["tables"] = told["scenario"]["table"] = []
    told["scenario"]["job"] = [each for each in told["scenario"]["job"] if each["name"] != "tiny"]
    del told["jobs"]["tiny"]  # it starts once the reservation is gone
    if deleted:
        action = {"at": 20, "command": ["scontrol", "delete", "ReservationName=later"]}
        told["scenario"]["action"].append(action)
        told["actions"].append({**action, "done": 20.02, "rc": 0, "stdout": "", "stderr": ""})
    waits = told["jobs"]["before"]["changes"][0]
    told["jobs"]["before"]["changes"] = [
        waits,
        {
            **waits,
            "t": 20.5,
            "state": "RESV_DEL_HOLD",
            "reason": "Reservation_later_was_deleted",
            "priority": 0,
        },
    ]
    (tmp_path / "one.json").write_text(json.dumps(told), encoding="utf-8")
    found, text = judged(tmp_path / "one.json")
    assert found == status, text


def test_commands_that_were_recorded_as_text() -> None:
    """A table of rows has no text, and one of text keeps it."""
    found = parse((FOLDER / "resv_maintenance.json").read_text(encoding="utf-8"), "resv_maintenance.json")
    texts = {table.what: table.text for table in found.tables}
    assert "ReservationName=service" in (texts["scontrol -o show reservation"] or "")
    assert not texts["squeue"]

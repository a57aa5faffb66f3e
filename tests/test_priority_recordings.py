"""Recordings about priorities and limits of a real Slurm 22.05.8 agree to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway_slurm.recordings.priority.judge import verdict
from makeway_verify.verdicts import Outcome

FOLDER = Path(__file__).with_name("priority")


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_recording(name: str) -> None:
    """Starts within a second, reasons, each cell of sprio and sshare."""
    found = verdict(FOLDER / f"{name}.json", skip_missing=False)
    assert found.outcome is Outcome.AGREES, "\n".join(map(str, found.comparison.differences)) + found.why

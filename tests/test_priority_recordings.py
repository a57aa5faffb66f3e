"""Recordings about priorities and limits of a real Slurm 22.05.8: what agrees to the last digit, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway.verdicts import Outcome
from makeway_slurm.recordings.priority.judge import verdict

FOLDER = Path(__file__).with_name("priority")
NOT_YET = {
    "part_limits_any": "selectors go by the partition's MaxNodes even where a QOS lifts it",
    "resv_maintenance": "reservations are not modelled",
    "topology_tree": "topology is not modelled",
}
"""Recording -> why it does not agree."""


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_recording(name: str) -> None:
    """Starts within a second, reasons, each cell of sprio and sshare; those that differ are listed with the cause."""
    found = verdict(FOLDER / f"{name}.json", skip_missing=False)
    if name in NOT_YET:
        assert found.outcome in (Outcome.DIFFERS, Outcome.SKIPPED), f"{name} agrees now: take it off the list"
    else:
        assert found.outcome is Outcome.AGREES, "\n".join(map(str, found.comparison.differences)) + found.why

"""The study of docs/xdmod.md gives the figures that the page states."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAME = "xdmod-pozidriv.sacct.gz"
FOLDERS = (os.environ.get("MAKEWAY_WORKLOADS", ""), str(ROOT.parent / "shared" / "workloads"))
LOG = next((Path(folder) / NAME for folder in FOLDERS if folder and (Path(folder) / NAME).exists()), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(LOG is None, reason=f"{NAME} is not here; MAKEWAY_WORKLOADS names its folder"),
]


def stated(mode: str) -> str:
    """Return the page's row of figures for a mode."""
    page = (ROOT / "docs" / "xdmod.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in page if line.startswith(f"| {mode} | ") and line.count("|") == 9)


@pytest.mark.parametrize("mode", ["pinned", "submitted"])
def test_the_page_states_what_the_study_finds(mode: str) -> None:
    """The log reads whole, and victims, precision and recall are those of the page."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "xdmod" / "study.py"), str(LOG), "--mode", mode],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "11704 jobs, 0 rows unusable, 86 really preempted"
    assert lines[-1] == stated(mode)

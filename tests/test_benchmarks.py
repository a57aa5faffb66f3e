"""Run the suite of benchmarks as people do, with its quickest figure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)


@pytest.mark.slow
def test_a_figure_is_printed_and_written(tmp_path: Path) -> None:
    """With its peer and the ratio of the two; the file says the same."""
    done = _suite("--only", "read SWF", "--rounds", "1", "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    heading, _, row = done.stdout.splitlines()
    assert heading == "| figure | value | peer | ratio | target |"
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    found = json.loads((tmp_path / "out.json").read_text())["read SWF"]
    assert cells[0] == "read SWF"
    assert min(found["peer"], found["value"]) > 0.0  # which is more is not for a test on a busy machine
    assert abs(float(cells[3]) - found["value"] / found["peer"]) < 0.1 * float(cells[3])


def test_a_figure_that_is_not_there() -> None:
    """Is an error that names those that are."""
    done = _suite("--only", "nothing like it")
    assert done.returncode == 2
    known = "month: 2,500 jobs, 200 nodes, backfill, requeue; start: --help;"
    assert f"no figure is like 'nothing like it'; there are: {known}" in done.stderr

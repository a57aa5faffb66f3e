"""The page about releases of Slurm: every rule stands under its release, and every recording is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from makeway_slurm_rules import rules

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/slurm-releases.md"
FOLDERS = ("oracle/results-26.11", "oracle/results-22.05", "recordings", "priority")
_ROW = re.compile(r"^\| (?P<change>.*?) \| (?P<here>.*?) \| (?P<shown>.*?) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str, str]]:
    """Return the release, the change, what is said of it and the recordings of each row."""
    found = []
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        release = part.partition("\n")[0]
        found += [
            (release, row["change"], row["here"], row["shown"])
            for row in _ROW.finditer(part)
            if row["here"] not in ("here", "---")
        ]
    return found


@pytest.mark.parametrize(("rule", "release"), rules.changes().items())
def test_each_rule_stands_under_its_release(rule: str, release: str) -> None:
    """Once; a point release is named in the row, unless it is the first."""
    (row,) = (each for each in rows() if f"`{rule}`" in each[2])
    assert row[0] == ".".join(release.split(".")[:2])
    point = re.match(r"([0-9.]+): ", row[1])
    assert (point[1] if point else row[0]) == release


def test_recordings_are_there() -> None:
    """Each is one of a folder of tests."""
    tests = ROOT / "tests"
    known = {path.stem for folder in FOLDERS for path in (tests / folder).rglob("*.json")}
    named = {name for *_, shown in rows() for name in re.findall(r"`([^`]+)`", shown)}
    assert named - known == set()


def test_every_row_says_what_is_done() -> None:
    """Modelled or not, or what happens instead."""
    words = ("modelled", "not modelled", "read", "taken as", "dropped", "trees and", "`check`")
    assert [change for _, change, here, _ in rows() if not here.startswith(words)] == []

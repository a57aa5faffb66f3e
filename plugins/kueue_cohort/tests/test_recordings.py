"""The plugin answers what Kueue's own test tables ask as they state."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from makeway.errors import ConfigError
from makeway.foreign import Judgement
from makeway_app.readers.foreign import FileSource
from makeway_kueue_cohort.recordings import Case, KueueRecordings

FOLDER = Path(__file__).parent / "recordings"
FILES = sorted(FOLDER.glob("*.json"))
OUTSIDE = {"topology", "gate MultiKueueOrchestratedPreemption"}


def case(path: Path) -> Case:
    """Read a case."""
    return KueueRecordings().recorded(FileSource(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recording(path: Path) -> None:
    """The answer is Kueue's; or what the case is about beside quota is said."""
    found = case(path)
    if found.unmodelled:
        assert set(found.unmodelled) <= OUTSIDE
        assert "cycle" in path.stem
    else:
        assert found.answered() == Judgement()


def test_only_cases_of_the_outside_are_left_out() -> None:
    """Five need topology, one a gate of MultiKueue."""
    left_out = Counter(what for path in FILES for what in case(path).unmodelled)
    assert left_out == dict.fromkeys(OUTSIDE, 1) | {"topology": 5}
    assert len(FILES) == 98


@pytest.mark.parametrize(
    ("name", "changed", "differs"),
    [
        ("classic_001_*", {"victims": []}, "low"),
        ("order_001_*", {"order": ["high", "low"]}, "number 1"),
        ("policy_002_*", {"allowed": True}, "allowed"),
        ("cycle_021_*", {"victims": [], "admitted": []}, "use-all"),
    ],
)
def test_a_difference_is_found(tmp_path: Path, name: str, changed: dict[str, Any], differs: str) -> None:
    """A case that expects something else does not pass."""
    data = json.loads(next(FOLDER.glob(name)).read_text())
    data["expected"] = {**data["expected"], **changed}
    path = tmp_path / "other.json"
    path.write_text(json.dumps(data))
    found = case(path).answered().differences
    assert found
    assert any(differs in each[0] for each in found)


def test_the_name_of_a_case_decides_nothing(tmp_path: Path) -> None:
    """Renamed workloads and a renamed case have the same answer."""
    source = next(FOLDER.glob("fair_035_*"))
    text = source.read_text().replace('"x1"', '"other"').replace("fair_035", "something")
    path = tmp_path / "renamed.json"
    path.write_text(text)
    assert case(path).answered() == Judgement()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "no table"),
        ('{"kind": "dance"}', "allowed: decision, cycle"),
        (
            '{"kind": "policy", "name": "x", "expected": {}, "policy": "Any", "preemptor": {}}',
            "candidate: missing",
        ),
    ],
)
def test_a_file_that_is_no_case(tmp_path: Path, text: str, said: str) -> None:
    """The error says what is missing."""
    path = tmp_path / "case.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        case(path)

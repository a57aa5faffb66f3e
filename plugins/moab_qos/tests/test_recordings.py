"""The profile ``maui`` against what Maui 3.3.1 itself did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config
from makeway.errors import ConfigError
from makeway.foreign import Judgement, Played
from makeway.readers.foreign import FileSource
from makeway.replay import Options, replay
from makeway.settings import structure
from makeway_moab_qos.recorded_commands import commands_of
from makeway_moab_qos.recordings import MauiRecordings, oversubscribed

FOLDER = Path(__file__).parent / "recordings"
NOT_IMITATED = {
    **dict.fromkeys(("q5_over_check", "s25_q5_ppt", "s33_frag"), "oversubscribes"),
    **dict.fromkeys(
        ("s2x_cap_33", "s2x_cap_40", "s2x_node_28_resdepth", "s2x_node_33_resdepth"), "table overflows"
    ),
}
"""Recordings of what is no behaviour to copy, and a word of the reason."""


def judged(path: Path) -> Judgement:
    """Play a recording and compare."""
    recorded = MauiRecordings().recorded(FileSource(path))
    assert recorded.unmodelled == ()
    most = 0

    def look(engine: Any) -> None:
        nonlocal most
        nodes = range(len(engine.ledger.cluster.nodes))
        most = max([most, *(len(engine.ledger.jobs_on(index)) for index in nodes)])

    config = structure(recorded.tables, Config, path.name)
    run = replay(config, recorded.jobs, (), Options(until=recorded.until, after_step=look))
    return recorded.judge(Played(summary=run.summary(), most_jobs_on_a_node=most))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_recording(path: Path) -> None:
    """Who was preempted and started in which pass; or the reason why that is no measure."""
    found = judged(path)
    if path.stem in NOT_IMITATED:
        assert NOT_IMITATED[path.stem] in found.not_imitated
    else:
        assert found == Judgement()


def test_a_difference_is_found(tmp_path: Path) -> None:
    """A recording in which somebody else was preempted does not pass."""
    text = (FOLDER / "c01_basic.json").read_text().replace('"action": "requeue"', '"action": "suspend"')
    path = tmp_path / "other.json"
    path.write_text(text)
    (difference,) = judged(path).differences
    assert difference == ("L", 300.0, "suspend", "requeue")


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """With the keys that are missing."""
    path = tmp_path / "bad.json"
    path.write_text('{"name": "x", "passes": 3, "outcome": {}, "jobs": [{"id": "L"}]}')
    with pytest.raises(ConfigError) as caught:
        MauiRecordings().recorded(FileSource(path))
    assert {problem.where for problem in caught.value.problems} == {"nodes", "qos", "config", "jobs[0]"}


def test_unknown_keys_are_named(tmp_path: Path) -> None:
    """A recording that asks for more than can be played is skipped, not guessed."""
    text = (FOLDER / "c01_basic.json").read_text().replace('"passes"', '"weather": "fine", "passes"', 1)
    path = tmp_path / "odd.json"
    path.write_text(text)
    assert MauiRecordings().recorded(FileSource(path)).unmodelled == ("weather",)


def test_oversubscription_is_seen() -> None:
    """One processor too many, from the second pass on."""
    data = {
        "nodes": {"n1": 2},
        "jobs": [{"id": "a", "tasks": 2}, {"id": "b", "tasks": 1}],
        "outcome": {"started": [{"pass": 1, "job": "a"}, {"pass": 2, "job": "b"}]},
    }
    assert oversubscribed(data) == "3 of 2 processors in pass 2"


def test_commands_act_on_the_first_match() -> None:
    """Q10: an expression is anchored, and only one job is meant."""
    typed = {"actions": [{"pass": 2, "cmd": "mjobctl -R [ab]"}, {"pass": 3, "cmd": "dance"}]}
    tables, unread = commands_of(typed, ["ab", "b", "a"], 60.0)
    assert tables == [{"at": 120.0, "command": "requeue", "job": "b", "value": ""}]
    assert len(unread) == 1


@attrs.frozen
class _File:
    name: str
    text: str = ""


@pytest.mark.parametrize(
    ("name", "head", "ours"),
    [
        pytest.param("a.json", '{"passes": 3, "outcome": {}}', True, id="a recording"),
        pytest.param("a.json", '{"slurm_version": "22.05"}', False, id="one of Slurm's"),
        pytest.param("a.toml", '"passes" "outcome"', False, id="no JSON"),
    ],
)
def test_claims(name: str, head: str, ours: bool) -> None:
    """By name and content."""
    assert MauiRecordings().claims(name, head) is ours

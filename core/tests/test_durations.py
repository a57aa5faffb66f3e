"""Lengths of time in settings, as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config
from makeway.errors import ConfigError
from makeway.plain import seconds_of
from makeway.settings import structure


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200.0),
        ("90 min", 5400.0),
        ("1h30m", 5400.0),
        ("1.5 d", 129_600.0),
        ("45s", 45.0),
        ("2 weeks", 1_209_600.0),
        ("02:00:00", 7200.0),
        ("1:30", 90.0),
        ("1-12", 129_600.0),
        ("1-12:00", 129_600.0),
        ("1-00:00:01", 86_401.0),
        ("", None),
        ("2", None),
        ("h", None),
        ("2 parsecs", None),
        ("-1h", None),
        ("1:2:3", None),
    ],
)
def test_what_people_write(text: str, seconds: float | None) -> None:
    """Units, or Slurm's colons: 1:30 is minutes and seconds, 1-12 days and hours. A bare number in quotes is none."""
    assert seconds_of(text) == seconds


def _config(value: Any, key: str = "exempt_time") -> Config:
    table = (
        {"policy": {"preemption": {key: value}}}
        if key != "load"
        else {"node": [{"name": "n", "load": value}]}
    )
    return structure(table, Config, "test")


def test_a_length_of_time_is_taken_where_one_is_meant() -> None:
    """In the file as in ``--set``; a number is seconds."""
    assert _config("2h") == _config(7200) == _config("02:00:00")
    again = structure({"scheduler": {"young_victim_age": "1 min"}}, Config, "test")
    assert again.scheduler.young_victim_age == 60.0


@pytest.mark.parametrize("value", ["soon", "7200"])
def test_what_is_none_is_refused(value: Any) -> None:
    """With examples of what is allowed."""
    with pytest.raises(
        ConfigError, match=r"exempt_time: got .*; allowed: a number of seconds, or a length of time"
    ):
        _config(value)


def test_a_load_is_no_length_of_time() -> None:
    """What is a plain number stays one."""
    with pytest.raises(ConfigError, match="load: got '2h'; allowed: a number"):
        _config("2h", "load")

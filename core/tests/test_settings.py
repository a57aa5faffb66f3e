"""Errors about values of settings: what was given, what is allowed, the nearest match."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from makeway import settings, strictly
from makeway.errors import ConfigError
from makeway.settings import structure


@attrs.frozen(kw_only=True)
class Settings:
    """Settings with closed sets."""

    order: Literal["youngest", "oldest"] = "youngest"
    second: Literal["user", "account"] | None = None
    level: Literal[1, 2] = 1
    by: tuple[Literal["user", "account"], ...] = ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"order": "yungest"}, "order: got 'yungest'; allowed: youngest, oldest; did you mean 'youngest'?"),
        ({"second": "acount"}, "second: got 'acount'; allowed: user, account; did you mean 'account'?"),
        ({"level": 3}, "level: got 3; allowed: 1, 2"),
        ({"level": True}, "level: got True; allowed: 1, 2"),
        ({"by": ["user", "group"]}, "by[1]: got 'group'; allowed: user, account"),
    ],
)
def test_literals(given: dict[str, Any], said: str) -> None:
    """In a field, beside None, in a list; true is not 1."""
    with pytest.raises(ConfigError) as raised:
        structure(given, Settings, "site.toml")
    assert str(raised.value) == f"site.toml: {said}"


def test_literals_that_are_allowed() -> None:
    """They are taken as they are."""
    found = structure({"order": "oldest", "second": "user", "level": 2, "by": ["account"]}, Settings, "x")
    assert found == Settings(order="oldest", second="user", level=2, by=("account",))


class Way(enum.Enum):
    """How."""

    ON = "on"
    OFF = "off"


class Word(enum.StrEnum):
    """Text that is a member of something, too."""

    YES = "yes"


@attrs.frozen(kw_only=True)
class Inner:
    """A table in a table."""

    size: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    weight: float = 0.0


def _loud(text: str) -> str:
    return text.upper()


@attrs.frozen
class Everything(Settings):
    """One field of each kind, and those of its base."""

    name: str
    way: Way = Way.ON
    rate: float | None = None
    inner: Inner = attrs.field(factory=Inner)
    many: tuple[Inner, ...] = ()
    kinds: frozenset[str] = frozenset()
    by_name: Mapping[str, Inner] = attrs.field(factory=dict)
    any_of_it: Mapping[str, Any] = attrs.field(factory=dict)
    either: int | tuple[int, ...] | Inner = 0
    upper: str = attrs.field(default="", converter=_loud)
    made: str = attrs.field(init=False, default="here")
    _hidden: int = 0


RIGHT: list[dict[str, Any]] = [
    {"name": "a"},
    {"name": "a", "way": "off", "rate": 2, "upper": "x", "order": "oldest", "level": 2},
    {"name": "a", "rate": None, "second": None, "kinds": ["a", "b", "a"], "any_of_it": {"x": [1, "2"]}},
    {
        "name": "a",
        "inner": {"size": 3, "weight": 4},
        "many": [{}, {"size": 2}],
        "by_name": {"n": {"size": 5}},
    },
    {"name": "a", "either": 3},
    {"name": "a", "either": [3, 4]},
    {"name": "a", "either": {"size": 2}},
    {"name": "a", "_hidden": 3},
]
WRONG: list[Any] = [
    {},
    7,
    {"name": 1},
    {"name": "a", "made": "there"},
    {"name": "a", "hidden": 3},
    {"name": "a", "way": "of"},
    {"name": "a", "rate": True},
    {"name": "a", "rate": float("nan"), "level": True},
    {"name": "a", "inner": {"size": 0}},
    {"name": "a", "inner": {"size": 2.0}, "many": [{}, {"size": "2"}, 3]},
    {"name": "a", "by_name": {"n": {"siez": 5}}, "kinds": "ab"},
    {"name": "a", "either": "3"},
    {"name": "a", "either": True},
]


@pytest.mark.parametrize("given", RIGHT, ids=str)
def test_what_is_right_is_the_same_at_a_glance(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built without a second look, it equals what the second look builds."""
    slow = strictly.structure(given, Everything, "x")
    monkeypatch.setattr(strictly, "structure", None)
    found = structure(given, Everything, "x")
    assert found == slow
    assert repr(found) == repr(slow)  # 2 is no 2.0


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_what_is_wrong_is_told_by_the_second_look(given: Any) -> None:
    """In its words."""
    with pytest.raises(ConfigError) as slow:
        strictly.structure(given, Everything, "x", "at")
    with pytest.raises(ConfigError) as raised:
        structure(given, Everything, "x", "at")
    assert str(raised.value) == str(slow.value)


def test_kinds_that_only_the_second_look_knows() -> None:
    """A path is one; so is text that is a member of something."""

    @attrs.frozen
    class Rare:
        where: Path = Path()
        word: Word | int = 0

    def told(look: Any, given: dict[str, Any]) -> str:
        try:
            return repr(look(given, Rare, "x"))
        except ConfigError as error:
            return str(error)

    for given in ({"where": "/tmp"}, {"word": 3}, {"word": "yes"}, {"word": "no"}):
        assert told(settings.structure, given) == told(strictly.structure, given)
    assert structure({"where": "/tmp"}, Rare, "x") == Rare(where=Path("/tmp"))

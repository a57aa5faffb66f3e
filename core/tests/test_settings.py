"""Errors about values of settings: what was given, what is allowed, the nearest match."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from makeway.errors import ConfigError
from makeway.settings import structure, unstructure


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


@attrs.frozen
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


RIGHT: list[tuple[dict[str, Any], Everything]] = [
    ({"name": "a"}, Everything("a")),
    (
        {"name": "a", "way": "off", "rate": 2, "upper": "x", "order": "oldest", "level": 2},
        Everything("a", way=Way.OFF, rate=2.0, upper="X", order="oldest", level=2),
    ),
    (
        {"name": "a", "rate": None, "second": None, "kinds": ["a", "b", "a"], "any_of_it": {"x": [1, "2"]}},
        Everything("a", kinds=frozenset("ab"), any_of_it={"x": [1, "2"]}),
    ),
    (
        {
            "name": "a",
            "inner": {"size": 3, "weight": 4},
            "many": [{}, {"size": 2}],
            "by_name": {"n": {"size": 5}},
        },
        Everything("a", inner=Inner(3, 4.0), many=(Inner(), Inner(2)), by_name={"n": Inner(5)}),
    ),
    ({"name": "a", "either": 3}, Everything("a", either=3)),
    ({"name": "a", "either": [3, 4]}, Everything("a", either=(3, 4))),
    ({"name": "a", "either": {"size": 2}}, Everything("a", either=Inner(2))),
    ({"name": "a", "_hidden": 3}, Everything("a", hidden=3)),
]
_FIELDS = "order, second, level, by, name, way, rate, inner, many, kinds, by_name, any_of_it, either, upper, _hidden"
WRONG: list[tuple[Any, list[str]]] = [
    ({}, ["at.name: missing"]),
    (7, ["at: got 7; allowed: a table"]),
    ({"name": 1}, ["at.name: got 1; allowed: text"]),
    ({"name": "a", "made": "there"}, [f"at.made: unknown key; allowed: {_FIELDS}"]),
    ({"name": "a", "way": "of"}, ["at.way: got 'of'; allowed: on, off; did you mean 'off'?"]),
    ({"name": "a", "rate": True}, ["at.rate: got True; allowed: a number"]),
    (
        {"level": True, "rate": float("nan"), "name": "a"},
        ["at.level: got True; allowed: 1, 2", "at.rate: got nan; allowed: a number"],
    ),
    ({"name": "a", "inner": {"size": 0}}, ["at.inner.size: got 0; allowed: 1 or more"]),
    (
        {"name": "a", "inner": {"size": 2.0}, "many": [{}, {"size": "2"}, 3]},
        [
            "at.inner.size: got 2.0; allowed: a whole number",
            "at.many[1].size: got '2'; allowed: a whole number",
            "at.many[2]: got 3; allowed: a table",
        ],
    ),
    (
        {"name": "a", "by_name": {"n": {"siez": 5}}, "kinds": "ab"},
        [
            "at.kinds: got 'ab'; allowed: a list; did you mean [\"ab\"]?",
            "at.by_name.n.siez: unknown key; did you mean 'size'?",
        ],
    ),
    ({"name": "a", "either": True}, ["at.either: got True; allowed: a table"]),
    ({"name": "a", "many": [3] * 500}, [f"at.many[{at}]: got 3; allowed: a table" for at in range(100)]),
]


@pytest.mark.parametrize(("given", "wanted"), RIGHT, ids=str)
def test_what_is_right(given: dict[str, Any], wanted: Everything) -> None:
    """It is built, written back without its defaults, and built again."""
    found = structure(given, Everything, "x")
    assert repr(found) == repr(wanted)  # 2 is no 2.0
    assert structure(unstructure(found), Everything, "x") == wanted


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[str(given)[:40] for given, _ in WRONG])
def test_what_is_wrong(given: Any, said: list[str]) -> None:
    """All of it at once, in the order of the fields; the rest of a hundred is cut."""
    with pytest.raises(ConfigError) as raised:
        structure(given, Everything, "x", "at")
    found = [str(problem) for problem in raised.value.problems]
    assert found == (said if len(said) < 100 else [*said, "at: and more is wrong"])


def test_kinds_of_fields() -> None:
    """Text that is a member of something is taken; a class that settings cannot hold is named."""

    @attrs.frozen
    class Rare:
        where: Path = Path()
        word: Word | int = 0

    assert structure({"word": "yes"}, Rare, "x") == Rare(word=Word.YES)
    assert structure({"word": 3}, Rare, "x") == Rare(word=3)
    with pytest.raises(ConfigError, match=r"no values of .*Path"):
        structure({"where": "/tmp"}, Rare, "x")


def test_what_is_left_out_is_written_out() -> None:
    """Fields that have their default are not; members are written by their values, sets as lists."""
    made = Everything("a", way=Way.OFF, any_of_it={"x": ("y", Inner(2))}, kinds=frozenset(("k",)))
    assert unstructure(made) == {
        "name": "a",
        "way": "off",
        "kinds": ["k"],
        "any_of_it": {"x": ["y", {"size": 2}]},
    }

"""Errors about values of settings: what was given, what is allowed, the nearest match."""

from __future__ import annotations

from typing import Any, Literal

import attrs
import pytest

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

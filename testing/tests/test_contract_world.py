"""The simulated world, and the one of docs/worlds.md, keep the contract of worlds."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

from makeway_app.worlds import simulated
from makeway_testing.contracts import WorldContract

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"


def _toy() -> types.ModuleType:
    """Import the world of the page."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    module = sys.modules["naps"] = types.ModuleType("naps")
    exec(
        compile(next(block for block in blocks if "def makeway_world" in block), "naps.py", "exec"),
        vars(module),
    )
    return module


class TestSimulated(WorldContract):
    """At the pace of a clock; it leaves the record of a replay."""

    __test__ = True
    plugin = "world/simulated"
    module: ClassVar[Any] = simulated
    exact = True


class TestToy(WorldContract):
    """The world of the page, as it stands there."""

    __test__ = True
    plugin = "world/naps"
    module: ClassVar[Any] = _toy()


def test_the_toy_is_short() -> None:
    """About sixty lines, so that it can be read in one go."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    toy = next(block for block in blocks if "def makeway_world" in block)
    assert len([line for line in toy.splitlines() if line.strip()]) <= 65

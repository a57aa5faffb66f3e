"""Every numbered scenario, has a test: its number stands in the test's name or id."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
NUMBERED = 58
"""S01 to S58."""
_IN_NAME = re.compile(r"(?<![a-z0-9])s(\d\d)(?![0-9])")
_IN_ID = re.compile(r"\bS(\d\d)\b")


def _modules() -> Iterator[ModuleType]:
    for path in sorted(HERE.glob("test_*.py")):
        if path == Path(__file__):
            continue
        spec = importlib.util.spec_from_file_location(f"scenarios_of_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def _ids(function: Any) -> Iterator[str]:
    """Yield the ids of a test's rows."""
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            given = mark.kwargs.get("ids")
            yield from (str(each) for each in (given if isinstance(given, list | tuple) else ()))
            yield from (str(row.id) for row in mark.args[1] if isinstance(row, type(pytest.param())))


def _tested() -> dict[str, list[str]]:
    """Return scenario -> tests and rows that are about it."""
    found: dict[str, list[str]] = {}
    for module in _modules():
        for name, function in vars(module).items():
            if not name.startswith("test_"):
                continue
            numbers = [(number, name) for number in _IN_NAME.findall(name)]
            numbers += [
                (number, f"{name}[{each}]") for each in _ids(function) for number in _IN_ID.findall(each)
            ]
            for number, test in numbers:
                found.setdefault(f"S{number}", []).append(test)
    return found


def test_every_scenario_is_tested() -> None:
    """None is missing, and no test is about a scenario that does not exist."""
    tested = _tested()
    wanted = {f"S{number:02}" for number in range(1, NUMBERED + 1)}
    assert sorted(wanted - set(tested)) == []
    assert sorted(set(tested) - wanted) == []

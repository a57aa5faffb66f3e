"""The picture of the house is drawn from the imports as they are, and they go in no circle."""

from __future__ import annotations

import importlib.util
import types
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES = 17_000
"""Lines that the sources of the core may have, comments and docstrings among them (docs/map.md)."""


@pytest.fixture(scope="module")
def generator() -> types.ModuleType:
    """Import the script that draws the picture."""
    found = importlib.util.spec_from_file_location("generate_map", ROOT / "docs/generate_map.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def circles(uses: Mapping[str, set[str]]) -> set[str]:
    """Return what imports itself by way of others, where what imports nothing is taken out until none is."""
    left = {one: {other for other in others if other != one} for one, others in uses.items()}
    while True:
        done = {one for one, others in left.items() if not others & left.keys()}
        if not done:
            break
        left = {one: others for one, others in left.items() if one not in done}
    # The same from the other end: what nothing in a circle imports is in none.
    while True:
        wanted = {other for others in left.values() for other in others}
        if left.keys() <= wanted:
            return set(left)
        left = {one: others for one, others in left.items() if one in wanted}


@pytest.mark.parametrize(
    ("uses", "found"),
    [
        pytest.param({"a": {"b"}, "b": set()}, set(), id="a line"),
        pytest.param({"a": {"b"}, "b": {"c"}, "c": {"b"}}, {"b", "c"}, id="a circle that is used"),
        pytest.param({"a": {"b"}, "b": {"a", "c"}, "c": set()}, {"a", "b"}, id="a circle that uses"),
    ],
)
def test_circles_are_found(uses: Mapping[str, set[str]], found: set[str]) -> None:
    """The guard sees what it is there for."""
    assert circles(uses) == found


def drawn(generator: types.ModuleType, known: Mapping[str, Path], *, types_too: bool) -> dict[str, set[str]]:
    """Return which module imports which others.

    :param types_too: whether imports for annotations count; else only those of a module that runs.
    """
    uses: dict[str, set[str]] = {module: set() for module in known}
    for one, other, types_only in generator.imports(known):
        if types_too or not types_only:
            uses[one].add(other)
    return uses


SOURCES = [ROOT / "core/src", ROOT / "testing/src", *sorted(ROOT.glob("plugins/*/src"))]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.parent.name)
def test_no_module_imports_itself_by_way_of_others(generator: types.ModuleType, source: Path) -> None:
    """Not even in functions, nor for annotations."""
    known = generator.modules(sorted(source.iterdir()))
    assert known
    assert circles(drawn(generator, known, types_too=True)) == set()


@pytest.mark.slow
def test_no_room_imports_itself_by_way_of_others(generator: types.ModuleType) -> None:
    """On each floor there is an order of the rooms in which all imports go down."""
    uses = drawn(generator, generator.modules(), types_too=False)
    rooms = generator.rooms(generator.modules(), uses)
    home = {module: f"{room.floor} {room.name}" for room in rooms for module in room.modules}
    between: dict[str, set[str]] = {where: set() for where in home.values()}
    for one, others in uses.items():
        between[home[one]] |= {home[other] for other in others}
    assert circles(between) == set()


@pytest.mark.slow
def test_the_picture_is_current(generator: types.ModuleType) -> None:
    """Run docs/generate_map.py if this fails."""
    assert generator.PICTURE.read_text(encoding="utf-8") == generator.render()


# --------------------------------------------------------------------------------------- how large it is
def test_the_core_is_small() -> None:
    """What does not fit belongs to a distribution of its own."""
    paths = sorted((ROOT / "core/src").rglob("*.py"))
    assert len(paths) > 50
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths) <= MOST_LINES

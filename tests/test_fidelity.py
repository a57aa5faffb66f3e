"""docs/fidelity-rules.md says what the recordings, the rules and the tests say, and covers both pages of rules."""

from __future__ import annotations

import importlib.util
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from makeway_slurm_rules.rules import RULES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fidelity-rules.md"
LEAST_EXECUTED = 40

STATES = ("modelled", "partly", "not modelled", "differs on purpose")
SECTIONS = {
    "slurm-preemption": """0 0.1 1.1 1.2 1.3 1.4 1.5 1.6 1.7 1.8 1.9 1.10 1.11 1.12 1.13 2.1 2.2 2.3 2.4
        3.1 3.2 3.3 4.1 4.2 4.3 4.4 4.5 4.6 4.7 4.8 4.9 4.10 4.11 4.12 5.0 5.1.1 5.1.2 5.1.3 5.1.4 5.1.5
        5.2.1 5.2.2 5.2.3 5.2.4 5.2.5 5.2.6 5.3 5.4 6.1 6.2 6.3 6.4 6.5 6.6 7.1 7.2 7.3 7.4 9
        10.1 11""".split(),
    "slurm-gang-and-select": """0.2 0.3 1.1 1.2 1.3 1.4 1.5 1.6 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10
        3.1 3.2 3.3 3.4 3.5 4.1.1 4.1.2 4.1.3 4.1.4 4.1.5 4.2.1 4.2.2 4.2.3 4.2.4 4.2.5 4.2.6 4.2.7 4.2.8
        4.2.9 4.3.1 4.3.2 4.3.3 4.3.4 4.3.5 4.3.6 4.3.7 4.3.8 4.3.9 4.3.10 4.3.11 4.4.1 4.4.2 4.4.3 4.4.4
        4.4.5 4.4.6 4.4.7 4.5 4.6 5.1 5.2 5.3 5.4 5.5 7""".split(),
}
"""The numbered rules of docs/rules."""
UNASKED = re.compile(r"^\| `(\w+)` .*none: not modelled", re.MULTILINE)


@pytest.fixture(scope="module")
def generator() -> types.ModuleType:
    """Import the script that writes the generated parts."""
    found = importlib.util.spec_from_file_location(
        "generate_fidelity", ROOT / "docs" / "generate_fidelity.py"
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    """Return the page as it is."""
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_is_current(generator: types.ModuleType, page: str) -> None:
    """Played anew, everything comes out as written; run docs/generate_fidelity.py if this fails."""
    runs = generator.play_all()
    assert generator.render(page, runs) == page
    found = generator.coverage(runs)
    executed = [number for number, shown in found.items() if shown.recordings or shown.tests]
    assert len(executed) >= LEAST_EXECUTED


def _rows(page: str, spec: str) -> Iterator[list[str]]:
    """Yield the cells of a table of rules."""
    table = page.partition(f"\n## Rule by rule: {spec}\n")[2].partition("\n## ")[0]
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith("| section"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("spec", SECTIONS)
def test_every_section_has_a_rule(page: str, spec: str) -> None:
    """In the order of the rules, each in one of four states; what is not plainly modelled says why."""
    rows = list(_rows(page, spec))
    assert list(dict.fromkeys(row[0] for row in rows)) == SECTIONS[spec]
    assert [row for row in rows if len(row) != 5 or row[2] not in STATES] == []
    bare = [row for row in rows if row[2] in ("partly", "differs on purpose") and not row[4]]
    assert bare == []


@pytest.mark.parametrize("spec", SECTIONS)
def test_every_module_named_exists(page: str, spec: str) -> None:
    """As makeway's own or a plugin's."""
    roots = [ROOT / "core/src/makeway", ROOT / "testing/src", *(ROOT / "plugins").glob("*/src")]
    for row in _rows(page, spec):
        for name in re.findall(r"`([\w.]+)`", row[3]):
            paths = [root / name.replace(".", "/") for root in roots]
            paths += [root / f"makeway_{name}".replace(".", "/") for root in roots]
            assert any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths), row


def test_every_rule_named_exists(page: str) -> None:
    """Those in the tables written by hand too."""
    named = re.findall(r"rules? `(\w+)", page) + re.findall(
        r"^.*\| `(\w+) = (?:true|false)` \|$", page, re.MULTILINE
    )
    assert named != []
    assert [name for name in named if name not in RULES] == []


def test_a_rule_without_effect_is_called_so(page: str) -> None:
    """A rule that no module asks for is mentioned as doing nothing, or is listed as not modelled."""
    by_hand = page.partition("\n## Not modelled\n")[2].replace("_", " ")
    for name in UNASKED.findall(page):
        assert f"`{name}` does nothing".replace("_", " ") in by_hand or name.replace("_", " ") in by_hand, (
            name
        )

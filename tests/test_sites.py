"""Small files of sites of each vendor, and what the documentation, upstream tests or a calculation by hand expects.

Each folder below ``tests/sites`` holds files of a site and ``expected.toml``: ``source`` names where the expectation
comes from, and each ``[[run]]`` has the arguments of a command, lines that it prints, and words that it does not.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway.registry import installed
from makeway_app.cli import cli

SITES = Path(__file__).parent / "sites"


def runs() -> list[Any]:
    """Return each command, named after its folder and its place."""
    found = []
    for file in sorted(SITES.glob("*/expected.toml")):
        table = tomllib.loads(file.read_text())
        assert table["source"], file
        for at, run in enumerate(table["run"]):
            found.append(pytest.param(file.parent, run, id=f"{file.parent.name}-{at}"))
    return found


@pytest.mark.parametrize(("folder", "run"), runs())
def test_a_site_is_answered_as_its_vendor_says(
    folder: Path, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is printed has the lines that are expected, whatever their spacing, and no others that are named."""
    if needs := run.get("needs"):
        pytest.importorskip(needs)
    if folder.name.startswith("openpbs") and "openpbs/sched" not in {each.name for each in installed()}:
        pytest.skip("no reader of OpenPBS's files is installed")
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, run["args"], prog_name="makeway")
    shown = _plain(done.output)
    for line in run.get("prints", ()):
        assert _plain(line) in shown, done.output
    for words in run.get("lacks", ()):
        assert _plain(words) not in shown, done.output
    if "preemptions" in run:
        found = re.search(r"^preemptions +(\d+)$", done.output, re.MULTILINE)
        assert found, done.output
        assert int(found[1]) == run["preemptions"], done.output
    assert done.exit_code == run.get("exit", 0), done.output


def _plain(text: str) -> str:
    return " ".join(text.split())


def test_the_pages_name_what_is_there() -> None:
    """Each row of docs/seed-pages.md leads to a site, a scenario that was played, a test or a rule, or says why not."""
    root = Path(__file__).parent.parent
    text = (root / "docs" / "seed-pages.md").read_text()
    rows = [line.strip("| ").rpartition(" | ")[2] for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row != "shown by"]
    there = {folder.name for folder in SITES.iterdir()}
    for folder in ("oracle", "recordings"):
        there |= {file.stem for file in (root / "tests" / folder / "scenarios").glob("*.toml")}
    for file in root.glob("plugins/*/tests/**/*.py"):
        there |= set(re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))
    told = re.compile(r"not (modelled|recorded): \w")
    for row in rows:
        links = re.findall(r"\]\(([\w/-]+\.md)#([\w-]+)\)", row)
        for page, anchor in links:
            headings = re.findall(r"^#+ (.*)$", (root / "docs" / page).read_text(), re.MULTILINE)
            assert anchor in map(_anchor, headings), row
        if told.match(row):
            continue
        named = set(re.findall(r"`([\w-]+)`", row))
        assert named or links, row
        assert named <= there, row
    assert len(rows) > 280


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")

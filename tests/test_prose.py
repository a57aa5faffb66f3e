"""Hold the pages to plain English, and their commands to an order that works."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for pattern in (
        "*.md",
        "docs/*.md",
        "core/*.md",
        "testing/*.md",
        "plugins/*/README.md",
        "examples/**/README.md",
    )
    for page in ROOT.glob(pattern)
    if page.name != "CHANGELOG.md"
)
MOST_WORDS = 25
BANNED = {
    "what for": "purpose",
    "in thought": "simulates, tries",
    "save for": "except",
    "at the least": "at least",
    "at the most": "at most",
    "as wished": "known slow cases",
    "so-manieth": "every nth",
    "thereof": "of it",
    "of releases before or after": "for other releases",
    "counts for that": "changes the exit status",
    "count for that": "change the exit status",
}
"""Phrase -> what to write instead."""

_FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_TARGET = re.compile(r"\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?:;])\s+(?=\S)")
_WORD = re.compile(r"\S*\w\S*")


def prose_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page outside fenced blocks, with their numbers; code is one word, link targets none."""
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        yield number, _CODE.sub("x", _TARGET.sub("]", line))


def long_sentences(text: str) -> list[tuple[int, int, str]]:
    """Return line, number of words and text of each sentence that is too long; tables and headings have none."""
    return [
        (number, len(words), sentence)
        for number, line in prose_of(text)
        if not line.startswith(("|", "#"))
        for sentence in _END.split(line)
        if len(words := _WORD.findall(sentence)) > MOST_WORDS
    ]


def banned_phrases(text: str) -> list[tuple[int, str, str]]:
    """Return line, phrase and what to write instead."""
    return [
        (number, phrase, instead)
        for number, line in prose_of(text)
        for phrase, instead in BANNED.items()
        if re.search(rf"\b{phrase}\b", line, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    """A colon or a semicolon ends one, too."""
    assert long_sentences(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_a_banned_phrase(page: Path) -> None:
    """In tables and generated parts, too: the source of a generated part is a docstring."""
    assert banned_phrases(page.read_text()) == []


def test_the_checks_find_something() -> None:
    """One word too many, and a phrase within a table; code and fenced blocks are left alone."""
    words = " ".join(["word"] * MOST_WORDS)
    assert long_sentences(f"{words}.\n{words} more.\n") == [(2, MOST_WORDS + 1, f"{words} more.")]
    assert long_sentences(f"```text\n{words} more\n```\n`{words} more`\n") == []
    assert banned_phrases("| a | 10 s At the least |\n") == [(1, "at the least", "at least")]


# ------------------------------------------------------------------------------ pip before groups
def _commands_of(page: Path) -> Iterator[str]:
    for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        yield from block.splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pip_is_new_enough_before_it_reads_groups(page: Path) -> None:
    """The pip of a fresh Python 3.11 environment is older than 25.1, which brought ``--group``."""
    upgraded = False
    for line in _commands_of(page):
        upgraded |= re.search(r"pip install .*--upgrade .*pip>=(2[5-9]\.[1-9]|2[6-9])", line) is not None
        assert upgraded or "--group" not in line, line


def test_groups_that_pages_install_exist() -> None:
    """In the root's settings."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    named = {
        name for page in PAGES for line in _commands_of(page) for name in re.findall(r"--group (\S+)", line)
    }
    assert named
    assert named <= set(groups)

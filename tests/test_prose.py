"""Hold pages, docstrings and messages to plain English, and the commands of pages to an order that works."""

from __future__ import annotations

import ast
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
        "docs/rules/*.md",
        "core/*.md",
        "testing/*.md",
        "plugins/*/README.md",
        "examples/**/README.md",
    )
    for page in ROOT.glob(pattern)
    if page.name != "CHANGELOG.md"
)
MODULES = sorted(
    module
    for folder in ("core", "testing", "plugins/*", "examples/plugins/*")
    for module in ROOT.glob(f"{folder}/src/**/*.py")
)
MOST_WORDS = 25
MOST_WORDS_IN_CODE = 40
"""A message has figures and names in it, and a docstring the parts of a signature."""
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


# ------------------------------------------------------------------------- docstrings and messages
_PARTS = re.compile(r"\n\s*\n|\n\s*(?=:\w+ ?\w*:|[-*] |\d\. )")
_TABLE = re.compile(r"^\s*={3,}[= ]*$|::$|\|", re.MULTILINE)


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module that are sentences, with their lines: docstrings, and messages, values left out.

    Tables, lists of names and statements for a database are no sentences.
    """
    tree = ast.parse(source)
    within = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (each.value if isinstance(each, ast.Constant) else "x" for each in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in within:
            text = node.value
        else:
            continue
        for part in _PARTS.split(text):
            words = part.split()
            if not _TABLE.search(part) and sum(word.islower() for word in words) > len(words) / 2:
                yield node.lineno, " ".join(words)


def faults_of(source: str) -> list[tuple[int, str]]:
    """Return line and fault of each text that is too long, or has a banned phrase."""
    found = []
    for line, text in texts_of(source):
        found += [
            (line, f"{count} words: {each}")
            for _, count, each in long_sentences(text)
            if count > MOST_WORDS_IN_CODE
        ]
        found += [(line, f"{phrase}; better: {instead}") for _, phrase, instead in banned_phrases(text)]
    return found


@pytest.mark.slow
def test_docstrings_and_messages_are_plain() -> None:
    """Of everything that is shipped."""
    found = {str(module.relative_to(ROOT)): faults_of(module.read_text()) for module in MODULES}
    assert len(found) > 100
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_the_check_of_code_finds_something() -> None:
    """In a docstring, and in a message around a value; a table is left alone."""
    long = " ".join(["word"] * (MOST_WORDS_IN_CODE + 1))
    assert faults_of(f'"""One.\n\n{long}.\n"""\n') == [(1, f"41 words: {long}.")]
    assert faults_of('raise ValueError(f"{most} nodes at the most, and no more")\n') == [
        (1, "at the most; better: at most")
    ]
    assert faults_of(f'"""Two.\n\n=== ===\na   {long}\n=== ===\n"""\n') == []


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

"""Each number of a rule that code, tests and pages cite is on a page of docs/rules, which has no other rules."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "rules"
PAGES = {page.stem: page for page in sorted(FOLDER.glob("*.md")) if page.stem != "index"}
SUFFIXES = (".py", ".md", ".toml")

_NUMBER = r"(?:1[0-7]|\d)(?:\.\d{1,2}){0,2}"
_POINTS = r"(?:nos?\.|steps?|rows?) \d+(?:(?:, | and | to | or )\d+(?![\d.]))*"
_ITEM = rf"{_NUMBER}(?![\d.]*\d)(?: {_POINTS}| quirk|,? end| [a-h](?=[ ),.;:]))?"
_JOINED = r"(?:, and |, or |, | and | or | to |; )"
_LIST = rf"{_ITEM}(?:{_JOINED}{_ITEM})*"
_NAMED = re.compile(rf"(?<![\w/.-])({'|'.join(PAGES)}),? ({_LIST})")
_UNIT = r"(?! ?[/*+^])(?! ?(?:%|s|ms|h|min|in|of|and just|times|seconds?|minutes?|[GMK]i?B|CPUs|\w*\()\b)"
_DOTTED = rf"(?=\d+(?:, \d+)*(?:\.| no\.)){_LIST}"
_ALONE = re.compile(
    rf"(?:(?<![\w\])\"'])\(|\A[rf]*\"\"\"|: (?={_LIST}\.?\"\"\"))({_DOTTED}){_UNIT}|\b[Ss]ections? ({_LIST})"
)
_ONE = re.compile(rf"({_NUMBER})(?: ({_POINTS}))?")
_HEADING = re.compile(rf"^#+ ({_NUMBER})(?: (.*))?$", re.MULTILINE)
_OLD = re.compile(r"\b[Ss]pec(?:ification)? (?:[a-z-]+ )?\d+(?:\.\d+)*\b")
_TEXT = re.compile(r'[rfb]*"""[\s\S]*?"""|[rfb]*"(?:[^"\\\n]|\\.)*"|[rfb]*\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*')
_ROW = re.compile(rf"^\| ({_NUMBER}) \| ", re.MULTILINE)
_HOME = re.compile(r"^\| \[([\w-]+)\]\(\1\.md\) \| (.*) \|$", re.MULTILINE)


@attrs.frozen
class Citation:
    """One number of a rule, and where it stands."""

    page: str
    number: str
    points: tuple[str, ...]
    """Points of the rule that are meant, by number; empty: all of it."""
    where: str


def _tracked() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if name.endswith(SUFFIXES) and (ROOT / name).is_file():
            yield name, (ROOT / name).read_text(encoding="utf-8")


def _homes() -> Mapping[str, str]:
    """Folder -> page that a number alone means there."""
    table = (FOLDER / "index.md").read_text(encoding="utf-8")
    return {
        folder: page for page, folders in _HOME.findall(table) for folder in re.findall(r"`([^`]+)`", folders)
    }


def _home(name: str, homes: Mapping[str, str]) -> str | None:
    parts = name.split("/")
    for count in range(len(parts), 0, -1):
        if page := homes.get("/".join(parts[:count])):
            return page
    return None


def _joined(text: str) -> str:
    """Return a text with wrapped lines joined, the marks of comments left out."""
    return re.sub(r"\n[ \t]*(?:#:? ?)?", " ", text)


def _each(page: str, listed: str, where: str) -> Iterator[Citation]:
    """Yield what a list of numbers cites; both ends of a range."""
    for number, points in _ONE.findall(listed):
        yield Citation(page, number, tuple(re.findall(r"\d+", points)), where)


def _within(page: str, listed: str, headings: Iterable[str]) -> Iterator[str]:
    """Yield the rules between the ends of ranges."""
    known = list(headings)
    for first, last in re.findall(rf"({_NUMBER})(?: {_POINTS})? to ({_NUMBER})", listed):
        if first in known and last in known:
            yield from known[known.index(first) : known.index(last) + 1]


def _table(text: str, page: str) -> str:
    """Return the table of a page that says rule by rule what is modelled."""
    return text.partition(f"\n## Rule by rule: {page}\n")[2].partition("\n## ")[0]


def _texts(name: str, text: str) -> Iterator[str]:
    """Yield comments and strings of a module."""
    if name.endswith(".py"):
        for found in _TEXT.finditer(text):
            yield found[0]


def _rules(page: str) -> Mapping[str, str]:
    """Number -> text of the rule; a heading above others has their texts, too."""
    text = PAGES[page].read_text(encoding="utf-8")
    found = list(_HEADING.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    own = {each[1]: text[each.end() : end] for each, end in zip(found, ends, strict=True)}
    return {
        number: "".join(part for other, part in own.items() if f"{other}.".startswith(f"{number}."))
        for number in own
    }


@pytest.fixture(scope="module")
def rules() -> Mapping[str, Mapping[str, str]]:
    """Page -> its rules."""
    return {page: _rules(page) for page in PAGES}


@pytest.fixture(scope="module")
def found(rules: Mapping[str, Mapping[str, str]]) -> tuple[list[Citation], set[tuple[str, str]]]:
    """All citations, and the rules that they mean."""
    homes = _homes()
    cited: list[Citation] = []
    meant: set[tuple[str, str]] = set()
    for name, text in _tracked():
        if (ROOT / name).is_relative_to(FOLDER):
            continue
        lists = [match.groups() for match in _NAMED.finditer(_joined(text))]
        lists += [(page, row[1]) for page in PAGES for row in _ROW.finditer(_table(text, page))]
        if home := _home(name, homes):
            for part in _texts(name, text):
                left = _NAMED.sub("", _joined(part))
                lists += [(home, match[1] or match[2]) for match in _ALONE.finditer(left)]
        for page, listed in lists:
            cited += _each(page, listed, name)
            meant |= {(page, number) for number in _within(page, listed, rules[page])}
    return cited, meant | {(each.page, each.number) for each in cited}


def test_each_number_is_on_its_page(
    found: tuple[list[Citation], set[tuple[str, str]]], rules: Mapping[str, Mapping[str, str]]
) -> None:
    """So is each point of a rule that is cited by number."""
    assert [each for each in found[0] if each.number not in rules[each.page]] == []
    lost = [
        (each, point)
        for each in found[0]
        for point in each.points
        if not re.search(rf"\b(?:no\.|step|row) {point}\b", rules[each.page][each.number], re.IGNORECASE)
    ]
    assert lost == []


def test_each_rule_is_cited(
    found: tuple[list[Citation], set[tuple[str, str]]], rules: Mapping[str, Mapping[str, str]]
) -> None:
    """By its number, by that of a heading above it, or within a range; a heading through one below it."""
    cited = found[1]
    idle = [
        (page, number)
        for page, known in rules.items()
        for number in known
        if not any(
            page == other and (f"{number}.".startswith(f"{one}.") or f"{one}.".startswith(f"{number}."))
            for other, one in cited
        )
    ]
    assert idle == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_cite_themselves_rightly(page: str, rules: Mapping[str, Mapping[str, str]]) -> None:
    """A number in parentheses means a rule of the same page; others are named."""
    text = _joined(PAGES[page].read_text(encoding="utf-8"))
    named = [each for match in _NAMED.finditer(text) for each in _each(match[1], match[2], page)]
    alone = [
        each for match in _ALONE.finditer(_NAMED.sub("", text)) for each in _each(page, match[1] or "", page)
    ]
    assert [each for each in (*named, *alone) if each.number not in rules[each.page]] == []


def test_pages_are_listed() -> None:
    """Each page is in the table of the index, and says which numbers mean it."""
    table = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[([\w-]+)\]", table, re.MULTILINE)) == sorted(PAGES)
    assert [folder for folder in _homes() if not (ROOT / folder).exists()] == []


def test_nothing_cites_a_document_that_is_not_there() -> None:
    """The word before a number is a page of the rules."""
    assert [(name, match[0]) for name, text in _tracked() for match in _OLD.finditer(_joined(text))] == []


def test_messages_carry_no_numbers() -> None:
    """What code says to people stands without its rule; a field that names one is not shown."""
    homes = _homes()
    found = []
    for name, text in _tracked():
        for message in _texts(name, text) if "/src/" in name else ():
            if "(" in message and '"""' not in message and not message.startswith("#"):
                alone = _home(name, homes) and _ALONE.search(message)
                if alone or _NAMED.search(message):
                    found.append((name, message))
    assert found == []


def test_the_patterns_find_citations() -> None:
    """Lists, ranges, points; no figures, and no calls."""
    page = next(iter(PAGES))
    assert [match.groups() for match in _NAMED.finditer(f"it waits ({page} 1.2 no. 8 and 1.3, 4)")] == [
        (page, "1.2 no. 8 and 1.3, 4")
    ]
    alone = [
        '"""4.3: so."""',
        "(1.5, 4.1)",
        "by section 12",
        "to 4.1 (sections 2.6 and 3)",
        "(1.2 no. 1 and 7)",
    ]
    assert [[match[1] or match[2] for match in _ALONE.finditer(each)] for each in alone] == [
        ["4.3"],
        ["1.5, 4.1"],
        ["12"],
        ["2.6 and 3"],
        ["1.2 no. 1 and 7"],
    ]
    assert [
        each
        for each in ("wait(1.5)", "(0.13 s)", "(0.5/5)", "(2)", "sbatch(1)", "22.05.8")
        if _ALONE.search(each)
    ] == []
    assert [(each.number, each.points) for each in _each(page, "1.2 no. 1 and 7, 3.1", "")] == [
        ("1.2", ("1", "7")),
        ("3.1", ()),
    ]

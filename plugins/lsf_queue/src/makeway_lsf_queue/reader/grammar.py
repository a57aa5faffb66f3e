"""Read the lines and sections of lsb.* files as LSF's own reader does (lsf 9.2).

A ``#`` starts a comment even inside quotes; a backslash at the end of a line joins the next one with nothing
in between; ``#if`` and its kin look like comments and are none. Nothing is ever fatal: what cannot be used is
ignored with a message, as the daemons do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from makeway_lsf_queue.windows import Clock, is_open, windows_of

_DIRECTIVE = re.compile(r"#(define|if|elif|else|endif|include)\b(.*)", re.IGNORECASE | re.DOTALL)


@attrs.frozen
class Logical:
    """A logical line and where it begins."""

    line: int
    text: str


@attrs.frozen
class Pair:
    """``KEY = value`` of a horizontal section."""

    line: int
    key: str
    """In capitals."""
    value: str


@attrs.frozen
class Section:
    """What stands between Begin and End."""

    name: str
    """In capitals."""
    line: int
    lines: tuple[Logical, ...]


@attrs.define
class Messages:
    """What the daemons would have logged, with file and line."""

    file: str
    found: list[str] = attrs.field(factory=list)

    def say(self, line: int, text: str) -> None:
        """Add a message."""
        self.found.append(f"{self.file}:{line}: {text}")


# ----------------------------------------------------------------------------------- logical lines
def logical_lines(text: str, messages: Messages, clock: Clock | None = None) -> list[Logical]:
    """Return the lines that are left of `text`: joined, without comments, conditions decided.

    :param clock: day and hour at which ``#if time(...)`` is asked; None: midnight between Saturday and Sunday.
    """
    conditions = _Conditions(messages, clock or Clock())
    found = []
    for line, raw in _joined(text):
        directive = _DIRECTIVE.match(raw.strip())
        if directive is not None:
            conditions.obey(line, directive.group(1).lower(), directive.group(2))
            continue
        content = _unblanked(raw)
        if content.strip() and conditions.open:
            found.append(Logical(line, content))
    conditions.finish()
    return found


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines with their comments cut off; directives are kept whole (9.2 no. 1 and 2)."""
    first, so_far = 0, ""
    for number, physical in enumerate(text.split("\n"), start=1):
        line = physical.rstrip()
        if not so_far:
            first = number
        if not so_far and _DIRECTIVE.match(line.strip()):
            yield number, line
            continue
        before, hash_, _ = line.partition("#")
        if hash_:  # a comment ends the logical line, even one that ends with a backslash
            yield first, so_far + before
            so_far = ""
        elif line.endswith("\\"):
            so_far += line[:-1]
            if not so_far:
                so_far = " "  # a line of a backslash alone goes on all the same
        else:
            yield first, so_far + line
            so_far = ""
    if so_far:
        yield first, so_far


def _unblanked(text: str) -> str:
    """Drop a backslash with the blank behind it; every white-space character becomes a blank (9.2 no. 2, 3)."""
    text = re.sub(r"\s", " ", text)
    return text.replace("\\ ", "").rstrip()


class _Conditions:
    """``#if`` and its kin (9.2 no. 4)."""

    def __init__(self, messages: Messages, clock: Clock) -> None:
        self._messages = messages
        self._clock = clock
        self._names: dict[str, str] = {}
        self._stack: list[tuple[int, bool, bool]] = []
        """Line, whether this branch is read, whether any branch was."""

    @property
    def open(self) -> bool:
        """Whether lines are read."""
        return all(taken for _, taken, _ in self._stack)

    def obey(self, line: int, word: str, rest: str) -> None:
        """Take note of a directive."""
        condition = rest.partition("#")[0].strip()
        if word == "define":
            name, _, text = condition.partition(" ")
            self._names[name] = text.strip()
        elif word == "include":
            self._messages.say(line, f"#INCLUDE {condition}: not followed; hand over one file")
        elif word == "if":
            holds = self._holds(line, condition)
            self._stack.append((line, holds, holds))
        elif not self._stack:
            self._messages.say(line, f"#{word} without #if is ignored")
        elif word == "endif":
            self._stack.pop()
        else:
            begun, _, before = self._stack.pop()
            holds = not before and (word == "else" or self._holds(line, condition))
            self._stack.append((begun, holds, before or holds))

    def _holds(self, line: int, condition: str) -> bool:
        condition = self._names.get(condition, condition)
        match = re.fullmatch(r"time\s*\(([^)]*)\)\s*\S*", condition, re.IGNORECASE)
        windows = windows_of(match.group(1)) if match else None
        if windows is None:
            self._messages.say(line, f"condition {condition!r} is not understood and counts as false")
            return False
        return is_open(windows, self._clock)

    def finish(self) -> None:
        """Complain of what was not closed."""
        for line, _, _ in self._stack:
            self._messages.say(line, "#if without #endif")


# --------------------------------------------------------------------------------------- sections
def sections(lines: Sequence[Logical], messages: Messages) -> Iterator[Section]:
    """Yield the sections; what stands outside is ignored (9.2 no. 5)."""
    name, begun, inside = "", 0, list[Logical]()
    for each in lines:
        words = each.text.split()
        first = words[0].lower()
        if not name:
            if first == "begin":
                name, begun, inside = (words[1].upper() if len(words) > 1 else "?"), each.line, []
        elif first == "end":
            if len(words) < 2 or words[1].upper() != name:
                messages.say(each.line, f"End names another section than Begin ({name}); it ends here")
            if not inside:
                messages.say(begun, f"section {name} is empty")
            else:
                yield Section(name, begun, tuple(inside))
            name = ""
        else:
            inside.append(each)
    if name:
        messages.say(begun, f"section {name} does not end; it is rejected")


def is_horizontal(section: Section) -> bool:
    """Whether the section is made of ``KEY = value`` lines, by its first line."""
    return "=" in section.lines[0].text


def pairs(section: Section, messages: Messages) -> Iterator[Pair]:
    """Yield the usable lines of a horizontal section, in order; repeated keys too (9.2 no. 6)."""
    for each in section.lines:
        key, equals, value = each.text.partition("=")
        key, value = key.strip().upper(), value.strip()
        if not equals or not key:
            hint = "; a value goes on in the next line only after a backslash" if "[" in each.text else ""
            messages.say(each.line, f"{each.text.strip()[:40]!r}: no '='; the line is ignored{hint}")
            continue
        if value.startswith("(") and value.endswith(")"):
            value = value[1:-1].strip()
        if value == "-":
            continue  # not set
        if not value:
            messages.say(each.line, f"{key}: no value; the line is ignored")
            continue
        yield Pair(each.line, key, value)


def rows(section: Section, messages: Messages) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a vertical section by keyword; what is not set is left out (9.2 no. 7)."""
    heading = [word.upper() for word in section.lines[0].text.split()]
    for each in section.lines[1:]:
        words = columns(each.text)
        if len(words) != len(heading):
            text = f"got {len(words)} columns, allowed: {len(heading)}; the row is ignored"
            messages.say(each.line, text)
            continue
        cells = {key: _bare(word) for key, word in zip(heading, words, strict=True)}
        yield each.line, {key: word for key, word in cells.items() if word not in ("", "-")}


def columns(text: str) -> list[str]:
    """Split at blanks outside round brackets."""
    return re.findall(r"(?:\([^()]*\)|\S)+", text)


def _bare(word: str) -> str:
    return word[1:-1].strip() if word.startswith("(") and word.endswith(")") else word

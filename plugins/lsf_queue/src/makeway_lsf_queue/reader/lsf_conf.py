"""Read lsf.conf with the quote-aware grammar of the lsf.* files (lsf 9.2, last paragraph)."""

from __future__ import annotations

from collections.abc import Iterator

from makeway_lsf_queue.reader.grammar import Messages


def lsf_conf(text: str, messages: Messages) -> dict[str, str]:
    """Return KEY -> value; the last one counts; outer quotes are taken off."""
    found = {}
    for line, logical in _logical(text):
        key, equals, value = logical.partition("=")
        if not equals or not key.strip():
            messages.say(line, f"{logical.strip()[:40]!r}: no '='; the line is ignored")
            continue
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[key.strip().upper()] = value
    return found


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines: backslash-newline joins with one blank; ``#`` inside a pair of quotes is text."""
    first, so_far = 0, ""
    for number, physical in enumerate(text.split("\n"), start=1):
        if not so_far:
            first = number
        line = _without_comment(so_far + physical.rstrip("\r"), len(so_far))
        if line.endswith("\\"):
            so_far = line[:-1] + " "
            continue
        so_far = ""
        if line.strip():
            yield first, line.replace("\\ ", "")
    if so_far.strip():
        yield first, so_far


def _without_comment(line: str, start: int) -> str:
    """Cut the comment off; quotes are counted from the beginning of the logical line."""
    quoted = line[:start].count('"') % 2 == 1
    for at in range(start, len(line)):
        if line[at] == '"':
            quoted = not quoted
        elif line[at] == "#" and not quoted:
            return line[:at].rstrip()
    return line

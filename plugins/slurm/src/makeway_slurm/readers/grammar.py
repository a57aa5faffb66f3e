"""Read slurm.conf as text: lines, quotes, includes and DEFAULT records, but no meaning.

What a value means is the business of `slurm_values` and of the reader that builds a cluster.
The rules are those of slurm.conf(5): keys ignore case, ``#`` begins a comment (``\\#`` is a hash)
even between quotes, a backslash at the end continues a line, ``Include FILE`` reads another file
in place.
"""

from __future__ import annotations

import bisect
import functools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import attrs

from makeway.errors import ConfigError, Problem
from makeway_slurm.readers.conf_parts import RECORD_KINDS, Duplicate, Record, Setting, SlurmConf, shown

MAX_LINE = 1_000_000
"""The longest line in characters, continuations included."""
MAX_BYTES = 64 * 2**20
"""The most that one configuration may hold, includes included."""
MAX_FILES = 1000
"""The most files that one configuration may include."""
MAX_DEPTH = 40
"""How deep includes may be nested."""

_BLANKS = " \t\r\f\v"
_ESCAPE_OR_HASH = re.compile(r"\\.|#")
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_INCLUDE = re.compile(rf"[{_BLANKS}]*include(?:[{_BLANKS}]+|\Z)", re.IGNORECASE)
_KEY_EQUALS = re.compile(rf'([^{_BLANKS}="]*)[{_BLANKS}]*=[{_BLANKS}]*')
_KEY = re.compile(r"[A-Za-z0-9_.]+")
_WORD = re.compile(rf"[^{_BLANKS}]+")
_GAP = re.compile(rf"[{_BLANKS}]*")


def read_conf(path: str | os.PathLike[str]) -> SlurmConf:
    """Read a slurm.conf and all that it includes.

    :raises ConfigError: it cannot be read or is not well formed; all problems in reading order.
    """
    source = _printable(os.fspath(path))
    reader = _Reader(source)
    reader.read_file(Path(path), source, "")
    return reader.result()


def parse_conf(text: str | bytes, name: str = "slurm.conf", directory: Path | None = None) -> SlurmConf:
    """Parse `text` as the file `name` would be.

    :param directory: where relative includes are looked up. None: they are problems.
    :raises ConfigError: the text is not well formed; all problems in reading order.
    """
    source = _printable(name)
    reader = _Reader(source)
    reader.read_text(text, source, directory)
    return reader.result()


# ------------------------------------------------------------------------------- files
class _Reader:
    """Collect entries and problems over a file and its includes."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._entries: list[Setting | Record] = []
        self._problems: list[Problem] = []
        self._defaults: dict[str, dict[str, Setting]] = {}
        self._cluster_name: str | None = None
        self._chain: list[tuple[str, str]] = []
        self._files = 0
        self._bytes_left = MAX_BYTES

    def result(self) -> SlurmConf:
        """Return what was read, or raise all problems at once."""
        if self._problems:
            raise ConfigError(self._source, self._problems)
        return SlurmConf(source=self._source, entries=tuple(self._entries))

    def read_file(self, path: Path, name: str, blamed: str) -> None:
        """Read one file; `blamed` is the Include that asked for it, or empty."""
        try:
            identity = os.path.realpath(path)
            if blamed and not stat.S_ISREG(path.stat().st_mode):
                return self._report(blamed, f"{name!r} is not a regular file")
            if any(identity == known for known, _ in self._chain):
                chain = " -> ".join([*(each for _, each in self._chain), name])
                return self._report(blamed, f"includes run in a circle: {chain}")
            data = _read_bytes(path, self._bytes_left)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            what = f"cannot read {name!r}" if blamed else "cannot read it"
            return self._report(blamed, f"{what}: {reason}")
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            return self._report(blamed, f"{name!r} goes beyond {MAX_BYTES:,} bytes in all")
        self._chain.append((identity, name))
        self.read_text(data, name, path.parent)
        self._chain.pop()
        return None

    def read_text(self, text: str | bytes, name: str, directory: Path | None) -> None:
        """Read the text of one file."""
        if isinstance(text, bytes):
            if text.startswith((b"\xff\xfe", b"\xfe\xff")):
                return self._report(name, "UTF-16 text; save it as UTF-8")
            text = text.decode("utf-8", "surrogateescape")
        text = text.removeprefix("\ufeff")
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            return self._report(f"{name}:{line}", "a NUL byte; this is not a text file")
        for each in _logical_lines(text):
            self._read_line(each, name, directory)
        return None

    def _report(self, where: str, message: str) -> None:
        self._problems.append(Problem(where, message))

    def _read_line(self, line: _Line, name: str, directory: Path | None) -> None:
        try:
            _check_characters(line)
            include = _INCLUDE.match(line.text)
            if include:
                target = _include_target(line.text, include.end())
                self._include(target, f"{name}:{line.number(include.start())} Include", directory)
            else:
                self._add(_settings(line, name))
        except _BadLineError as bad:
            key = f" {bad.key}" if bad.key else ""
            self._report(f"{name}:{line.number(bad.offset)}{key}", bad.message)

    def _include(self, target: str, where: str, directory: Path | None) -> None:
        if "%c" in target:
            if self._cluster_name is None:
                return self._report(where, "%c is used before ClusterName is set")
            target = target.replace("%c", self._cluster_name)
        if directory is None and not Path(target).is_absolute():
            return self._report(where, f"{target!r} is relative, but this text has no directory")
        self._files += 1
        if self._files > MAX_FILES or len(self._chain) > MAX_DEPTH:
            limits = f"{MAX_FILES} files, {MAX_DEPTH} deep"
            if self._files <= MAX_FILES + 1:
                self._report(where, f"too many includes; the limit is {limits}")
            return None
        path = (directory or Path()) / target
        return self.read_file(path, _printable(str(path)), where)

    def _add(self, settings: list[Setting]) -> None:
        """Enter the parameters of one line, and the record that ends it, if one does."""
        for index, each in enumerate(settings):
            if each.canonical in RECORD_KINDS:
                return self._add_record(each, settings[index + 1 :])
            if each.canonical == "clustername":
                self._cluster_name = each.value
            self._entries.append(each)
        return None

    def _add_record(self, head: Setting, settings: list[Setting]) -> None:
        own: dict[str, Setting] = {}
        for each in settings:
            if each.canonical in RECORD_KINDS:
                message = f"begins a record of its own; put it on a line after {head.key}"
                return self._report(each.where, message)
            own[each.canonical] = each
        if not head.value:
            return self._report(head.where, "the name is empty")
        lost = [each for each in settings if own[each.canonical] is not each]
        inherited = self._defaults.setdefault(head.canonical, {})
        rest = [each for canonical, each in inherited.items() if canonical not in own]
        record = Record(
            kind=head.canonical,
            key=head.key,
            name=head.value,
            file=head.file,
            line=head.line,
            settings=(*own.values(), *rest),
            duplicates=tuple(Duplicate(lost=e, kept=own[e.canonical]) for e in lost),
        )
        self._entries.append(record)
        if record.is_default:
            inherited.update({k: attrs.evolve(each, inherited=True) for k, each in own.items()})
        return None


def _read_bytes(path: Path, limit: int) -> bytes:
    """Return the content, or one byte more than `limit` of it."""
    with path.open("rb") as file:
        return file.read(limit + 1)


def _include_target(text: str, start: int) -> str:
    """Return the file named after ``Include``."""
    if start == len(text):
        raise _BadLineError(0, "names no file; expected Include FILE", "Include")
    if text[start] == "=":
        raise _BadLineError(start, "expected Include FILE, without '='", "Include")
    target, _, end = _value(text, start, "Include")
    end = _skip_blanks(text, end)
    if end < len(text):
        raise _BadLineError(end, f"one file at a time; got {shown(text[end:])} as well", "Include")
    if not target:
        raise _BadLineError(start, "names no file; expected Include FILE", "Include")
    return target


# ------------------------------------------------------------------------------- lines
@attrs.frozen
class _Line:
    """One line after comments are gone and continuations are joined."""

    text: str
    starts: tuple[tuple[int, int], ...]
    """Offset in `text` and number of each line in the file that has part in it."""
    length: int
    """Characters in the file, comments included."""

    def number(self, offset: int) -> int:
        """Return the line of the file that `offset` stands on."""
        place = bisect.bisect_right(self.starts, offset, key=lambda start: start[0])
        return self.starts[max(place - 1, 0)][1]


class _BadLineError(Exception):
    """End the reading of one line, with what is wrong about it."""

    def __init__(self, offset: int, message: str, key: str = "") -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.key = key


def _logical_lines(text: str) -> Iterator[_Line]:
    """Join continued lines; leave out empty ones."""
    pieces: list[str] = []
    starts: list[tuple[int, int]] = []
    offset = length = 0
    lines = text.split("\n")
    for number, raw in enumerate(lines, 1):
        piece, goes_on = _without_comment(raw)
        pieces.append(piece)
        starts.append((offset, number))
        offset += len(piece)
        length += len(raw)
        if goes_on and number < len(lines):
            continue
        joined = "".join(pieces).rstrip(_BLANKS)
        if joined or length > MAX_LINE:
            yield _Line(joined, tuple(starts), length)
        pieces, starts, offset, length = [], [], 0, 0


def _without_comment(raw: str) -> tuple[str, bool]:
    """Cut the comment and the continuation mark, and tell whether there was one."""
    text = raw
    if "#" in raw:
        marks = (match for match in _ESCAPE_OR_HASH.finditer(raw) if match[0] == "#")
        comment = next(marks, None)
        text = raw[: comment.start()] if comment else raw
    bare = text.rstrip(_BLANKS)
    backslashes = len(bare) - len(bare.rstrip("\\"))
    goes_on = backslashes % 2 == 1
    return (bare[:-1] if goes_on else text).replace("\\#", "#"), goes_on


def _check_characters(line: _Line) -> None:
    if line.length > MAX_LINE:
        message = f"a line of {line.length:,} characters; at most {MAX_LINE:,} are read"
        raise _BadLineError(0, message)
    strange = _NOT_TEXT.search(line.text)
    if strange is None:
        return
    code = ord(strange[0])
    if 0xDC80 <= code <= 0xDCFF:
        raise _BadLineError(strange.start(), f"byte 0x{code - 0xDC00:02x} is not UTF-8 text")
    raise _BadLineError(strange.start(), f"character U+{code:04X} does not belong in a text file")


# ------------------------------------------------------------------------------- pairs
def _settings(line: _Line, file: str) -> list[Setting]:
    """Split one line into its ``Key=Value`` pairs."""
    text = line.text
    found: list[Setting] = []
    at = _skip_blanks(text, 0)
    while at < len(text):
        key, value_at = _key(text, at, bool(found))
        value, quoted, end = _value(text, value_at, key)
        found.append(Setting(key=key, value=value, file=file, line=line.number(at), quoted=quoted))
        at = _skip_blanks(text, end)
    return found


def _key(text: str, at: int, follows: bool) -> tuple[str, int]:
    """Return the key that begins at `at`, and where its value begins."""
    match = _KEY_EQUALS.match(text, at)
    if match is None:
        hint = " (a value with blanks needs quotes)" if follows else ""
        raise _BadLineError(at, f"got {shown(_word(text, at))}; expected Key=Value{hint}")
    key = match[1]
    if not key:
        raise _BadLineError(at, f"got {shown(_word(text, at))}; no key before '='")
    if not _KEY.fullmatch(key):
        _refuse_key(key, at)
    if key.lower() == "include":
        raise _BadLineError(at, "expected Include FILE on a line of its own, without '='", key)
    return key, match.end()


def _refuse_key(key: str, at: int) -> NoReturn:
    if key[-1] in "+-*/" and _KEY.fullmatch(key[:-1]):
        raise _BadLineError(at, f"got '{key}='; only '=' is read", key[:-1])
    raise _BadLineError(at, f"{shown(key)} is not a key; letters, digits, '_' and '.' are")


def _value(text: str, at: int, key: str) -> tuple[str, bool, int]:
    """Return the value that begins at `at`, whether it was quoted, and where it ends."""
    if text.startswith('"', at):
        return _quoted_value(text, at, key)
    word = _word(text, at)
    if not word:
        raise _BadLineError(max(at - 1, 0), f'no value; for an empty one write {key}=""', key)
    if word.count('"') % 2:
        raise _BadLineError(at, f"unbalanced quotes in {shown(word)}", key)
    return word, False, at + len(word)


def _quoted_value(text: str, at: int, key: str) -> tuple[str, bool, int]:
    closing = text.find('"', at + 1)
    if closing < 0:
        hint = "('#' begins a comment even there)"
        raise _BadLineError(at, f"unbalanced quotes: {shown(text[at:])} never ends {hint}", key)
    rest = _word(text, closing + 1)
    whole = _word(text, at)
    if rest and len(whole) > closing - at and whole.count('"') % 2 == 0:
        return (
            whole,
            False,
            at + len(whole),
        )  # as AuthInfo="a","b": slurmctld takes all of it, quotes included
    if rest:
        raise _BadLineError(closing, f"got {shown(rest)} right after the closing quote", key)
    return text[at + 1 : closing], True, closing + 1


def _word(text: str, at: int) -> str:
    match = _WORD.match(text, at)
    return match[0] if match else ""


def _skip_blanks(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


@functools.cache
def _printable(name: str) -> str:
    """Return a file name that can be printed, whatever bytes it has."""
    return name.encode("utf-8", "backslashreplace").decode()

"""Read text files of unknown origin line by line, compressed or not.

What cannot be read at all is one `ConfigError` with file and line. What can is made safe to show:
bytes that are not UTF-8 and characters that steer a terminal become U+FFFD.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from makeway.errors import ConfigError, Problem

Progress = Callable[[int], None]
Line = tuple[int, str]
"""Number, counted from 1, and text without its end."""

MAX_LINE = 1 << 20
"""Most bytes in one line."""
MAX_TEXT = 1 << 28
"""Most bytes in a file that is read whole."""
_HEAD = 1 << 16
_BLOCK = 1 << 13
"""Bytes read at a time; as many as the interpreter unpacks at a time, so that all before damage is seen."""
_REPORT_EVERY = 1024
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"

_STEERING = [*range(0x09), *range(0x0A, 0x20), *range(0x7F, 0xA0)]
_STEERING += [0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_SAFE = dict.fromkeys(_STEERING, "\ufffd")
_ODD = bytes(each for each in _STEERING if each < 0x80 and each != ord("\n"))
"""What no line of plain ASCII holds."""


def read_head(path: Path) -> str:
    """Return the first lines of `path`, decompressed.

    :raises ConfigError: it is missing, empty, binary, or breaks off at once.
    """
    with _opened(path) as (stream, _), _blaming(path, lambda: 1):
        head = stream.read(_HEAD)
    if not head.strip(_BOM + b" \t\r\n"):
        raise ConfigError(str(path), [Problem("", "the file is empty")])
    if b"\0" in head:
        raise ConfigError(str(path), [Problem("", "the file is binary, not text")])
    return "\n".join(_decoded(line) for line in head.removeprefix(_BOM).split(b"\n"))


def is_binary(path: Path) -> bool:
    """Whether `path` begins with what no text holds.

    :raises ConfigError: it is missing, or cannot be read.
    """
    with _opened(path) as (stream, _), _blaming(path, lambda: 1):
        return b"\0" in stream.read(_HEAD)


def read_lines(path: Path, progress: Progress | None = None) -> Iterator[Line]:
    """Yield the lines of `path` with their numbers.

    :param progress: told the bytes of the file read so far, now and then.
    :raises ConfigError: the file cannot be read, or breaks off; the lines before that were yielded.
    """
    at = told = 0
    with _opened(path) as (stream, raw), _blaming(path, lambda: at + 1):
        rest = b""
        while block := stream.read1(_BLOCK):
            whole = block.rfind(b"\n")
            if len(rest) + (block.find(b"\n") + 1 or len(block)) > MAX_LINE:
                raise ConfigError(str(path), [_too_long(path, at + 1)])
            if whole < 0:
                rest += block
                continue
            data = rest + block[:whole]
            rest = block[whole + 1 :]
            lines = _lines(data if at else data.removeprefix(_BOM))
            yield from enumerate(lines, at + 1)
            at += len(lines)
            if progress is not None and at - told >= _REPORT_EVERY:
                told = at
                progress(raw.tell())
        if rest:
            yield at + 1, _decoded(rest if at else rest.removeprefix(_BOM))
        if progress is not None:
            progress(raw.tell())


def read_text(path: Path) -> str:
    """Return all of `path`, line ends and escapes as they are.

    :raises ConfigError: it cannot be read, is too large, or is not UTF-8.
    """
    with _opened(path) as (stream, _), _blaming(path, lambda: 1):
        data = stream.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise ConfigError(str(path), [Problem("", f"more than {MAX_TEXT >> 20} MB; allowed: less")])
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), [Problem(f"{path.name}:{line}", "not UTF-8")]) from None


def shown(text: str) -> str:
    """Return `text` quoted and shortened for a message."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _too_long(path: Path, line: int) -> Problem:
    return Problem(f"{path.name}:{line}", f"a line of more than {MAX_LINE:,} bytes; this is no job")


def _lines(data: bytes) -> list[str]:
    """Return the lines of a block, which ends where one ends."""
    if data.isascii() and len(data.translate(None, _ODD)) == len(data):
        return data.decode("ascii").split("\n")
    return [_decoded(line) for line in data.split(b"\n")]


def _decoded(raw: bytes) -> str:
    line = raw.decode("utf-8", "replace").rstrip("\r\n")
    return line if line.isprintable() else line.translate(_SAFE)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[io.BufferedReader, io.BufferedReader]]:
    """Open `path`; return the stream of its text, and the one of its bytes on the disk."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(str(path), [Problem("", "not a regular file")])
        raw = path.open("rb")
    except OSError as error:
        raise ConfigError(str(path), [Problem("", error.strerror or str(error))]) from None
    except ValueError as error:  # a path that no file can have
        raise ConfigError(repr(str(path)), [Problem("", str(error))]) from None
    with raw:
        packed = raw.peek(2)[:2] == _GZIP
        yield (io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw), raw


@contextlib.contextmanager
def _blaming(path: Path, line: Callable[[], int]) -> Iterator[None]:
    """Turn what reading may raise into a ConfigError that says where."""
    try:
        yield
    except (EOFError, zlib.error):
        message = "the compressed data is damaged or breaks off; was the file copied in full?"
    except OSError as error:
        message = error.strerror or str(error)
    else:
        return
    raise ConfigError(str(path), [Problem(f"{path.name}:{line()}", message)])

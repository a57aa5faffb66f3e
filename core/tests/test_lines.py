"""Lines of files of unknown origin, wherever the blocks in which they are read end."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from makeway.errors import ConfigError
from makeway.readers.lines import MAX_LINE, read_lines

BLOCK = 8192


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
def test_all_lines_with_their_numbers(tmp_path: Path, length: int, end: str, packed: bool) -> None:
    """Whatever their length; an empty line counts, no line after the last end does."""
    path = tmp_path / "log"
    lines = [str(at % 10) * length for at in range(9)]
    data = ("\n".join(lines) + end).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    expected = [*lines, ""] if end == "\n\n" else lines
    assert list(read_lines(path)) == list(enumerate(expected, 1))


def test_a_letter_of_two_bytes_between_two_blocks(tmp_path: Path) -> None:
    """It is not torn, and a mark of the byte order belongs to no line."""
    path = tmp_path / "log"
    path.write_bytes(b"\xef\xbb\xbf" + b"a" * (BLOCK - 4) + "ä\tb\r\nc\x1bd\n".encode())
    assert list(read_lines(path)) == [(1, "a" * (BLOCK - 4) + "ä\tb"), (2, "c\N{REPLACEMENT CHARACTER}d")]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_longest_line(tmp_path: Path, end: bytes) -> None:
    """Its end counts; lines before one that is too long are read."""
    path = tmp_path / "log"
    path.write_bytes(b"a\n" + b"b" * (MAX_LINE - len(end)) + end)
    assert [number for number, _ in read_lines(path)] == [1, 2]
    path.write_bytes(b"a\n" + b"b" * (MAX_LINE - len(end) + 1) + end)
    lines = read_lines(path)
    assert next(lines) == (1, "a")
    with pytest.raises(ConfigError, match=r"log:2: a line of more than 1,048,576 bytes"):
        next(lines)


def test_how_far_it_is(tmp_path: Path) -> None:
    """Now and then, and at the end all of it."""
    path = tmp_path / "log"
    path.write_bytes(b"12\n" * 20_000)
    told: list[int] = []
    assert sum(1 for _ in read_lines(path, told.append)) == 20_000
    assert told == sorted(told)
    assert told[-1] == 60_000
    assert 2 < len(told) <= 20

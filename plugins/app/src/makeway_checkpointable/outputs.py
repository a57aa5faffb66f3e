"""Put files back to the length that they had when a program was saved, so that nothing is in them twice."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_REGULAR = 1
_TYPE, _FILE = 1, 3
_FLAGS, _NAME = 2, 6
"""Numbers of the fields in criu's images, which are protocol buffers; see images/fdinfo.proto, regfile.proto."""


def written(images: Path) -> list[list[Any]]:
    """Return name and length of each file that the saved processes have open for writing, while they stand still."""
    found: dict[str, int] = {}
    for name, flags in _open_files(images / "files.img"):
        if flags & os.O_ACCMODE:
            try:
                seen = os.lstat(name)
            except OSError:  # deleted: criu saves its content
                continue
            if stat.S_ISREG(seen.st_mode):
                found[name] = seen.st_size
    return [[name, size] for name, size in sorted(found.items())]


def put_back(files: list[list[Any]]) -> str | None:
    """Cut what was written since; return why that cannot be done, None: it was done.

    Nothing is cut unless all files are there.
    """
    longer = []
    for name, size in files:
        try:
            found = os.lstat(name)
        except OSError as error:
            return f"{name}, which it writes to: {error.strerror}"
        if not stat.S_ISREG(found.st_mode):
            return f"{name}, which it writes to, is no file any more"
        if found.st_size < size:
            return f"{name}, which it writes to, had {size} bytes when it was saved, and has {found.st_size}"
        if found.st_size > size:
            longer.append((name, size))
    for name, size in longer:
        try:
            handle = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.ftruncate(handle, size)
            finally:
                os.close(handle)
        except OSError as error:
            return f"{name}, which it writes to: {error.strerror}"
    return None


def _open_files(path: Path) -> Iterator[tuple[str, int]]:
    """Yield name and flags of each regular file in an image of open files."""
    content = path.read_bytes()
    at = 8  # two numbers that say what it is
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at)
        entry = dict(_fields(content[at + 4 : at + 4 + length]))
        at += 4 + length
        if entry.get(_TYPE) == _REGULAR and isinstance(entry.get(_FILE), bytes):
            file = dict(_fields(entry[_FILE]))
            yield os.fsdecode(file[_NAME]), int(file.get(_FLAGS, 0))


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message: number and value."""
    at = 0
    while at < len(content):
        key, at = _number(content, at)
        value: Any
        match key & 7:
            case 0:
                value, at = _number(content, at)
            case 2:
                length, at = _number(content, at)
                value, at = content[at : at + length], at + length
            case 1:
                value, at = content[at : at + 8], at + 8
            case _:
                value, at = content[at : at + 4], at + 4
        yield key >> 3, value


def _number(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at

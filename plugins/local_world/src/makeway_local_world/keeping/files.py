"""Write files that survive a crash."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PART = 8192
"""Bytes that are read at once: more would take more memory than most files have."""


def create_durably(directory: int, files: Mapping[str, bytes]) -> None:
    """Write new files in the open directory `directory`; when this returns, a power cut no longer loses them.

    It is for files that are not looked at before, or whose readers see whether all is there: it takes the disk half
    the time of `write_durably`.

    :param files: what to write, by name.
    :raises OSError: something could not be written; part of it may be there.
    """
    for name, data in files.items():
        _write(directory, name, data)
    os.fsync(directory)


def write_durably(directory: int, name: str, data: bytes) -> None:
    """Write or replace `name` in the open directory `directory`; when this returns, a power cut no longer loses it.

    :raises OSError: it could not be written; what was there before is as it was.
    """
    temporary = f"{name}.tmp"
    _write(directory, temporary, data)
    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    os.fsync(directory)


def _write(directory: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        os.fchmod(handle, 0o600)
        write_all(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)


def store(path: os.PathLike[str], text: str) -> None:
    """Replace a file; when this returns, a power cut no longer loses it.

    :raises OSError: it could not be written; what was there before is as it was.
    """
    folder, name = os.path.split(path)
    directory = open_directory(folder)
    try:
        write_durably(directory, name, text.encode())
    finally:
        os.close(directory)


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def read_all(directory: int, name: str) -> bytes | None:
    """Read `name` in the open directory `directory`; None: there is no such file.

    :raises OSError: it is there and cannot be read.
    """
    try:
        handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return None
    try:
        return read_open(handle)
    finally:
        os.close(handle)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Read a file, also one whose size is not known ahead.

    :raises OSError: it cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_open(handle)
    finally:
        os.close(handle)


def read_open(handle: int) -> bytes:
    """Read an open file from where it stands to its end."""
    parts = []
    while found := os.read(handle, _PART):
        parts.append(found)
    return b"".join(parts)


def open_directory(path: str | os.PathLike[str]) -> int:
    """Open a directory, so that names in it mean the same whatever happens to its path."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

"""Read the end of a file with the rights of its reader: a process of its own, for the page (docs/threat-model.md).

Root starts it; it gives root's rights away before it opens anything. What to read comes from standard input, where
no other user sees it. The answer is a line of JSON and, if the file could be read, its end.
"""

from __future__ import annotations

import json
import os
import stat
import sys

from makeway_local_world.keeping import rights
from makeway_local_world.keeping.files import write_all


def main() -> None:
    """Do what standard input asks for."""
    asked = json.load(sys.stdin)
    rights.take_on(asked)
    try:
        size, data = end_of(asked["path"], asked["most"])
    except OSError as error:
        write_all(1, json.dumps({"why": error.strerror}).encode() + b"\n")
        return
    write_all(1, json.dumps({"size": size}).encode() + b"\n" + data)


def end_of(path: str, most: int) -> tuple[int, bytes]:
    """Return the size of a plain file, and its last bytes.

    :raises OSError: it cannot be read, or is none.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no plain file")
        at, parts = max(0, found.st_size - most), b""
        while len(parts) < most and (part := os.pread(handle, most - len(parts), at + len(parts))):
            parts += part
        return found.st_size, parts
    finally:
        os.close(handle)

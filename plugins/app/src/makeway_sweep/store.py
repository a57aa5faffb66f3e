"""Keep the results of a sweep on disk, one file per run, so that it can go on after any end.

A file appears whole or not at all. One process at a time works in a folder: the lock goes with the process, however
that ends.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from makeway.errors import ConfigError, Problem
from makeway_app.cli.outputs import Output

VERSION = 1
MANIFEST = "sweep.json"


class Store:
    """The folder of a sweep."""

    def __init__(self, folder: Path) -> None:
        """Make or open the folder, and lock it.

        :raises ConfigError: nothing can be written there, it holds other things, or a sweep is at work in it.
        """
        self.folder = folder
        self.runs = folder / "runs"
        self.records = folder / "records"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()) and not (folder / ".lock").exists() and not (folder / MANIFEST).exists():
                raise _refused(folder, "holds other files than those of a sweep; name a new folder")
            self.runs.mkdir(exist_ok=True)
            self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _refused(folder, f"cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise _refused(folder, "another sweep is at work in it") from None
        self._clear()

    def close(self) -> None:
        """Give the folder back."""
        os.close(self._lock)

    def _clear(self) -> None:
        """Remove what a process that was killed had half written."""
        for place in (self.folder, self.runs, self.records):
            for path in place.glob(".*.part"):
                path.unlink(missing_ok=True)

    def load(self, identity: str) -> dict[str, Any] | None:
        """Return a result; None: there is none that is whole."""
        try:
            found = json.loads(self._path(identity).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        whole = isinstance(found, dict) and found.get("version") == VERSION and found.get("run") == identity
        return found if whole and isinstance(found.get("metrics"), dict) else None

    def keep(self, identity: str, result: dict[str, Any]) -> None:
        """Store a result.

        :raises ConfigError, OSError: it cannot be written.
        """
        text = json.dumps({"version": VERSION, "run": identity, **result}, indent=1, ensure_ascii=False)
        self.write(self._path(identity), [text, "\n"])

    def has_record(self, identity: str) -> bool:
        """Whether the record of a run is there."""
        return self.record(identity).is_file()

    def record(self, identity: str) -> Path:
        """Return where the record of a run lies."""
        return self.records / f"{identity}.json.gz"

    def keep_record(self, identity: str, content: bytes) -> None:
        """Store a compressed record.

        :raises OSError: it cannot be written.
        """
        self.records.mkdir(exist_ok=True)
        target = self.record(identity)
        part = target.with_name(f".{target.name}.part")
        part.write_bytes(content)
        part.replace(target)

    def write(self, path: Path, pieces: list[str] | Iterator[str]) -> None:
        """Write a text file whole.

        :raises ConfigError, OSError: it cannot be written.
        """
        with Output(str(path)) as target:
            for piece in pieces:
                target.write(piece)

    def _path(self, identity: str) -> Path:
        return self.runs / f"{identity}.json"


def _refused(folder: Path, message: str) -> ConfigError:
    return ConfigError(f"--output {folder}", [Problem("", message)])

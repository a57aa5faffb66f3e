"""Write files that appear whole or not at all.

The text goes to a temporary file beside the target, which takes its name when all is written. So
what was stored there before survives every failure, and an unwritable place is found out at once.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from makeway.errors import ConfigError, Problem

STDOUT = "-"


class Output:
    """A file to be; ``-`` is standard output. What is no regular file is written directly."""

    def __init__(self, name: str) -> None:
        """Open the place.

        :raises ConfigError: nothing can be written there.
        """
        self.name = name
        self._failed: OSError | None = None
        """Why nothing more is written: a disk may be full long before the run is over."""
        self._over = False
        self._temporary: Path | None = None
        self._target = Path(os.path.realpath(name))
        try:
            self._stream = self._open()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problem = Problem("", f"cannot be written: {reason or error}")
            raise ConfigError(name, [problem]) from None

    def _open(self) -> IO[str]:
        if self.name == STDOUT:
            return sys.stdout
        if self._target.is_dir():
            raise IsADirectoryError(0, "it is a directory")
        if self._target.exists() and not self._target.is_file():
            return self._target.open("w", encoding="utf-8")
        if self._target.exists() and not os.access(self._target, os.W_OK):
            raise PermissionError(0, "permission denied")
        handle, name = tempfile.mkstemp(
            prefix=f".{self._target.name}.", suffix=".part", dir=self._target.parent, text=True
        )
        self._temporary = Path(name)
        return os.fdopen(handle, "w", encoding="utf-8")

    @property
    def folder(self) -> str | None:
        """Where temporary files of the same size may lie; None: where the system has them."""
        return None if self._temporary is None else str(self._target.parent)

    def write(self, text: str) -> None:
        """Append `text`; where a file cannot be written, `close` tells."""
        if self._failed is not None:
            return
        try:
            with self._named():
                self._stream.write(text)
        except OSError as error:
            if self.name == STDOUT:
                raise
            self._failed = error

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Let errors of a stream, which know no file, say which one it was."""
        try:
            yield
        except OSError as error:
            if error.filename is None and self.name != STDOUT:
                error.filename = self.name
            raise

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.drop()

    def close(self) -> None:
        """Let the file take its name; a second time nothing is done.

        :raises OSError: it could not be written, and names the file.
        """
        if self._over:
            return
        self._over = True
        try:
            if self._stream is sys.stdout:
                self._stream.flush()
                return
            with self._named():
                self._stream.close()
            if self._failed is not None:
                raise self._failed
            if self._temporary is not None:
                self._temporary.chmod(_mode_for(self._target))
                self._temporary.replace(self._target)
                self._temporary = None
        except OSError:
            self.drop()
            raise

    def keep_part(self) -> str | None:
        """Keep what was written of a file that is not whole under a name of its own; return it; None: nothing is kept.

        What bears the file's own name stays as it was.
        """
        if self._temporary is None or self._failed is not None:
            return None
        with self._named():
            self._stream.close()
        part = self._target.with_name(f"{self._target.name}.partial")
        self._temporary.chmod(_mode_for(part))
        self._temporary.replace(part)
        self._temporary = None
        return f"{self.name}.partial"

    def drop(self) -> None:
        """Forget what was written; a file of that name stays as it was."""
        self._over = True
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
        if self._stream is not sys.stdout:
            with contextlib.suppress(OSError):  # what could not be written is dropped anyway
                self._stream.close()


def _mode_for(target: Path) -> int:
    """Return the permissions of a file that is replaced, or those of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def check_names(outputs: Sequence[tuple[str, str | None]], inputs: Iterable[Path]) -> None:
    """Check that no two outputs are one file, and none of them an input.

    :param outputs: option and file name; None: not wanted.
    :raises ConfigError: names both.
    """
    seen = {os.path.realpath(path): f"the input {path}" for path in inputs}
    for option, name in outputs:
        if name is None or _is_device(name):
            continue
        key = name if name == STDOUT else os.path.realpath(name)
        if key in seen:
            raise ConfigError(option, [Problem("", f"{name} is {seen[key]} already")])
        seen[key] = f"the file of {option}"


def _is_device(name: str) -> bool:
    if name == STDOUT:
        return False
    try:
        mode = Path(name).stat().st_mode
    except (OSError, ValueError):
        return False  # what is wrong with it is told when it is opened
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)

"""Programs under ``makeway checkpointable``, really saved by criu, as a plain user also where root runs the tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import makeway_checkpointable
from makeway_checkpointable import criu

NOBODY = 65534
LIMIT = 60.0
"""Seconds after which something that has to happen counts as not happening."""
SYSTEM = "/usr/bin/python3"
"""One that every user may run; that of the tests may lie in root's home."""
COUNT = """
import os, time
number = 0
while number < 5 or not os.path.exists("finish"):
    number += 1
    print(number, flush=True)
    time.sleep(0.02)
raise SystemExit({status})
"""
"""Counts until it is told to finish, so that nothing rests on how quick a machine is."""
RUN = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
from makeway_checkpointable.wrapper import run
given = json.loads(sys.argv[2])
sys.exit(run(given.pop("command"), pathlib.Path(given.pop("directory")), **given))
"""


def plain_user_runs(python: str) -> bool:
    """Whether a plain user may run a Python that is new enough."""
    try:
        probe = "import sys; sys.exit(sys.version_info < (3, 11))"
        return subprocess.run([python, "-c", probe], user=NOBODY, check=False, cwd="/").returncode == 0
    except OSError:
        return False


class Place:
    """A directory of the plain user's, and what runs there."""

    def __init__(self, directory: Path, *, python: str, plain: bool) -> None:
        self.directory = directory
        self.python = python
        self.plain = plain
        self.images = directory / "images"
        self.environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "MAKEWAY_CRIU": criu.find().path}
        self._started: list[subprocess.Popen[str]] = []
        shutil.copytree(
            Path(makeway_checkpointable.__file__).parent, directory / "lib/makeway_checkpointable"
        )

    def program(self, text: str, name: str = "program.py") -> list[str]:
        """Write a program; return the command."""
        path = self.directory / name
        path.write_text(text)
        return [self.python, "-I", str(path)]

    def counts(self, status: int, before: str = "") -> list[str]:
        """Write a program that counts, after what comes before; return the command."""
        return self.program(before + COUNT.format(status=status))

    def counted(self) -> bool:
        """Whether it has counted to five or further, with no number missing and none twice."""
        printed = self.printed()
        return len(printed) >= 5 and printed == [str(each + 1) for each in range(len(printed))]

    def start(self, *command: str, within: Sequence[str] = (), **given: Any) -> subprocess.Popen[str]:
        """Run a command so that it can be saved.

        :param within: a command that executes what follows it.
        """
        words = json.dumps({"command": command, "directory": str(self.images), **given})
        plain = {"user": NOBODY, "group": NOBODY, "extra_groups": [NOBODY, 100]} if self.plain else {}
        with open(self.directory / "said", "a") as said:
            os.fchown(said.fileno(), *([NOBODY] * 2 if self.plain else [-1, -1]))
            started: subprocess.Popen[str] = subprocess.Popen(
                [*within, self.python, "-I", "-c", RUN, str(self.directory / "lib"), words],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                text=True,
                cwd=self.directory,
                env=self.environ,
                **plain,  # type: ignore[call-overload]
            )
        self._started.append(started)
        return started

    def until(self, what: str, holds: Callable[[], Any]) -> None:
        """Wait until something holds."""
        end = time.monotonic() + LIMIT
        while not holds():
            assert time.monotonic() < end, f"{what} did not happen; said: {self.said()}"
            time.sleep(0.02)

    def finish(self, *command: str, **given: Any) -> int:
        """Run a program and let it come to its end; return its exit status."""
        (self.directory / "finish").touch()
        return self.start(*command, **given).wait(LIMIT)

    def printed(self) -> list[str]:
        """Return the lines that the program has printed."""
        path = self.images / "stdout"
        return path.read_text().splitlines() if path.exists() else []

    def said(self) -> str:
        """Return what was said of it."""
        return (self.directory / "said").read_text()

    def leaves(self, started: subprocess.Popen[str]) -> int:
        """Send SIGTERM; return the exit status."""
        started.send_signal(signal.SIGTERM)
        return started.wait(LIMIT)

    def save(self) -> tuple[int, str]:
        """Have the program saved; return exit status and message."""
        text = (
            "import pathlib, sys; sys.path.insert(0, sys.argv[1]);"
            " from makeway_checkpointable.door import ask; sys.exit(ask(pathlib.Path(sys.argv[2])))"
        )
        words = [self.python, "-I", "-c", text, str(self.directory / "lib"), str(self.images)]
        plain = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.plain else {}
        done = subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            **plain,  # type: ignore[call-overload]
        )
        return done.returncode, done.stderr

    def image(self) -> Path:
        """Return the only image."""
        (found,) = self.images.glob("image.*")
        return found

    def end(self) -> None:
        """Leave nothing behind."""
        for each in self._started:
            with contextlib.suppress(ProcessLookupError):
                each.kill()
            each.wait(LIMIT)


@pytest.fixture
def place() -> Iterator[Place]:
    """Return a place where criu works for a plain user; without one, skip."""
    try:
        criu.ready()
    except criu.CriuError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="makeway-saved-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        plain = os.geteuid() == 0 and plain_user_runs(SYSTEM)
        if plain:
            os.chown(directory, NOBODY, NOBODY)
        found = Place(directory, python=SYSTEM if plain else sys.executable, plain=plain)
        try:
            yield found
        finally:
            found.end()

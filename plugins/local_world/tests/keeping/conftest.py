"""A house of real keepers, which is empty again after each test."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from makeway_local_world.keeping import proc, words
from makeway_local_world.keeping.proc import Process
from makeway_local_world.processes.machine import Cgroups
from makeway_local_world.processes.nursing import Nursery
from makeway_local_world.processes.rundir import Fate, Found, RunDirectory

LIMIT = 60.0
"""Seconds after which a test gives up; how long a loaded machine takes is no finding."""


def until(what: Any, limit: float = LIMIT) -> Any:
    """Wait until `what()` is true, and return it."""
    deadline = time.monotonic() + limit
    while not (found := what()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.002)
    return found


class Held:
    """One incarnation in its keeper's hands."""

    def __init__(self, place: RunDirectory, line: socket.socket) -> None:
        self.place = place
        self.line = line
        self.said: list[dict[str, Any]] = []
        self.keeper = 0

    def hear(self, say: str, limit: float = LIMIT) -> dict[str, Any]:
        """Wait for a word of the keeper."""
        deadline = time.monotonic() + limit
        while True:
            for at, told in enumerate(self.said):
                if told["say"] == say:
                    return self.said.pop(at)
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.line], [], [], max(0.0, left))
            assert ready, f"no word {say!r}; it said {self.said}"
            data = self.line.recv(words.LONGEST)
            assert data, f"it hung up before it said {say!r}; it said {self.said}"
            self.said.append(words.unpack(data))

    def ask(self, do: str, **what: Any) -> None:
        """Ask the keeper for something."""
        assert words.send(self.line, words.pack(do=do, id=1, **what))

    def runs(self) -> Held:
        """Wait until the job runs."""
        self.keeper = self.hear("started")["pid"]
        self.hear("runs")
        return self

    def tree(self) -> list[Process]:
        """Return the job's processes that have not ended."""
        return [each for each in proc.below(self.keeper) if each.state not in proc.ENDED]

    until = staticmethod(until)

    def end(self) -> Found:
        """Wait until the keeper has ended; return what it left."""
        return until(lambda: found if (found := self.place.look()).fate is not Fate.ALIVE else None)  # type: ignore[no-any-return]

    def kill(self) -> Found:
        """Have it killed at once, and wait for that."""
        self.ask("kill", forced=True)
        return self.end()


class House:
    """Starts keepers as a daemon does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nursery = Nursery()
        self.held: list[Held] = []

    def start(self, *argv: str, job: str = "", **request: Any) -> Held:
        """Have a job started."""
        job = job or str(len(self.held) + 1)
        place = RunDirectory(self.folder, (job, 1))
        directory = place.make()
        lock = place.take_lock(directory)
        assert lock is not None
        asked = {
            "v": words.VERSION,
            "job": job,
            "incarnation": 1,
            "boot": proc.boot_id(),
            "monotonic": time.monotonic(),
            "wall": time.time(),
            "argv": list(argv),
            "script": None,
            "cwd": "/",
            "environment": {"PATH": os.environ.get("PATH", os.defpath)},
            "input": None,
            "output": "/dev/null",
            "error": None,
            "append": False,
            "umask": 0o022,
            "uid": os.geteuid(),
            "gid": os.getegid(),
            "groups": sorted(os.getgroups()),
            "die_with_keeper": True,
            "kill_wait": 5.0,
            **request,
        }
        line = self.nursery.start(lock, json.dumps(asked).encode(), directory)
        os.close(lock)
        os.close(directory)
        held = Held(place, line)
        self.held.append(held)
        return held

    def python(self, code: str, **request: Any) -> Held:
        """Have a Python program started."""
        return self.start(sys.executable, "-I", "-S", "-c", code, **request)

    def empty(self) -> None:
        """Kill all that is left."""
        for held in self.held:
            if held.place.look().fate is Fate.ALIVE:
                with contextlib.suppress(AssertionError):
                    held.kill()
            held.line.close()
        self.nursery.close()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder that every user may enter, under a short name: sockets have short paths."""
    folder = Path(tempfile.mkdtemp(prefix="mw-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def house(short: Path) -> Iterator[House]:
    """Keepers, and nobody left afterwards."""
    found = House(short / "state")
    found.folder.mkdir()
    yield found
    found.empty()


@pytest.fixture
def cgroups(short: Path) -> Iterator[Cgroups]:
    """Where cgroups may be made; the test is skipped where they may not."""
    found = Cgroups.find(f"test-{short.name}")
    if not found.base:
        pytest.skip(f"no cgroups here: {found.why_not}")
    yield found
    found.remove()

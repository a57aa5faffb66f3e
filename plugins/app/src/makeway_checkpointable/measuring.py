"""Measure what a checkpoint costs here: seconds to save a program, to bring it back, and to write as much plainly."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from makeway_checkpointable import images
from makeway_checkpointable.criu import Criu

_LIMIT = 600.0
PROGRAM = """
import os, sys, time
held = bytearray(os.urandom(1 << 20) * int(sys.argv[1]))
while True:
    print("at work", flush=True)
    time.sleep(0.002)
"""
"""A program of so many MB as it is told, which says that it works."""
_PIECE = 4 << 20


class MeasureError(Exception):
    """Why nothing was measured."""


class Cost(NamedTuple):
    """What one program took."""

    megabytes: int
    """Memory that it held."""
    image: int
    """Bytes of what was saved."""
    save: float
    """Seconds until it was saved, checksums and the disk's word included."""
    restore: float
    """Seconds from the command until it worked again."""
    write: float
    """Seconds in which as many bytes are written to the same disk, and are there for certain."""

    def per_gib(self, seconds: float) -> float:
        """Return seconds for a GiB of memory."""
        return seconds * 1024 / self.megabytes


def measure(criu: Criu, above: Path, megabytes: int) -> Cost:
    """Save and bring back a program that holds so much memory.

    :param above: directory in which all is done; nothing is left in it.
    :raises MeasureError: it cannot be done.
    """
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    free = os.statvfs(above)
    if free.f_bavail * free.f_frsize < 3 * megabytes << 20:
        raise MeasureError(f"{above}: too little space for {3 * megabytes} MiB")
    with tempfile.TemporaryDirectory(dir=above, prefix="measure-") as name:
        place = Path(name)
        written = _write(place / "plain", megabytes)
        run = [sys.executable, "-I", "-m", "makeway_checkpointable", "--criu", criu.path, "--dir"]
        words = [*run, str(place / "saved"), "--", sys.executable, "-I", "-c", PROGRAM, str(megabytes)]
        with _running(words, place) as first:
            _until_it_works(place, first, 0)
            began = time.monotonic()
            done = subprocess.run(
                [*run, str(place / "saved"), "--save"],
                capture_output=True,
                text=True,
                timeout=_LIMIT,
                check=False,
            )
            saved = time.monotonic() - began
            if done.returncode != 0:
                raise MeasureError(done.stderr.strip())
        (image,) = (place / "saved").glob("image.*")
        size = images.size_of(image)
        before = _lines(place)
        began = time.monotonic()
        with _running(words, place) as second:
            _until_it_works(place, second, before)
            restored = time.monotonic() - began
    return Cost(megabytes, size, saved, restored, written)


@contextlib.contextmanager
def _running(words: list[str], place: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(place / "said", "ab") as said:
        started = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        yield started
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait(_LIMIT)


def _lines(place: Path) -> int:
    try:
        return (place / "saved/stdout").stat().st_size
    except FileNotFoundError:
        return 0


def _until_it_works(place: Path, started: subprocess.Popen[bytes], before: int) -> None:
    deadline = time.monotonic() + _LIMIT
    while _lines(place) <= before:
        if started.poll() is not None or time.monotonic() > deadline:
            raise MeasureError((place / "said").read_text(errors="replace").strip() or "it did not start")
        time.sleep(0.001)


def _write(path: Path, megabytes: int) -> float:
    piece = os.urandom(_PIECE)
    began = time.monotonic()
    with open(path, "wb") as file:
        for _ in range(0, megabytes << 20, _PIECE):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    took = time.monotonic() - began
    path.unlink()
    return took

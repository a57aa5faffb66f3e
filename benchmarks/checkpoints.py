"""What a checkpoint costs: of a program alone, and where an urgent job takes a machine from one with so much memory.

python benchmarks/checkpoints.py --megabytes 1024 --rounds 3 [--dir DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import attrs

from makeway.config import dump_toml
from makeway_checkpointable import criu
from makeway_checkpointable.measuring import PROGRAM, Cost, measure
from makeway_local_world import default

_LIMIT = 120.0
_WORKED = 5.0
"""Seconds that the victim works before the urgent job comes."""
_URGENT = "date +%s.%N; sleep 2"
_MODES = ("suspend", "requeue", "checkpoint")


class Way(NamedTuple):
    """How one urgent job got the machine; seconds."""

    ready: float
    """From its submission until the victim is stopped, saved or told to end."""
    freed: float
    """From then until nothing of the victim runs any more."""
    starts: float
    """From then to the first line of the urgent job."""
    lost: float
    """Work of the victim that is to be done again."""


@contextlib.contextmanager
def _daemon(mode: str, place: Path) -> Iterator[Callable[..., str]]:
    """Yield what runs commands of makeway on a machine where victims make way by a mode."""
    machine = attrs.evolve(default.this_machine(gpus=0), cpus=1)
    made = default.checkpoint(machine) if mode == "checkpoint" else default.configuration(machine)
    if mode == "requeue":
        made = attrs.evolve(made, policy=attrs.evolve(made.policy, preempt_mode=("requeue",)))
    (place / "machine.toml").write_text(dump_toml(made))
    environ = {**os.environ, "MAKEWAY_STATE": str(place / "state"), "XDG_STATE_HOME": str(place / "home")}
    environ.pop("MAKEWAY_SOCKET", None)

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "makeway", *words]
        return subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout

    run("up", str(place / "machine.toml"))
    try:
        yield run
    finally:
        run("down", "--kill")


def _until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + _LIMIT
    while not (found := holds()):
        if time.monotonic() > end:
            raise SystemExit("what is measured did not come about")
        time.sleep(0.0005)
    return found


def _has_gone(pid: int) -> bool:
    try:
        return _stat(pid)[0] == "Z"
    except OSError:
        return True


def _program(place: Path) -> int:
    """Return the process that holds the memory."""
    named = [
        int(each.name)
        for each in Path("/proc").iterdir()
        if each.name.isdigit() and f"\0{place}\0".encode() in _command(each) and b"held" in _command(each)
    ]
    return max(named, key=lambda pid: int(_stat(pid)[21]))


def _stat(pid: int) -> list[str]:
    """Return the fields of a process behind its name: the state comes first, then the parent."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def _command(process: Path) -> bytes:
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_bytes()
    return b""


def _make_way(mode: str, above: Path, megabytes: int) -> Way:
    """Let an urgent job take the machine once."""
    with tempfile.TemporaryDirectory(dir=above, prefix="way-") as name, _daemon(mode, Path(name)) as run:
        place, out = Path(name), Path(name) / "victim"
        held = [sys.executable, "-I", "-c", PROGRAM, str(megabytes), str(place), "-"]
        victim = run("submit", "--parsable", "-o", str(out), "--", *held).strip()
        _until(lambda: out.exists() and out.stat().st_size)
        time.sleep(_WORKED)
        theirs = [_program(place)]
        while b"makeway_checkpointable" in _command(Path(f"/proc/{_stat(theirs[-1])[1]}")):
            theirs.append(int(_stat(theirs[-1])[1]))
        urgent = str(int(victim) + 1)
        comes = ("submit", "-p", "urgent", "-o", str(place / "urgent"), "--", "sh", "-c", _URGENT)
        Thread(target=run, args=comes).start()
        if mode != "suspend":
            _until(lambda: all(map(_has_gone, theirs)))
        freed = time.time()
        _until(lambda: (place / "urgent").exists() and (place / "urgent").stat().st_size)
        ready = out.stat().st_mtime  # it prints all the time
        if mode == "checkpoint":
            (image,) = place.glob("home/makeway-saved/*/image.*")
            ready = image.stat().st_ctime  # when it got its name
        if mode == "suspend":
            freed = ready
        run("wait", urgent)
        first = float((place / "urgent").read_text())
        jobs = json.loads(run("history", "--json"))["jobs"]
        submitted = next(each["submitted_at"] for each in jobs if each["id"] == urgent)
        live = json.loads(run("queue", "--json"))["jobs"]
        lost = next(each.get("lost", 0.0) for each in live if each["id"] == victim)
        return Way(ready - submitted, freed - ready, first - freed, lost)


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    found: list[Cost] = [measure(criu.find(), given.dir, given.megabytes) for _ in range(given.rounds)]

    def median(name: str) -> float:
        return float(statistics.median(getattr(each, name) for each in found))

    save, restore, write = median("save"), median("restore"), median("write")
    print(f"{given.megabytes} MB, {given.rounds} rounds, {median('image') / (1 << 20):,.0f} MiB of images")
    print(f"| save | {save:.2f} s | {save / write:.2f} times a plain write |")
    print(f"| restore | {restore:.2f} s | {restore / write:.2f} times a plain write |")
    print(f"| plain write | {write:.2f} s | |")
    for mode in _MODES:
        ways = [_make_way(mode, given.dir, given.megabytes) for _ in range(given.rounds)]
        ready, freed, starts, lost = (statistics.median(each) for each in zip(*ways, strict=True))
        print(f"| {mode} | {ready:.3f} s | {freed * 1000:.0f} ms | {starts * 1000:.0f} ms | {lost:.1f} s |")


if __name__ == "__main__":
    main()

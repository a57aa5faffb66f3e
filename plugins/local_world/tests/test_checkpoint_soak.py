"""Checkpoints without end: jobs whose state has a sum, made way again and again, with kills in the middle.

``MAKEWAY_SOAK=1000,100`` says how many preemptions by checkpoint, and how many kill -9 of daemon, keeper and criu;
a third number after how many seconds it ends all the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from makeway_checkpointable import criu

Site = Any
PREEMPTIONS, KILLS, *LIMIT = (int(each) for each in os.environ.get("MAKEWAY_SOAK", "1000,100").split(","))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"
JOBS = 8
"""They make way together, on a machine that is said to have a CPU for each."""
RIGHT = 7
PROGRAM = """
import hashlib, mmap, os, queue, sys, threading, time
me = sys.argv[1]
os.ftruncate(1, 0)  # what it printed before it began anew does not count
with open(f"begun.{me}", "a") as file:
    file.write("once\\n")
def after(state, number):
    return hashlib.sha256(state + str(number).encode()).digest()
shared = mmap.mmap(-1, 4096)
read_order, write_order = os.pipe()
read_done, write_done = os.pipe()
if os.fork() == 0:
    os.close(write_order)
    while number := os.read(read_order, 8):
        shared[:32] = after(shared[:32], int.from_bytes(number, "big"))
        os.write(write_done, b"x")
    os._exit(0)
os.close(read_order)
told, heard = queue.Queue(), queue.Queue()
def think():
    state = bytes(32)
    while True:
        state = after(state, told.get())
        heard.put(state)
threading.Thread(target=think, daemon=True).start()
growing = open(f"grown.{me}", "w")
held = bytearray(os.urandom(8 << 20))
sealed = hashlib.sha256(held).digest()
number, thought = 0, bytes(32)
while number < 20 or not os.path.exists("finish"):
    number += 1
    os.write(write_order, number.to_bytes(8, "big"))
    os.read(read_done, 1)
    told.put(number)
    thought = heard.get()
    growing.write(f"{number}\\n")
    growing.flush()
    print(number, flush=True)
    time.sleep(0.02)
wanted = bytes(32)
for each in range(1, number + 1):
    wanted = after(wanted, each)
whole = [str(each) for each in range(1, number + 1)]
right = (
    shared[:32] == thought == wanted
    and hashlib.sha256(held).digest() == sealed
    and open(f"grown.{me}").read().split() == whole
    and open(f"out.{me}").read().split() == whole
)
os._exit(7 if right else 1)
"""
"""A child told by pipes, whose state is in shared memory; a thread; growing files; memory of its own."""


def lines_of(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


class Soak:
    """Some jobs, and what is done to them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.rng = random.Random(int(os.environ.get("NIGHTLY_SEED", "1")))
        self.killed = {"daemon": 0, "keeper": 0, "criu": 0}
        (site.directory / "sum.py").write_text(PROGRAM)
        site.environ["XDG_STATE_HOME"] = str(site.directory / "home")
        text = site.config.read_text().replace('["suspend", "gang"]', '["checkpoint"]')
        text = text.replace("cpus = 2", f"cpus = {JOBS}")
        site.config.write_text(text + "[world.settings.partition.normal]\ncheckpoint_every = 10\n")
        site.up()
        words = ("-n", "1", "--", PYTHON, "-I", "sum.py")
        self.jobs = [site.submit("-o", f"out.{at}", "-e", f"err.{at}", *words, str(at)) for at in range(JOBS)]

    def counts(self) -> list[int]:
        return [lines_of(self.site.directory / f"out.{at}") for at in range(JOBS)]

    def go_on(self) -> None:
        """Wait until each of them has done some more."""
        before = self.counts()
        self.site.until(
            lambda: all(now > then + 3 for now, then in zip(self.counts(), before, strict=True)), "more work"
        )

    def preempted(self) -> int:
        """Return how often they made way by a checkpoint."""
        live = self.site.jobs()
        return sum(int(live[each]["preemptions"]) for each in self.jobs)

    def begun(self) -> int:
        return sum(lines_of(self.site.directory / f"begun.{at}") for at in range(JOBS))

    def turn(self, kill: str) -> None:
        """Let them make way once, with a kill in the middle, and come back."""
        urgent = self.site.submit("-p", "urgent", "-n", str(JOBS), "--", "true")
        if kill:
            self.kill(kill)
        self.site.until(lambda: urgent not in self.site.jobs(), "the urgent job's end")
        self.go_on()

    def kill(self, what: str) -> None:
        if what != "criu":
            time.sleep(self.rng.uniform(0.0, 1.5))
        if what == "daemon":
            (daemon,) = (each for each in self.site.processes if each.poll() is None)
            daemon.kill()
            daemon.wait()
            self.site.up()
            self.killed[what] += 1
            return
        found = self.criu() if what == "criu" else self.keepers()
        for pid in found[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed[what] += 1

    def keepers(self) -> list[int]:
        found = []
        for path in (self.site.state / "run").glob("*/started"):
            with contextlib.suppress(OSError, ValueError):
                told = json.loads(path.read_bytes())
                if told["job"] in self.jobs and not (path.with_name("exit").read_bytes().rstrip(b"\0")):
                    found.append(int(told["pid"]))
        self.rng.shuffle(found)
        return found

    def criu(self) -> list[int]:
        """Return a criu that runs for one of the jobs, whether it dumps or restores; wait for it a while."""
        deadline, mark = time.monotonic() + self.rng.uniform(0.5, 4.0), os.fsencode(self.site.directory)
        while time.monotonic() < deadline:
            for place in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if (place / "comm").read_text() == "criu\n" and mark in (place / "environ").read_bytes():
                        return [int(place.name)]
        return []


@pytest.mark.nightly
def test_nothing_is_lost_or_done_twice(site: Site) -> None:
    try:
        criu.ready()
    except criu.CriuError as error:
        pytest.skip(str(error))
    soak = Soak(site)
    began = time.monotonic()
    soak.go_on()
    kinds = ("daemon", "keeper", "criu")
    until = began + LIMIT[0] if LIMIT else float("inf")
    while time.monotonic() < until and (soak.preempted() < PREEMPTIONS or sum(soak.killed.values()) < KILLS):
        left = max(1, PREEMPTIONS - soak.preempted())
        due = soak.rng.random() < JOBS * (KILLS - sum(soak.killed.values())) / left
        soak.turn(soak.rng.choice(kinds) if due else "")
        if not any(soak.killed.values()):
            assert soak.begun() == JOBS  # no checkpoint was missed
    preempted, begun = soak.preempted(), soak.begun()
    (site.directory / "finish").touch()
    site.until(lambda: not site.jobs(), "their end")
    ended = {each["id"]: each for each in site.ended()}
    codes = [ended[each].get("exit_code") for each in soak.jobs]
    took = time.monotonic() - began
    sys.stdout.write(
        f"{preempted} preemptions, kills {soak.killed}, begun {begun} times for {JOBS} jobs, exit codes {codes},"
        f" steps {soak.counts()}, {took:.0f} s\n"
    )
    assert codes == [RIGHT] * JOBS
    assert begun <= JOBS + sum(soak.killed.values())

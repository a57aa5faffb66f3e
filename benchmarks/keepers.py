"""Measure what the local world costs: starts, suspensions, idleness, keepers, and finding them again.

    python benchmarks/keepers.py [starts] [idle] [load] [keepers] [--running 200] [--pending 1000] [--keepers 2000]

The engine, the journal and the world run in this process as in a daemon; the socket is left out. Everything runs as
this user, without cgroups unless ``--cgroups auto``. CPU is that of the daemon's process, engine included.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from makeway.config import Config, parse_toml
from makeway.model import JobSpec
from makeway.worlds.events import Action, Start, Submitted
from makeway_live.drive import Live
from makeway_live.recovery import live_of
from makeway_local_world.keeping import words
from makeway_local_world.processes.rundir import Fate, RunDirectory, all_keys
from makeway_local_world.processes.world import LocalWorld
from makeway_local_world.submission import Submission, store

MILLI = 1e3
CONFIG = """
node = [{{ name = "n1", cpus = {cpus}, memory_mb = 1000000 }}]
partition = [
  {{ name = "normal", default = true }},
  {{ name = "urgent", priority_tier = 2, preempt_mode = ["off"] }},
]
[cluster]
def_mem_per_cpu = 1
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core_Memory"]
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
[scheduler]
type = "backfill"
clockwork = {{ kill_wait = 1.0 }}
[world]
name = "world/local"
"""


class Site:
    """A daemon without its socket."""

    def __init__(self, cpus: int, cgroups: str) -> None:
        config = parse_toml(CONFIG.format(cpus=cpus), "benchmark")
        settings = {"cgroups": cgroups, "bind": False}
        self.config: Config = attrs.evolve(config, world=attrs.evolve(config.world, settings=settings))
        self.folder = Path(tempfile.mkdtemp(prefix="mw-bench-"))
        self.live: Live = live_of(self.config, self.folder)
        self.made = 0

    @property
    def world(self) -> LocalWorld:
        """The world."""
        assert isinstance(self.live.world, LocalWorld)
        return self.live.world

    def submit(self, *command: str, partition: str = "normal", output: str = "/dev/null") -> str:
        """Hand in a job of one CPU."""
        self.made += 1
        job_id = str(self.made)
        mine = {"user": str(os.geteuid()), "uid": os.geteuid(), "gid": os.getegid(), "groups": ()}
        store(self.folder, Submission(job_id=job_id, command=command, output=output, **mine))  # type: ignore[arg-type]
        spec = JobSpec(id=job_id, partitions=(partition,), submit_at=self.live.clock.now())
        self.live.feed(Submitted(spec))
        return job_id

    def turn_for(self, seconds: float) -> float:
        """Turn for so long; return the CPU time that it took."""
        end, began = time.monotonic() + seconds, time.process_time()
        while (left := end - time.monotonic()) > 0:
            self.live.turn(left)
        return time.process_time() - began

    def running(self) -> int:
        """Return how many jobs run."""
        return sum(1 for each in self.world.processes().values() if each["state"] == "running")

    def fill(self, count: int) -> None:
        """Let so many jobs run."""
        for _ in range(count):
            self.submit("sleep", "100000")
        deadline = time.monotonic() + 600
        while self.running() < count:
            assert time.monotonic() < deadline, f"{self.running()} of {count} run"
            self.live.turn(0.05)

    def end(self) -> None:
        """Kill everything."""
        with contextlib.suppress(AttributeError):
            self.live.close()
            self.live.journal.close()  # type: ignore[union-attr]
        places = [RunDirectory(self.folder, key) for key in all_keys(self.folder)]
        for place in places:
            line = place.call()
            if line is not None:
                words.send(line, words.pack(do="kill", id=0, forced=True))
                line.close()
        deadline = time.monotonic() + 60
        while any(place.look().fate is Fate.ALIVE for place in places) and time.monotonic() < deadline:
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def site(cpus: int, cgroups: str) -> Iterator[Site]:
    """Make one, and leave nothing behind."""
    found = Site(cpus, cgroups)
    try:
        yield found
    finally:
        found.end()


def show(name: str, values: Sequence[float]) -> None:
    """Print median and 95th percentile in milliseconds."""
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    print(f"{name:<60} median {statistics.median(ordered) * MILLI:7.1f} ms   p95 {p95 * MILLI:7.1f} ms")


def first_lines(here: Site, partition: str, rounds: int) -> tuple[list[float], list[float]]:
    """Return the times to the first line of a job: from handing it in, and from the decision to start it."""
    found, decided = [], []
    perform = here.world.perform

    def note(actions: Sequence[Action], now: float) -> None:
        started.extend([time.monotonic()] if any(isinstance(each, Start) for each in actions) else ())
        perform(actions, now)

    started: list[float] = []
    here.world.perform = note  # type: ignore[method-assign]
    for _ in range(rounds):
        fifo = here.folder / f"fifo{here.made}"
        os.mkfifo(fifo)
        heard: list[float] = []
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        keep = os.open(fifo, os.O_WRONLY)  # so that the reader waits for the job, not for the end of the file

        def listen(reader: int = reader, heard: list[float] = heard) -> None:
            os.read(reader, 10)
            heard.append(time.monotonic())

        thread = threading.Thread(target=listen)
        thread.start()
        began = time.monotonic()
        job_id = here.submit("echo", "here", partition=partition, output=str(fifo))
        while not heard or job_id in here.live.engine.ledger.jobs:
            here.live.turn(0.05)
        thread.join()
        os.close(reader)
        os.close(keep)
        found.append(heard[0] - began)
        decided.append(heard[0] - started[-1])
        here.turn_for(0.1)
    here.world.perform = perform  # type: ignore[method-assign]
    return found, decided


def starts(options: argparse.Namespace) -> None:
    """Measure starts in a free slot, and with one of many to be stopped."""
    with site(options.running + 1, options.cgroups) as here:
        first_lines(here, "normal", 3)
        cases = {"free slot": "normal", f"one of {options.running + 1} to be stopped": "urgent"}
        for name, partition in cases.items():
            if partition == "urgent":
                here.fill(options.running + 1)
            submitted, decided = first_lines(here, partition, options.rounds)
            show(f"submit to first line, {name}", submitted)
            show(f"decision to first line, {name}", decided)


def idle(options: argparse.Namespace) -> None:
    """Measure what it costs when nothing happens."""
    with site(options.running, options.cgroups) as here:
        here.fill(options.running)
        for _ in range(options.pending):
            here.submit("true")
        here.turn_for(5.0)
        used = here.turn_for(options.seconds)
        print(
            f"{options.running} running, {options.pending} queued, idle: {100 * used / options.seconds:.2f}% of a core"
        )


def load(options: argparse.Namespace) -> None:
    """Measure preemptions at a rate of 20 a second."""
    with site(options.running, options.cgroups) as here:
        here.fill(options.running)
        began, used, seconds, before = time.monotonic(), 0.0, 10.0, here.live.steps
        for at in range(int(20 * seconds)):
            here.submit("true", partition="urgent")
            used += here.turn_for(max(0.0, began + (at + 1) / 20 - time.monotonic()))
        took = time.monotonic() - began
        steps, share = here.live.steps - before, 100 * used / took
        print(f"{at + 1} preemptions in {took:.1f} s, {steps} steps: {share:.1f}% of a core")


def keepers(options: argparse.Namespace) -> None:
    """Measure the memory of many keepers, and how long it takes to find them again."""
    with site(options.keepers, options.cgroups) as here:
        began = time.monotonic()
        here.fill(options.keepers)
        print(f"{options.keepers} starts: {time.monotonic() - began:.1f} s")
        private = sum(_private_kb(each["keeper"]) for each in here.world.processes().values())
        print(
            f"{options.keepers} keepers: {private / 1024:.0f} MiB private, {private / options.keepers:.0f} KiB each"
        )
        here.live.close()
        here.live.journal.close()  # type: ignore[union-attr]
        began = time.monotonic()
        here.live = live_of(here.config, here.folder)
        took = time.monotonic() - began
        began = time.monotonic()
        survey = here.world.survey()
        print(
            f"the next daemon is ready after {took:.2f} s, its survey of {len(survey.jobs)} jobs takes"
            f" {time.monotonic() - began:.3f} s"
        )


def _private_kb(pid: int) -> int:
    total = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                total += int(line.split()[1])
    return total


PARTS = {"starts": starts, "idle": idle, "load": load, "keepers": keepers}


def main() -> None:
    """Read the command line, and measure what it names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--pending", type=int, default=1000)
    parser.add_argument("--keepers", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--cgroups", choices=("auto", "off"), default="off")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()

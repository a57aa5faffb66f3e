"""Measure the daemon of the local world: answers, starts, preemptions, and what it costs to do nothing.

``python benchmarks/local_daemon.py [--directory DIR] [--running 200] [--queued 1000] [--idle 20]``

Its configuration has as many CPUs as jobs shall run, whatever the machine has; the jobs sleep. Times of starts are
taken by the jobs themselves (``date``). CPU is the daemon's own, engine included, from ``/proc``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from makeway_local_world.commands.client import Daemon

_CONFIG = """
node = [{{ name = "here", cpus = {cpus}, memory_mb = 1000000 }}]
partition = [
  {{ name = "normal", default = true }},
  {{ name = "urgent", priority_tier = 2, preempt_mode = ["off"] }},
]
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core"]
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
[scheduler]
type = "easy"
clockwork = {{ kill_wait = 1.0 }}
[world]
name = "world/local"
settings = {{ bind = false, memory_short = "ignore" }}
"""


class Bench:
    """A daemon in a directory of its own."""

    def __init__(self, directory: Path, cpus: int) -> None:
        self.directory = directory
        config = directory / "cluster.toml"
        config.write_text(_CONFIG.format(cpus=cpus))
        command = [sys.executable, "-m", "makeway", "up", "--state", str(directory / "s"), str(config)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.daemon = Daemon(directory / "s/socket")
        self.pid = int(self.daemon.get("/v1/daemon")["pid"])

    def submit(self, *command: str, partition: str = "normal", tasks: int = 1) -> str:
        """Submit a job; return its id."""
        body: dict[str, Any] = {"command": list(command), "cwd": str(self.directory), "output": "/dev/null"}
        body |= {"partitions": [partition], "tasks": tasks, "environment": {"PATH": os.environ["PATH"]}}
        return str(self.daemon.post("/v1/jobs", body)["id"])

    def cpu(self) -> float:
        """Return the CPU seconds that the daemon has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def counts(self) -> dict[str, int]:
        """Return how many jobs are in each state."""
        found: dict[str, int] = {}
        for job in self.daemon.get("/v1/jobs")["jobs"]:
            found[job["state"]] = found.get(job["state"], 0) + 1
        return found

    def until(self, state: str, number: int) -> None:
        """Wait until so many jobs are in a state."""
        end = time.monotonic() + 300
        while self.counts().get(state, 0) != number:
            if time.monotonic() > end:
                raise SystemExit(f"{number} jobs never were {state}: {self.counts()}")
            time.sleep(0.05)

    def first_lines(self, rounds: int, partition: str) -> list[float]:
        """Return the milliseconds from a submission to the first thing that the job does."""
        found = []
        for number in range(rounds):
            path = self.directory / f"{partition}.{number}"
            begun = time.time_ns()
            job = self.submit("sh", "-c", f"date +%s%N > {path}", partition=partition)
            while not self.daemon.get(f"/v1/jobs/{job}/wait")["ended"]:
                pass
            found.append((int(path.read_text()) - begun) / 1e6)
        return found

    def close(self) -> None:
        """End all jobs and the daemon."""
        environ = {**os.environ, "MAKEWAY_STATE": str(self.directory / "s")}
        subprocess.run(
            [sys.executable, "-m", "makeway", "down", "--kill", "--timeout", "120"], env=environ, check=False
        )


def told(name: str, values: Sequence[float]) -> None:
    """Print median and 95th percentile."""
    ordered = sorted(values)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    print(f"{name:<58} {statistics.median(values):8.1f} ms, p95 {high:8.1f} ms")


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, help="where the state shall be; else in /tmp")
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--queued", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds of doing nothing")
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="mw-", dir=given.directory or "/tmp"))
    bench = Bench(directory, given.running)
    try:
        told("submit to first line, free slot", bench.first_lines(given.rounds, "normal"))
        for _ in range(given.running):
            bench.submit("sleep", "3600")
        bench.until("RUNNING", given.running)
        told(
            f"submit to first line, one of {given.running} stopped for it",
            bench.first_lines(given.rounds, "urgent"),
        )
        bench.until("RUNNING", given.running)
        answers = []
        for _ in range(given.queued):
            begun = time.perf_counter()
            bench.submit("sleep", "3600")
            answers.append((time.perf_counter() - begun) * 1e3)
        told("submit to answer, journaled", answers)
        time.sleep(2.0)
        before = bench.cpu()
        time.sleep(given.idle)
        used = (bench.cpu() - before) / given.idle * 100
        print(f"{given.running} running, {given.queued} queued, nothing happens: {used:.2f} % of a core")
        before, begun, made = bench.cpu(), time.monotonic(), 0
        while time.monotonic() - begun < 10.0:
            bench.submit("true", partition="urgent")
            made += 1
            time.sleep(max(0.0, begun + made / 20 - time.monotonic()))
        passed = time.monotonic() - begun
        used = (bench.cpu() - before) / passed * 100
        print(f"{made / passed:.1f} preemptions a second: {used:.1f} % of a core")
    finally:
        bench.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()

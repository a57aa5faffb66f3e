"""Measure what the journal costs: a step with one event, fsync beside it, and recovery of a large site.

    python benchmarks/journal.py [--pending 10000] [--running 2000] [--steps 300] [--directory DIR]

The journal is written as in a live run (write-ahead log, synchronous=FULL) in a directory on the disk to be measured.
A step is one job that ends, with all that follows from it; the engine's own time is not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from makeway.config import Config, NodeTable, PartitionTable, PolicyTable, SchedulerTable, build_cluster
from makeway.model import JobSpec, JobState
from makeway.record import Line, Recorder
from makeway.worlds.api import Step
from makeway.worlds.events import Event, Finished, Started, Submitted
from makeway_engine.engine import Engine
from makeway_live.journal import Journal
from makeway_live.recovery import recover

MILLI = 1e3


def config(running: int) -> Config:
    """Return one node for each job that runs, and preemption by requeue."""
    return Config(
        node=(NodeTable(name=f"n[1-{running}]", cpus=4, sockets=1, cores_per_socket=4),),
        partition=(PartitionTable(name="low", default=True), PartitionTable(name="high", priority_tier=2)),
        policy=PolicyTable(preempt="preempt/partition_prio", preempt_mode=("requeue",)),
        scheduler=SchedulerTable(type="easy"),
    )


def fsyncs(directory: Path, count: int) -> list[float]:
    """Return how long it takes to append 4096 bytes and fsync them, in seconds each."""
    path = directory / "fsync"
    took = []
    with path.open("wb", buffering=0) as file:
        for _ in range(count):
            begin = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            took.append(time.perf_counter() - begin)
    path.unlink()
    return took


class Site:
    """An engine with many jobs, whose steps are written down."""

    def __init__(self, path: Path, pending: int, running: int) -> None:
        self.config = config(running)
        self.lines: list[Line] = []
        self.journal = Journal(path)
        recorder = Recorder(build_cluster(self.config), self.lines.append, keep=False)
        self.engine: Engine = recover(self.config, self.journal, recorder).engine
        specs = [JobSpec(id=str(at), time_limit=1e6 + at) for at in range(1, pending + running + 1)]
        self.step(0.0, [Submitted(spec) for spec in specs])
        self.step(1.0, [Started(job.id, job.starts) for job in self.engine.ledger.active])

    def step(self, now: float, events: Sequence[Event]) -> tuple[float, float]:
        """Make a step and write it; return the seconds that writing took, and those of CPU among them."""
        del self.lines[:]
        actions = self.engine.step(now, events)
        step = Step(now=now, wall=1e9 + now, events=events, actions=actions, lines=tuple(self.lines))
        begin, busy = time.perf_counter(), time.process_time()
        self.journal.write(step)
        return time.perf_counter() - begin, time.process_time() - busy


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=2_000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="on the disk to be measured")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.directory) as name:
        directory = Path(name)
        site = Site(directory / "journal.db", asked.pending, asked.running)
        took, beside = [], []
        for at in range(asked.steps):
            job = site.engine.ledger.active[0]
            end = Finished(job.id, JobState.COMPLETED, cleaned=True, incarnation=job.starts)
            took.append(site.step(2.0 + at, [end]))
            beside += fsyncs(directory, 1)
        site.journal._database.close()  # as after a crash: nothing more is written down
        begin = time.perf_counter()
        journal = Journal(directory / "journal.db")
        found = recover(site.config, journal)
        recovery = time.perf_counter() - begin
        journal.close()
    walls, cpus = zip(*took, strict=True)
    step, sync = statistics.median(walls) * MILLI, statistics.median(beside) * MILLI
    worst = sorted(walls)[int(len(walls) * 0.95)] * MILLI
    print(f"step with one event: median {step:.2f} ms, 95% {worst:.2f} ms")
    print(f"  of it CPU:         median {statistics.median(cpus) * MILLI:.2f} ms")
    print(f"fsync of 4 KiB:      median {sync:.2f} ms; a step takes {step / sync:.1f} times as long")
    print(f"recovery of {found.jobs:,} jobs: {recovery:.2f} s")


if __name__ == "__main__":
    main()

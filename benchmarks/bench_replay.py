"""Replay a log under EASY with node-level placement and full records, beside a loop that only counts nodes.

Prints jobs per second of CPU time of both, their ratio in the same run, and what ten times the log costs per job:
once with records kept in memory, once with records streamed to a file and the peak of memory.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import counting_loop

from makeway.config import Config, NodeTable, PartitionTable, SchedulerTable
from makeway.model import JobSpec
from makeway.readers.api import ReadOptions
from makeway.record import to_json
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, replay

CONFIG = Config(
    node=(NodeTable(name="n[1-100]"),),
    partition=(PartitionTable(name="all", default=True),),
    scheduler=SchedulerTable(type="easy"),
)


def repeated(jobs: list[JobSpec], times: int) -> Iterator[JobSpec]:
    """Yield the log `times` over, one copy after the other."""
    length = jobs[-1].submit_at + 30 * 86400
    for copy in range(times):
        for job in jobs:
            yield attrs.evolve(job, id=f"{copy}-{job.id}", submit_at=job.submit_at + copy * length)


def timed(jobs: list[JobSpec]) -> float:
    """Return the seconds of CPU time of one replay."""
    began = time.process_time()
    replay(CONFIG, jobs)
    return time.process_time() - began


def streamed(jobs: Iterator[JobSpec]) -> float:
    """Return the seconds of CPU time of one replay whose records go to a file."""
    with tempfile.TemporaryFile("w") as log:
        began = time.process_time()
        replay(CONFIG, jobs, (), Options(sink=lambda line: print(to_json(line), file=log), keep=False))
        return time.process_time() - began


def peak_mb() -> float:
    """Return the most memory that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stream(log: Path, times: int) -> None:
    """Replay the log `times` over with records going to a file; print speed and the peak of memory."""
    jobs = list(open_workload(log, ReadOptions(config=CONFIG)).jobs)
    before = peak_mb()
    took = streamed(repeated(jobs, times))
    count = times * len(jobs)
    print(
        f"{times} x the log, streamed: {count / took:,.0f} jobs/s, {peak_mb() - before:,.0f} MB more than at rest"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="KTH-SP2-1996-2.1-cln.swf.gz")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--times", type=int, default=10, help="how often the log is repeated for the long run"
    )
    parser.add_argument("--stream", action="store_true", help="measure streamed records instead")
    given = parser.parse_args()
    if given.stream:
        stream(given.log, given.times)
        return
    jobs = list(open_workload(given.log, ReadOptions(config=CONFIG)).jobs)
    counted = counting_loop.read_swf(given.log)
    pairs = []
    for _ in range(given.rounds):
        began = time.process_time()
        counting_loop.simulate(counted, 100, "easy")
        loop = time.process_time() - began
        pairs.append((timed(jobs), loop))
    ours = statistics.median(own for own, _ in pairs)
    loop = statistics.median(other for _, other in pairs)
    ratio = statistics.median(own / other for own, other in pairs)
    print(f"makeway: {len(jobs) / ours:,.0f} jobs/s with placement and records (median of {given.rounds})")
    print(f"counting loop: {len(jobs) / loop:,.0f} jobs/s without; makeway takes {ratio:.1f} times as long")
    many = list(repeated(jobs, given.times))  # beforehand: making them costs a fifth of what is measured
    long = timed(many)
    count = len(many)
    relative = long / count / (ours / len(jobs))
    print(f"{given.times} x the log, kept: {count / long:,.0f} jobs/s, {relative:.2f} times the cost per job")


if __name__ == "__main__":
    main()

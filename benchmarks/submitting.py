"""Measure how long the daemon of the local world takes to answer where several clients submit at once.

``python benchmarks/submitting.py [--clients 8] [--submissions 2000] [--directory DIR]``

Each client is a process that hands in one job after another; the jobs run `true` on four CPUs meanwhile. An answer
comes once the job would survive a crash of the machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
from pathlib import Path

from local_daemon import Bench, told

CPUS = 4


def submit(bench: Bench, many: int) -> list[float]:
    """Hand jobs in; return how long each answer took, in milliseconds."""
    found = []
    for _ in range(many):
        begun = time.perf_counter()
        bench.submit("true")
        found.append((time.perf_counter() - begun) * 1e3)
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--directory", type=Path, help="where the state shall be; else in /tmp")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--submissions", type=int, default=2000)
    given = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    directory = Path(tempfile.mkdtemp(prefix="mw-", dir=given.directory or "/tmp"))
    bench = Bench(directory, CPUS)
    try:
        before, begun = bench.cpu(), time.perf_counter()
        with multiprocessing.Pool(given.clients) as clients:
            each = [(bench, given.submissions // given.clients)] * given.clients
            answers = [took for found in clients.starmap(submit, each, 1) for took in found]
        took, used = time.perf_counter() - begun, bench.cpu() - before
        told(f"submit to answer, journaled, {given.clients} clients at once", answers)
        print(f"{len(answers)} submissions in {took:.1f} s, {used:.1f} s of CPU of the daemon")
    finally:
        bench.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()

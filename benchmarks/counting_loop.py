"""A textbook scheduler loop that only counts free nodes: the baseline peer of the benchmarks.

It knows no placement, no partitions and no records; it shares no code with the package. What it
counts are the processors of an SWF trace, one per node.

Rules, all of them needed for the reference figures below unless marked "immaterial":

* Jobs. Size is SWF column 8 (requested processors), column 5 (used) only where 8 is missing; run
  is column 4; estimate is column 9 (requested time), or the run itself where 9 is missing (never
  so in KTH-SP2). A job is dropped if its size is not positive or its run is negative; a job that
  ran 0 s stays. With the cut, run = min(run, estimate); the estimate itself is never changed.
* Instants. Time is in whole seconds. All ends and all submissions of one instant are applied
  before ONE scheduling pass at that instant (ends or submissions first is immaterial). A job of
  0 s that starts at t ends at t and so causes a second pass at t.
* Order. The queue is in order of submission; equal submit times keep the order of the file.
* FCFS. Start from the head of the queue for as long as the head fits.
* EASY. FCFS first. If a head remains, take the running jobs (those just started too) by the end
  they were estimated to have, start + estimate; a job that overran counts as ending now. The
  shadow time is the first such end at which the head would fit. The extra nodes are those free
  then, with EVERY job whose estimated end is at or before the shadow time given back (also the
  ones that tie with it), less the head's size. Scan the rest of the queue once, in order: a job
  starts if it fits the free nodes and either now + estimate <= shadow time, or its size <= extra;
  only in the second case is its size taken off the extra nodes.
* Bounded slowdown of a job: max(1, (wait + run) / max(run, 10)), run being the simulated run.

KTH-SP2-1996-2.1-cln, 100 nodes, 28,475 jobs (mean wait s, longest wait s, mean bounded slowdown):

    cut      FCFS  353,943.09    946,685   6,825.67
    cut      EASY    6,837.23    262,194      92.87
    no cut   FCFS  389,852.17  1,018,341   7,518.74
    no cut   EASY    6,847.50    262,194      91.52

Two shortcuts keep it quick and change no result. FCFS needs no events: each start follows from
the start before it and the heap of ends. EASY keeps shadow time and extra nodes until a job ends
or the shadow time goes by, and meanwhile tries only the newly submitted jobs, because whatever
was refused before would be refused again.
"""

from __future__ import annotations

import argparse
import gzip
import time
from bisect import bisect_left, insort
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

BOUND = 10


class Job(NamedTuple):
    """What the loop needs of a job: seconds, and a number of nodes."""

    submit: int
    run: int
    size: int
    estimate: int


def read_swf(path: Path, *, cut: bool = True) -> list[Job]:
    """Read a plain or gzipped SWF file into jobs in order of submission."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("latin-1")
    jobs: list[Job] = []
    for line in text.splitlines():
        field = line.split()
        if not field or field[0].startswith(";"):
            continue
        submit, run, used, size, estimate = (int(float(field[i])) for i in (1, 3, 4, 7, 8))
        size = size if size > 0 else used
        estimate = estimate if estimate > 0 else run
        if size > 0 and run >= 0:
            jobs.append(Job(submit, min(run, estimate) if cut else run, size, estimate))
    jobs.sort(key=lambda job: job.submit)
    return jobs


def simulate(jobs: Sequence[Job], nodes: int, policy: str) -> list[int]:
    """Return the wait of each job, in the order given, which must be that of submission."""
    if any(job.size > nodes for job in jobs):
        raise ValueError(f"a job needs more than {nodes} nodes")
    if any(late.submit < early.submit for early, late in pairwise(jobs)):
        raise ValueError("the jobs are not in order of submission")
    if policy == "fcfs":
        return _fcfs(jobs, nodes)
    if policy == "easy":
        return _easy(jobs, nodes)
    raise ValueError(f"unknown policy {policy!r}")


def _fcfs(jobs: Sequence[Job], free: int) -> list[int]:
    waits: list[int] = []
    ends: list[tuple[int, int]] = []
    now = 0
    for submit, run, size, _ in jobs:
        now = max(now, submit)
        while free < size or (ends and ends[0][0] <= now):
            end, freed = heappop(ends)
            free += freed
            now = max(now, end)
        free -= size
        heappush(ends, (now + run, size))
        waits.append(now - submit)
    return waits


def _easy(jobs: Sequence[Job], free: int) -> list[int]:
    total = len(jobs)
    waits = [0] * total
    never = 1 << 62
    ends: list[tuple[int, int]] = []  # heap of (real end, job)
    hopes: list[tuple[int, int]] = []  # sorted list of (estimated end, job)
    hope_of = [0] * total
    queue: list[int] = []
    arrived = 0
    next_submit = jobs[0].submit if jobs else never
    next_end = never
    shadow = -1  # of the head of the queue, with extra; stale if before now
    extra = 0
    while arrived < total or ends:
        now = min(next_submit, next_end)
        tried = len(queue)  # jobs that the last pass has refused
        while next_end <= now:
            job = heappop(ends)[1]
            free += jobs[job].size
            del hopes[bisect_left(hopes, (hope_of[job], job))]
            next_end = ends[0][0] if ends else never
            shadow = -1
        while next_submit <= now:
            queue.append(arrived)
            arrived += 1
            next_submit = jobs[arrived].submit if arrived < total else never
        if not queue:
            continue
        if shadow < now:  # something ended, or the reservation went by: a full pass
            shadow = -1
            place = 0
            for job in queue:
                _, run, size, estimate = jobs[job]
                if size > free:
                    break
                free -= size
                hope_of[job] = now + estimate
                insort(hopes, (now + estimate, job))
                heappush(ends, (now + run, job))
                waits[job] = now - jobs[job].submit
                place += 1
            if place:
                next_end = ends[0][0]
                del queue[:place]
                if not queue:
                    continue
            tried = 1
            extra = free - jobs[queue[0]].size
            for hope, job in hopes:
                if extra >= 0 and hope > shadow:
                    break
                extra += jobs[job].size
                shadow = max(hope, now)
        if not free or tried == len(queue):
            continue
        starts: list[int] = []
        for job in queue[tried:]:
            submit, run, size, estimate = jobs[job]
            if size <= free:
                if now + estimate > shadow:
                    if size > extra:
                        continue
                    extra -= size
                free -= size
                hope_of[job] = now + estimate
                insort(hopes, (now + estimate, job))
                heappush(ends, (now + run, job))
                waits[job] = now - submit
                starts.append(job)
                if not free:
                    break
        if starts:
            next_end = ends[0][0]
            started = set(starts)
            queue = [job for job in queue if job not in started]
    return waits


def main() -> None:
    """Run one policy, or both, over a trace and print the figures."""
    parser = argparse.ArgumentParser(description="Count nodes through an SWF trace.")
    parser.add_argument("file", type=Path, help="SWF file, plain or gzipped")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--policy", choices=("fcfs", "easy"), help="default: one after the other")
    parser.add_argument("--no-cut", action="store_true", help="let jobs overrun their estimate")
    options = parser.parse_args()
    jobs = read_swf(options.file, cut=not options.no_cut)
    if not jobs:
        parser.error("no usable job in the file")
    for policy in (options.policy,) if options.policy else ("fcfs", "easy"):
        begun = time.perf_counter()
        waits = simulate(jobs, options.nodes, policy)
        took = time.perf_counter() - begun
        slowdowns = [
            max(1.0, (wait + job.run) / max(job.run, BOUND)) for wait, job in zip(waits, jobs, strict=True)
        ]
        print(
            f"{policy}: {len(jobs)} jobs, mean wait {sum(waits) / len(jobs):.2f} s, "
            f"max wait {max(waits)} s, mean bounded slowdown {sum(slowdowns) / len(jobs):.2f}, "
            f"{len(jobs) / took:.0f} jobs/s"
        )


if __name__ == "__main__":
    main()

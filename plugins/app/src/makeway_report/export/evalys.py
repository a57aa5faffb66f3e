"""Write the CSV of Batsim, which Evalys reads: a row per start of a job, CPUs numbered over the whole cluster.

Evalys knows no suspension: a start lasts from its first second to its last. A start that was broken off has
``success`` 0 and its job's id with ``#`` and the number of restarts before.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from makeway.hostlist import expand_hostlist
from makeway_report.export.rows import cores_of, runs_of
from makeway_report.record_file import RecordFile

COLUMNS = (
    "job_id workload_name profile submission_time requested_number_of_resources requested_time success "
    "final_state starting_time execution_time finish_time waiting_time turnaround_time stretch allocated_resources"
).split()


class _Lines:
    def __init__(self, to: Callable[[str], object]) -> None:
        self.write = to


def write_evalys(record: RecordFile, to: Callable[[str], object]) -> list[str]:
    """Write the rows; return what had to be left out, in words."""
    writer = csv.writer(_Lines(to), lineterminator="\n")
    writer.writerow(COLUMNS)
    offsets, total = {}, 0
    for group in record.cluster["nodes"]:
        for name in expand_hostlist(group["names"]):
            offsets[name] = total
            total += group["cpus"]
    never = 0
    for job_id, job in record.jobs():
        rows = list(_rows(job_id, job, record.heading["workload"], offsets))
        never += not rows
        writer.writerows(rows)
    return [f"{never:,} jobs that never started are left out"] if never else []


def _rows(
    job_id: str, job: Mapping[str, Any], workload: str, offsets: Mapping[str, int]
) -> Iterator[list[Any]]:
    runs = runs_of(job)
    submitted = job["submit"]
    for at, run in enumerate(runs):
        first, last = run[0], run[-1]
        start, end = first["start"], last["end"]
        over = at == len(runs) - 1
        done = over and job["final_state"] == "COMPLETED"
        spent = end - start
        limit = job["requested"]["time_limit"]
        yield [
            job_id if over else f"{job_id}#{first['restart']}",
            workload,
            job["partition"],
            submitted,
            cores_of(first) or job["requested"]["cpus"],
            spent if limit is None else limit,
            int(done),
            "COMPLETED_SUCCESSFULLY" if done else "COMPLETED_FAILED",
            start,
            round(spent, 6),
            end,
            round(start - submitted, 6),
            round(end - submitted, 6),
            round((end - submitted) / spent, 6) if spent else 1.0,
            " ".join(_numbers(first, offsets)),
        ]
        submitted = end  # it is back in the queue


def _numbers(interval: Mapping[str, Any], offsets: Mapping[str, int]) -> Iterator[str]:
    """Yield the CPUs of an interval as spans: 0-3 8."""
    for name, text in (interval.get("cpus") or {}).items():
        for part in text.split(",") if text and name in offsets else ():
            first, _, last = part.partition("-")
            low, high = offsets[name] + int(first), offsets[name] + int(last or first)
            yield f"{low}-{high}" if high > low else str(low)

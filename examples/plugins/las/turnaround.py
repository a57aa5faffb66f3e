"""Print the time from submission to completion of the jobs in records (``makeway replay --json``), in hours."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path


def hours(record: Path) -> list[float]:
    """Return the times of all jobs that ran, shortest first."""
    jobs = json.loads(record.read_text())["jobs"].values()
    return sorted((job["intervals"][-1]["end"] - job["submit"]) / 3600 for job in jobs if job["intervals"])


def main(names: list[str]) -> None:
    """Print a line for each record."""
    print(f"{'record':24} {'jobs':>6} {'mean':>8} {'median':>8} {'p99':>8}")
    for name in names:
        found = hours(Path(name))
        middle, most = statistics.median(found), found[int(0.99 * (len(found) - 1))]
        print(f"{name:24} {len(found):6,} {statistics.fmean(found):8,.1f} {middle:8,.1f} {most:8,.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])

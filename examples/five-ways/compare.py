"""Print what became of one trace under several rules, from records (``makeway replay --json``), as Markdown tables.

python compare.py slurm.json moab.json lsf.json openpbs.json kueue.json
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]

FIGURES: Sequence[tuple[str, Callable[[Record], str]]] = (
    ("preemptions", lambda m: f"{m['preemptions']:,}"),
    ("jobs preempted", lambda m: f"{m['jobs_preempted']:,}"),
    ("GPU-hours lost", lambda m: f"{m['gpu_seconds_lost'] / 3600:,.0f}"),
    ("mean wait", lambda m: f"{m['mean_wait'] / 60:,.1f} min"),
    ("mean JCT", lambda m: f"{m['jct_mean'] / 3600:,.2f} h"),
    ("99th percentile JCT", lambda m: f"{m['jct_p99'] / 3600:,.1f} h"),
    ("worst finish-time fairness", lambda m: f"{m['finish_time_fairness_worst']:,.1f}"),
    ("Jain's index of fairness", lambda m: f"{m['finish_time_fairness_jain']:.3f}"),
    ("GPU utilisation", lambda m: f"{m['gpu_utilisation']:.1%}"),
)


def waits(record: Record) -> dict[str, list[float]]:
    """Return minutes from submission to the first start, by virtual cluster."""
    found: dict[str, list[float]] = {}
    for job in record["jobs"].values():
        first = next((each["start"] for each in job["intervals"] if each["state"] == "RUNNING"), None)
        if first is not None:
            found.setdefault(job["partition"], []).append((first - job["submit"]) / 60)
    return found


def pairs(record: Record) -> Counter[tuple[str, str]]:
    """Count which jobs displaced which, by virtual cluster."""
    of = {name: job["partition"] for name, job in record["jobs"].items()}
    return Counter((of.get(each["preemptor"], "-"), of[each["victim"]]) for each in record["preemptions"])


def row(*cells: str) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(cells)} |")


def main(names: Sequence[str]) -> None:
    """Print three tables: figures, mean waits, and the most frequent pairs."""
    records = {Path(name).stem: json.loads(Path(name).read_text()) for name in names}
    head, line = ("", *records), ("---", *("---:" for _ in records))
    row(*head)
    row(*line)
    for name, show in FIGURES:
        row(name, *(show(record["metrics"]) for record in records.values()))
    found = [waits(record) for record in records.values()]
    print()
    row("virtual cluster", "jobs", *records)
    row("---", "---:", *line[1:])
    for cluster in sorted(found[0]):
        means = (f"{statistics.fmean(each[cluster]):,.1f}" for each in found)
        row(f"`{cluster}`", f"{len(found[0][cluster]):,}", *means)
    for label, record in records.items():
        most = ", ".join(f"`{a}` from `{b}` {count:,}" for (a, b), count in pairs(record).most_common(4))
        print(f"\n{label}: {most}")


if __name__ == "__main__":
    main(sys.argv[1:])

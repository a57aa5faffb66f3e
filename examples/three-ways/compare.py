"""Replay one trace under the rules of Slurm, Moab and LSF, and print what became of it as a Markdown table.

    python compare.py march.swf.gz [NUMBER OF JOBS]

The configuration beside this file is the same for all three, but for the key ``policy.preempt``. The last column has
LSF requeue its victims, as the other two do, so that rules and action can be told apart. The trace is not part of
this repository: docs/three-schedulers.md says where it is from and on which terms.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from makeway.config import Config, parse_toml
from makeway.errors import MakewayError
from makeway.model import JobState, Seconds
from makeway.readers.api import ReadOptions
from makeway_app.readers.open import open_workload
from makeway_app.replay import Options, Run, replay

BESIDE = Path(__file__).with_name("cluster.toml")
REQUEUE = {"JOB_CONTROLS": "SUSPEND[brequeue $LSB_JOBID]"}
WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "Slurm": ("preempt/partition_prio", {}),
    "Moab": ("moab/qos", {}),
    "LSF": ("lsf/queue", {}),
    "LSF, brequeue": ("lsf/queue", REQUEUE),
}
"""Column -> the value of ``policy.preempt``, and what is added to each queue."""


def under(config: Config, way: tuple[str, dict[str, str]], trace: Path, jobs: int | None) -> Run:
    """Replay `trace` with one key changed, and queues with some more attributes."""
    preempt, more = way
    queues = tuple(attrs.evolve(each, attributes={**each.attributes, **more}) for each in config.partition)
    config = attrs.evolve(config, policy=attrs.evolve(config.policy, preempt=preempt), partition=queues)
    workload = open_workload(trace, ReadOptions(config=config, limit=jobs))
    return replay(config, workload.jobs, (), Options())


def figures(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table for one run."""
    metrics = run.engine.metrics()
    recorded = run.recorder.metrics
    yield "jobs", f"{metrics['jobs']:,}"
    yield "of these could never run here", f"{len(run.recorder.unrunnable):,}"
    yield "preemptions", f"{metrics['preemptions']:,}"
    yield "jobs preempted", f"{metrics['jobs_preempted']:,}"
    yield "work lost (core-hours)", f"{metrics['core_seconds_lost'] / 3600:,.0f}"
    yield "time held while suspended (core-hours)", f"{suspended(run) / 3600:,.0f}"
    busy, lost = busy_while_jobs_arrive(run), metrics["core_seconds_lost"]
    yield "utilisation while jobs arrive", f"{busy:.1%}"
    yield "utilisation until the last job ends", f"{metrics['utilisation']:.1%}"
    yield "share of the work that was thrown away", f"{lost / recorded.core_seconds_used:.1%}"
    yield "last job ends after (days)", f"{metrics['makespan'] / 86400:,.1f}"
    yield "mean wait", hours(metrics["mean_wait"])
    for partition in run.recorder.cluster.partitions:
        waits = recorded.waits_in.get(partition.name, [])
        yield f"{partition.name}: jobs started", f"{len(waits):,}"
        yield f"{partition.name}: mean wait", hours(statistics.fmean(waits)) if waits else "-"
        yield f"{partition.name}: longest wait", hours(max(waits)) if waits else "-"
        slow = turnaround(run, partition.name)
        yield f"{partition.name}: mean time from submission to end", hours(slow) if slow is not None else "-"
    yield "not finished", f"{metrics['jobs'] - recorded.ended:,}"


def hours(seconds: Seconds) -> str:
    """Return a length of time in hours."""
    return f"{seconds / 3600:,.2f} h"


def busy_while_jobs_arrive(run: Run) -> float:
    """Return the share of all cores that jobs ran on, from the first submission to the last."""
    submitted = [history.job.spec.submit_at for history in run.recorder.histories.values()]
    first, last = min(submitted), max(submitted)
    cores = [node.cpus for node in run.recorder.cluster.nodes]
    total = 0.0
    for history in run.recorder.histories.values():
        for state, start, end, held, _ in history.intervals:
            if state is JobState.RUNNING and held is not None:
                cpus = held.cpus or [cores[at] for at in held.node_indices]
                total += max(0.0, min(end, last) - max(start, first)) * sum(cpus)
    return total / (sum(cores) * (last - first)) if last > first else 0.0


def suspended(run: Run) -> Seconds:
    """Return how long cores were held by jobs that were suspended, in core-seconds."""
    total = 0.0
    for history in run.recorder.histories.values():
        for state, start, end, held, _ in history.intervals:
            if state is JobState.SUSPENDED and held is not None:
                cpus = held.cpus or [run.recorder.cluster.nodes[at].cpus for at in held.node_indices]
                total += (end - start) * sum(cpus)
    return total


def turnaround(run: Run, partition: str) -> Seconds | None:
    """Return the mean time from submission to end of the jobs of one class."""
    spans = [
        history.ended_at - history.job.spec.submit_at
        for history in run.recorder.histories.values()
        if history.job.partition.name == partition and history.ended_at is not None
    ]
    return statistics.fmean(spans) if spans else None


def table(columns: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for row in zip(*columns.values(), strict=True):
        yield f"| {row[0][0]} | {' | '.join(value for _, value in row)} |"


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("jobs", type=int, nargs="?", help="take only so many jobs")
    parser.add_argument("--config", type=Path, default=BESIDE)
    given = parser.parse_args(arguments)
    try:
        config = parse_toml(given.config.read_text(encoding="utf-8"), str(given.config))
        columns = {
            name: list(figures(under(config, way, given.trace, given.jobs))) for name, way in WAYS.items()
        }
    except MakewayError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("\n".join(table(columns)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

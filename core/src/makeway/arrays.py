"""Read the tasks of a job array as ``sbatch --array`` takes them (slurm-priority-and-limits 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from makeway.model import JobSpec

MOST_TASKS = 4_000_001
"""Most that Slurm's MaxArraySize allows."""
_ALLOWED = "indices such as 0-15, 1,3,5-9:2, with %n behind them for n tasks at a time"
_PART = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")


@attrs.frozen
class TaskArray:
    """Which tasks an array has."""

    tasks: Sequence[int]
    """Indices, ascending, none twice."""
    limit: int | None = None
    """How many tasks may be at work at a time; None: as many as fit."""


def parse_array(text: str, most: int = MOST_TASKS) -> TaskArray:
    """Read ``0-15``, ``1,3,5-9:2`` or ``0-99%4``.

    :param most: how many tasks it may have; they are counted before any is made.
    :raises ValueError: it is none of these, an index is too large, or there are too many tasks.
    """
    body, mark, at_work = text.strip().strip("[]").partition("%")
    if mark and not re.fullmatch(r"[1-9][0-9]{0,6}", at_work):
        raise ValueError(f"got {text[:60]!r}; allowed behind %: a number of tasks, 1 or more")
    tasks: set[int] = set()
    written = 0
    for part in body.split(","):
        match = _PART.fullmatch(part)
        first, last, step = (
            (int(match[1]), int(match[2] or match[1]), int(match[3] or 1)) if match else (1, 0, 1)
        )
        if last < first or not step:
            raise ValueError(f"got {text[:60]!r}; allowed: {_ALLOWED}")
        if last >= MOST_TASKS:
            raise ValueError(f"got index {last:,}; allowed: at most {MOST_TASKS - 1:,}")
        found = range(first, last + 1, step)
        written += len(found)
        if written > most:
            raise ValueError(f"got {written:,} tasks or more; allowed: {most:,}")
        tasks.update(found)
    return TaskArray(tuple(sorted(tasks)), int(at_work) if mark else None)


def tasks_of(job: JobSpec, array: TaskArray) -> list[JobSpec]:
    """Return the tasks of an array, each a job of its own: ``ID_0``, ``ID_1``."""
    attributes = {**job.attributes, "array_size": len(array.tasks), "array_last": max(array.tasks)}
    return [
        attrs.evolve(
            job,
            id=f"{job.id}_{task}",
            array_id=job.id,
            array_task=task,
            array_limit=array.limit,
            attributes=attributes,
        )
        for task in array.tasks
    ]

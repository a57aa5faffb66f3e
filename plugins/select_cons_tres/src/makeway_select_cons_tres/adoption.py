"""Write down which job is in which row, and fill new books from it (docs/adoption.md).

Rows depend on the order in which jobs came and went: a job goes into the first row with room, and rows are put
together anew only when a job leaves. Without memory, jobs are seated in the order in which they started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway.model import Job, JobState, SuspendedBy
from makeway.state import states_of
from makeway_select_cons_tres.books import Books, Memory


def to_plain(books: Books, active: Sequence[Job]) -> dict[str, Any]:
    """Return what a new set of books has to know, in values that JSON has.

    :param active: all running and suspended jobs.
    """
    memory = books.remembered()
    used = {job.partition.index for job in active}
    marked = [index for index, mark in enumerate(books.marks) if mark or books.sharing[index]]
    return {
        "jobs": states_of(active),
        "rows": {
            str(index): [list(row.jobs) for row in part.rows]
            for index, part in books.parts.items()
            if index in used
        },
        "rowless": sorted(memory.rowless),
        "stopped": sorted(memory.stopped),
        "overflown": sorted(memory.overflown),
        "stale": sorted(memory.stale & used),
        "marks": {str(index): [books.marks[index], books.sharing[index]] for index in marked},
    }


def fill(books: Books, active: Sequence[Job], plain: Mapping[str, Any] | None) -> None:
    """Charge jobs that are there already.

    :param plain: what `to_plain` returned; counts only if all jobs are as they were then.
    """
    if plain and plain["jobs"] == states_of(active):
        _recall(books, active, plain)
        return
    stopped: list[Job] = []  # by persons, and still seated
    for job in active:
        for other in [each for each in stopped if _before(each, job)]:
            books.suspend(other)  # its cores were free when `job` started
            stopped.remove(other)
        books.add(job)
        if job.state is JobState.SUSPENDED and job.suspended_by is SuspendedBy.ADMIN:
            stopped.append(job)
    for job in sorted(stopped, key=_stopped_at):
        books.suspend(job)


def _stopped_at(job: Job) -> float:
    return job.suspended_at or 0.0


def _before(stopped: Job, job: Job) -> bool:
    """Whether a job was stopped before another started."""
    return job.started_at is not None and _stopped_at(stopped) <= job.started_at


def _recall(books: Books, active: Sequence[Job], plain: Mapping[str, Any]) -> None:
    stale = set(plain["stale"])
    memory = Memory(set(plain["rowless"]), set(plain["stopped"]), set(plain["overflown"]), stale)
    jobs = {job.id: job for job in active}
    partitions = {str(job.partition.index): job.partition for job in active}
    seats: dict[str, int] = {}
    order: list[str] = []
    for index, rows in plain["rows"].items():
        books.rows(partitions[index])
        for place, listed in enumerate(rows):
            order += listed
            seats.update(dict.fromkeys(listed, place))
    for job_id in (*order, *(job_id for job_id in jobs if job_id not in seats)):
        row = None if job_id in memory.rowless else seats.get(job_id, 0)
        books.recall(jobs[job_id], row, memory)
    books.leave_marks(
        {int(index): (mark, sharing) for index, (mark, sharing) in plain["marks"].items()}, memory
    )

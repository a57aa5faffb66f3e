"""Keep books of those alone who would stay if a kind of preemptors displaced all whom it may.

Whether such a job would find room is then seen from the nodes that fit it, without a search.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from makeway.model import Job
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.fitting import Fitting
from makeway_select_cons_tres.layout import Layout


class RemainingBooks:
    """The books of those who stay; brought up to date by what changed since they were last asked."""

    def __init__(self, layout: Layout) -> None:
        self._books = Books(layout)
        self.fitting = Fitting(self._books)
        self._there: dict[str, Job] = {}

    def follow(self, active: Sequence[Job], going: Collection[int]) -> None:
        """Let those of `active` be there whose identity is not in `going`."""
        there = self._there
        staying = {job.id: job for job in active if id(job) not in going}
        for job in [job for job_id, job in there.items() if job_id not in staying]:
            self.released(job)
        for job_id, job in staying.items():
            if job_id not in there:
                there[job_id] = job
                self._books.add(job)
        self._books.sync()

    def released(self, job: Job) -> None:
        """Take back what `job` holds, while it is still known."""
        if self._there.pop(job.id, None) is not None:
            self._books.remove(job)

"""Keep books of those alone that would stay if a kind of preemptors displaced all that it may.

Whether such a job would find room is then seen from the nodes that fit it, without a search.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from makeway.bitmap import NodeBits
from makeway.model import Job, JobState
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.fitting import Fitting
from makeway_select_cons_tres.idle import IdleCores
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.layout import Layout


class RemainingBooks:
    """The books of those that stay; brought up to date by what changed since they were last asked."""

    def __init__(self, layout: Layout) -> None:
        self._books = Books(layout)
        self._fitting = Fitting(self._books)
        self._idle = IdleCores(self._books, self._fitting)
        self.there: dict[str, Job] = {}

    def follow(self, active: Sequence[Job], going: Collection[int]) -> None:
        """Let those of `active` be there whose identity is not in `going`."""
        there = self.there
        staying = {job.id: job for job in active if id(job) not in going}
        for job in [job for job_id, job in there.items() if job_id not in staying]:
            self.released(job)
        for job_id, job in staying.items():
            if job_id not in there:
                self._add(job)

    def has_room(self, kind: Kind, nodes: NodeBits) -> bool:
        """Whether a job of `kind` would find the nodes that it wants among `nodes`."""
        if self._books.touched:
            self._books.sync()
        if kind.screen_wish is not None:
            return self._idle.first(kind.screen_wish, nodes) >= 0
        return (nodes & self._fitting.nodes(kind)).bit_count() >= kind.request.min_nodes

    def _add(self, job: Job) -> None:
        self.there[job.id] = job
        self._books.add(job)
        if job.state is JobState.SUSPENDED:
            self._books.suspend(job)

    def released(self, job: Job) -> None:
        """Take back what `job` holds, while it is still known."""
        if self.there.pop(job.id, None) is not None:
            self._books.remove(job)

"""Know which jobs are running or suspended: by id, in job-table order, and node by node."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from operator import attrgetter

from makeway.model import Cluster, Job

_FEW = 16
"""From so many on, the jobs that left are taken out of a list in one go."""
_MANY = 64
"""After so many changes without a question, the list is dropped: rare questions are answered by sorting."""
_by_index = attrgetter("index")


class ActiveJobs:
    """The active jobs of a run. What is handed out does not change any more."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.by_id: dict[str, Job] = {}
        """As they started."""
        self._sorted: list[Job] | None = None
        """By place in the job table; kept in order for as long as it is asked for again soon."""
        self._unasked = 0
        """How many came or went since that list was asked for."""
        self._left: list[Job] = []
        """Jobs that are still in that list though they are no longer active."""
        self.now: tuple[Job, ...] | None = ()
        """All of them, to hand out; None: a job came or went."""
        self._on: list[list[Job]] | None = None
        """By node; None: not asked for yet."""
        self.listed = False
        """Whether lists are kept, in order or by node."""

    @property
    def in_order(self) -> Sequence[Job]:
        """All of them, in job-table order."""
        if self.now is None:
            if self._sorted is None:
                self.listed = True
                self._sorted = sorted(self.by_id.values(), key=_by_index)
            elif self._left:
                self._strike_off(self._sorted)
            self._unasked = 0
            self.now = tuple(self._sorted)
        return self.now

    def on(self, node: int) -> Sequence[Job]:
        """Return those on a node, in order of start."""
        if self._on is None:
            self.listed = True
            self._on = [[] for _ in self._cluster.nodes]
            # stable: as they started
            for job in sorted(self.by_id.values(), key=lambda job: job.started_at or 0):
                for index in _indices_of(job):
                    self._on[index].append(job)
        return self._on[node]

    def add(self, job: Job) -> None:
        """Take in a job that has its allocation."""
        self.by_id[job.id] = job
        if self._sorted is not None and not self._drops_list():
            if self._left:
                self._strike_off(self._sorted)
            bisect.insort(self._sorted, job, key=_by_index)
        self.now = None
        if self._on is not None:
            for index in _indices_of(job):
                self._on[index].append(job)

    def remove(self, job: Job) -> None:
        """Strike off a job that still has its allocation."""
        del self.by_id[job.id]
        if self._sorted is not None and not self._drops_list():
            self._left.append(job)
        self.now = None
        if self._on is not None:
            for index in _indices_of(job):
                self._on[index].remove(job)

    def _drops_list(self) -> bool:
        """Whether the list was not asked for for so long that it is no longer kept."""
        self._unasked += 1
        if self._unasked <= _MANY:
            return False
        self._sorted = None
        self._left.clear()
        self.listed = self._on is not None
        return True

    def _strike_off(self, listed: list[Job]) -> None:
        """Take those that left out of the list: many at once in one go."""
        left = self._left
        if len(left) < _FEW:
            for job in left:
                del listed[bisect.bisect_left(listed, job.index, key=_by_index)]
        else:
            gone = {job.index for job in left}
            listed[:] = [job for job in listed if job.index not in gone]
        left.clear()


def _indices_of(job: Job) -> Iterable[int]:
    return job.allocation.node_indices if job.allocation is not None else ()

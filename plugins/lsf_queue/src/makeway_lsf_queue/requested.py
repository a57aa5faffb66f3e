"""Compile what all limits come to for jobs of one request, to be held against the sums at once (spec lsf 5.1).

`judging.first_limit` says the same of any job; `tests/test_in_vain.py` holds one to the other.
"""

from __future__ import annotations

import attrs

from makeway.model import Job
from makeway_lsf_queue import jobs, judging
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.sums import Cell, Share, Sums
from makeway_lsf_queue.vocabulary import PARALLEL


@attrs.frozen(eq=False)
class Bound:
    """A limit, as it stands for the jobs of a request."""

    limit: Limit
    key: str
    bound: float
    share: Share
    sums: Sums
    """Those that the cell is of."""
    cell: Cell
    """What is taken of it."""
    wanted: float
    """How much a job takes of it; of a limit per host nothing."""
    rows: judging.Rows | None
    """Of a limit per host: hosts, each with the bound there and what a job takes there."""

    def lets_in(self) -> bool:
        """Whether a job has room under it."""
        suspended = self.limit.suspended
        if self.rows is None:
            running, stopped = self.cell.total
            return (running + stopped if suspended else running) + self.wanted <= self.bound
        return any(map(self.has_room, self.rows))

    def has_room(self, row: tuple[int, float, float]) -> bool:
        """Whether a limit per host leaves room on the host of one of its rows."""
        index, most, wanted = row
        pair = self.cell.on.get(index)
        if pair is None:
            return wanted <= most
        return (pair[0] + pair[1] if self.limit.suspended else pair[0]) + wanted <= most

    def reason(self, counted: Counted, job: Job) -> str:
        """Return the pending reason of a job that it keeps out."""
        if self.rows is not None or self.limit.reason not in PARALLEL:
            return judging.reason_of(counted, self.limit, self.key, self.bound, job)
        running, stopped = self.cell.total
        total = running + stopped if self.limit.suspended else running
        has_room = self.limit.counts is Counts.SLOTS and total + 1 <= self.bound
        return PARALLEL[self.limit.reason] if has_room else self.limit.reason


@attrs.frozen
class Request:
    """The limits about the jobs of a request."""

    sums: Sums
    """Those that the cells are of."""
    cells: tuple[Cell, ...]
    """What is taken of all limits that are about them."""
    bounds: tuple[Bound, ...]
    """Those that may keep them out, in the order of the files."""
    lasting: tuple[Bound, ...]
    """Those of them that count slots wherever they are, so that they may keep them out whoever makes way."""

    @classmethod
    def of(cls, counted: Counted, job: Job) -> Request:
        """Compile the request of a pending job; nobody has made way, and nothing is reserved."""
        found = []
        sums, places = counted.sums, jobs.places_of(job)
        for limit, key, bound in sums.about(job):
            if limit.hosts is not None and not places & limit.hosts:
                continue
            if judging.leaves_other_hosts(limit, job):
                continue
            per_host = limit.per_host
            rows = judging.rows_of(counted, limit, job, bound) if per_host else None
            wanted = 0.0 if per_host else judging.wanted_of(job, limit, counted)
            found.append(Bound(limit, key, bound, (limit, key), sums, sums.cell((limit, key)), wanted, rows))
        lasting = (
            each
            for each in found
            if each.rows is None and each.limit.hosts is None and each.limit.counts is Counts.SLOTS
        )
        cells = tuple(sums.cell((limit, key)) for limit, key, _ in sums.about(job))
        return cls(sums, cells, tuple(found), tuple(lasting))

    def until(self, last: Bound) -> tuple[Cell, ...]:
        """Return what is taken of the limits up to one of `bounds`."""
        return tuple(each.cell for each in self.bounds[: self.bounds.index(last) + 1])

    def version(self) -> int:
        """Return a number that grows whenever anything is taken, or given back, of a limit that is about them."""
        return sum([cell.version for cell in self.cells])

    def first(self) -> Bound | None:
        """Return the first limit that keeps a job out; None: none does."""
        for bound in self.bounds:
            if not bound.lets_in():
                return bound
        return None

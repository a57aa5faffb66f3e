"""Compile what all limits come to for jobs of one request, to be held against the sums at once (lsf 5.1).

`judging.first_limit` says the same of any job; `tests/test_in_vain.py` holds one to the other.
"""

from __future__ import annotations

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Blocked, Job
from makeway_lsf_queue import jobs, judging
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.sums import Cell, Closed, Rows, Share, Sums
from makeway_lsf_queue.vocabulary import PARALLEL

_SLOTS, _JOBS = Counts.SLOTS, Counts.JOBS


@attrs.define(eq=False)
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
    rows: Rows | None
    """Of a limit per host: hosts, each with the bound there and what a job takes there."""
    said: tuple[tuple[float, float], Blocked] | None = None
    """What running and suspended jobs took when it kept a job out last, and what was said then; filled by `blocked`."""
    _witness: int = 0
    """Place in `rows` of the host that was found last to have room."""

    def lets_in(self) -> bool:
        """Whether a job has room under it."""
        rows = self.rows
        if rows is None:
            cell = self.cell
            running, stopped = cell.total
            return (running + stopped if cell.suspended else running) + self.wanted <= self.bound
        if self._witness < len(rows) and self.has_room(rows[self._witness]):
            return True
        for at, row in enumerate(rows):
            if self.has_room(row):
                self._witness = at
                return True
        return False

    def lets_in_once(self, counted: Counted) -> bool:
        """Whether a job without room under it has some once those who make way have done so."""
        suspended, rows = self.limit.suspended, self.rows
        if rows is None:
            running, stopped = counted.total_without(self.share)
            return (running + stopped if suspended else running) + self.wanted <= self.bound
        on = counted.taken_without(self.share)
        for index, most, wanted in rows:
            running, stopped = on.get(index, _NOBODY)
            if (running + stopped if suspended else running) + wanted <= most:
                return True
        return False

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
        has_room = self.limit.counts is _SLOTS and total + 1 <= self.bound
        return PARALLEL[self.limit.reason] if has_room else self.limit.reason


@attrs.frozen(eq=False)
class Closer:
    """A limit per host, as it stands for the jobs of a request: which hosts it closes."""

    limit: Limit
    key: str
    cell: Cell
    """What is taken of it."""
    closed: Closed

    @classmethod
    def of(cls, counted: Counted, job: Job, limit: Limit, key: str, bound: float) -> Closer:
        """Compile a limit for a pending job."""
        cell = counted.sums.cell((limit, key))
        return cls(limit, key, cell, judging.closed_in(cell, judging.rows_of(counted, limit, job, bound)))

    def bits(self, counted: Counted) -> NodeBits:
        """Return the hosts that it closes once those who make way have done so."""
        closed = self.closed
        bits = closed.now(self.cell)
        if counted.changed:
            return judging.closed_without(counted, self.limit, self.key, closed, self.cell)
        return bits


@attrs.define(eq=False)
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
    closers: tuple[Closer, ...]
    """Limits per host, which close hosts to them."""
    elsewhere: tuple[Limit, ...]
    """Limits on some hosts in all, which do so as well."""
    _first: Bound | None = None
    """The limit that was found last to keep a job out."""
    _taken: int = -1
    """The `version` by which it was found."""
    _seen: int = -1
    """Version of the sums by which that was looked at last."""

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
            if each.rows is None and each.limit.hosts is None and each.limit.counts is _SLOTS
        )
        about = sums.about(job)
        cells = tuple(dict.fromkeys(sums.cell((limit, key)) for limit, key, _ in about))
        closers = tuple(
            Closer.of(counted, job, limit, key, bound) for limit, key, bound in about if limit.per_host
        )
        elsewhere = tuple(limit for limit, _, _ in about if limit.hosts is not None and not limit.per_host)
        return cls(sums, cells, tuple(found), tuple(lasting), closers, elsewhere)

    def version(self) -> int:
        """Return a number that grows whenever anything is taken, or given back, of a limit that is about them."""
        return sum([cell.version for cell in self.cells])

    def first_once(self, counted: Counted) -> Bound | None:
        """Return the first limit that keeps a job out once those who make way have done so; None: none does."""
        lenient, changed = counted.lenient, bool(counted.changed)
        if lenient and not changed:
            return self.first_but_jobs()
        first = self.first()
        if first is None or not changed:
            return first
        for bound in self.bounds[self.bounds.index(first) :]:
            if bound.lets_in() or bound.lets_in_once(counted):
                continue
            if not lenient or bound.limit.counts is not _JOBS:
                return bound
        return None

    def first_but_jobs(self) -> Bound | None:
        """Return the first limit that keeps a job out once others have made way who count as they do already."""
        first = self.first()
        if first is None or first.limit.counts is not _JOBS:
            return first
        behind = self.bounds[self.bounds.index(first) + 1 :]
        return next((each for each in behind if each.limit.counts is not _JOBS and not each.lets_in()), None)

    def closed(self, counted: Counted, job: Job) -> NodeBits:
        """Return the hosts that limits close to a job once those who make way have done so."""
        bits: NodeBits = 0
        for closer in self.closers:
            bits |= closer.bits(counted)
        for limit in self.elsewhere:
            bits |= judging.closed_by(counted, limit, job)
        return bits

    def first(self) -> Bound | None:
        """Return the first limit that keeps a job out; None: none does."""
        seen = self.sums.version
        if seen == self._seen:
            return self._first
        self._seen, taken = seen, self.version()
        if taken != self._taken:
            self._taken, self._first = taken, None
            for bound in self.bounds:
                if bound.rows is not None:
                    if bound.lets_in():
                        continue
                else:  # as `lets_in` says
                    cell = bound.cell
                    running, stopped = cell.total
                    if (running + stopped if cell.suspended else running) + bound.wanted <= bound.bound:
                        continue
                self._first = bound
                break
        return self._first


_MANY = 10_000
"""So many requests are kept compiled."""
_NOBODY = (0.0, 0.0)


def compiled(counted: Counted, job: Job) -> Request | None:
    """Return the request of a pending job; None: more counts than what the sums say."""
    if counted.presence is None or counted.reserved or counted.site.anybody_reserves:
        return None
    if job.allocation is not None:
        return None
    sums, spec = counted.brought(), job.spec
    of_job = sums.of_job.get(job.id)
    if (
        of_job is not None
        and of_job[0] is spec
        and of_job[1] is job.partition
        and of_job[2] == (job.required, job.excluded, job.size)
    ):
        own: Request = of_job[3]
        return own
    asked = counted.request(job)
    known: Request | None = sums.requests.get(asked)
    if known is None:
        if len(sums.requests) >= _MANY:
            sums.requests.clear()
        known = sums.requests[asked] = Request.of(counted, job)
    if len(sums.of_job) >= _MANY:
        sums.of_job.clear()
    sums.of_job[job.id] = spec, job.partition, (job.required, job.excluded, job.size), known
    return known


def blocked(counted: Counted, job: Job) -> Blocked | None:
    """Return the first limit that keeps a job out, as `judging.blocked` does."""
    request = compiled(counted, job)
    if request is None:
        return judging.blocked(counted.site, counted, job)
    first = request.first_once(counted)
    if first is None:
        return None
    if first.rows is not None:
        answers, asked = counted.answers, ("blocked", first)  # a bound is of one request
        found: Blocked | None = answers.get(asked)
        if found is None:
            found = answers[asked] = judging.blocked_by(counted, job, first.limit, first.key, first.bound)
        return found
    taken = (
        counted.total_without(first.share) if counted.changed else (first.cell.total[0], first.cell.total[1])
    )
    if first.said is None or first.said[0] != taken:
        first.said = taken, judging.blocked_by(counted, job, first.limit, first.key, first.bound)
    return first.said[1]


def closed(counted: Counted, job: Job) -> NodeBits:
    """Return the hosts that limits close to a job, as `judging.closed` does."""
    request = compiled(counted, job)
    return judging.closed(counted.site, counted, job) if request is None else request.closed(counted, job)

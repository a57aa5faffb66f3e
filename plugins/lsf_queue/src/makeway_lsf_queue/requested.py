"""Compile what all limits come to for jobs of one request, to be held against the sums at once (spec lsf 5.1).

`judging.first_limit` says the same of any job; `tests/test_in_vain.py` holds one to the other.
"""

from __future__ import annotations

import attrs

from makeway.model import Job
from makeway_lsf_queue import jobs, judging
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.sums import Share, Sums
from makeway_lsf_queue.vocabulary import PARALLEL


@attrs.frozen
class Bound:
    """A limit, as it stands for the jobs of a request."""

    limit: Limit
    key: str
    bound: float
    share: Share
    wanted: float
    """How much a job takes of it; of a limit per host nothing."""
    rows: judging.Rows | None
    """Of a limit per host: hosts, each with the bound there and what a job takes there."""

    def lets_in(self, sums: Sums) -> bool:
        """Whether a job has room under it."""
        suspended = self.limit.suspended
        if self.rows is None:
            running, stopped = sums.taken(self.share)
            return (running + stopped if suspended else running) + self.wanted <= self.bound
        on = sums.taken_by_host(self.share)
        for index, most, wanted in self.rows:
            pair = on.get(index)
            if pair is None:
                if wanted <= most:
                    return True
            elif (pair[0] + pair[1] if suspended else pair[0]) + wanted <= most:
                return True
        return False

    def reason(self, counted: Counted, sums: Sums, job: Job) -> str:
        """Return the pending reason of a job that it keeps out."""
        if self.rows is not None or self.limit.reason not in PARALLEL:
            return judging.reason_of(counted, self.limit, self.key, self.bound, job)
        running, stopped = sums.taken(self.share)
        total = running + stopped if self.limit.suspended else running
        has_room = self.limit.counts is Counts.SLOTS and total + 1 <= self.bound
        return PARALLEL[self.limit.reason] if has_room else self.limit.reason


@attrs.frozen
class Request:
    """The limits about the jobs of a request."""

    bounds: tuple[Bound, ...]
    """Those that may keep them out, in the order of the files."""
    lasting: tuple[Bound, ...]
    """Those of them that count slots wherever they are, so that they may keep them out whoever makes way."""

    @classmethod
    def of(cls, counted: Counted, job: Job) -> Request:
        """Compile the request of a pending job; nobody has made way, and nothing is reserved."""
        found = []
        places = jobs.places_of(job)
        for limit, key, bound in counted.sums.about(job):
            if limit.hosts is not None and not places & limit.hosts:
                continue
            if judging.leaves_other_hosts(limit, job):
                continue
            per_host = limit.per_host
            rows = judging.rows_of(counted, limit, job, bound) if per_host else None
            wanted = 0.0 if per_host else judging.wanted_of(job, limit, counted)
            found.append(Bound(limit, key, bound, (limit, key), wanted, rows))
        lasting = (
            each
            for each in found
            if each.rows is None and each.limit.hosts is None and each.limit.counts is Counts.SLOTS
        )
        return cls(tuple(found), tuple(lasting))

    def first(self, sums: Sums) -> Bound | None:
        """Return the first limit that keeps a job out; None: none does."""
        for bound in self.bounds:
            if not bound.lets_in(sums):
                return bound
        return None

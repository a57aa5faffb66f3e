"""Spare trying those in a deep queue that ask for the same as a job that has just been tried in vain.

Entries are kept by request: the partition, what the job asks for, and the reason why it waits. Where all policies that
decide about a try answer by the request (`makeway.model.Limits`), and nothing changed meanwhile, the next job
of the same request would wait for the same reason as the last. `Greedy` says what a pass comes to without this, and
`tests/test_deep_requests.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import attrs

from makeway.model import Job, JobSpec, Partition
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger
from makeway_engine.queue import Queue
from makeway_engine.schedulers.shapes import Shape, Shapes

_NOT_ASKED = frozenset(
    (
        *("id", "name", "submit_at", "begin_at", "withdrawn_at", "run_time", "wall_submit", "source"),
        *("array_task", "command", "priority", "nice"),
    )
)
ASKED = tuple(field.name for field in attrs.fields(JobSpec) if field.name not in _NOT_ASKED)


_MAPPED = tuple(
    name
    for name in ASKED
    if "Mapping[" in str(getattr(attrs.fields(JobSpec), name).type)  # resolved or not
)
_PLAIN = operator.attrgetter(*(name for name in ASKED if name not in _MAPPED))
_TABLES = operator.attrgetter(*_MAPPED)


class Requests(Shapes):
    """The eligible entries of a queue by request."""

    def __init__(
        self,
        queue: Queue,
        by_request: Callable[[Job], bool],
        on_hold: Mapping[str, str],
        in_vain: Callable[[Job], str | None],
    ) -> None:
        """Be there for one run.

        :param by_request: whether policies answer about a job by its request.
        :param on_hold: jobs that wait for good, for reasons of their own.
        :param in_vain: says why a job would wait if it were tried, or None where that is not known beforehand.
        """
        super().__init__(queue, self._request)
        self._by_themselves = self._stands_alone
        self._by_request = by_request
        self._on_hold = on_hold
        self._in_vain = in_vain
        self._asked: dict[int, tuple[JobSpec, Hashable]] = {}
        """By the place of a job in the job table: what it was submitted with, and what it asks for by that."""
        self._numbers: dict[Hashable, int] = {}
        """All that a job asks for -> a number, which is looked up sooner."""

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before, or something of its own came in between."""
        known = self._entry_of.get(job.index)
        if known is not None:
            super().left(job)
            self.came(known[1])

    def left(self, job: Job) -> None:
        """The entries of a job were taken out, if it had any."""
        super().left(job)
        self._asked.pop(job.index, None)

    def _forget(self) -> None:
        super()._forget()
        self._asked.clear()
        self._numbers.clear()

    def open_among(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """Return all requests: no glance judges them."""
        del shapes
        return self.behind(None)

    def speaks_for(self, entry: Entry) -> bool:
        """Whether what a try of the job comes to holds for those behind it that ask for the same."""
        known = self._entry_of.get(entry[1].index)
        return known is not None and known[0] is not None

    def let_wait(self, job: Job, ledger: Ledger) -> bool:
        """Let a job that does not stand alone wait, if it is known why it would if it were tried; say whether it is."""
        said = self.in_vain(job)
        if said is None:
            return False
        ledger.wait_for(job, said)
        return True

    def _new_shape(self, partition: Partition, size: int, alike: Hashable) -> Shape:
        del alike
        return _Alike(partition, size)

    def is_alike(self, job: Job) -> bool:
        """Whether a job does not stand alone, and is tried in one partition; whether or not it is kept here."""
        return len(job.partitions) == 1 and job.spec.het_id is None and not self._stands_alone(job)

    def in_vain(self, job: Job) -> str | None:
        """Return why a job that does not stand alone would wait if it were tried; None: that is not known."""
        return self._in_vain(job)

    def _stands_alone(self, job: Job) -> bool:
        """Whether more than its request counts: it ran before, or had others make way."""
        ran = job.starts or job.restarts or job.preemptions
        return bool(ran or job.asked_at is not None or job.id in self._on_hold or not self._by_request(job))

    def _request(self, job: Job) -> Hashable:
        """Return all that a job asks for, and why it waits."""
        known = self._asked.get(job.index)
        if known is None or known[0] is not job.spec:
            asked = (
                *_PLAIN(job.spec),
                *[repr(sorted(each.items())) if each else "" for each in _TABLES(job.spec)],
            )
            known = self._asked[job.index] = job.spec, asked
        asked = (
            job.time_limit,
            id(job.qos),
            job.account,
            job.required,
            job.excluded,
            job.marks,
            known[1],
        )
        return job.reason, self._numbers.setdefault(asked, len(self._numbers))


class _Alike(Shape):
    """Entries of one request: their time limits are all the same."""

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        bisect.insort(self.entries, entry)

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        entries = self.entries
        del entries[0 if entries[0] is entry else bisect.bisect_left(entries, entry)]


def hashable(value: Any) -> Hashable:
    return repr(sorted(value.items())) if isinstance(value, Mapping) else value

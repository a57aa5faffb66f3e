"""Plan licences over time, as bf_licenses has it: when they come back, and which jobs they are promised to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from makeway.licences import held
from makeway.model import Job, Seconds
from makeway_backfill.plan import full_second
from makeway_engine.ledger import Ledger

_Amounts = Mapping[str, int]


class LicencePlan:
    """The licences of one pass. Those that run give theirs back when their time limits end."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._promises: list[tuple[Seconds, Seconds, _Amounts]] = []
        """Start, end and licences of each promise."""

    def promise(self, job: Job, at: Seconds, length: Seconds) -> None:
        """Keep licences for a job from `at` on."""
        wanted = self._wanted(job, at, length)
        if wanted:
            self._promises.append((at, at + length, wanted))

    def earliest(self, job: Job, after: Seconds, length: Seconds) -> Seconds:
        """Return the first instant from `after` on at which a job may have its licences until it is over."""
        if not job.spec.licenses:
            return after
        changes = sorted({after, *(at for at in self._changes() if at > after)})
        return next((at for at in changes if self._wanted(job, at, length)), math.inf)

    def _wanted(self, job: Job, at: Seconds, length: Seconds) -> _Amounts:
        """Return what a job takes that starts at an instant; empty: it may not have it until it is over."""
        wanted = job.spec.licenses
        ways = [{name: count} for name, count in wanted.items()] if job.spec.licenses_any else [wanted]
        return next((way for way in ways if self._may_have(way, at, at + length)), {})

    def _may_have(self, wanted: _Amounts, start: Seconds, end: Seconds) -> bool:
        inside = [start, *(at for at in self._changes() if start < at < end)]
        return all(self._free(name, at) >= count for name, count in wanted.items() for at in inside)

    def _free(self, name: str, at: Seconds) -> int:
        free = self._ledger.licenses_free.get(name, 0)
        for job in self._ledger.active:
            if job.end_at is not None and full_second(job.end_at) <= full_second(at):
                free += held(job).get(name, 0)
        for start, end, promised in self._promises:
            if full_second(start) <= full_second(at) < full_second(end):
                free -= promised.get(name, 0)
        return free

    def _changes(self) -> Iterator[Seconds]:
        """Yield the instants at which licences come back or are promised."""
        for job in self._ledger.active:
            if job.end_at is not None and held(job):
                yield job.end_at
        for start, end, _ in self._promises:
            yield start
            yield end

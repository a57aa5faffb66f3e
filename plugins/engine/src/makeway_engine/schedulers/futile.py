"""Tell at a glance which jobs that found no room before would find none now, whomever they displaced.

Whoever waits for room is tried again whenever something was given back. Most of them in vain: that is said here for
all of them at once, without asking for each of them whom it may displace (`makeway.hookspecs.alike_by`), or searching
(`makeway.model.ForesightedSelector`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from makeway.hookspecs import Nobody
from makeway.model import Candidates, Job, JobState
from makeway_engine.placing import Placer

_PENDING = JobState.PENDING
_NONE: frozenset[int] = frozenset()
NO_ROOM = "Resources"
"""Pending reason of jobs that found no room."""


class FutileTries:
    """Looks at the jobs that wait in one run."""

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        self._ledger = placer.ledger
        self._selector = placer.selector
        self._kind = placer.order.kind_of
        self._notes = placer.telling.notes
        self._screen_without = getattr(placer.selector, "screen_without", None)
        self._limited = placer.rulings.limited
        self._applies = placer.order.selector_decides and (self._kind is not None or not placer.preemption)

    def among(self, jobs: Iterable[Job]) -> set[int] | frozenset[int]:
        """Return which of `jobs` need not be tried, by identity; nobody else's start makes room for them."""
        if not self._applies:
            return _NONE
        limited = self._limited
        waiting = [
            job
            for job in jobs
            if job.reason == NO_ROOM
            and job.state is _PENDING
            and job.spec.het_id is None
            and len(job.partitions) == 1
            and not limited(job)
        ]
        if not waiting:
            return _NONE
        ledger = self._ledger
        usable = ledger.up & ~ledger.completing
        able = set(map(id, self._selector.screen(waiting, usable)))
        blocked = [job for job in waiting if id(job) not in able]
        if not self._placer.preemption:
            return set(map(id, blocked))
        vain: set[int] = set()
        for kind, several in self._by_kind(blocked).items():
            if kind[0] == ():
                vain.update(map(id, several))
                continue
            candidates = self._placer.order.candidates(several[0])
            if candidates.ask_again_at is not None:
                self._placer.making_way.remember(candidates.ask_again_at)
            if not candidates.reason:
                vain.update(map(id, several))
                vain.difference_update(map(id, self._helped(several, candidates, kind)))
        return vain

    def _by_kind(self, jobs: Sequence[Job]) -> dict[tuple[Hashable, int], list[Job]]:
        """Return the jobs that may displace the same others; those of which that is not known are left out.

        So are those who displace nobody for a reason that somebody wants to hear: their attempts are told.
        """
        assert self._kind is not None
        found: dict[tuple[Hashable, int], list[Job]] = {}
        for job in jobs:
            kind = self._kind(job)
            if kind is not None and not (self._notes and isinstance(kind, Nobody) and kind.note):
                place = kind, job.partition.index
                several = found.get(place)
                if several is None:
                    found[place] = [job]
                else:
                    several.append(job)
        return found

    def _helped(self, jobs: Sequence[Job], candidates: Candidates, kind: Hashable) -> Sequence[Job]:
        """Return those who might start if all candidates were gone."""
        if not candidates.jobs:
            return ()
        if self._screen_without is None:
            return jobs
        ledger = self._ledger
        usable = ledger.up & ~ledger.completing
        found: Sequence[Job] = self._screen_without(jobs, usable, candidates, kind, ledger)
        return found

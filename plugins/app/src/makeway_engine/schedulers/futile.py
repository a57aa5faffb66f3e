"""Tell at a glance which jobs that found no room before would find none now, whatever they displaced.

What waits for room is tried again whenever something was given back. Most of them in vain: that is said here for
all of them at once, without asking for each of them what it may displace (`makeway.hookspecs.alike_by`), or
searching (`makeway.model.ForesightedSelector`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from makeway.model import Job, JobState
from makeway_engine.placing import Placer

_PENDING = JobState.PENDING
_NONE: frozenset[int] = frozenset()
NO_ROOM = "Resources"
"""Pending reason of jobs that found no room."""


class FutileTries:
    """Looks at the jobs that wait in one run."""

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        self.glance = placer.glance.among
        self._kind = placer.order.kind_of
        self._screen_without = getattr(placer.selector, "screen_without", None)
        self._limited = placer.rulings.limited
        self.applies = placer.order.selector_decides and (self._kind is not None or not placer.preemption)

    @property
    def looks_further(self) -> bool:
        """Whether those for which there is no room may displace others."""
        return self._placer.preemption

    def judges(self, job: Job) -> bool:
        """Whether `job` is one of those about which anything is known here."""
        return (
            job.reason == NO_ROOM
            and job.state is _PENDING
            and job.spec.het_id is None
            and len(job.partitions) == 1
            and not self._limited(job)
        )

    def decides_alone(self, job: Job) -> bool:
        """Whether room, and what it may displace, is all that decides about a job that is judged here."""
        return job.asked_at is None and not (job.spec.licenses or self._placer.prober.keeps_apart(job))

    def kind(self, job: Job) -> Hashable | None:
        """Return what tells jobs apart that may displace different others; None: it does not decide about this one."""
        if not self._placer.preemption:
            return ()
        return self._kind(job) if self._kind is not None else None

    def among(self, jobs: Iterable[Job]) -> set[int] | frozenset[int]:
        """Return which of `jobs` need not be tried, by identity; no start of another makes room for them."""
        if not self.applies:
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
        return self.vain(waiting, self.kind) if waiting else _NONE

    def remember_ends(self, jobs: Iterable[Job]) -> None:
        """Have the engine woken when what any of `jobs` may displace is no longer protected."""
        placer = self._placer
        for first, *_ in _by_kind([job for job in jobs if self.judges(job)], self.kind).values():
            candidates = placer.order.candidates(first)
            if candidates.ask_again_at is not None:
                placer.making_way.remember(candidates.ask_again_at)

    def vain(self, waiting: Sequence[Job], kind_of: Callable[[Job], Hashable | None]) -> set[int]:
        """Return the same of jobs that are judged here.

        :param kind_of: as `kind`.
        """
        able = set(map(id, self.glance(waiting)))
        blocked = [job for job in waiting if id(job) not in able] if able else waiting
        if not self._placer.preemption:
            return set(map(id, blocked))
        return self.without_room(blocked, kind_of)

    def without_room(self, blocked: Sequence[Job], kind_of: Callable[[Job], Hashable | None]) -> set[int]:
        """Return which of these need not be tried, for which there is no room as things stand."""
        vain: set[int] = set()
        for place, several in _by_kind(blocked, kind_of).items():
            vain.update(map(id, several))
            vain.difference_update(map(id, self.worth(several, place)))
        return vain

    def worth(self, jobs: Sequence[Job], place: tuple[Hashable, int]) -> Sequence[Job]:
        """Return which of these are to be tried, for which there is no room, but which may displace others.

        :param place: their kind, and the index of their partition.
        """
        placer = self._placer
        candidates = placer.order.candidates(jobs[0])
        if candidates.ask_again_at is not None:
            placer.making_way.remember(candidates.ask_again_at)
        if candidates.reason:
            return jobs
        if not candidates.jobs:
            return ()
        if self._screen_without is None:
            return jobs
        ledger = placer.ledger
        usable = ledger.up & ~ledger.completing
        found: Sequence[Job] = self._screen_without(jobs, usable, candidates, place, ledger)
        return found


def _by_kind(
    jobs: Sequence[Job], kind_of: Callable[[Job], Hashable | None]
) -> dict[tuple[Hashable, int], list[Job]]:
    """Return the jobs that may displace the same others; those of which that is not known are left out."""
    found: dict[tuple[Hashable, int], list[Job]] = {}
    for job in jobs:
        kind = kind_of(job)
        if kind is not None:
            place = kind, job.partition.index
            several = found.get(place)
            if several is None:
                found[place] = [job]
            else:
                several.append(job)
    return found

"""Keep what limits count, as jobs come and go (spec lsf 5.1).

`counting.Counted` says what counts, job by job; this module comes to the same sums without going through all active
jobs at each question. `tests/test_sums.py` holds one to the other. The sums are of whole slots, jobs and megabytes, so
that taking a job out again leaves no rounding behind.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

import attrs

from makeway.model import Allocation, Job
from makeway_lsf_queue.limits import Limit, limits_of
from makeway_lsf_queue.site import Site

Share = tuple[Limit, str]
"""A limit, and the key of those who share it."""
Amounts = Callable[[Job, Limit], tuple[float, Mapping[int, float]]]
"""Returns how much of a limit an active job takes in all, and on each of its hosts."""
Changed = Mapping[str, bool]
"""Id of a job -> whether it is counted as suspended; else it is left out."""
Pair = list[float]
"""What running jobs take, and what suspended ones do."""

_NOWHERE: Mapping[int, Pair] = {}
_NONE = (0.0, 0.0)
_NOBODY: Changed = {}


@attrs.frozen
class _Part:
    """What one active job adds to the sums."""

    job: Job
    suspended: bool
    stops: bool
    """Whether it would be suspended if it made way, and count as such."""
    allocation: Allocation | None
    takes: Mapping[Share, tuple[float, Mapping[int, float]]]


class Sums:
    """What active jobs take of each limit, and on which hosts."""

    def __init__(self, site: Site, amounts: Amounts, stops: Callable[[Job], bool]) -> None:
        """Begin with nobody.

        :param stops: whether a job would be suspended if it made way.
        """
        self.site = site
        self._amounts = amounts
        self._stops = stops
        self._followed: Sequence[tuple[Job, bool]] | None = None
        self._parts: dict[str, _Part] = {}
        self._totals: dict[Share, Pair] = {}
        self._on: dict[Share, dict[int, Pair]] = {}
        self._by_queue: dict[Share, dict[str, list[float]]] = {}
        """By queue: what jobs take that would be suspended, running or not; what others do that run; all that run; what
        others do that are suspended. Of limits per host: on all hosts.
        """
        self._versions: dict[Share, int] = {}
        self.rows: dict[object, list[tuple[int, float, float]]] = {}
        """Host, bound and what a job takes there, by what they depend on; filled by `counting`."""
        self._about: dict[tuple[str, str, str | None], tuple[tuple[Limit, str, float], ...]] = {}

    def about(self, job: Job) -> tuple[tuple[Limit, str, float], ...]:
        """Return each limit that is about a job, in the order of the files, with the key and the bound."""
        who = job.partition.name, job.user, job.spec.group
        known = self._about.get(who)
        if known is None:
            known = self._about[who] = tuple(
                (limit, key, bound)
                for limit in limits_of(self.site)
                if (key := limit.member(job)) is not None and (bound := limit.bound(key)) is not None
            )
        return known

    def taken(self, share: Share) -> Sequence[float]:
        """Return how much running and suspended jobs take of a limit, as they are."""
        return self._totals.get(share, _NONE)

    def taken_by_host(self, share: Share) -> Mapping[int, Sequence[float]]:
        """Return the same host by host."""
        return self._on.get(share, _NOWHERE)

    def version_of(self, share: Share) -> int:
        """Return a number that changes whenever anybody comes or goes who counts in a limit, or is suspended."""
        return self._versions.get(share, 0)

    def follow(self, jobs: Sequence[tuple[Job, bool]]) -> None:
        """Let the sums be those of `jobs`, each with whether it is suspended; only who changed is counted anew."""
        if jobs is self._followed:
            return
        self._followed = jobs
        parts = self._parts
        for job, suspended in jobs:
            known = parts.get(job.id)
            if known is not None:
                if known.job is job and known.suspended is suspended and known.allocation is job.allocation:
                    continue
                self._book(known, -1)
            self._enter(job, suspended)
        if len(parts) > len(jobs):
            here = {job.id for job, _ in jobs}
            for job_id in [each for each in parts if each not in here]:
                self._book(parts.pop(job_id), -1)

    def _enter(self, job: Job, suspended: bool) -> None:
        takes = {(limit, key): self._amounts(job, limit) for limit, key, _ in self.about(job)}
        part = self._parts[job.id] = _Part(job, suspended, self._stops(job), job.allocation, takes)
        self._book(part, 1)

    def _book(self, part: _Part, sign: int) -> None:
        side = 1 if part.suspended else 0
        queue = part.job.partition.name
        for share, (amount, on) in part.takes.items():
            self._totals.setdefault(share, [0.0, 0.0])[side] += sign * amount
            self._versions[share] = self._versions.get(share, 0) + 1
            lasting = self._by_queue.setdefault(share, {}).setdefault(queue, [0.0] * 4)
            whole = sign * (sum(on.values()) if on else amount)
            if part.stops:
                lasting[0] += whole
            else:
                lasting[3 if part.suspended else 1] += whole
            if not part.suspended:
                lasting[2] += whole
            if on:
                hosts = self._on.setdefault(share, {})
                for index, count in on.items():
                    hosts.setdefault(index, [0.0, 0.0])[side] += sign * count

    def knows(self, jobs: Sequence[Job]) -> bool:
        """Whether all of `jobs` are in the sums as they are now."""
        parts = self._parts
        return all((known := parts.get(job.id)) is not None and known.job is job for job in jobs)

    def without(self, changed: Changed) -> Without:
        """Return the sums as they would be, for as long as nobody else comes or goes.

        :param changed: jobs in the sums that are to be left out, or counted as suspended, by id.
        """
        by_share: dict[Share, dict[str, bool]] = {}
        for job_id, stops in changed.items():
            part = self._parts.get(job_id)
            if part is not None:
                for share in part.takes:
                    by_share.setdefault(share, {})[job_id] = stops
        return Without(self, by_share)

    def total(self, share: Share, changed: Changed) -> tuple[float, float]:
        """Return how much running and suspended jobs take.

        :param changed: jobs in the sums that are to be left out, or counted as suspended, by id.
        """
        running, stopped = self._totals.get(share, _NONE)
        for job_id, stops in changed.items():
            part = self._parts.get(job_id)
            if part is None or share not in part.takes:
                continue
            amount = part.takes[share][0]
            if part.suspended:
                stopped -= amount
            else:
                running -= amount
            if stops:
                stopped += amount
        return running, stopped

    def taken_beside(self, share: Share, job_id: str, *, with_stopped: bool) -> Callable[[int], float]:
        """Return what says how much is taken on a host by others than one job; as things stand.

        :param with_stopped: whether what suspended jobs take counts as well.
        """
        on: Mapping[int, Pair] = self._on.get(share, _NOWHERE)
        part = self._parts.get(job_id)
        own = part.takes[share][1] if part is not None and share in part.takes else {}
        counts = part is not None and (with_stopped or not part.suspended)

        def taken(index: int) -> float:
            running, stopped = on.get(index, _NONE)
            mine = own.get(index, 0.0) if counts else 0.0
            return (running + stopped if with_stopped else running) - mine

        return taken

    def lasting(self, share: Share, below: Container[str]) -> float:
        """Return how much of a limit is taken at least, whoever makes way: running jobs of queues of `below`, and
        suspended ones.
        """
        found = 0.0
        for queue, (stopping, leaving, running, _) in self._by_queue.get(share, {}).items():
            if share[0].suspended:
                found += stopping + (0.0 if queue in below else leaving)
            elif queue not in below:
                found += running
        return found

    def may_fall(self, share: Share, below: Container[str]) -> bool:
        """Whether less of a limit may be taken, on any host, once the same jobs have made way."""
        for queue, (_, leaving, running, gone) in self._by_queue.get(share, {}).items():
            if share[0].suspended:
                if gone or (leaving and queue in below):
                    return True
            elif running and queue in below:
                return True
        return False

    def on_hosts(self, share: Share, changed: Changed) -> Mapping[int, Sequence[float]]:
        """Return the same host by host."""
        on: Mapping[int, Pair] = self._on.get(share, _NOWHERE)
        found: dict[int, Pair] | None = None
        for job_id, stops in changed.items():
            part = self._parts.get(job_id)
            if part is None or share not in part.takes:
                continue
            if found is None:
                found = {index: list(pair) for index, pair in on.items()}
            for index, count in part.takes[share][1].items():
                found[index][1 if part.suspended else 0] -= count
                if stops:
                    found[index][1] += count
        return on if found is None else found


class Without:
    """The sums as they would be if some jobs had made way: each share is worked out once."""

    def __init__(self, sums: Sums, changed: Mapping[Share, Changed]) -> None:
        self._sums = sums
        self._changed = changed
        self._totals: dict[Share, tuple[float, float]] = {}
        self._on: dict[Share, Mapping[int, Sequence[float]]] = {}

    def total(self, share: Share) -> tuple[float, float]:
        """Return how much running and suspended jobs take."""
        known = self._totals.get(share)
        if known is None:
            known = self._totals[share] = self._sums.total(share, self._changed.get(share, _NOBODY))
        return known

    def on_hosts(self, share: Share) -> Mapping[int, Sequence[float]]:
        """Return the same host by host."""
        known = self._on.get(share)
        if known is None:
            known = self._on[share] = self._sums.on_hosts(share, self._changed.get(share, _NOBODY))
        return known

"""Keep what limits count, as jobs come and go (lsf 5.1).

`counting.Counted` says what counts, job by job; this module comes to the same sums without going through all active
jobs at each question. `tests/test_sums.py` holds one to the other. The sums are of whole slots, jobs and megabytes, so
that taking a job out again leaves no rounding behind.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Allocation, Job, JobState
from makeway_lsf_queue.limits import Counts, Limit, limits_of
from makeway_lsf_queue.site import Site

Share = tuple[Limit, str]
"""A limit, and the key of those who share it."""
Amounts = Callable[[Job, Sequence[Limit]], Sequence[tuple[float, Mapping[int, float]]]]
"""Returns how much of each limit an active job takes in all, and on each of its hosts."""
Changed = Mapping[str, bool]
"""Id of a job -> whether it is counted as suspended; else it is left out."""
Pair = list[float]
"""What running jobs take, and what suspended ones do."""

_Who = tuple[str, str, str | None]
"""Queue, user and group of a job."""
_NONE = (0.0, 0.0)
_NOWHERE: Mapping[int, float] = {}
"""On no host in particular."""
_SUSPENDED = JobState.SUSPENDED
_id_of = operator.attrgetter("id")


@attrs.define(eq=False)
class _Part:
    """What one active job adds to the sums."""

    job: Job
    suspended: bool
    stops: bool
    """Whether it would be suspended if it made way, and count as such."""
    allocation: Allocation | None
    takes: Sequence[_Taken]


class _Taken(NamedTuple):
    """What one active job takes of the limits that are counted together."""

    cell: Cell
    amount: float
    """In all; 0 if all of them are per host."""
    on: Mapping[int, float]
    """By host; empty if none of them is per host."""
    whole: float
    """On all hosts."""
    of_queue: list[float]
    """What jobs of its queue take, in `Cell.by_queue`."""


class Rows(tuple[tuple[int, float, float], ...]):
    """Hosts, each with the bound of a limit there and what a job takes there."""

    @functools.cached_property
    def by_host(self) -> Mapping[int, tuple[float, float]]:
        """Host -> the bound there, and what a job takes there."""
        return {index: (most, wanted) for index, most, wanted in self}

    @functools.cached_property
    def alike(self) -> Sequence[tuple[float, float, NodeBits]]:
        """Bounds, each with what a job takes, and the hosts where that is so."""
        found: dict[tuple[float, float], list[int]] = {}
        for index, *pair in self:
            found.setdefault((pair[0], pair[1]), []).append(index)
        return [(*pair, bitmap.of(hosts)) for pair, hosts in found.items()]


@attrs.define(eq=False)
class Closed:
    """The hosts that a limit per host closes to some jobs."""

    rows: Rows
    version: int = -1
    """Of what is taken, by which they were found."""
    bits: NodeBits = 0

    def now(self, cell: Cell) -> NodeBits:
        """Return the hosts that are closed by what is taken of a limit."""
        if self.version != cell.version:
            self.version = cell.version
            bits: NodeBits = 0
            for most, wanted, hosts in self.rows.alike:
                if wanted > most:
                    bits |= hosts
                    continue
                for level, there in cell.at.items():
                    if level + wanted > most:
                        bits |= there & hosts
            self.bits = bits
        return self.bits


@attrs.define(eq=False)
class Cell:
    """What active jobs take of a limit, for one key; it stays the same object for as long as the sums are kept.

    Limits of the same members of which these take the same share it, whatever their bounds are (`_counted_as`).
    """

    suspended: bool
    """Whether what suspended jobs take counts."""
    total: Pair = attrs.field(factory=lambda: [0.0, 0.0])
    on: dict[int, Pair] = attrs.field(factory=dict)
    """By host; of limits per host only."""
    at: dict[float, NodeBits] = attrs.field(factory=dict)
    """How much counts on a host -> the hosts where it is so much; those where nothing does are left out."""
    by_queue: dict[str, list[float]] = attrs.field(factory=dict)
    """By queue: what running jobs take that would be suspended, and that would leave; then suspended ones that would be
    suspended, and others. Of limits per host: on all hosts.
    """
    sleepers: dict[str, float] = attrs.field(factory=dict)
    """Suspended jobs that it was found to stop, each with how much may be taken before it may go on; who may then is
    woken, and forgotten.
    """
    soonest: float = -math.inf
    """How much may be taken at most so that any of them is woken."""
    version: int = 0
    """Grows whenever a job that counts in the limit comes, goes or is suspended."""
    parts: dict[str, tuple[_Part, _Taken]] = attrs.field(factory=dict)
    """Who counts in it, by id."""
    closed: dict[int, Closed] = attrs.field(factory=dict)
    """By the identity of rows: the hosts that the limit closes; filled by `judging`."""

    def may_fall(self, below: Container[str]) -> bool:
        """Whether less of it may be taken, on any host, once jobs of `below`, and suspended ones, have made way."""
        for queue, (stopping, leaving, _, gone) in self.by_queue.items():
            if self.suspended:
                if gone or (leaving and queue in below):
                    return True
            elif (stopping or leaving) and queue in below:
                return True
        return False

    def take(self, on: Mapping[int, float], sign: int, side: int) -> None:
        """Count what a job takes on its hosts, or no longer does.

        :param side: 0: it runs; 1: it is suspended.
        """
        hosts, at, stopped_too = self.on, self.at, self.suspended
        counts = not side or stopped_too
        for index, count in on.items():
            pair = hosts.get(index)
            if pair is None:
                pair = hosts[index] = [0.0, 0.0]
            if sign < 0:
                count = -count
            if not counts:
                pair[side] += count
                continue
            before = pair[0] + pair[1] if stopped_too else pair[0]
            pair[side] += count
            after = before + count
            bit = 1 << index
            if before:
                left = at[before] & ~bit
                if left:
                    at[before] = left
                else:
                    del at[before]
            if after:
                at[after] = at.get(after, 0) | bit

    def let_sleep(self, job_id: str, enough: float) -> None:
        """Let a suspended job sleep until so much is taken at most."""
        self.sleepers[job_id] = enough
        self.soonest = max(self.soonest, enough)

    def among(self, changed: Changed) -> Iterator[tuple[_Part, _Taken, bool]]:
        """Yield those of `changed` who count in it, each with whether it is then counted as suspended."""
        parts = self.parts
        if len(parts) < len(changed):
            yield from ((*part, changed[job_id]) for job_id, part in parts.items() if job_id in changed)
        else:
            yield from ((*parts[job_id], stops) for job_id, stops in changed.items() if job_id in parts)


def _counted_as(share: Share) -> object:
    """Return what limits have in common that one counter is enough for.

    They have the same members, and count the same of them: slots in all, and beside that host by host. Of other things
    than slots a job takes another amount in all than on all of its hosts; what counts on some hosts is another matter.
    """
    limit, key = share
    if limit.shared_by is None:
        return share
    slots = limit.counts is Counts.SLOTS
    hosts = None if limit.per_host else limit.hosts
    return limit.shared_by, key, limit.counts, limit.suspended, hosts, None if slots else limit.per_host


class Sums:
    """What active jobs take of each limit, and on which hosts."""

    def __init__(self, site: Site, amounts: Amounts, stops: Callable[[Job], bool]) -> None:
        """Begin with no job.

        :param stops: whether a job would be suspended if it made way.
        """
        self.site = site
        self._amounts = amounts
        self._stops = stops
        self._followed: Sequence[tuple[Job, bool]] | None = None
        self._parts: dict[str, _Part] = {}
        self._settled: set[str] = set()
        """Suspended jobs that would be suspended if they made way: they count as they do already."""
        self._cells: dict[Share, Cell] = {}
        self._counters: dict[object, Cell] = {}
        """The same, by what those have in common who share one."""
        self.version = 0
        """Grows whenever anything is taken, or given back."""
        self.woken: set[str] = set()
        """Suspended jobs of which what stopped them is to be looked at again."""
        self.rows: dict[object, Rows] = {}
        """Host, bound and what a job takes there, by what they depend on; filled by `counting`."""
        self._about: dict[_Who, tuple[tuple[Limit, str, float], ...]] = {}
        self._limits: dict[_Who, tuple[list[Limit], list[tuple[Cell, list[float], int, int]]]] = {}
        """The same limits; and what is kept of them, each with what the queue takes there, and with the place of a
        limit in all and of one per host: -1: there is none."""

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

    def cell(self, share: Share) -> Cell:
        """Return what is kept of a limit and a key, to be looked at for as long as these sums are kept."""
        known = self._cells.get(share)
        if known is None:
            common = _counted_as(share)
            known = self._counters.get(common)
            if known is None:
                known = self._counters[common] = Cell(share[0].suspended)
            self._cells[share] = known
        return known

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
                self._settled.discard(job_id)
                self._book(parts.pop(job_id), -1)

    def catch_up(self, news: Mapping[str, Job | None]) -> None:
        """Count those anew who changed; None: a job is no longer active."""
        parts = self._parts
        for job_id, job in news.items():
            known = parts.pop(job_id, None)
            self._settled.discard(job_id)
            if known is not None:
                self._book(known, -1)
            if job is not None:
                suspended = job.state is _SUSPENDED
                same = known is not None and known.job is job and known.allocation is job.allocation
                self._enter(job, suspended, known.takes if known is not None and same else None)

    def _enter(self, job: Job, suspended: bool, takes: Sequence[_Taken] | None = None) -> None:
        if takes is None:
            takes = self._takes(job)
        part = self._parts[job.id] = _Part(job, suspended, self._stops(job), job.allocation, takes)
        if suspended and part.stops:
            self._settled.add(job.id)
        else:
            self._settled.discard(job.id)
        self._book(part, 1)

    def _takes(self, job: Job) -> Sequence[_Taken]:
        """Return what an active job takes of each limit that is about it."""
        who = job.partition.name, job.user, job.spec.group
        known = self._limits.get(who)
        if known is None:
            known = self._limits[who] = self._limits_about(job)
        amounts = self._amounts(job, known[0])
        found = []
        for cell, of_queue, in_all, per_host in known[1]:
            amount = amounts[in_all][0] if in_all >= 0 else 0.0
            on = amounts[per_host][1] if per_host >= 0 else _NOWHERE
            taken = cell, amount, on, sum(on.values()) if on else amount, of_queue
            found.append(tuple.__new__(_Taken, taken))
        return found

    def _limits_about(self, job: Job) -> tuple[list[Limit], list[tuple[Cell, list[float], int, int]]]:
        limits: list[Limit] = []
        places: dict[Cell, list[int]] = {}
        for limit, key, _ in self.about(job):
            of = places.setdefault(self.cell((limit, key)), [-1, -1])
            if of[limit.per_host] < 0:
                of[limit.per_host] = len(limits)
                limits.append(limit)
        queue = job.partition.name
        return limits, [
            (cell, cell.by_queue.setdefault(queue, [0.0] * 4), in_all, per_host)
            for cell, (in_all, per_host) in places.items()
        ]

    def _book(self, part: _Part, sign: int) -> None:
        side = 1 if part.suspended else 0
        kind = 2 * side if part.stops else 2 * side + 1
        job_id = part.job.id
        self.version += 1
        for taken in part.takes:
            cell, amount, on, whole, of_queue = taken
            if sign < 0:
                amount, whole = -amount, -whole
                del cell.parts[job_id]
            else:
                cell.parts[job_id] = part, taken
            if amount:
                cell.total[side] += amount
            cell.version += 1
            if cell.sleepers:
                self._wake(cell)
            of_queue[kind] += whole
            if on:
                cell.take(on, sign, side)

    def _wake(self, cell: Cell) -> None:
        """Wake the suspended jobs that may go on by what is taken now."""
        running, stopped = cell.total
        level = running + stopped if cell.suspended else running
        if level > cell.soonest:
            return
        woken = [job_id for job_id, enough in cell.sleepers.items() if level <= enough]
        for job_id in woken:
            del cell.sleepers[job_id]
        cell.soonest = max(cell.sleepers.values(), default=-math.inf)
        self.woken.update(woken)

    def changed_by(self, jobs: tuple[Job, ...]) -> Changed | None:
        """Return who of `jobs` counts otherwise once all of them have made way; None: some are not in the sums.

        A suspended job that would be suspended counts as it does already.
        """
        settled = self._settled
        if settled.issuperset(map(_id_of, jobs)):
            return {}
        parts, changed = self._parts, dict[str, bool]()
        for job in [job for job in jobs if job.id not in settled]:
            job_id = job.id
            part = parts.get(job_id)
            if part is None or part.job is not job:
                return None
            changed[job_id] = part.stops
        return changed

    def without(self, changed: Changed) -> Without:
        """Return the sums as they would be, for as long as no other job comes or goes.

        :param changed: jobs in the sums that are to be left out, or counted as suspended, by id.
        """
        return Without(self, changed)

    def total(self, share: Share, changed: Changed) -> tuple[float, float]:
        """Return how much running and suspended jobs take.

        :param changed: jobs in the sums that are to be left out, or counted as suspended, by id.
        """
        cell = self.cell(share)
        running, stopped = cell.total
        if not changed:
            return running, stopped
        for part, taken, stops in cell.among(changed):
            amount = taken.amount
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
        cell = self.cell(share)
        on = cell.on
        part = cell.parts.get(job_id)
        own = {} if part is None else part[1].on
        counts = part is not None and (with_stopped or not part[0].suspended)

        def taken(index: int) -> float:
            running, stopped = on.get(index, _NONE)
            mine = own.get(index, 0.0) if counts else 0.0
            return (running + stopped if with_stopped else running) - mine

        return taken

    def lasting(self, share: Share, below: Container[str]) -> float:
        """Return how much of a limit stays taken, whatever makes way: running jobs of queues of `below`, and
        suspended ones.
        """
        cell, found = self.cell(share), 0.0
        for queue, (stopping, leaving, stopped, _) in cell.by_queue.items():
            if cell.suspended:
                found += stopping + stopped if queue in below else stopping + stopped + leaving
            elif queue not in below:
                found += stopping + leaving
        return found

    def on_hosts(self, share: Share, changed: Changed) -> Mapping[int, Sequence[float]]:
        """Return the same host by host."""
        cell = self.cell(share)
        on, found = cell.on, None
        for part, taken, stops in cell.among(changed):
            if found is None:
                found = {index: list(pair) for index, pair in on.items()}
            for index, count in taken.on.items():
                found[index][1 if part.suspended else 0] -= count
                if stops:
                    found[index][1] += count
        return on if found is None else found


class Without:
    """The sums as they would be if some jobs had made way: each share is worked out once."""

    def __init__(self, sums: Sums, changed: Changed) -> None:
        self._sums = sums
        self._changed = changed
        self._totals: dict[Share, tuple[float, float]] = {}
        self._on: dict[Share, Mapping[int, Sequence[float]]] = {}

    def total(self, share: Share) -> tuple[float, float]:
        """Return how much running and suspended jobs take."""
        known = self._totals.get(share)
        if known is None:
            known = self._totals[share] = self._sums.total(share, self._changed)
        return known

    def on_hosts(self, share: Share) -> Mapping[int, Sequence[float]]:
        """Return the same host by host."""
        known = self._on.get(share)
        if known is None:
            known = self._on[share] = self._sums.on_hosts(share, self._changed)
        return known

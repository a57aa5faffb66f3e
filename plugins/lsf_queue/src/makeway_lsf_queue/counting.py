"""Count what limits bound (lsf 5.1); `judging` says which jobs they keep out.

Active jobs are counted as they would be once those that make way have done so. Slots that pending jobs reserve
count as well, for the jobs behind these; a backfilling job does not count against limits per host.

`Counted.used` and `Counted.used_at` take what they can from `sums`; `counted_one_by_one` and `counted_on_hosts` say
what they come to, and count where jobs backfill.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobState, Node, PreemptMode
from makeway_lsf_queue import jobs, reserve
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.presence import Presence, presence_of
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import held_on, memory_on
from makeway_lsf_queue.sums import Amounts, Changed, Share, Sums, Without


@attrs.frozen
class Use:
    """How much of a limit is taken, by others than the job in question."""

    total: float = 0.0
    suspended: float = 0.0
    """How much of it by suspended jobs."""
    reserved: float = 0.0
    """How much of it is reserved for pending jobs."""

    def plus(self, amount: float, *, suspended: bool = False, reserved: bool = False) -> Use:
        """Return it with some more."""
        return Use(
            self.total + amount,
            self.suspended + (amount if suspended else 0.0),
            self.reserved + (amount if reserved else 0.0),
        )


_NOTHING = Use()
_SLOTS, _JOBS = Counts.SLOTS, Counts.JOBS
_SUSPENDED, _SUSPEND = JobState.SUSPENDED, PreemptMode.SUSPEND
_NONE = (0.0, 0.0)
_NOWHERE: Mapping[int, float] = {}
"""On no host in particular."""


@attrs.define(eq=False, slots=False)  # with slots, cached properties slow each look at a field
class Counted:
    """The active jobs, as they would be once those that make way have done so."""

    site: Site
    view: ClusterView
    modes: Callable[[Job], PreemptMode]
    """How those make way that do."""
    reserved: tuple[reserve.Reservation, ...]
    sums: Sums
    """The same as sums; shared with others, and brought to `summed` before each use."""
    summed: Sequence[tuple[Job, bool]] | None
    """None: `jobs`."""
    presence: Presence | None = None
    """Who changed since the sums were brought up to date; None: they follow `summed`."""
    changed: Changed = attrs.field(factory=dict)
    """Who makes way and counts otherwise for it, where the sums are of the jobs as they are."""
    lenient: bool = False
    """Whether any job makes way: limits on jobs then let in those that they would keep out (5.1)."""
    answers: dict[object, Any] = attrs.field(factory=dict)
    """What was said of jobs that ask for the same; see `request`."""

    @classmethod
    def of(cls, site: Site, view: ClusterView, modes: Callable[[Job], PreemptMode]) -> Counted:
        """Look at `view`; what makes way does so as `modes` say, whatever the view shows."""
        known = _MEMO.get(site, view)
        if known is None:
            known = _MEMO.keep(view, cls._new(site, view, modes))
        if not site.has_reserving_queues:
            return known
        reserved = reserve.reservations(site, view)
        return attrs.evolve(known, view=view, reserved=reserved, answers={}) if reserved else known

    @classmethod
    def _new(cls, site: Site, view: ClusterView, modes: Callable[[Job], PreemptMode]) -> Counted:
        base = _MEMO.base(site, view)
        if base is not None and (changed := base.brought().changed_by(tuple(view.made_way))) is not None:
            return cls(site, view, modes, (), base.sums, None, presence_of(view), changed, lenient=True)
        if view.made_way:
            return cls(site, view, modes, (), new_sums(site, modes), None, lenient=True)
        presence = presence_of(view)
        return cls(site, view, modes, (), _sums_of(presence, site, modes), None, presence)

    def renew(self) -> None:
        """Be of the same jobs as they are by now."""
        self.answers.clear()
        self.__dict__.pop("jobs", None)
        self.__dict__.pop("_without", None)

    @functools.cached_property
    def jobs(self) -> tuple[tuple[Job, bool], ...]:
        """All of them, each with whether it is suspended."""
        gone = {job.id: job for job in self.view.made_way}
        kept = [(job, job.state is _SUSPENDED) for job in self.view.active if job.id not in gone]
        stopped = [(job, True) for job in gone.values() if self.modes(job) is _SUSPEND]
        return (*kept, *stopped)

    def brought(self) -> Sums:
        """Return the sums, of the jobs that they are to be of."""
        presence = self.presence
        if presence is None:
            self.sums.follow(self.jobs if self.summed is None else self.summed)
        elif presence.for_sums:
            self.sums.catch_up(presence.news_for_sums())
        return self.sums

    @functools.cached_property
    def _without(self) -> Without:
        """The sums without those who make way, for all pending jobs that are judged."""
        return self.brought().without(self.changed)

    def _total(self, share: Share, besides: Job) -> tuple[float, float]:
        """Return how much running and suspended jobs other than `besides` take, as the sums say."""
        sums = self.brought()
        if besides.allocation is not None:
            return sums.total(share, {**self.changed, besides.id: False})
        return self._without.total(share) if self.changed else sums.total(share, self.changed)

    def _on_hosts(self, share: Share, besides: Job) -> Mapping[int, Sequence[float]]:
        """Return the same host by host."""
        sums = self.brought()
        if besides.allocation is not None:
            return sums.on_hosts(share, {**self.changed, besides.id: False})
        return self._without.on_hosts(share) if self.changed else sums.on_hosts(share, self.changed)

    def taken_without(self, share: Share) -> Mapping[int, Sequence[float]]:
        """Return host by host how much running and suspended jobs take once those who make way have done so."""
        return self._without.on_hosts(share)

    def request(self, job: Job) -> object | None:
        """Return what decides for a pending job, whichever it is; None: nothing is known beforehand."""
        if self.reserved or job.allocation is not None:
            return None
        spec = job.spec
        who = job.partition.name, job.user, spec.group
        return (
            *who,
            jobs.places_of(job),
            spec.cpus,
            job.size,
            spec.memory_mb_per_node,
            spec.memory_mb_per_cpu,
        )

    def is_summed(self, limit: Limit) -> bool:
        """Whether no job counts less for being one that backfills."""
        concerned = limit.of_hosts or (limit.per_host and limit.counts is _SLOTS)
        return not (concerned and self.site.may_backfill)

    def used(self, limit: Limit, key: str, besides: Job) -> Use:
        """Return how much of a limit is taken."""
        if not self.is_summed(limit):
            return self.counted_one_by_one(limit, key, besides)
        running, stopped = self._total((limit, key), besides)
        found = self._use(limit, besides, running, stopped)
        if self.reserved:
            for held in self._reserved(limit, key, besides):
                amount = sum(n for index, n in held.slots.items() if _within(index, limit.hosts))
                found = found.plus(amount, reserved=True)
        return found

    def _use(self, limit: Limit, besides: Job, running: float, stopped: float) -> Use:
        if limit.suspended and not self.resumes_beside(limit, besides):
            return Use(running + stopped, stopped)
        return Use(running)

    def used_at(self, limit: Limit, key: str, besides: Job, index: int) -> Use:
        """Return how much of a limit per host is taken on one host."""
        if not self.is_summed(limit) or self.reserved:
            return self.counted_on_hosts(limit, key, besides).get(index, _NOTHING)
        running, stopped = self._on_hosts((limit, key), besides).get(index, (0.0, 0.0))
        return self._use(limit, besides, running, stopped)

    def taken_at(self, limit: Limit, key: str, besides: Job) -> Callable[[int], float] | None:
        """Return what says how much is taken of a limit on a host, by index; None: that is to be counted one by one."""
        active = besides.allocation is not None
        if not self.is_summed(limit) or self.reserved or (active and self.changed):
            return None
        with_stopped = limit.suspended and not self.resumes_beside(limit, besides)
        if active:
            return self.brought().taken_beside((limit, key), besides.id, with_stopped=with_stopped)
        on = self._on_hosts((limit, key), besides)

        def taken(index: int) -> float:
            running, stopped = on.get(index, _NONE)
            return running + stopped if with_stopped else running

        return taken

    def taken_on(self, limit: Limit, key: str, besides: Job) -> Mapping[int, float]:
        """Return the total of `used_at` for each host where anything is taken."""
        if not self.is_summed(limit) or self.reserved:
            return {index: use.total for index, use in self.counted_on_hosts(limit, key, besides).items()}
        kind = "taken", limit, key, besides.id if besides.allocation is not None else None
        known: Mapping[int, float] | None = self.answers.get(kind)
        if known is None:
            found = self._on_hosts((limit, key), besides)
            if limit.suspended and not self.resumes_beside(limit, besides):
                known = {index: running + stopped for index, (running, stopped) in found.items()}
            else:
                known = {index: running for index, (running, _) in found.items()}
            self.answers[kind] = known
        return known

    # --------------------------------------------------------------------------- one by one
    def counted_one_by_one(self, limit: Limit, key: str, besides: Job) -> Use:
        """Return how much of a limit is taken, job by job."""
        found = _NOTHING
        for job, suspended in self._sharing(limit, key, besides):
            if limit.of_hosts and reserve.backfills(job, self.site, self.view):
                continue
            found = found.plus(self._amount(job, limit), suspended=suspended)
        for held in self._reserved(limit, key, besides):
            amount = sum(n for index, n in held.slots.items() if _within(index, limit.hosts))
            found = found.plus(amount, reserved=True)
        return found

    def counted_on_hosts(self, limit: Limit, key: str, besides: Job) -> Mapping[int, Use]:
        """Return the same host by host."""
        found: dict[int, Use] = {}
        nodes = self.view.cluster.nodes
        for job, suspended in self._sharing(limit, key, besides):
            if limit.counts is _SLOTS and reserve.backfills(job, self.site, self.view):
                continue
            for index in bitmap.indices(job.nodes):
                amount = amount_on(job, index, limit, nodes[index].cpus)
                found[index] = found.get(index, _NOTHING).plus(amount, suspended=suspended)
        for held in self._reserved(limit, key, besides):
            for index, count in held.slots.items():
                found[index] = found.get(index, _NOTHING).plus(count, reserved=True)
        return found

    def _sharing(self, limit: Limit, key: str, besides: Job) -> Iterator[tuple[Job, bool]]:
        """Yield the other active jobs that the limit counts together with `besides`."""
        counted = limit.suspended and not self.resumes_beside(limit, besides)
        for job, suspended in self.jobs:
            if job.id != besides.id and (counted or not suspended) and limit.member(job) == key:
                yield job, suspended

    def resumes_beside(self, limit: Limit, job: Job) -> bool:
        """Whether a JOBS limit leaves other suspended jobs out when `job`, one of them, is to go on (6.3)."""
        lenient = self.site.settings.jobs_limit_on_resume == "running"
        return lenient and limit.counts is _JOBS and job.state is _SUSPENDED

    def sharing(self, limit: Limit, job: Job) -> list[Job]:
        """Return the other active jobs that a limit counts together with `job`."""
        key = limit.member(job)
        return [] if key is None else [other for other, _ in self._sharing(limit, key, job)]

    def _reserved(self, limit: Limit, key: str, besides: Job) -> Iterator[reserve.Reservation]:
        """Yield the reservations that count: of jobs before `besides`, and none if it runs already."""
        if limit.counts is not _SLOTS or besides.allocation is not None:
            return
        mine = reserve.rank(besides, self.site)
        for held in self.reserved:
            if held.job.id == besides.id or reserve.rank(held.job, self.site) > mine:
                return
            if limit.member(held.job) != key:
                continue
            if (limit.of_hosts or limit.per_host) and self._may_be_filled(held.job, besides):
                continue
            yield held

    def _may_be_filled(self, reserving: Job, job: Job) -> bool:
        """Whether `job` may use what another reserves: backfill works against limits of hosts (7.1)."""
        if not self.site.queue_of(job).backfill:
            return False
        now = self.view.now
        return reserve.may_backfill(job, self.site, reserve.starts_at(reserving, self.view, now), now)

    def _amount(self, job: Job, limit: Limit) -> float:
        return _amount(job, limit, self.view.cluster.nodes)


class _Memo:
    """The active jobs as they were looked at last: as they are, and as they would be without some of them."""

    def __init__(self) -> None:
        self._site: Site | None = None
        self._view: ClusterView | None = None
        self._version = -1
        self._found: dict[tuple[int, ...], Counted] = {}
        """By the identities of those who make way."""
        self._gone: tuple[int, ...] = ()
        """Those of the view that was asked for last."""
        self._last: tuple[ClusterView, Counted] | None = None
        """What was said last, and of which view: it says the same for as long as no job comes or goes."""

    def get(self, site: Site, view: ClusterView) -> Counted | None:
        """Return what is known of `view`; None: nothing, or it is of another moment."""
        version, last = view.version, self._last
        current = self._site is site and self._version == version
        if current and last is not None and last[0] is view:
            return last[1]
        if current and view is self._view and () in self._found:
            self._gone = ()
            return self._found[()]
        if not current and self._site is site and view is self._view and () in self._found:
            return self._renewed(view, version)
        gone = self._gone = tuple(map(id, view.made_way))
        if not gone and not (current and self._view is view):
            self._site, self._view, self._version = site, view, version
            self._found.clear()
            self._last = None
        elif not current:
            return None
        found = self._found.get(gone)  # what was kept keeps those jobs alive: the identities are theirs
        if found is not None:
            self._last = view, found
        return found

    def _renewed(self, view: ClusterView, version: int) -> Counted | None:
        """Return what was known of the cluster as it was before, brought up to date; None: it cannot be."""
        counted = self._found[()]
        self._found.clear()
        self._version, self._gone, self._last = version, (), None
        if counted.presence is None:
            return None
        counted.renew()
        self._found[()] = counted
        self._last = view, counted
        return counted

    def keep(self, view: ClusterView, counted: Counted) -> Counted:
        """Remember what a view that was just asked for comes to, for as long as no job comes or goes."""
        if not self._gone or counted.presence is not None:
            self._found[self._gone] = counted
            self._last = view, counted
        return counted

    def base(self, site: Site, view: ClusterView) -> Counted | None:
        """Return the jobs as they are, of which `view` leaves some out; None: that is not known."""
        base = self._found.get(())
        if base is None or not view.made_way or self._site is not site or self._version != view.version:
            return None
        return base


_MEMO = _Memo()


def new_sums(site: Site, modes: Callable[[Job], PreemptMode]) -> Sums:
    """Return the sums of no jobs."""
    return Sums(site, _amounts_of(site), lambda job: modes(job) is _SUSPEND)


def sums_now(site: Site, view: ClusterView, modes: Callable[[Job], PreemptMode]) -> Sums:
    """Return what `Counted.brought` does of the cluster as it is, where no job collects slots."""
    presence = presence_of(view)
    sums: Sums | None = presence.sums
    if sums is None or sums.site is not site:
        return _sums_of(presence, site, modes)
    if presence.for_sums:
        sums.catch_up(presence.news_for_sums())
    return sums


def _sums_of(presence: Presence, site: Site, modes: Callable[[Job], PreemptMode]) -> Sums:
    """Return the sums of the active jobs of a run."""
    sums: Sums | None = presence.sums
    if sums is None or sums.site is not site:
        sums = presence.sums = new_sums(site, modes)
        presence.news_for_sums()
        sums.catch_up(presence.active)
    return sums


def _amount(job: Job, limit: Limit, nodes: Sequence[Node]) -> float:
    """Return how much an active job takes of a limit."""
    if limit.hosts is not None and not job.nodes & limit.hosts:
        return 0.0
    if limit.counts is _JOBS:
        return 1.0
    if limit.counts is _SLOTS and limit.hosts is None:
        return jobs.slots(job, tuple(nodes))
    hosts = job.nodes & (-1 if limit.hosts is None else limit.hosts)
    return sum(amount_on(job, index, limit, nodes[index].cpus) for index in bitmap.indices(hosts))


def _amounts_of(site: Site) -> Amounts:
    """Return what `Sums` asks how much a job takes: slots of all hosts are counted once for all limits."""
    nodes = site.cluster.nodes

    def amounts(job: Job, limits: Sequence[Limit]) -> Sequence[tuple[float, Mapping[int, float]]]:
        allocation = job.allocation
        if allocation is not None and allocation.cpus is not None:
            held = dict(zip(allocation.node_indices, allocation.cpus, strict=True))
        else:
            held = dict(jobs.slots_on(job, nodes))
        slots = sum(held.values()) if allocation is not None else job.spec.cpus
        found: list[tuple[float, Mapping[int, float]]] = []
        for limit in limits:
            counts = limit.counts
            if limit.per_host:
                if counts is _SLOTS:
                    found.append((0.0, held))
                elif counts is _JOBS:
                    found.append((0.0, dict.fromkeys(held, 1.0)))
                else:
                    found.append((0.0, {index: memory_on(job, index) for index in held}))
            elif limit.hosts is not None:
                found.append((_amount(job, limit, nodes), _NOWHERE))
            elif counts is _SLOTS:
                found.append((slots, _NOWHERE))
            elif counts is _JOBS:
                found.append(_ONE)
            else:
                found.append((_amount(job, limit, nodes), _NOWHERE))
        return found

    return amounts


_ONE = 1.0, _NOWHERE
"""What a job takes of a limit on jobs wherever they are."""


def _within(index: int, hosts: NodeBits | None) -> bool:
    return hosts is None or bool(hosts >> index & 1)


def amount_on(job: Job, index: int, limit: Limit, cpus: int) -> float:
    """Return how much an active job takes of a limit on one host."""
    if limit.counts is _JOBS:
        return 1.0
    return memory_on(job, index) if limit.counts is Counts.MEMORY else held_on(job, index, cpus)

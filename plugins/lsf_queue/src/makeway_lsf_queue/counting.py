"""Count what limits bound, and say whom they keep out (spec lsf 5.1).

Active jobs are counted as they would be once those that make way have done so. Slots that pending jobs reserve
count as well, for the jobs behind these; a backfilling job does not count against limits per host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Blocked, ClusterView, Job, JobState, Node, PreemptMode
from makeway_lsf_queue import jobs, reserve
from makeway_lsf_queue.limits import Counts, Limit, limits_of
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import held_on, memory_on
from makeway_lsf_queue.vocabulary import PARALLEL


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


@attrs.frozen
class Counted:
    """The active jobs, as they would be once those that make way have done so."""

    site: Site
    view: ClusterView
    jobs: tuple[tuple[Job, bool], ...]
    """Each with whether it is suspended."""
    reserved: tuple[reserve.Reservation, ...]

    @classmethod
    def of(cls, site: Site, view: ClusterView, modes: Callable[[Job], PreemptMode]) -> Counted:
        """Look at `view`; whoever makes way does so as `modes` say, whatever the view shows."""
        gone = {job.id: job for job in view.made_way}
        kept = [(job, job.state is JobState.SUSPENDED) for job in view.active if job.id not in gone]
        stopped = [(job, True) for job in gone.values() if modes(job) is PreemptMode.SUSPEND]
        return cls(site, view, (*kept, *stopped), reserve.reservations(site, view))

    def used(self, limit: Limit, key: str, besides: Job) -> Use:
        """Return how much of a limit is taken."""
        found = _NOTHING
        for job, suspended in self._sharing(limit, key, besides):
            if limit.of_hosts and reserve.backfills(job, self.site, self.view):
                continue
            found = found.plus(self._amount(job, limit), suspended=suspended)
        for held in self._reserved(limit, key, besides):
            amount = sum(n for index, n in held.slots.items() if _within(index, limit.hosts))
            found = found.plus(amount, reserved=True)
        return found

    def used_on(self, limit: Limit, key: str, besides: Job) -> Mapping[int, Use]:
        """Return the same host by host."""
        found: dict[int, Use] = {}
        nodes = self.view.cluster.nodes
        for job, suspended in self._sharing(limit, key, besides):
            if limit.counts is Counts.SLOTS and reserve.backfills(job, self.site, self.view):
                continue
            for index in bitmap.indices(job.nodes):
                amount = _amount_on(job, index, limit, nodes[index].cpus)
                found[index] = found.get(index, _NOTHING).plus(amount, suspended=suspended)
        for held in self._reserved(limit, key, besides):
            for index, count in held.slots.items():
                found[index] = found.get(index, _NOTHING).plus(count, reserved=True)
        return found

    def _sharing(self, limit: Limit, key: str, besides: Job) -> Iterator[tuple[Job, bool]]:
        """Yield the other active jobs that the limit counts together with `besides`."""
        counted = limit.suspended and not self._resumes_beside(limit, besides)
        for job, suspended in self.jobs:
            if job.id != besides.id and (counted or not suspended) and limit.member(job) == key:
                yield job, suspended

    def _resumes_beside(self, limit: Limit, job: Job) -> bool:
        """Whether a JOBS limit leaves other suspended jobs out when `job`, one of them, is to go on (6.3)."""
        lenient = self.site.settings.jobs_limit_on_resume == "running"
        return lenient and limit.counts is Counts.JOBS and job.state is JobState.SUSPENDED

    def sharing(self, limit: Limit, job: Job) -> list[Job]:
        """Return the other active jobs that a limit counts together with `job`."""
        key = limit.member(job)
        return [] if key is None else [other for other, _ in self._sharing(limit, key, job)]

    def _reserved(self, limit: Limit, key: str, besides: Job) -> Iterator[reserve.Reservation]:
        """Yield the reservations that count: of jobs before `besides`, and none if it runs already."""
        if limit.counts is not Counts.SLOTS or besides.allocation is not None:
            return
        for held in self.reserved:
            if held.job.id == besides.id or reserve.rank(held.job, self.site) > reserve.rank(
                besides, self.site
            ):
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
        if limit.hosts is not None and not job.nodes & limit.hosts:
            return 0.0
        if limit.counts is Counts.JOBS:
            return 1.0
        if limit.counts is Counts.SLOTS and limit.hosts is None:
            return jobs.slots(job, self.view.cluster.nodes)
        nodes, hosts = self.view.cluster.nodes, job.nodes & (-1 if limit.hosts is None else limit.hosts)
        return sum(_amount_on(job, index, limit, nodes[index].cpus) for index in bitmap.indices(hosts))


def _within(index: int, hosts: NodeBits | None) -> bool:
    return hosts is None or bool(hosts >> index & 1)


def _amount_on(job: Job, index: int, limit: Limit, cpus: int) -> float:
    if limit.counts is Counts.JOBS:
        return 1.0
    return memory_on(job, index) if limit.counts is Counts.MEMORY else held_on(job, index, cpus)


# --------------------------------------------------------------------------------------- judging
@attrs.frozen(kw_only=True)
class Verdict:
    """What a limit says about a job."""

    limit: Limit
    bound: float
    wanted: float
    use: Use
    host: str = ""
    """The host that is nearest to having room, for limits per host."""
    setting: str = ""
    """Path in the config that sets it for this job, or on this host."""

    @property
    def fits(self) -> bool:
        """Whether the limit lets the job through."""
        return self.use.total + self.wanted <= self.bound

    @property
    def count(self) -> str:
        """The bound and the count, and what counts in it."""
        use = self.use
        unit = " MB" if self.limit.counts is Counts.MEMORY else ""
        where = f" on {self.host}" if self.host else ""
        of_it = [
            f"{n:g} {word}" for n, word in ((use.suspended, "suspended"), (use.reserved, "reserved")) if n
        ]
        inside = f" ({', '.join(of_it)})" if of_it else ""
        text = f"{self.bound:g}{unit}{where}; {use.total:g} in use{inside}, {self.wanted:g} wanted"
        return f"{text}; {_what_counts(self.limit)}"

    def __str__(self) -> str:
        """Return the limit and the count."""
        return f"{self.limit.label} is {self.count}"


def _what_counts(limit: Limit) -> str:
    if not limit.suspended:
        return "suspended jobs do not count"
    more = f", unless PREEMPT_FOR has {limit.lifted_by}" if limit.lifted_by else ""
    return f"suspended jobs count too{more}"


def verdicts(site: Site, counted: Counted, job: Job) -> Iterator[Verdict]:
    """Yield what each limit that is about `job` says, in the order of the files."""
    for limit in limits_of(site):
        key = limit.member(job)
        bound = limit.bound(key) if key is not None else None
        if key is None or bound is None:
            continue
        if limit.hosts is not None and not _where(job) & limit.hosts:
            continue
        if limit.per_host:
            yield _of_the_best_host(counted, limit, job, key, bound)
        else:
            use = counted.used(limit, key, job)
            wanted = _wanted(job, limit, counted)
            yield Verdict(limit=limit, bound=bound, wanted=wanted, use=use, setting=_setting(limit, key))


def _of_the_best_host(counted: Counted, limit: Limit, job: Job, key: str, bound: float) -> Verdict:
    """Return the verdict for the host of the limit that has most room under it."""
    used, nodes = counted.used_on(limit, key, job), counted.view.cluster.nodes
    found = [
        Verdict(
            limit=limit,
            bound=_bound_on(limit, bound, nodes[index]),
            wanted=_least_on(job, index, limit, nodes[index].cpus),
            use=used.get(index, _NOTHING),
            host=nodes[index].name,
            setting=_setting(limit, key) or f"node[{index}]",
        )
        for index in bitmap.indices(_where(job) & (-1 if limit.hosts is None else limit.hosts))
    ]
    return max(found, key=lambda each: each.bound - each.use.total - each.wanted)


def _setting(limit: Limit, key: str) -> str:
    """Return the path in the config of the row that sets a limit."""
    return f"{limit.setting}.{limit.rows.get(key, 'default')}" if limit.rows is not None else limit.setting


def blocked(site: Site, counted: Counted, job: Job) -> Blocked | None:
    """Return the first limit that keeps `job` out; None: none does."""
    for verdict in verdicts(site, counted, job):
        limit = verdict.limit
        if verdict.fits or (limit.counts is Counts.JOBS and counted.view.made_way):
            continue
        if leaves_other_hosts(limit, job):
            continue  # `closed` keeps it off these
        has_room = limit.counts is Counts.SLOTS and verdict.use.total + 1 <= verdict.bound
        return Blocked(
            reason=PARALLEL.get(limit.reason, limit.reason) if has_room else limit.reason,
            resource="limit",
            wanted=verdict.wanted,
            available=max(0.0, verdict.bound - verdict.use.total),
            detail=str(verdict),
            liftable=True,
        )
    return None


def standing_in_the_way(site: Site, counted: Counted, job: Job) -> Iterator[Verdict]:
    """Yield what each limit says that keeps an active job from going on where it is."""
    for verdict in verdicts(site, counted, job):
        limit = verdict.limit
        shut = closed_by(counted, limit, job) & job.nodes if limit.per_host or limit.hosts is not None else 0
        if not verdict.fits or shut:
            yield verdict


def leaves_other_hosts(limit: Limit, job: Job) -> bool:
    """Whether a job that a limit keeps off its hosts may go to others."""
    return limit.hosts is not None and bool(_where(job) & ~limit.hosts)


def closed(site: Site, counted: Counted, job: Job) -> NodeBits:
    """Return the hosts on which a limit per host, or on some hosts, leaves `job` no room."""
    bits = 0
    for limit in limits_of(site):
        if limit.per_host or limit.hosts is not None:
            bits |= closed_by(counted, limit, job)
    return bits


def closed_by(counted: Counted, limit: Limit, job: Job) -> NodeBits:
    """Return the hosts on which one limit per host, or on some hosts, leaves `job` no room."""
    key = limit.member(job)
    bound = limit.bound(key) if key is not None else None
    if key is None or bound is None:
        return 0
    hosts = _where(job) & (limit.hosts if limit.hosts is not None else -1)
    if not limit.per_host:
        if limit.counts is Counts.JOBS and counted.view.made_way:
            return 0
        use = counted.used(limit, key, job)
        return hosts if use.total + _wanted(job, limit, counted) > bound else 0
    nodes, used = counted.view.cluster.nodes, counted.used_on(limit, key, job)
    full = []
    for index in bitmap.indices(hosts):
        wanted = _least_on(job, index, limit, nodes[index].cpus)
        if used.get(index, _NOTHING).total + wanted > _bound_on(limit, bound, nodes[index]):
            full.append(index)
    return bitmap.of(full)


def _where(job: Job) -> NodeBits:
    """Return the hosts that a job is on, or may go to."""
    if job.allocation is not None:
        return job.nodes
    return jobs.hosts_of(job)


def _bound_on(limit: Limit, bound: float, node: Node) -> float:
    return math.ceil(bound * processors(node)) if limit.per_processor else bound


def processors(node: Node) -> int:
    """Return the processors of a host, where they are not as many as its slots (``attributes.CPUS``)."""
    given = node.attributes.get("CPUS")
    return int(given) if given is not None else node.cpus


def _wanted(job: Job, limit: Limit, counted: Counted) -> float:
    """Return how much of a limit `job` takes in all."""
    if limit.counts is Counts.JOBS:
        return 1.0
    nodes = counted.view.cluster.nodes
    if limit.counts is Counts.SLOTS:
        return jobs.slots(job, nodes)
    if job.allocation is not None:
        return sum(memory_on(job, index) for index in bitmap.indices(job.nodes))
    spec = job.spec
    return (spec.memory_mb_per_node or 0) * job.size + (spec.memory_mb_per_cpu or 0) * spec.cpus


def _least_on(job: Job, index: int, limit: Limit, cpus: int) -> float:
    """Return how much `job` takes on a host: what it holds there, or as much as it may want."""
    if job.allocation is not None:
        return _amount_on(job, index, limit, cpus)
    if limit.counts is Counts.JOBS:
        return 1.0
    count = min(job.spec.cpus, cpus)
    if limit.counts is Counts.SLOTS:
        return count
    return (job.spec.memory_mb_per_node or 0) + (job.spec.memory_mb_per_cpu or 0) * count

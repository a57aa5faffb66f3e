"""Say which jobs limits keep out, and off which hosts (lsf 5.1), by what `counting` has counted."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Blocked, Job, Node
from makeway_lsf_queue import jobs
from makeway_lsf_queue.counting import Counted, Use, amount_on
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import memory_on
from makeway_lsf_queue.sums import Cell, Closed, Rows, Sums
from makeway_lsf_queue.vocabulary import PARALLEL

_SLOTS, _JOBS = Counts.SLOTS, Counts.JOBS


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


@attrs.frozen
class Stopper:
    """A limit that keeps a suspended job from going on."""

    sums: Sums

    limit: Limit
    key: str
    bound: float
    cell: Cell
    """What is taken of it."""
    version: int
    """That of `cell` by which it was found."""

    def enough(self, counted: Counted, job: Job) -> float:
        """Return how much may be taken at most before the job may go on; infinite: that is not all that counts."""
        limit = self.limit
        if (
            limit.per_host
            or counted.reserved
            or not counted.is_summed(limit)
            or counted.resumes_beside(limit, job)
        ):
            return math.inf
        running, stopped = self.cell.total
        level = running + stopped if limit.suspended else running
        others = counted.used(limit, self.key, job).total
        return self.bound - wanted_of(job, limit, counted) + (level - others)

    def still_stands(self, sums: Sums) -> bool:
        """Whether no job that counts in the limit came, went or was suspended; no job collects slots."""
        return sums is self.sums and self.cell.version == self.version


def verdicts(site: Site, counted: Counted, job: Job) -> Iterator[Verdict]:
    """Yield what each limit that is about `job` says, in the order of the files."""
    del site
    for limit, key, bound in counted.sums.about(job):
        if limit.hosts is None or jobs.places_of(job) & limit.hosts:
            yield _verdict(counted, limit, job, key, bound)


def _verdict(counted: Counted, limit: Limit, job: Job, key: str, bound: float) -> Verdict:
    if limit.per_host:
        return _of_the_best_host(counted, limit, job, key, bound)
    use = counted.used(limit, key, job)
    wanted = wanted_of(job, limit, counted)
    return Verdict(limit=limit, bound=bound, wanted=wanted, use=use, setting=_setting(limit, key))


def _of_the_best_host(counted: Counted, limit: Limit, job: Job, key: str, bound: float) -> Verdict:
    """Return the verdict for the host of the limit that has most room under it."""
    rows = rows_of(counted, limit, job, bound)
    if job.allocation is not None or counted.reserved:
        return _of_the_best_of(rows, counted, limit, job, key, bound)
    answers, asked = counted.answers, ("host", limit, key, id(rows))  # `sums.rows` keeps them
    if asked not in answers:
        answers[asked] = _of_the_best_of(rows, counted, limit, job, key, bound)
    found: Verdict = answers[asked]
    return found


def _of_the_best_of(rows: Rows, counted: Counted, limit: Limit, job: Job, key: str, bound: float) -> Verdict:
    taken = counted.taken_on(limit, key, job)
    best, most = -1, -math.inf
    for index, at_most, wanted in rows:
        room = at_most - taken.get(index, 0.0) - wanted
        if room > most:
            best, most = index, room
    nodes = counted.view.cluster.nodes
    return Verdict(
        limit=limit,
        bound=_bound_on(limit, bound, nodes[best]),
        wanted=_least_on(job, best, limit, nodes[best].cpus),
        use=counted.used_at(limit, key, job, best),
        host=nodes[best].name,
        setting=_setting(limit, key) or f"node[{best}]",
    )


def _setting(limit: Limit, key: str) -> str:
    """Return the path in the config of the row that sets a limit."""
    return f"{limit.setting}.{limit.rows.get(key, 'default')}" if limit.rows is not None else limit.setting


def blocked(site: Site, counted: Counted, job: Job) -> Blocked | None:
    """Return the first limit that keeps `job` out; None: none does."""
    request = counted.request(job)
    if request is None:
        return _blocked(site, counted, job)
    answers, key = counted.answers, ("blocked", request)
    if key not in answers:
        answers[key] = _blocked(site, counted, job)
    found: Blocked | None = answers[key]
    return found


def _blocked(site: Site, counted: Counted, job: Job) -> Blocked | None:
    del site
    found = first_limit(counted, job)
    return None if found is None else blocked_by(counted, job, *found)


def blocked_by(counted: Counted, job: Job, limit: Limit, key: str, bound: float) -> Blocked:
    """Say what keeps a job out of which it is known that a limit does."""
    verdict = _verdict(counted, limit, job, key, bound)
    return Blocked(
        reason=_reason(limit, verdict),
        resource="limit",
        wanted=verdict.wanted,
        available=max(0.0, verdict.bound - verdict.use.total),
        detail=str(verdict),
        liftable=True,
    )


def reason_of(counted: Counted, limit: Limit, key: str, bound: float, job: Job) -> str:
    """Return the pending reason of a limit that keeps a job out."""
    if limit.counts is not _SLOTS or limit.reason not in PARALLEL:
        return limit.reason
    return _reason(limit, _verdict(counted, limit, job, key, bound))


def _reason(limit: Limit, verdict: Verdict) -> str:
    """Return another reason than the limit's own if a smaller job would have room."""
    has_room = limit.counts is _SLOTS and verdict.use.total + 1 <= verdict.bound
    return PARALLEL.get(limit.reason, limit.reason) if has_room else limit.reason


def first_limit(counted: Counted, job: Job) -> tuple[Limit, str, float] | None:
    """Return the first limit that keeps `job` out, with the key and the bound; None: none does."""
    places = jobs.places_of(job)
    for limit, key, bound in counted.sums.about(job):
        if limit.hosts is not None and not places & limit.hosts:
            continue
        if _fits(counted, limit, job, key, bound) or (limit.counts is _JOBS and counted.lenient):
            continue
        if not leaves_other_hosts(limit, job):  # else `closed` keeps it off these
            return limit, key, bound
    return None


def _fits(counted: Counted, limit: Limit, job: Job, key: str, bound: float) -> bool:
    """Return what the verdict of a limit comes to: a host with room is enough, whichever has most."""
    if not limit.per_host:
        return counted.used(limit, key, job).total + wanted_of(job, limit, counted) <= bound
    taken_at = counted.taken_at(limit, key, job)
    rows = rows_of(counted, limit, job, bound)
    if taken_at is None or not rows:
        return _of_the_best_host(counted, limit, job, key, bound).fits
    return any(taken_at(index) + wanted <= most for index, most, wanted in rows)


def stopper(counted: Counted, job: Job, last: Stopper | None = None) -> Stopper | None:
    """Return a limit that keeps an active job from going on where it is; None: none does.

    What `blocked` and `closed` come to for it.

    :param last: what was returned for the job before; it is looked at first.
    """
    sums = counted.brought()
    if last is not None and last.sums is sums and not counted.reserved and counted.is_summed(last.limit):
        version = last.cell.version
        if version == last.version:
            return last
        if _stops(counted, last.limit, job, last.key, last.bound):
            return attrs.evolve(last, version=version)
    for limit, key, bound in sums.about(job):
        if _stops(counted, limit, job, key, bound):
            cell = sums.cell((limit, key))
            return Stopper(sums, limit, key, bound, cell, cell.version)
    return None


def _stops(counted: Counted, limit: Limit, job: Job, key: str, bound: float) -> bool:
    if limit.hosts is not None and not job.nodes & limit.hosts:
        return False
    if not limit.per_host:
        return counted.used(limit, key, job).total + wanted_of(job, limit, counted) > bound
    taken_at = counted.taken_at(limit, key, job)
    if taken_at is None:
        return bool(closed_by(counted, limit, job) & job.nodes)
    return any(taken_at(index) + wanted > most for index, most, wanted in rows_of(counted, limit, job, bound))


def standing_in_the_way(site: Site, counted: Counted, job: Job) -> Iterator[Verdict]:
    """Yield what each limit says that keeps an active job from going on where it is."""
    for verdict in verdicts(site, counted, job):
        limit = verdict.limit
        shut = closed_by(counted, limit, job) & job.nodes if limit.per_host or limit.hosts is not None else 0
        if not verdict.fits or shut:
            yield verdict


def leaves_other_hosts(limit: Limit, job: Job) -> bool:
    """Whether a job that a limit keeps off its hosts may go to others."""
    return limit.hosts is not None and bool(jobs.places_of(job) & ~limit.hosts)


def closed(site: Site, counted: Counted, job: Job) -> NodeBits:
    """Return the hosts on which a limit per host, or on some hosts, leaves `job` no room."""
    request = counted.request(job)
    if request is None:
        return _closed(counted, job)
    answers, key = counted.answers, ("closed", request)
    if key not in answers:
        answers[key] = _closed(counted, job)
    bits: NodeBits = answers[key]
    return bits


def _closed(counted: Counted, job: Job) -> NodeBits:
    bits = 0
    for limit, _, _ in counted.sums.about(job):
        if limit.per_host or limit.hosts is not None:
            bits |= closed_by(counted, limit, job)
    return bits


def closed_by(counted: Counted, limit: Limit, job: Job) -> NodeBits:
    """Return the hosts on which one limit per host, or on some hosts, leaves `job` no room."""
    key = limit.member(job)
    bound = limit.bound(key) if key is not None else None
    if key is None or bound is None:
        return 0
    hosts = jobs.places_of(job) & (limit.hosts if limit.hosts is not None else -1)
    if not limit.per_host:
        if limit.counts is _JOBS and counted.lenient:
            return 0
        use = counted.used(limit, key, job)
        return hosts if use.total + wanted_of(job, limit, counted) > bound else 0
    rows = rows_of(counted, limit, job, bound)
    if job.allocation is not None or counted.reserved or not counted.is_summed(limit):
        return _closed_rows(counted, limit, job, key, rows)
    cell = counted.brought().cell((limit, key))
    known = closed_in(cell, rows)
    bits = known.now(cell)
    return closed_without(counted, limit, key, known, cell) if counted.changed else bits


def closed_without(counted: Counted, limit: Limit, key: str, closed: Closed, cell: Cell) -> NodeBits:
    """Return the hosts that a limit per host closes once those who make way have done so."""
    bits = closed.now(cell)
    hosts: NodeBits = 0
    for part, _, _ in cell.among(counted.changed):
        hosts |= part.job.nodes
    if not hosts & bits:
        return bits  # no job takes more for making way
    on = counted.taken_without((limit, key))
    for index in bitmap.indices(hosts & bits):
        row = closed.rows.by_host.get(index)
        if row is None:
            continue
        most, wanted = row
        running, stopped = on.get(index, _NO_SLOTS)
        if (running + stopped if limit.suspended else running) + wanted <= most:
            bits &= ~(1 << index)
    return bits


def closed_in(cell: Cell, rows: Rows) -> Closed:
    """Return what is kept of the hosts that a limit per host closes; rows are those of `rows_of`."""
    known = cell.closed.get(id(rows))  # `sums.rows` keeps them
    if known is None:
        known = cell.closed[id(rows)] = Closed(rows)
    return known


_NO_SLOTS = (0.0, 0.0)


def _closed_rows(counted: Counted, limit: Limit, job: Job, key: str, rows: Rows) -> NodeBits:
    taken = counted.taken_on(limit, key, job)
    return bitmap.of([index for index, most, wanted in rows if taken.get(index, 0.0) + wanted > most])


def rows_of(counted: Counted, limit: Limit, job: Job, bound: float) -> Rows:
    """Return each host that a job is on, or may go to, with the bound there and what the job takes there."""
    nodes, spec = counted.view.cluster.nodes, job.spec
    hosts = jobs.places_of(job) & (limit.hosts if limit.hosts is not None else -1)
    if job.allocation is not None:
        there = [nodes[index] for index in bitmap.indices(hosts)]
        return Rows(
            [
                (node.index, _bound_on(limit, bound, node), _least_on(job, node.index, limit, node.cpus))
                for node in there
            ]
        )
    key = limit, bound, hosts, spec.cpus, spec.memory_mb_per_node, spec.memory_mb_per_cpu
    known = counted.sums.rows.get(key)
    if known is None:
        there = [nodes[index] for index in bitmap.indices(hosts)]
        wanted = {cpus: _least_on(job, -1, limit, cpus) for cpus in {node.cpus for node in there}}
        known = counted.sums.rows[key] = Rows(
            [(node.index, _bound_on(limit, bound, node), wanted[node.cpus]) for node in there]
        )
    return known


def _bound_on(limit: Limit, bound: float, node: Node) -> float:
    return math.ceil(bound * processors(node)) if limit.per_processor else bound


def processors(node: Node) -> int:
    """Return the processors of a host, where they are not as many as its slots (``attributes.CPUS``)."""
    given = node.attributes.get("CPUS")
    return int(given) if given is not None else node.cpus


def wanted_of(job: Job, limit: Limit, counted: Counted) -> float:
    """Return how much of a limit `job` takes in all."""
    if limit.counts is _JOBS:
        return 1.0
    nodes = counted.view.cluster.nodes
    if limit.counts is _SLOTS:
        return jobs.slots(job, nodes)
    if job.allocation is not None:
        return sum(memory_on(job, index) for index in bitmap.indices(job.nodes))
    spec = job.spec
    return (spec.memory_mb_per_node or 0) * job.size + (spec.memory_mb_per_cpu or 0) * spec.cpus


def _least_on(job: Job, index: int, limit: Limit, cpus: int) -> float:
    """Return how much `job` takes on a host: what it holds there, or as much as it may want on one of so many CPUs."""
    if job.allocation is not None:
        return amount_on(job, index, limit, cpus)
    if limit.counts is _JOBS:
        return 1.0
    count = min(job.spec.cpus, cpus)
    if limit.counts is _SLOTS:
        return count
    return (job.spec.memory_mb_per_node or 0) + (job.spec.memory_mb_per_cpu or 0) * count

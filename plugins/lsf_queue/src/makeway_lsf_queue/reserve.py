"""Keep slots for pending jobs of reserving queues, and let others backfill (lsf 7).

A pending job of a queue with SLOT_RESERVE collects the free slots of its hosts for so many turns; jobs behind
it leave them alone, except jobs of BACKFILL queues that end before it can start.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_lsf_queue import opening, values
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.jobs import hosts_of, run_limit, slots_on
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import Used, held_on

Rank = tuple[int, int, Seconds, int]
Lapses = tuple[list[Rank], list[Seconds]]
"""Places in the order in which jobs are tried, and when the first of all up to each lets go."""
_TINY = 1e-6


def kept_from(job: Job, before: Sequence[Job], view: ClusterView, now: Seconds) -> NodeBits:
    """Return the hosts on which `job` might use slots that are reserved for jobs before it."""
    site = site_of(view)
    if not site.has_reserving_queues:
        return 0
    reserving = [other for other in before if reserves(other, site, now)]
    if not reserving:
        return 0
    free = _free(view)
    kept: NodeBits = 0
    for other in reserving:
        taken = reserve(other, free)
        if may_backfill(job, site, starts_at(other, view, now), now):
            for index, count in taken.items():
                free[index] += count  # to be used, for as long as it lasts
        else:
            kept |= bitmap.of(
                [index for index in taken if free[index] < min(job.spec.cpus, _cpus(view, index))]
            )
    return kept


def reserves(job: Job, site: Site, now: Seconds) -> bool:
    """Whether a pending job holds on to slots: for the turns of its queue, then it lets go for one turn (7.1)."""
    if site.queue_of(job).reserve_turns is None:
        return False
    known = _NOW.of(site, now)
    found = known.get(id(job))
    if found is None or found[0] is not job or found[1] != job.submit_at:
        found = known[id(job)] = job, job.submit_at, _reserves(job, site, now)
    return found[2]


def _reserves(job: Job, site: Site, now: Seconds) -> bool:
    most = _longest(job, site)
    if most is None or opening.blocked(site, job, now) is not None:
        return False
    return most == 0 or _waited(job, site, most, now) < most - _TINY


class _Now:
    """Who reserves at one instant: only time changes that."""

    def __init__(self) -> None:
        self._at: tuple[Site, Seconds] | None = None
        self._known: dict[int, tuple[Job, Seconds, bool]] = {}
        self.reserved: tuple[object, tuple[Reservation, ...]] | None = None
        """What all of them hold on to, and for which cluster and queue that was found."""
        self.lapses: tuple[object, tuple[Lapses, Lapses]] | None = None
        """For which queue, and when those let go who hold slots, and all who reserve."""

    def of(self, site: Site, now: Seconds) -> dict[int, tuple[Job, Seconds, bool]]:
        """Return what is known of `now`, by the identity of a job."""
        if self._at is None or self._at[0] is not site or self._at[1] != now:
            self._at, self._known, self.lapses, self.reserved = (site, now), {}, None, None
        return self._known


def lets_go_at(preemptor: Job, site: Site, view: ClusterView, now: Seconds) -> Seconds | None:
    """Return when the first of the jobs before `preemptor` that collect slots lets go for a turn; None: none does.

    Those that find nothing to collect, since others before them have it all, keep none out. A job that may backfill
    counts them, too: for it the slots are collected a second time.
    """
    pending = view.pending
    _NOW.of(site, now)
    known = _NOW.lapses
    queue = view.version, pending, [job.priority for job in pending]
    if known is None or known[0] != queue:
        known = _NOW.lapses = queue, _lapses(pending, site, view, now)
    holding, all_of_them = known[1]
    places, first = all_of_them if site.queue_of(preemptor).backfill else holding
    before = bisect.bisect_left(places, rank(preemptor, site))
    return first[before - 1] if before else None


def _lapses(pending: Sequence[Job], site: Site, view: ClusterView, now: Seconds) -> tuple[Lapses, Lapses]:
    """Return when those let go who hold any slots, and when all do who reserve."""
    reserving = sorted((rank(job, site), job) for job in pending if reserves(job, site, now))
    free = _free(view) if reserving else {}
    holding, found = [], []
    for place, job in reserving:
        taken = reserve(job, free)
        most = _longest(job, site)
        if not most or most >= values.INFINITE:
            continue
        lapse = place, now + most - _waited(job, site, most, now)
        found.append(lapse)
        if taken:
            holding.append(lapse)
    return _earliest(holding), _earliest(found)


def _earliest(lapses: Sequence[tuple[Rank, Seconds]]) -> Lapses:
    return [place for place, _ in lapses], list(itertools.accumulate((at for _, at in lapses), min))


def _longest(job: Job, site: Site) -> Seconds | None:
    """Return for how long a job collects slots; None: not at all."""
    turns = site.queue_of(job).reserve_turns
    if turns is None:
        return None
    longest = site.settings.reserve_longest
    return turns * site.turn if longest is None else min(longest, turns * site.turn)


def _waited(job: Job, site: Site, most: Seconds, now: Seconds) -> Seconds:
    """Return how long it has been collecting: for so long, then a turn without."""
    return (now - job.submit_at) % (most + site.turn)


@attrs.frozen
class Reservation:
    """Slots that a pending job holds on to."""

    job: Job
    slots: Mapping[int, int]
    """By host."""


def rank(job: Job, site: Site) -> Rank:
    """Return the place of a pending job in the order in which jobs are tried."""
    return (-site.queue_of(job).priority, -job.priority, job.submit_at, job.index)


_WAITS_FOR_HOSTS = ("Resources", "PEND_HOST_JOB_LIMIT", "PEND_HOST_LESS_SLOTS", "PEND_HOST_JOB_SSUSP")
"""Reasons with which a job collects slots: nothing but room keeps it out."""


def reservations(site: Site, view: ClusterView) -> tuple[Reservation, ...]:
    """Return what pending jobs have reserved, in the order in which they are tried (5.1)."""
    if not site.has_reserving_queues:
        return ()
    now = view.now
    waiting = [job for job in view.pending if job.reason in _WAITS_FOR_HOSTS and reserves(job, site, now)]
    if not waiting:
        return ()
    gone = tuple(map(id, view.made_way))
    asked = view.version, gone, waiting, [job.priority for job in waiting]
    known = _NOW.reserved
    if known is None or known[0] != asked:
        free = _free(view)
        waiting = sorted(waiting, key=lambda job: rank(job, site))
        known = _NOW.reserved = asked, tuple(Reservation(job, reserve(job, free)) for job in waiting)
    return known[1]


def backfills(job: Job, site: Site, view: ClusterView) -> bool:
    """Whether an active job started on hosts that a pending job was collecting slots on (7.1)."""
    queue = site.queue_of(job)
    return queue.backfill and any(
        site.queue_of(other).reserve_turns is not None
        and site.queue_of(other).priority > queue.priority
        and other.submit_at <= (job.started_at or 0.0)
        and hosts_of(other) & job.nodes
        and other.reason in _WAITS_FOR_HOSTS
        for other in view.pending
    )


def _free(view: ClusterView) -> dict[int, int]:
    """Return host -> slots that no job holds, suspended jobs included."""
    found = {}
    for index in bitmap.indices(view.up):
        whole = view.cluster.nodes[index].cpus
        held = sum(held_on(job, index, whole) for job in view.jobs_on(index))
        found[index] = max(0, whole - held)
    return found


def reserve(job: Job, free: dict[int, int]) -> dict[int, int]:
    """Take what `job` can collect now out of `free`; return host -> slots."""
    left = job.spec.cpus
    taken = {}
    for index in bitmap.indices(hosts_of(job)):
        count = min(left, free.get(index, 0))
        if count > 0:
            taken[index] = count
            free[index] -= count
            left -= count
        if left <= 0:
            break
    return taken


def may_backfill(job: Job, site: Site, start: Seconds | None, now: Seconds) -> bool:
    """Whether `job` may use slots that are reserved until `start` (7.1); None: it is not known until when."""
    queue = site.queue_of(job)
    if not queue.backfill or start is None:
        return False
    limit = run_limit(job, site)
    if limit is not None and now + limit <= start + _TINY:
        return True
    # Interruptible backfill: the gap need only be longer than the slice; what is left of the run is lost then.
    return queue.interruptible is not None and start - now > queue.interruptible


def starts_at(job: Job, view: ClusterView, now: Seconds) -> Seconds | None:
    """Return when `job` can start if running jobs end as their limits say; None: that cannot be said."""
    hosts = hosts_of(job)
    nodes = view.cluster.nodes
    used = Used(view)
    gone = in_gap_of(job, view)
    have = sum(nodes[index].cpus - used.running(index, gone) for index in bitmap.indices(hosts & view.up))
    if have >= job.spec.cpus:
        return now
    for end, _, other in view.releases():
        if other in gone:
            continue
        have += sum(count for index, count in slots_on(other, nodes) if hosts >> index & 1)
        if have >= job.spec.cpus:
            return max(end, now)
    return None


# --------------------------------------------------------------------------- interruptible backfill
def in_gap_of(job: Job, view: ClusterView) -> list[Job]:
    """Return the interruptible jobs that run on slots that `job` reserves (7.1)."""
    site = site_of(view)
    return [
        other
        for other in view.active
        if other.state is JobState.RUNNING
        and (queue := site.queue_of(other)).interruptible is not None
        and queue.priority < site.queue_of(job).priority
        and other.nodes & hosts_of(job)
        and (other.started_at or 0.0) >= job.submit_at
    ]


def expired(view: ClusterView, now: Seconds) -> Iterator[tuple[Job, Job]]:
    """Yield interruptible jobs whose gap is over, each with the reserving job that could start without them."""
    site = site_of(view)
    if not site.has_gaps:
        return
    waiting = [job for job in view.pending if reserves(job, site, now)]
    waiting.sort(key=lambda job: rank(job, site))
    for job in waiting:
        gap = in_gap_of(job, view)
        hosts = hosts_of(job) & view.up
        nodes, used = view.cluster.nodes, Used(view)
        have = sum(max(0, nodes[at].cpus - used.running(at)) for at in bitmap.indices(hosts))
        ended = []
        for other in gap:
            if have >= job.spec.cpus:
                break
            ended.append(other)
            have += sum(count for at, count in slots_on(other, nodes) if hosts >> at & 1)
        if ended and have >= job.spec.cpus:
            yield from ((other, job) for other in ended)
            return  # the next one is judged when these are gone


def _cpus(view: ClusterView, index: int) -> int:
    return view.cluster.nodes[index].cpus


_NOW = _Now()

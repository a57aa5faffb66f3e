"""Keep CPUs, GPUs and memory for users who have booked them (``limits/bookings``, local-world 9).

What is booked stands in ``cluster.attributes.bookings``; `makeway_local_world.daemon.bookings` writes it there. All is
counted, by user: at any instant a user is due what is booked or what runs, whichever is more. A job may start if it
fits beside what others are due, at every instant at which its time limit lets it run; or if its user has booked enough.
In the time of a booking its jobs stand first in the queue, and others make way for them. All that is counted on the
machine as one: it is one node. A job that asks for no memory needs none of what is booked.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from makeway.config import Config
from makeway.devices import GPU, holds_gpus
from makeway.errors import ConfigError, Finding, Problem
from makeway.hookspecs import hookimpl
from makeway.model import (
    Blocked,
    Candidates,
    Cluster,
    ClusterView,
    Job,
    JobState,
    Limits,
    PreemptBasis,
    PreemptMode,
    QueueOrder,
    Seconds,
)
from makeway.settings import structure
from makeway_local_world.gpu_requeue import may_go, wants_gpus

ATTRIBUTE = "bookings"
"""Key of ``[cluster.attributes]`` that holds the tables."""
NAME = "limits/bookings"
_WHERE = f"cluster.attributes.{ATTRIBUTE}"
_BY_PRIORITY = (PreemptBasis.NOTHING, PreemptBasis.PARTITION, PreemptBasis.QOS)
"""Policies that leave the order of the queue to priorities; others may bring their own."""

_RESOURCES = ("cpus", "gres", "memory")
"""What the fields of `Amount` are called in a `Blocked`."""


class Amount(NamedTuple):
    """CPUs, GPUs and memory."""

    cpus: int = 0
    gpus: int = 0
    memory_mb: int = 0

    def plus(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(*map(operator.add, self, other))

    def minus(self, other: Amount) -> Amount:
        """Return what is left."""
        return Amount(*map(operator.sub, self, other))

    def most(self, other: Amount) -> Amount:
        """Return the greater number of each."""
        return Amount(*map(max, self, other))

    def within(self, booked: Amount) -> Amount:
        """Return what counts against what is booked: memory only if some is."""
        return self if booked.memory_mb else self._replace(memory_mb=0)

    def fits(self, room: Amount) -> bool:
        """Whether it is no more than that, of what it has any of."""
        return all(want <= there for want, there in zip(self, room, strict=True) if want)


@attrs.frozen(kw_only=True)
class Booking:
    """One table."""

    user: str
    start: Seconds
    end: Seconds
    cpus: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    gpus: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    memory_mb: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    told: str = ""
    """Why a job waits for it; empty: in seconds of the run."""

    @property
    def amount(self) -> Amount:
        """What is booked."""
        return Amount(self.cpus, self.gpus, self.memory_mb)

    @property
    def reason(self) -> str:
        """The pending reason of jobs that it keeps out."""
        return self.told or f"booked by {self.user} from {self.start:,.0f} s"


def bookings_of(cluster: Cluster) -> tuple[Booking, ...]:
    """Return the bookings of a cluster.

    :raises ConfigError: a table is wrong.
    """
    tables = cluster.attributes.get(ATTRIBUTE, ())
    if not isinstance(tables, list | tuple) or not all(isinstance(each, Mapping) for each in tables):
        raise ConfigError("configuration", [Problem(_WHERE, "expected a list of tables")])
    return tuple(
        structure(each, Booking, "configuration", f"{_WHERE}[{at}]") for at, each in enumerate(tables)
    )


def there(cluster: Cluster) -> Amount:
    """Return what the machine has."""
    return Amount(
        sum(node.cpus for node in cluster.nodes),
        sum(_gpus(node.gres) for node in cluster.nodes),
        sum(node.usable_memory_mb for node in cluster.nodes),
    )


def _gpus(counts: Mapping[str, int]) -> int:
    return sum(count for name, count in counts.items() if name.partition(":")[0] == GPU)


def wanted_by(job: Job, cluster: Cluster) -> Amount:
    """Return what a pending job asks for."""
    spec = job.spec
    return Amount(
        spec.cpus, _gpus(spec.gres) * job.size + _gpus(spec.gres_total), _memory_asked_by(job, cluster)
    )


def _memory_asked_by(job: Job, cluster: Cluster) -> int:
    spec = job.spec
    if spec.memory_mb_per_cpu is not None:
        return spec.memory_mb_per_cpu * spec.cpus
    if spec.memory_mb_per_node == 0:  # all of it
        return there(cluster).memory_mb
    return (spec.memory_mb_per_node or 0) * job.size


def _held_by(job: Job, view: ClusterView) -> Amount:
    """Return what an active job holds; a suspended one keeps its GPUs and its memory.

    Where memory is not given out, it is what the job asked for.
    """
    held = job.allocation
    if held is None:
        return Amount()
    if job.state is not JobState.RUNNING:
        cpus = 0
    elif held.cpus is None:
        cpus = sum(view.cluster.nodes[index].cpus for index in held.node_indices)
    else:
        cpus = sum(held.cpus)
    memory = _memory_asked_by(job, view.cluster) if held.memory_mb is None else sum(held.memory_mb)
    return Amount(cpus, _gpus({name: sum(each) for name, each in held.gres.items()}), memory)


def held_now(view: ClusterView) -> dict[str, Amount]:
    """Return user -> what active jobs hold."""
    return running_at(view.now, view)


class Book:
    """The bookings of one run, and what users are due. See `makeway.model.Book`."""

    def __init__(self, view: ClusterView) -> None:
        self.all = bookings_of(view.cluster)
        self.there = there(view.cluster)

    def started(self, job: Job, view: ClusterView) -> None:
        """Nothing is counted ahead."""

    def left(self, job: Job, view: ClusterView) -> None:
        """Nothing is counted ahead."""

    def live(self, at: Seconds) -> Iterator[Booking]:
        """Yield the bookings whose time it is."""
        return (each for each in self.all if each.start <= at < each.end)

    def booked(self, user: str, at: Seconds) -> Amount:
        """Return what a user has booked for an instant."""
        found = Amount()
        for each in self.live(at):
            if each.user == user:
                found = found.plus(each.amount)
        return found

    def due(self, user: str, at: Seconds, running: Mapping[str, Amount]) -> Amount:
        """Return what all others than `user` are due at an instant."""
        others = {*running, *(each.user for each in self.live(at))} - {user}
        found = Amount()
        for other in others:
            found = found.plus(running.get(other, Amount()).most(self.booked(other, at)))
        return found

    def keeps_out(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return the booking of another user that leaves a pending job no room; None: none does."""
        now, asked, user = view.now, wanted_by(job, view.cluster), job.user
        limit = job.time_limit if job.time_limit is not None else job.partition.max_time
        end = math.inf if limit is None else now + limit
        for at in sorted({now, *(each.start for each in self.all if now < each.start < end)}):
            theirs = [each for each in self.live(at) if each.user != user and _touches(each, asked)]
            if not theirs:
                continue
            wanted = asked if any(each.memory_mb for each in theirs) else asked._replace(memory_mb=0)
            running = running_at(at, view)
            mine = running.get(user, Amount()).plus(wanted)
            room = self.there.minus(self.due(user, at, running)).most(self.booked(user, at))
            left = room.minus(mine).plus(wanted)
            if wanted.fits(left):
                continue
            short = next(place for place, want in enumerate(wanted) if want > left[place])
            frees = {each.id: held[short] for each, held in _running(at, view) if held[short]}
            return Blocked(
                reason=theirs[0].reason,
                resource=_RESOURCES[short],
                wanted=wanted[short],
                available=left[short],
                ask_again_at=min(each.end for each in theirs),
                liftable=True,
                frees=frees,
            )
        return None

    def is_first(self, job: Job, view: ClusterView) -> bool:
        """Whether a pending job has room in what its user has booked for now."""
        own = self.booked(job.user, view.now)
        if not any(own):
            return False
        running = running_at(view.now, view).get(job.user, Amount())
        return wanted_by(job, view.cluster).within(own).fits(own.minus(running))

    def idle_memory(self, view: ClusterView) -> int:
        """Return the MB that no active job holds."""
        return self.there.memory_mb - sum(held.memory_mb for _, held in _running(view.now, view))

    def covered(self, view: ClusterView) -> dict[str, str]:
        """Return id -> why: active jobs that are within what their users have booked for now, oldest first."""
        booked = {each.user: self.booked(each.user, view.now) for each in self.live(view.now)}
        left = dict(booked)
        found = {}
        for job in sorted(view.active, key=lambda each: (each.started_at or 0.0, each.index)):
            held = _held_by(job, view)
            if job.user in left and (held := held.within(booked[job.user])).fits(left[job.user]):
                left[job.user] = left[job.user].minus(held)
                found[job.id] = f"{job.user} has booked what it holds"
        return found


def _touches(booking: Booking, wanted: Amount) -> bool:
    return any(want and booked for want, booked in zip(wanted, booking.amount, strict=True))


def running_at(at: Seconds, view: ClusterView) -> dict[str, Amount]:
    """Return user -> what jobs that run now may still hold at an instant, by their time limits."""
    found: dict[str, Amount] = defaultdict(Amount)
    for job, held in _running(at, view):
        found[job.user] = found[job.user].plus(held)
    return found


def _running(at: Seconds, view: ClusterView) -> Iterator[tuple[Job, Amount]]:
    """Yield what each of these jobs holds."""
    for job in view.active:
        if at <= view.now or job.end_at is None or job.end_at > at:
            yield job, _held_by(job, view)


class Booked(Limits):
    """Keeps jobs from what others have booked."""

    def __init__(self, view: ClusterView) -> None:
        self._book = view.book(Book)
        self.by_request = lambda job: True

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say which booking keeps a job out."""
        return self._book.keeps_out(job, view)


class BookedFirst(QueueOrder):
    """Lets jobs that have room in what their users have booked stand before all others."""

    def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job] | None:
        """Order the queue."""
        book = view.book(Book)
        users = {each.user for each in book.live(view.now)}
        first = [job for job in pending if job.user in users and book.is_first(job, view)]
        if not first:
            return None
        chosen = set(map(id, first))
        return [*first, *(job for job in pending if id(job) not in chosen)]


@hookimpl
def makeway_check(config: Config, cluster: Cluster) -> list[Finding]:
    """Say what is wrong with the tables."""
    del config
    try:
        bookings_of(cluster)
    except ConfigError as error:
        return list(map(Finding.of, error.problems))
    return []


@hookimpl
def makeway_limits(view: ClusterView) -> Limits:
    """Keep to what is booked."""
    return Booked(view)


@hookimpl
def makeway_queue(view: ClusterView) -> QueueOrder | None:
    """Let booked jobs come first, where no policy has an order of its own."""
    return BookedFirst() if view.preempt_basis in _BY_PRIORITY else None


@hookimpl
def makeway_preempt_candidates(preemptor: Job, active: Sequence[Job], view: ClusterView) -> Candidates | None:
    """Name the jobs of others for one that has room in what its user has booked; None: it has not.

    A suspended process would keep its GPUs and its memory, and one of the same partition would go on beside the
    preemptor: they are requeued instead.
    """
    book = view.book(Book)
    if not book.is_first(preemptor, view):
        return None
    safe = book.covered(view)
    victims = [job for job in active if job.user != preemptor.user and job.id not in safe]
    short = wanted_by(preemptor, view.cluster).memory_mb > book.idle_memory(view)
    modes = {job.id: _mode(job, preemptor, view, all_of_it=short) for job in victims}
    going = [job for job in victims if modes[job.id] is not PreemptMode.OFF]
    if not going:
        return None
    wants = wants_gpus(preemptor)
    # 1. holders of GPUs, if these are wanted  2. the lowest tier  3. the least lost: the last to start
    going.sort(
        key=lambda job: (
            wants and not holds_gpus(job),
            job.partition.priority_tier,
            -(job.started_at or 0.0),
            job.index,
        )
    )
    return Candidates(
        jobs=tuple(going),
        modes=tuple(modes[job.id] for job in going),
        protected=safe | {job.id: "it may not make way" for job in victims if job not in going},
        reasons=(f"{preemptor.user} has booked it",) * len(going),
    )


def _mode(job: Job, preemptor: Job, view: ClusterView, *, all_of_it: bool) -> PreemptMode:
    """Return how a job makes way for one that is booked.

    :param all_of_it: whether it has to give back its memory, too.
    """
    own = job.partition.preempt_mode
    if own is not None and own.action is PreemptMode.OFF:
        return PreemptMode.OFF
    mode = view.mode_of(job)
    beside = job.partition.priority_tier >= preemptor.partition.priority_tier
    if mode is PreemptMode.SUSPEND and (beside or all_of_it or holds_gpus(job)):
        return PreemptMode.REQUEUE if may_go(job) else PreemptMode.OFF
    return mode


@hookimpl
def makeway_protect(preemptor: Job, candidates: Sequence[Job], view: ClusterView) -> Mapping[str, str] | None:
    """Protect jobs that are within what their users have booked from all but these users."""
    book = view.book(Book)
    if next(book.live(view.now), None) is None:
        return None
    safe = book.covered(view)
    return {
        job.id: safe[job.id] for job in candidates if job.id in safe and job.user != preemptor.user
    } or None

"""Follow what nodes have left while running jobs end, without placing anything.

A forecast asks after which of the ends a job fits. Idle CPUs are counted first, as one array over the nodes for each
number of jobs that are gone: a job cannot fit before they are enough, and they only become more. It is placed where
they are, once.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.model import Allocation, ClusterView, Job, PreemptMode, Seconds
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.cpus import threads_for
from makeway_select_cons_tres.kinds import Kind
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.request import NodeNeed
from makeway_select_cons_tres.steps import Bars

Release = tuple[Seconds, int, Job]
"""Deadline and index of a running job, and the job (`ClusterView.releases`)."""
Amounts = npt.NDArray[np.float64]
"""An amount by node; whole numbers, as `bincount` adds them up."""
_Asked = tuple[Bars, NodeNeed, bool, int | None, int, int]
"""What decides which CPUs of a node a job could use."""
_FIRST_WINDOW: Seconds = 30.0
_HALF_MINUTE: Seconds = 30.0
_TINY = 1e-6
_MOST_BOOKS = 24
"""Books of so many moments are kept."""
_AMOUNTS = 200_000
"""Moments are kept for so many nodes in all, each counted once a moment."""
_OCTETS = 16
"""Of the number of what a job holds."""
_FEWEST = 24
"""So many moments are kept at least."""
_FORGOTTEN = 2
"""What jobs held is forgotten once it is so many times what they hold."""


class Batch(NamedTuple):
    """Running jobs that a forecast takes away together."""

    begin: int
    """Place of the first of them among all that end."""
    end: int
    """Place behind the last."""


@attrs.frozen(eq=False)
class _Offer:
    """What nodes have for a job."""

    nodes: NodeBits
    """Those that serve."""
    number: int
    """How many these are."""
    cpus: Amounts
    """CPUs of each node; 0 where it does not serve."""
    most: int
    """The most of these."""
    total: int
    """All of these."""


class Moment:
    """What has been found out about the nodes once certain jobs are left."""

    __slots__ = ("counts", "offers", "places")

    def __init__(self) -> None:
        self.counts: dict[Bars, tuple[Amounts, Amounts]] = {}
        """Cores that nothing barred holds and free memory of each node."""
        self.offers: dict[_Asked, _Offer] = {}
        """What nodes have for jobs that ask alike."""
        self.places: dict[tuple[Kind, NodeBits], NodeBits | None] = {}
        """Where a job of a kind gets idle cores, of some nodes."""


class Share(NamedTuple):
    """What a job holds."""

    allocation: Allocation
    number: int
    """Tells it from all others."""
    cores: list[int]
    """How many of each of its nodes."""
    memory: list[int]
    """MB of each of its nodes."""


class Moments:
    """Moments that lie ahead. A job that ends before its time, or starts, leaves those as they were that come later.

    A moment is known by what is held then: each allocation has a number of its own, and these are added up (Zobrist
    1970, A new hashing method with application for game playing).
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._most = max(_FEWEST, _AMOUNTS // max(layout.size, 1))
        self._known: dict[int, Moment] = {}
        self._shares: dict[int, Share] = {}
        """By the identity of an allocation, which is kept so that no other has it."""
        self._count = itertools.count()

    def shares(self, jobs: Iterable[Job]) -> dict[int, Share]:
        """Return what each job holds, by its identity; those that hold nothing are left out."""
        known = self._shares
        held = [(id(job), job.allocation) for job in jobs if job.allocation is not None]
        found = {at: known.get(id(each)) or self._share(each) for at, each in held}
        if len(known) > _FORGOTTEN * len(found) + _FEWEST:
            self._shares = {id(each.allocation): each for each in found.values()}
        return found

    def _share(self, held: Allocation) -> Share:
        digest = hashlib.blake2b(str(next(self._count)).encode(), digest_size=_OCTETS).digest()
        full = self._layout.core_count
        found = self._shares[id(held)] = Share(
            held,
            int.from_bytes(digest, "little"),
            [full[index] for index in held.node_indices]
            if held.cores is None
            else [each.bit_count() for each in held.cores],
            [0] * len(held.node_indices) if held.memory_mb is None else [*held.memory_mb],
        )
        return found

    def of(self, key: int) -> Moment:
        """Return a moment."""
        found = self._known.pop(key, None) or Moment()
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]  # the one that was asked for least lately
        self._known[key] = found
        return found

    def forget(self) -> None:
        """Forget all: the same jobs may have left other books behind."""
        self._known.clear()


class Enough:
    """Whether nodes and CPUs may be enough for a job of one kind, as others end.

    Once they are, they are on more nodes and once more jobs are gone; a job cannot fit before. No timeline knows its
    askers: replays run without a collector of garbage, and the two would keep each other.
    """

    __slots__ = (
        "_asked",
        "_bars",
        "_cpus",
        "_kind",
        "_least",
        "_most",
        "_offers",
        "_threads",
        "_timeline",
        "_wanted",
    )

    def __init__(self, timeline: Timeline, kind: Kind, bars: Bars) -> None:
        request = kind.request
        self._timeline = timeline
        self._kind = kind
        self._bars = bars
        self._least = max(request.min_nodes, 1)
        self._most = request.max_nodes
        self._wanted = max(kind.wanted, 1)
        self._threads = timeline.threads_for(request.need)
        self._cpus = 0 if kind.wanted * self._least >= request.min_cpus else request.min_cpus
        """How many are to be counted; 0: nodes are enough."""
        self._asked = (
            bars,
            request.need,
            request.whole,
            request.memory_per_cpu,
            kind.least_memory,
            self._wanted,
        )
        self._offers: dict[int, _Offer] = {}
        """By how many jobs are gone."""

    def by(self, nodes: NodeBits, instant: Seconds) -> bool:
        """Whether there may be room on some nodes by an instant."""
        return self.after(nodes, bisect.bisect_right(self._timeline.ends, instant))

    def after(self, nodes: NodeBits, count: int) -> bool:
        """Whether there may be room on some nodes once so many jobs are gone."""
        offer = self._offers.get(count)
        if offer is None:
            offers = self._timeline.moment(count).offers
            offer = offers.get(self._asked)
            if offer is None:
                offer = offers[self._asked] = self._offer(count)
            self._offers[count] = offer
        wanted, serving = self._cpus, offer.nodes & nodes
        number = serving.bit_count()
        if number < self._least:
            return False
        if not wanted:
            return True
        if self._most is not None and self._most < number:
            number = self._most
        most = offer.most
        if offer.total < wanted or most * number < wanted:
            return False
        if offer.total - most * (offer.number - serving.bit_count()) >= wanted:
            return True
        return int(offer.cpus @ self._timeline.mask(nodes)) >= wanted

    def _offer(self, count: int) -> _Offer:
        cpus = self._timeline.usable(self._kind, self._bars, self._threads, count)
        serves = cpus >= self._wanted
        nodes = int.from_bytes(np.packbits(serves, bitorder="little").tobytes(), "little")
        if self._wanted > 1:
            cpus = np.where(serves, cpus, 0.0)
        return _Offer(nodes, nodes.bit_count(), cpus, int(cpus.max(initial=0)), int(cpus.sum()))


class Timeline:
    """The running jobs in the order in which they end, from books on that do not change."""

    def __init__(
        self, books: Books, view: ClusterView, gone: Sequence[tuple[Job, PreemptMode]], moments: Moments
    ) -> None:
        """Begin.

        :param gone: jobs that have made way for another, and left the books already.
        """
        clockwork = view.settings(Clockwork)
        self._phase = clockwork.minute_phase
        self.books = books
        """As they are before any of them is gone; not to be changed."""
        out = {id(job) for job, _ in gone}
        releases = [each for each in view.releases() if id(each[2]) not in out]
        releases += [each for each in _endless(view) if id(each[2]) not in out]
        self.ends = [each[0] for each in releases]
        self._jobs = [each[2] for each in releases]
        shares = moments.shares(view.active)
        self._shares = [shares.get(id(job)) for job in self._jobs]
        self._keys = _keys(self._shares, gone, shares)
        """Of the moments at which so many jobs are gone."""
        self._nodes = [0 if share is None else share.allocation.nodes for share in self._shares]
        self._seconds = [clockwork.whole_second(end) if end < math.inf else end for end in self.ends]
        layout = books.layout
        self._full = np.array(layout.core_count, np.float64)
        self._left = np.array(layout.memory, np.float64) - np.array(books.memory, np.float64)
        self._flat: tuple[Sequence[int], npt.NDArray[np.int64], Amounts] | None = None
        self._cores_of: dict[Bars, tuple[Amounts, Amounts]] = {}
        self._moments = moments
        self._masks: dict[NodeBits, Amounts] = {}
        self._after: dict[tuple[int, NodeBits], Books] = {}

    def moment(self, count: int) -> Moment:
        """Return what is known of the moment at which so many jobs are gone."""
        return self._moments.of(self._keys[count])

    # ------------------------------------------------------------------------------ counting
    def usable(self, kind: Kind, bars: Bars, threads: int | Amounts, count: int) -> Amounts:
        """Return how many CPUs of each node a job of a kind could use at most once so many jobs are gone.

        :param threads: how many CPUs of a core count for it, as `threads_for` says.
        """
        layout, request = self.books.layout, kind.request
        idle, left = self._counted(bars, count)
        usable = idle * threads
        if request.whole and bars is None:
            usable = np.where(idle == self._full, usable, 0)
        if layout.track_memory:
            if request.memory_per_cpu and not request.whole:
                usable = np.minimum(usable, left // request.memory_per_cpu)
            if kind.least_memory:
                usable = np.where(left >= kind.least_memory, usable, 0.0)
        return np.maximum(usable, 0.0)

    def threads_for(self, need: NodeNeed) -> int | Amounts:
        """Return how many CPUs of a core count, by node where these are not alike."""
        layout = self.books.layout
        threads = [threads_for(shape, need) for shape in layout.shapes]
        return (
            threads[0] if len(threads) == 1 else np.array([threads[at] for at in layout.shape_at], np.float64)
        )

    def _counted(self, bars: Bars, count: int) -> tuple[Amounts, Amounts]:
        """Return the cores that nothing barred holds and the free memory of each node once so many jobs are gone."""
        counts = self.moment(count).counts
        found = counts.get(bars)
        if found is None:
            over, nodes, memory = self._held()
            size, upto = len(self._full), over[count - 1] if count else 0
            left = self._left + np.bincount(nodes[:upto], memory[:upto], size)
            # Cores that two jobs hold are counted twice: that is still no less than there will be.
            free, cores = self._barred(bars)
            idle = free + np.bincount(nodes[:upto], cores[:upto], size)
            found = counts[bars] = np.minimum(idle, self._full), left
        return found

    def _barred(self, bars: Bars) -> tuple[Amounts, Amounts]:
        """Return the cores of each node that nothing barred holds now, and those that jobs hold, as `_held` lists them.

        Jobs of other partitions bar nothing: they count as holding none.
        """
        found = self._cores_of.get(bars)
        if found is None:
            books = self.books
            busy = books.cores_in([part for at, part in books.parts.items() if bars and at in bars], -1)
            used = books.busy if bars is None else [busy.get(at, 0) for at in range(books.layout.size)]
            cores: list[int] = []
            for job, share in zip(self._jobs, self._shares, strict=True):
                if share is not None:
                    elsewhere = bars is not None and job.partition.index not in bars
                    cores += [0] * len(share.cores) if elsewhere else share.cores
            free = self._full - np.array([each.bit_count() for each in used], np.float64)
            found = self._cores_of[bars] = free, np.array(cores, np.float64)
        return found

    def _held(self) -> tuple[Sequence[int], npt.NDArray[np.int64], Amounts]:
        """Return node and memory of all that the jobs hold, one after the other, and where each is over."""
        if self._flat is None:
            over: list[int] = []
            nodes: list[int] = []
            memory: list[int] = []
            for share in self._shares:
                if share is not None:
                    nodes += share.allocation.node_indices
                    memory += share.memory
                over.append(len(nodes))
            self._flat = over, np.array(nodes, np.int64), np.array(memory, np.float64)
        return self._flat

    def mask(self, nodes: NodeBits) -> Amounts:
        """Return 1 for each of some nodes, 0 for all others."""
        found = self._masks.get(nodes)
        if found is None:
            size = len(self._full)
            octets = (nodes & bitmap.full(size)).to_bytes((size + 7) // 8, "little")
            bits = np.unpackbits(np.frombuffer(octets, np.uint8), count=size, bitorder="little")
            found = self._masks[nodes] = bits.astype(np.float64)
        return found

    # ------------------------------------------------------------------------------ batches
    def batches(self, nodes: NodeBits) -> Iterator[Batch]:
        """Yield the jobs on some nodes that are taken away together; each window is twice as long as the last.

        All windows begin at the first full half minute of the wall clock after the first of these jobs ends; those that
        end before take part in the first window (recorded: backfill_estimate_half_minutes and
        backfill_estimate_half_minutes_apart). A batch is over when the very next job of all ends after its window. A
        job elsewhere closes no batch: the one behind it comes along, however late it ends (recorded:
        backfill_estimate_jobs_elsewhere).
        """
        at = self._next_on(nodes, 0)
        if at is None:
            return
        seconds, count = self._seconds, len(self._jobs)
        begin, window = self._half_minute_after(seconds[at]), _FIRST_WINDOW
        while at is not None:
            beyond = bisect.bisect_right(seconds, begin + window + _TINY, lo=at)
            last = self._next_on(nodes, max(at, beyond - 1))
            if last is None or last + 1 == count:
                yield Batch(at, count)
                return
            yield Batch(at, last + 1)
            over = seconds[last + 1]
            window *= 2
            while over > begin + window + _TINY:
                window = math.inf if math.isinf(over) else 2 * window
            at = self._next_on(nodes, last + 1)

    def end_of(self, batch: Batch, nodes: NodeBits) -> Seconds | None:
        """Return when the last job of a batch that is on some nodes ends; None: there is none."""
        for at in range(batch.end - 1, batch.begin - 1, -1):
            if self._nodes[at] & nodes:
                return self.ends[at]
        return None

    def _next_on(self, nodes: NodeBits, at: int) -> int | None:
        """Return the place of the first job on some nodes from one place on; None: there is none."""
        held = self._nodes
        for place in range(at, len(held)):
            if held[place] & nodes:
                return place
        return None

    def _half_minute_after(self, second: Seconds) -> Seconds:
        """Return the first full half minute of the wall clock after a second of the controller."""
        if math.isinf(second):
            return second
        return (math.floor((second + self._phase) / _HALF_MINUTE + _TINY) + 1) * _HALF_MINUTE - self._phase

    # -------------------------------------------------------------------------------- books
    def books_after(self, count: int, nodes: NodeBits) -> Books:
        """Return the books once the first so many jobs are gone, of those on some nodes; they are not to be changed."""
        found = self._after.get((count, nodes))
        if found is None:
            before = max([each for each, on in self._after if on == nodes and each < count], default=0)
            found = (self._after[before, nodes] if before else self.books).copy()
            found.take_out_all([job for job in self._jobs[before:count] if job.nodes & nodes])
            if len(self._after) >= _MOST_BOOKS:
                del self._after[next(iter(self._after))]
            self._after[count, nodes] = found
        return found


def _keys(
    leaving: Sequence[Share | None], gone: Sequence[tuple[Job, PreemptMode]], shares: Mapping[int, Share]
) -> list[int]:
    """Return by what the moments are known at which none, one, two, ... of the jobs that leave are gone.

    :param leaving: what they hold.
    :param gone: those that have made way, of which some keep what they hold, or all but cores.
    :param shares: what each active job holds, by its identity.
    """
    rest = sum([share.number for share in shares.values()])
    for job, mode in gone:
        share = shares.get(id(job))
        if share is not None and mode is not PreemptMode.OFF:
            rest += 2 * share.number if mode is PreemptMode.SUSPEND else -share.number
    last = [0 if share is None else share.number for share in leaving]
    return [*itertools.accumulate(reversed(last), initial=rest - sum(last))][::-1]


def _endless(view: ClusterView) -> list[Release]:
    """Return the running jobs without a limit: they end last, and beyond any plan."""
    jobs = [job for job in view.active if job.end_at is None and job.allocation is not None]
    jobs.sort(key=lambda job: (job.started_at or 0.0, job.index))
    return [(math.inf, job.index, job) for job in jobs]

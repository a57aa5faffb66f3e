"""Find those in a deep queue that may be worth a try, without going through all of it.

Waiting entries are kept by shape: all that a glance of the selector (`Selector.screen`), and a reservation counted in
nodes, look at. One glance answers for all of a shape, so a pass costs what the shapes cost, however many wait. `Easy`
and `Greedy` say what they come to without this, and `tests/test_deep_queues.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import TypeVar

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Job, Partition, Seconds
from makeway_engine.entries import Entry
from makeway_engine.queue import Queue
from makeway_engine.schedulers.deep import DeepQueue

EquivalenceKey = Callable[[Job], Hashable]


@attrs.define(eq=False)
class Shape:
    """Entries of one shape, in the order of the queue; never empty while it is kept."""

    partition: Partition
    size: int
    """Nodes that each of the jobs wants."""
    alike: Hashable = None
    """What else they have in common (`EquivalenceKey`); None: nothing asks."""
    entries: list[Entry] = attrs.field(factory=list)
    by_limit: dict[Seconds, list[Entry]] = attrs.field(factory=dict)
    """The same, but for those without a time limit, by their time limits."""
    limits: list[Seconds] = attrs.field(factory=list)
    """These, ascending."""

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        bisect.insort(self.entries, entry)
        limit = entry[1].time_limit
        if limit is not None:
            if limit not in self.by_limit:
                self.by_limit[limit] = []
                bisect.insort(self.limits, limit)
            bisect.insort(self.by_limit[limit], entry)

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        _take_out(self.entries, entry)
        limit = entry[1].time_limit
        if limit is not None:
            _take_out(self.by_limit[limit], entry)
            if not self.by_limit[limit]:
                del self.by_limit[limit]
                del self.limits[bisect.bisect_left(self.limits, limit)]

    def lists(self, now: Seconds, by: Seconds | None) -> Iterator[list[Entry]]:
        """Yield the entries in lists, each in order.

        :param by: only of jobs that would be over by then, were they to start `now`; None: all.
        """
        if by is None:
            yield self.entries
            return
        for limit in self.limits:
            if now + limit > by:
                return
            yield self.by_limit[limit]


S = TypeVar("S", bound=Shape)


def _take_out(listed: list[Entry], entry: Entry) -> None:
    del listed[bisect.bisect_left(listed, entry)]


class Shapes(DeepQueue):
    """The eligible entries of a queue by shape."""

    def __init__(
        self,
        queue: Queue,
        equivalence_key: EquivalenceKey,
        by_themselves: Callable[[Job], bool] | None = None,
    ) -> None:
        """Be there for one run.

        :param by_themselves: which jobs a glance does not judge at present; to be told of changes by `waits`.
        """
        super().__init__(queue)
        self._by_themselves = by_themselves
        self.apart: list[Entry] = []
        """Those that a glance does not judge, in the order of the queue."""
        self._equivalence_key = equivalence_key
        self._entry_of: dict[int, tuple[Hashable, Entry]] = {}
        """By the place of a job in the job table, with the key of its shape."""
        self._kept: dict[Hashable, Shape] = {}

    def behind(self, entry: Entry | None) -> list[Shape]:
        """Return the shapes with any entry behind one in the queue; None: all."""
        kept = self._kept.values()
        if entry is None:
            return list(kept)
        if entry is self._queue.entries[0]:  # all others are behind it
            return [shape for shape in kept if shape.entries[-1] is not entry]
        return [shape for shape in kept if shape.entries[-1] > entry]

    def class_of(self, job: Job) -> Hashable | None:
        """Return what jobs of one shape have in common; None: the job is kept apart, or not at all."""
        known = self._entry_of.get(job.index)
        return None if known is None else known[0]

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before."""
        known = self._entry_of.get(job.index)
        if known is not None and self._by_themselves is not None:
            key, entry = known
            if (key is None) is not self._by_themselves(job):
                self.left(job)
                self.came(entry)

    # ------------------------------------------------------------------------------------ the index
    def _forget(self) -> None:
        self._kept.clear()
        self.apart.clear()
        self._entry_of.clear()

    def _keep(self, entry: Entry) -> None:
        _, job, partition = entry
        if self._by_themselves is not None and self._by_themselves(job):
            self._entry_of[job.index] = None, entry
            bisect.insort(self.apart, entry)
            return
        key = partition.index, job.size, job.required, self._equivalence_key(job)
        self._entry_of[job.index] = key, entry
        shape = self._kept.get(key)
        if shape is None:
            shape = self._kept[key] = self._new_shape(partition, job.size, key[-1])
        shape.add(entry)

    def _new_shape(self, partition: Partition, size: int, alike: Hashable) -> Shape:
        """Return a shape for jobs of such a key (`EquivalenceKey`)."""
        return Shape(partition, size, alike)

    def _drop(self, job: Job) -> None:
        known = self._entry_of.pop(job.index, None)
        if known is None:
            return
        key, entry = known
        if key is None:
            _take_out(self.apart, entry)
        else:
            shape = self._kept[key]
            shape.remove(entry)
            if not shape.entries:
                del self._kept[key]
                self._end_shape(shape)

    def _end_shape(self, shape: Shape) -> None:
        """Take note that no job of a shape is left."""


def glance(
    among: Callable[[Sequence[Job], NodeBits], Sequence[Job]], shapes: Collection[S], beside: NodeBits = 0
) -> Sequence[S]:
    """Return the shapes whose jobs might start now.

    :param among: as `makeway_engine.placing.glance.Glance.among`.
    :param beside: nodes that they may not have.
    """
    first = [entries[0][1] for shape in shapes if (entries := shape.entries)]
    kept = among(first, beside) if first else first
    if not kept:
        return ()
    several = shapes if len(first) == len(shapes) else [shape for shape in shapes if shape.entries]
    if len(kept) == len(first):
        return list(several)
    able = set(map(id, kept))
    return [shape for shape, job in zip(several, first, strict=True) if id(job) in able]


class Heads:
    """What is tried next: the first of each list, or the one behind the last that was tried of it."""

    def __init__(self, lists: Sequence[list[Entry]], after: Entry | None) -> None:
        """Begin behind an entry in the queue; None: at its head."""
        if after is None:
            heads = [(listed[0], listed) for listed in lists if listed]
        else:
            places = [(bisect.bisect_right(listed, after), listed) for listed in lists]
            heads = [(listed[at], listed) for at, listed in places if at < len(listed)]
        heapq.heapify(heads)
        self._heads = heads

    def next(self) -> tuple[Entry, list[Entry]] | None:
        """Return the first entry with its list; None: there is none."""
        return heapq.heappop(self._heads) if self._heads else None

    def go_on(self, listed: list[Entry], after: Entry) -> None:
        """Have the one that stands behind an entry in its list tried."""
        at = bisect.bisect_right(listed, after)
        if at < len(listed):
            heapq.heappush(self._heads, (listed[at], listed))

"""Keep waiting jobs by what bears on their turn: the limits that they fall under, and how their priorities grow.

Jobs that fall under the same limits and want as much of them are kin: all of them are beyond a limit, or none is. Jobs
of kin whose priorities grow alike make a stream: among themselves they stand as they were submitted, at any moment.
Kin that a limit has kept out lie in the bucket of its counter, which is open as long as there is room for them.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Hashable, Iterable, Iterator

import attrs

from makeway.model import ClusterView, Job, Seconds
from makeway_moab_qos.credentials import settings_of
from makeway_moab_qos.limits import REASON, Cell, InUse, amount_of, deferred_until, limits_of
from makeway_moab_qos.priority import Slope, slope_of

Entry = tuple[Seconds, int, Job]
"""The order within a stream: 1. longest in the queue, 2. job table."""


@attrs.define(eq=False)
class Bucket:
    """Kin that one limit has kept out, each of which wants as much of it."""

    cell: Cell | None
    """Its counter; None: they have not been kept out."""
    most: int
    """How much may be in use for them to be let in."""
    firsts: dict[Hashable, list[Entry]] = attrs.field(factory=dict)
    """Slope -> the first job of each of their streams, in order."""

    @property
    def open(self) -> bool:
        """Whether this limit would let them in."""
        return self.cell is None or self.cell.used <= self.most


@attrs.define(eq=False)
class Kin:
    """Jobs that fall under the same limits and want as much of each."""

    key: Hashable
    limits: tuple[tuple[Cell, int, int, int], ...]
    """Counter, what a job adds, the most of a soft limit, and the most with which jobs are let in. Those who are
    deferred are let in by all limits: that keeps them out."""
    bucket: Bucket
    streams: dict[Stream, None] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Stream:
    """Jobs of kin that stand among themselves as they were submitted."""

    key: Hashable
    kin: Kin
    slope: Slope
    told: list[Entry] = attrs.field(factory=list)
    """Those who have heard that they are beyond a limit."""
    fresh: list[Entry] = attrs.field(factory=list)
    """All others: if they are beyond one, they are to hear of it."""
    opened: int = 0
    """The pass in which those of `told` had their turn last."""
    told_ticket: int = 0
    fresh_ticket: int = 0
    """Of the place in the queue of a pass that counts."""

    @property
    def first(self) -> Entry | None:
        """The job that stands first."""
        if not self.told:
            return self.fresh[0] if self.fresh else None
        return min(self.told[0], self.fresh[0]) if self.fresh else self.told[0]


@attrs.define(eq=False)
class Known:
    """A job that waits."""

    stream: Stream
    entry: Entry
    born: int
    """The last pass that had begun when it came; it has its turn from the next one on."""
    fresh: bool


class Streams:
    """All waiting jobs of a run."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._settings = settings_of(view)
        self._use = view.book(InUse)
        self.known: dict[int, Known] = {}
        """By place in the job table."""
        self.untold: dict[Stream, None] = {}
        """Streams with any job in `Stream.fresh`."""
        self.open: dict[Bucket, None] = {}
        """Buckets that were open when they were last looked at."""
        self.firsts: dict[Hashable, list[Entry]] = {}
        """Slope -> the first job of each stream, in order."""
        self._kin: dict[Hashable, Kin] = {}
        self._streams: dict[Hashable, Stream] = {}
        self._buckets: dict[Cell, dict[int, Bucket]] = {}
        """By counter, and how much may be in use of it."""
        self._no_limit = Bucket(None, 0)

    def forget(self) -> None:
        """Forget all jobs."""
        for table in (
            self.known,
            self.untold,
            self.open,
            self.firsts,
            self._kin,
            self._streams,
            self._buckets,
        ):
            table.clear()
        self._no_limit = Bucket(None, 0)

    # ------------------------------------------------------------------------- coming and going
    def add(self, job: Job, born: int) -> None:
        """Let a job wait."""
        stream = self._stream_of(job)
        entry, before = (job.submit_at, job.index, job), stream.first
        fresh = job.reason != REASON
        self.known[job.index] = Known(stream, entry, born, fresh)
        _insert(stream.fresh if fresh else stream.told, entry)
        if fresh:
            self.untold[stream] = None
        if before is None or entry < before:
            self._moved(stream, before, entry)

    def remove(self, job: Job) -> None:
        """Take it out."""
        known = self.known.pop(job.index)
        stream, entry = known.stream, known.entry
        before = stream.first
        _take_out(stream.fresh if known.fresh else stream.told, entry)
        if not stream.fresh:
            self.untold.pop(stream, None)
        if before is entry:
            self._moved(stream, entry, stream.first)

    def hears(self, job: Job) -> None:
        """Note whether it has heard that it is beyond a limit."""
        known = self.known[job.index]
        fresh = job.reason != REASON
        if fresh == known.fresh:
            return
        known.fresh = fresh
        stream, entry = known.stream, known.entry
        _take_out(stream.told if fresh else stream.fresh, entry)
        _insert(stream.fresh if fresh else stream.told, entry)
        if stream.fresh:
            self.untold[stream] = None
        else:
            self.untold.pop(stream, None)

    def _moved(self, stream: Stream, before: Entry | None, first: Entry | None) -> None:
        """Know another job as the first of a stream; None: there was none, or is none."""
        self._change(self.firsts, stream, before, first)
        bucket = stream.kin.bucket
        self._change(bucket.firsts, stream, before, first)
        if before is None:
            self._open_or_not(bucket)
        elif first is None:
            self._drop(stream)

    @staticmethod
    def _change(
        firsts: dict[Hashable, list[Entry]], stream: Stream, before: Entry | None, first: Entry | None
    ) -> None:
        key = stream.slope.key
        listed = firsts.get(key)
        if listed is None:
            listed = firsts[key] = []
        if before is not None:
            _take_out(listed, before)
        if first is not None:
            _insert(listed, first)
        elif not listed:
            del firsts[key]

    def _drop(self, stream: Stream) -> None:
        kin = stream.kin
        del self._streams[stream.key]
        del kin.streams[stream]
        if not kin.streams:
            del self._kin[kin.key]
        self._clear(kin.bucket)

    def _clear(self, bucket: Bucket) -> None:
        """Drop an empty bucket."""
        if bucket.firsts:
            return
        self.open.pop(bucket, None)
        if bucket.cell is not None:
            buckets = self._buckets[bucket.cell]
            del buckets[bucket.most]
            if not buckets:
                del self._buckets[bucket.cell]

    # ------------------------------------------------------------------------------- limits
    def keeps_out(self, kin: Kin) -> bool:
        """Whether kin are beyond a limit; they lie in the bucket of the first one from now on."""
        for cell, amount, _, most in kin.limits:
            if cell.used + amount > most:
                bucket = kin.bucket
                if bucket.cell is not cell or bucket.most != most - amount:
                    self._put(kin, self._bucket(cell, most - amount))
                return True
        return False

    def _bucket(self, cell: Cell, most: int) -> Bucket:
        buckets = self._buckets.setdefault(cell, {})
        found = buckets.get(most)
        if found is None:
            found = buckets[most] = Bucket(cell, most)
        return found

    def _put(self, kin: Kin, bucket: Bucket) -> None:
        before, kin.bucket = kin.bucket, bucket
        for stream in kin.streams:
            first = stream.first
            self._change(before.firsts, stream, first, None)
            self._change(bucket.firsts, stream, None, first)
        self._clear(before)
        self._open_or_not(bucket)

    def _open_or_not(self, bucket: Bucket) -> None:
        if bucket.open:
            self.open[bucket] = None
        else:
            self.open.pop(bucket, None)

    def look_again(self) -> list[Bucket]:
        """Look which buckets are open by now; return those whose counters have changed."""
        changed, self._use.changed = self._use.changed, {}
        found = [bucket for cell in changed for bucket in self._buckets.get(cell, _NONE).values()]
        for bucket in found:
            self._open_or_not(bucket)
        return [bucket for bucket in found if bucket.open]

    def is_late(self, kin: Kin) -> bool:
        """Whether kin were beyond a soft limit when `InUse.before` was last emptied."""
        before = self._use.before
        return any(before.get(cell, cell.used) + amount > soft for cell, amount, soft, _ in kin.limits)

    # ------------------------------------------------------------------------------ streams
    def all(self) -> Iterable[Stream]:
        """Return all streams."""
        return self._streams.values()

    def of(self, bucket: Bucket) -> Iterator[Stream]:
        """Yield the streams in a bucket."""
        for listed in bucket.firsts.values():
            for _, index, _ in listed:
                yield self.known[index].stream

    def _stream_of(self, job: Job) -> Stream:
        kin = self._kin_of(job)
        slope = slope_of(job, self._view, self._settings)
        key = kin.key, slope.key
        found = self._streams.get(key)
        if found is None:
            found = self._streams[key] = Stream(key, kin, slope)
            kin.streams[found] = None
        return found

    def _kin_of(self, job: Job) -> Kin:
        deferred = deferred_until(job, self._view) is not None
        key = self._use.wants_of(job, self._view), deferred
        found = self._kin.get(key)
        if found is None:
            strict = not self._settings.backfills
            limits = tuple(
                (
                    self._use.cell(limit.kind, *limit.group, limit.user),
                    amount_of(job, limit.kind),
                    limit.soft,
                    sys.maxsize if deferred else min(limit.soft, limit.hard) if strict else limit.hard,
                )
                for limit in limits_of(job, self._view)
            )
            found = self._kin[key] = Kin(key, limits, self._no_limit)
        return found


_NONE: dict[int, Bucket] = {}


def _insert(listed: list[Entry], entry: Entry) -> None:
    if not listed or listed[-1] < entry:
        listed.append(entry)
    else:
        bisect.insort(listed, entry)


def _take_out(listed: list[Entry], entry: Entry) -> None:
    del listed[0 if listed[0] is entry else bisect.bisect_left(listed, entry)]

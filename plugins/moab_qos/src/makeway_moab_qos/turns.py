"""Name who is tried next, instead of ordering the whole queue for each pass (`makeway.model.Turns`).

`makeway_moab_qos.streams` keeps the queue so that only the first of those whose priorities grow alike has to be
compared, and none that a limit is known to keep out. What comes out is what `makeway_moab_qos.order.in_order` and
`makeway_moab_qos.limits.admit` come to for all; `tests/test_turns.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Hashable, Iterator

from makeway.clockwork import Clockwork
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_moab_qos.credentials import settings_of
from makeway_moab_qos.limits import InUse
from makeway_moab_qos.plain import comes_off_no_better, never_displaces, suspended
from makeway_moab_qos.priority import grows_with_time
from makeway_moab_qos.streams import Bucket, Entry, Known, Stream, Streams

_PENDING = JobState.PENDING
_Place = tuple[bool, int, Seconds, int]
"""The order of the queue: 1. beyond a soft limit last, 2. priority, 3. longest in the queue, 4. job table."""
_Group = tuple[Bucket, Hashable]
"""The streams of one slope in a bucket: those of `told` whose first has not had its turn yet."""
_Turn = tuple[_Place, int, Entry, Stream | None, _Group | None, int]
"""A place in the queue of a pass: of the next in a stream (with the ticket of the place), or the first in a group."""


class Turns:
    """The queue of one run. See `makeway.model.Turns`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._memo = settings_of(view).memo
        self._use = view.book(InUse)
        self._streams = Streams(view)
        self._heap: list[_Turn] = []
        self._count = 0
        """How often anything was put there: no two are the same."""
        self._pass = 0
        self._at: Seconds = -1.0
        """When the last pass began."""
        self._named: tuple[_Place, Stream, Entry, bool] | None = None
        """Who is being tried; whether it was of `Stream.fresh`."""
        self._every_job = False
        """Whether no job is passed over in this pass."""
        self._kept_out = False
        """Whether the one being tried would have been."""
        self._alone = False
        """Whether no other job waited when the last pass began."""
        self._gone = 0
        """How many active jobs had left by then."""
        self._gone_by = 0
        """How many had when it was last looked which jobs there is room for."""
        self.passing = False
        """Whether a pass is underway in which jobs are named here."""
        self.current = False
        """Whether all who wait are known as they are: until marks have been given after such a pass."""
        self.tried: list[Job] = []
        """Those who were named in this pass, in that order."""
        self.askers: dict[str, Job] = {}
        """Waiting jobs for which others have made way, perhaps long ago."""
        self._ahead: Hashable = None
        """Slope of the job that stood before the one that was started last."""

    # ------------------------------------------------------------------------------ notices
    def forget(self) -> None:
        """No job waits; those that do come again."""
        self._streams.forget()
        self._heap.clear()
        self.askers = {job.id: job for job in self._view.pending if job.asked_nodes}

    def came(self, job: Job) -> None:
        """Let a job wait."""
        self._streams.add(job, self._pass)
        if job.asked_nodes:
            self.askers[job.id] = job

    def left(self, job: Job) -> None:
        """Take it out."""
        self._streams.remove(job)

    def waits(self, job: Job) -> None:
        """Know who has heard of a limit."""
        self._streams.hears(job)

    # -------------------------------------------------------------------------------- a pass
    def begin(self, *, alone: bool, every_job: bool) -> bool:
        """Begin a pass with the first of each slope; if all are to be named, with that of each stream."""
        self._memo["order"] = (None, ())
        self._at, self._pass = self._view.now, self._pass + 1
        self._named, self._alone, self._gone = None, alone, self._use.gone
        self.passing = self.current = True
        self._every_job = every_job
        self.tried = []
        if self.askers:
            self.askers = {each.id: each for each in self.askers.values() if _asks(each)}
        self._heap.clear()
        self._gone_by = self._gone
        self._use.before.clear()
        self._streams.look_again()
        for stream in self._streams.all() if every_job else ():
            if stream.told:
                self._let_told(stream, stream.told[0])
        for bucket in () if every_job else self._streams.open:
            for key, firsts in bucket.firsts.items():
                self._let_first(firsts[0], (bucket, key))
        for stream in self._streams.untold:
            self._let_fresh(stream, stream.fresh[0])
        return True

    def next(self) -> Job | None:
        """Name what comes first of those that are not known to wait for a limit."""
        if self._named is not None:
            self._go_on(*self._named)
        heap, known_by = self._heap, self._streams.known
        while heap:
            place, _, entry, stream, group, ticket = heapq.heappop(heap)
            if stream is None:
                assert group is not None
                self._open_first(group, entry)
                continue
            fresh = ticket > 0
            if ticket != (stream.fresh_ticket if fresh else -stream.told_ticket):
                continue
            known = known_by.get(entry[1])
            if not self._is_there(known, entry, fresh):
                self._follow(stream, entry, fresh=fresh)
                continue
            self._kept_out = not fresh and self._streams.keeps_out(stream.kin)
            if self._kept_out and not self._every_job:
                continue
            self._named = place, stream, entry, fresh
            self.tried.append(entry[2])
            return entry[2]
        self.passing = False
        return None

    def _is_there(self, known: Known | None, entry: Entry, fresh: bool) -> bool:
        """Whether a job whose turn has come still waits as it did."""
        return (
            known is not None and known.entry is entry and known.fresh is fresh and known.born != self._pass
        )

    def _go_on(self, place: _Place, stream: Stream, entry: Entry, fresh: bool) -> None:
        """A job was tried: go on with what comes behind it, and those for which there is room by now."""
        self._named = None
        job = entry[2]
        if job.asked_nodes:
            self.askers[job.id] = job
        self._follow(stream, entry, fresh=fresh)
        if self._use.gone != self._gone_by and not self._every_job:
            self._gone_by = self._use.gone
            for bucket in self._streams.look_again():
                for each in list(self._streams.of(bucket)):
                    self._join(each, place)

    # ----------------------------------------------------------------------------- places
    def _place(self, stream: Stream, job: Job) -> _Place:
        late = self._streams.is_late(stream.kin)
        return late, -stream.slope.at(job, self._view, self._at), job.submit_at, job.index

    def _let_told(self, stream: Stream, entry: Entry) -> None:
        stream.told_ticket = self._count = self._count + 1
        turn = self._place(stream, entry[2]), self._count, entry, stream, None, -self._count
        heapq.heappush(self._heap, turn)

    def _let_fresh(self, stream: Stream, entry: Entry) -> None:
        stream.fresh_ticket = self._count = self._count + 1
        turn = self._place(stream, entry[2]), self._count, entry, stream, None, self._count
        heapq.heappush(self._heap, turn)

    def _let_first(self, entry: Entry, group: _Group) -> None:
        """Put the first of a group where it stands at the earliest."""
        job = entry[2]
        slope = self._streams.known[entry[1]].stream.slope
        self._count += 1
        place = False, -slope.at(job, self._view, self._at), job.submit_at, job.index
        heapq.heappush(self._heap, (place, self._count, entry, None, group, 0))

    def _follow(self, stream: Stream, entry: Entry, *, fresh: bool) -> None:
        """Let what comes after `entry` in its stream have a turn."""
        listed = stream.fresh if fresh else stream.told
        at = bisect.bisect_right(listed, entry)
        if at < len(listed):
            (self._let_fresh if fresh else self._let_told)(stream, listed[at])

    def _open_first(self, group: _Group, entry: Entry) -> None:
        """Let the first stream of a group have its turn, and the next one be the first."""
        bucket, key = group
        if not bucket.open:
            return  # no job in it is let in
        firsts = bucket.firsts.get(key, _NO_ENTRIES)
        at = bisect.bisect_left(firsts, entry)
        if at < len(firsts) and firsts[at] is entry:
            stream = self._streams.known[entry[1]].stream
            if stream.opened != self._pass:
                stream.opened = self._pass
                if stream.told:
                    self._let_told(stream, stream.told[0])
            at += 1
        if at < len(firsts):
            self._let_first(firsts[at], group)

    def _join(self, stream: Stream, after: _Place) -> None:
        """Let those of a stream who stand behind a place in the queue have a turn in this pass."""
        stream.opened = self._pass
        low, high = 0, len(stream.told)
        while low < high:
            middle = (low + high) // 2
            if self._place(stream, stream.told[middle][2]) > after:
                high = middle
            else:
                low = middle + 1
        if low < len(stream.told):
            self._let_told(stream, stream.told[low])

    def waits_as_before(self, job: Job) -> bool:
        """Whether a limit keeps out the job that was just named, which has heard of one."""
        return self._kept_out and self._named is not None and self._named[2][2] is job

    def kind(self, job: Job) -> Hashable | None:
        """Return a kind for one that comes off no better than those of its request that were tried before it."""
        if self._named is None or self._named[2][2] is not job or job.asked_nodes or self.askers:
            return None
        if self._streams.keeps_out(self._named[1].kin) or self._named[0][0]:
            return None
        if never_displaces(job, self._view) and not suspended(self._view):
            return True
        return (self._pass, job.time_limit) if comes_off_no_better(job, self._view) else None

    # ------------------------------------------------------------------------------- asking
    def ahead_of(self, job: Job) -> Iterator[Job] | None:
        """Return who was tried before `job` in this pass and waits; None: it is not being tried in one."""
        if not self.passing or self._named is None or self._named[2][2] is not job:
            return None
        return (other for other in self.tried if other is not job and other.state is _PENDING)

    def preceded(self, job: Job, rank_of: Callable[[], tuple[int, Seconds, int]]) -> bool | None:
        """Whether any waiting job ranks before one that has just been started; None: that is not known.

        :param rank_of: returns the rank of the job; called if any job waits.
        """
        if not self.current or job.started_at != self._view.now:
            return None
        firsts = self._streams.firsts
        if not firsts:
            return False if self._alone and self._gone == self._use.gone else None
        rank = rank_of()
        if self._ahead in firsts and self._rank_of(firsts[self._ahead][0]) < rank:
            return True
        for key, listed in firsts.items():
            if self._rank_of(listed[0]) < rank:
                self._ahead = key
                return True
        return False if self._alone and self._gone == self._use.gone else None

    def _rank_of(self, entry: Entry) -> tuple[int, Seconds, int]:
        slope = self._streams.known[entry[1]].stream.slope
        return -slope.at(entry[2], self._view, self._view.now), entry[0], entry[1]

    def ordered(self, now: Seconds) -> list[str] | None:
        """Return the jobs in the order that they had in the last pass of this instant; None: there was none."""
        if self._at != now:
            return None
        places = [
            (self._place(known.stream, known.entry[2]), known.entry[2].id)
            for known in self._streams.known.values()
            if known.born != self._pass or known.entry[2] in self.tried
        ]
        return [job_id for _, job_id in sorted(places)]


_NO_ENTRIES: list[Entry] = []


def _asks(job: Job) -> bool:
    return bool(job.asked_nodes) and job.state is _PENDING


def turns(view: ClusterView) -> Turns | None:
    """Return what names jobs one by one; None: more counts than priorities that grow and limits."""
    settings = settings_of(view)
    if settings.maui and view.settings(Clockwork).sched_interval:
        return None  # what a job has waited counts from the pass before
    sorted_otherwise = settings.optimistic and settings.bf_priority_policy in ("DURATION", "HWDURATION")
    if sorted_otherwise or settings.backfill_policy in ("BESTFIT", "GREEDY") or settings.backfill_depth:
        return None  # places are counted, or backfill has an order of its own
    if settings.reject_negative_priority or not grows_with_time(settings):
        return None
    found = settings.memo["turns"] = Turns(view)
    return found

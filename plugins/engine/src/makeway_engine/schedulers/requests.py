"""Spare trying those in a deep queue who ask for the same as somebody who has just been tried in vain.

Entries are kept by request: the partition, what the job asks for, and the reason why it waits. Where all policies that
decide about a try answer by the request (`makeway.model.Limits`), and nothing changed meanwhile, the next job
of the same request would wait for the same reason as the last. `Greedy` says what a pass comes to without this, and
`tests/test_deep_requests.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.model import Job, JobSpec, Partition, Standing
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger
from makeway_engine.queue import Queue
from makeway_engine.schedulers.shapes import Shape, Shapes

_NOT_ASKED = frozenset(
    (
        *("id", "name", "submit_at", "begin_at", "withdrawn_at", "run_time", "wall_submit", "source"),
        *("array_task", "command", "priority", "nice"),
    )
)
ASKED = tuple(field.name for field in attrs.fields(JobSpec) if field.name not in _NOT_ASKED)


_MAPPED = tuple(
    name
    for name in ASKED
    if "Mapping[" in str(getattr(attrs.fields(JobSpec), name).type)  # resolved or not
)
_PLAIN = operator.attrgetter(*(name for name in ASKED if name not in _MAPPED))
_TABLES = operator.attrgetter(*_MAPPED)


class Requests(Shapes):
    """The eligible entries of a queue by request."""

    def __init__(
        self,
        queue: Queue,
        by_request: Callable[[Job], bool],
        on_hold: Mapping[str, str],
        in_vain: Callable[[Job], str | Standing | None],
        turned: Callable[[], Iterable[Standing] | None] = lambda: None,
        idle: Callable[[Job], Standing | None] | None = None,
    ) -> None:
        """Be there for one run.

        :param by_request: whether policies answer about a job by its request.
        :param on_hold: jobs that wait for good, for reasons of their own.
        :param in_vain: says why a job would wait if it were tried, or None where that is not known beforehand.
        :param turned: says which of its reasons no longer stand, or stand again; None: none of them does.
        :param idle: says for how long a job would wait, whatever the reason; None: nobody does.
        """
        super().__init__(queue, self._request)
        self._by_themselves = self._stands_alone
        self._by_request = by_request
        self._on_hold = on_hold
        self._in_vain = in_vain
        self._turned = turned
        self._idle = idle
        self._unheard = False
        """Whether reasons are worked out in the end only, where `idle` says for how long a job waits."""
        self._awake: dict[Hashable, Shape] = {}
        """Those of whom somebody is to be asked, by request; beside those of `_fallen`."""
        self._reasons: dict[Hashable, Standing] = {}
        """Request -> the reason that was last given for all of it, where it stands for longer than a moment."""
        self._by_reason: dict[Standing, dict[Hashable, None]] = {}
        """The same, the other way round."""
        self._fallen: dict[Standing, None] = {}
        """Reasons that no longer stand, of those requests of whom somebody is to be asked again."""
        self._firsts: dict[Standing, list[_First]] = {}
        """The first entries of the requests that share a reason, in a heap; some may be no longer."""
        self._pushed = 0
        """How many were put into any of them."""
        self._tried: set[Hashable] = set()
        """Requests of whom somebody was tried in vain, since `in_vain` had no reason to let them wait."""
        self._asked: dict[int, tuple[JobSpec, Hashable]] = {}
        """By the place of a job in the job table: what it was submitted with, and what it asks for by that."""
        self._numbers: dict[Hashable, int] = {}
        """All that a job asks for -> a number, which is looked up sooner."""

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before, or something of its own came in between."""
        known = self._entry_of.get(job.index)
        if known is not None:
            super().left(job)
            self.came(known[1])

    def left(self, job: Job) -> None:
        """The entries of a job were taken out, if it had any."""
        super().left(job)
        self._asked.pop(job.index, None)

    def _forget(self) -> None:
        super()._forget()
        self._asked.clear()
        self._numbers.clear()
        self._awake.clear()
        self._reasons.clear()
        self._by_reason.clear()
        self._fallen.clear()
        self._firsts.clear()
        self._tried.clear()

    def _keep(self, entry: Entry) -> None:
        super()._keep(entry)
        key = self._entry_of[entry[1].index][0]
        if key is None:
            return
        reason = self._reasons.get(key)
        if reason is None:
            self._awake[key] = self._kept[key]
        elif self._kept[key].entries[0] is entry:
            self._note_first(reason, key)

    def _drop(self, job: Job) -> None:
        known = self._entry_of.get(job.index)
        super()._drop(job)
        if known is not None and known[0] is not None and known[0] not in self._kept:
            self._awake.pop(known[0], None)
            self._doubt(known[0])

    def stands_alone(self, entry: Entry) -> bool:
        """Whether nobody asks for the same as far as is known: others say nothing about this one."""
        known = self._entry_of.get(entry[1].index)
        return known is None or known[0] is None

    def let_wait(self, job: Job, ledger: Ledger) -> bool:
        """Let a job that does not stand alone wait, if it is known why it would if it were tried; say whether it is."""
        said = self._why(job)
        if said is None:
            return False
        if type(said) is str:
            ledger.wait_for(job, said)
            return True
        assert isinstance(said, Standing)
        if self._unheard:
            if not self.stale:
                self._rest(job, said)
        elif self.stale:  # nobody is kept
            ledger.wait_for(job, said.reason)
        elif job.reason == said.reason:
            self._rest(job, said)
        elif self._queue.arrivals or not self._let_all_wait(job, said, ledger):
            ledger.wait_for(job, said.reason)
        return True

    def _why(self, job: Job) -> str | Standing | None:
        """Return why a job would wait if it were tried; None: that is not known, or not asked.

        Where `idle` has nothing to say, `in_vain` seldom has, and trying a job in vain comes to the same as waiting
        untried. So it is asked only about requests of whom somebody was tried in vain, until it knows of no reason;
        and about jobs that are not kept here.
        """
        if not self._unheard or self._idle is None:
            return self.in_vain(job)
        idle = self._idle(job)
        if idle is not None:
            return idle
        known = self._entry_of.get(job.index)
        if known is None or self.stale:
            return self.in_vain(job)
        if known[0] not in self._tried:
            return None
        said = self.in_vain(job)
        if said is None:
            self._tried.discard(known[0])
        return said

    def _let_all_wait(self, job: Job, said: Standing, ledger: Ledger) -> bool:
        """Let those who ask for the same as a job, and do not stand before it, wait for the same reason as it does.

        In turn, each of them would be told so as long as the reason stands, and asked anew after that.
        """
        known = self._entry_of.get(job.index)
        if known is None or known[0] is None:
            return False
        key, first = known
        shape = self._kept[key]
        listed = shape.entries
        at = bisect.bisect_left(listed, first)
        moving = listed[at:]
        reason = said.reason
        ledger.let_all_wait([entry[1] for entry in moving], reason, self)
        other = (*key[:-1], (reason, *key[-1][1:]))  # type: ignore[index]
        for entry in moving:
            self._entry_of[entry[1].index] = other, entry
        known_shape = self._kept.get(other)
        if not at:
            del self._kept[key]
            self._awake.pop(key, None)
            self._doubt(key)
        else:
            del listed[at:]
        if known_shape is not None:
            known_shape.entries += moving
            known_shape.entries.sort()
        elif not at:
            self._kept[other] = shape
        else:
            known_shape = self._kept[other] = self._new_shape(shape.partition, shape.size, other[-1])
            known_shape.entries += moving
        self._awake[other] = self._kept[other]
        self._rest(job, said)
        return True

    # ------------------------------------------------------------------------ where nobody hears
    def leave_unheard(self) -> None:
        """Leave it open from now on why jobs wait, as long as they are known to wait."""
        self._unheard = self._idle is not None
        self.stale = True

    @property
    def unheard(self) -> bool:
        """Whether it is left open why jobs wait."""
        return self._unheard

    def let_others_wait(self, entry: Entry, listed: Sequence[Entry], ledger: Ledger) -> None:
        """Let those behind an entry that was tried in vain wait for the same reason: they ask for the same."""
        known = self._entry_of.get(entry[1].index)
        if known is not None:
            self._tried.add(known[0])
        reason = entry[1].reason
        behind = listed[bisect.bisect_right(listed, entry) :]
        others = [each[1] for each in behind if each[1].reason != reason]
        if others:
            ledger.let_all_wait(others, reason, self)

    def be_heard(self, ledger: Ledger) -> None:
        """Say why jobs wait. Nothing has changed since all were asked, or would have been: nobody is tried again."""
        if not self._unheard:
            return
        self._unheard, self.stale = False, True
        entries, arrivals = self._queue.entries, self._queue.arrivals
        for entry in entries:
            job = entry[1]
            if entry in arrivals or not self.is_alike(job):
                continue
            said = self.in_vain(job)
            if said is not None:
                ledger.wait_for(job, said if isinstance(said, str) else said.reason)

    def _new_shape(self, partition: Partition, size: int, alike: Hashable) -> Shape:
        del alike
        return _Alike(partition, size)

    def _rest(self, job: Job, reason: Standing) -> None:
        """Ask nobody of the request of a job for as long as a reason stands: it stands for all of them."""
        known = self._entry_of.get(job.index)
        if known is None or known[0] is None:
            return
        key = known[0]
        if key in self._awake or self._reasons.get(key) in self._fallen:
            self._doubt(key)
            self._awake.pop(key, None)
            self._reasons[key] = reason
            self._by_reason.setdefault(reason, {})[key] = None
            self._note_first(reason, key)

    def _note_first(self, reason: Standing, key: Hashable) -> None:
        """Put the first entry of a request among those of its reason, if anybody looked at these."""
        heap = self._firsts.get(reason)
        if heap is not None:
            self._pushed += 1
            heapq.heappush(heap, (self._kept[key].entries[0], self._pushed, key))

    def _first_of(self, reason: Standing) -> tuple[Entry, list[Entry]]:
        """Return the first entry of all requests that share a reason, and those of its request."""
        sharing, kept, heap = self._by_reason[reason], self._kept, self._firsts.get(reason)
        if heap is None or len(heap) > 2 * len(sharing) + _SPARE:
            heap = self._firsts[reason] = [
                (kept[key].entries[0], at - len(sharing), key) for at, key in enumerate(sharing)
            ]
            heapq.heapify(heap)
        while True:
            entry, number, key = heap[0]
            if key not in sharing:
                heapq.heappop(heap)
                continue
            entries = kept[key].entries
            if entries[0] is entry:
                return entry, entries
            heapq.heapreplace(heap, (entries[0], number, key))

    def _doubt(self, key: Hashable) -> None:
        """Forget the reason that was last given for a request."""
        before = self._reasons.pop(key, None)
        if before is not None:
            sharing = self._by_reason[before]
            del sharing[key]
            if not sharing:
                del self._by_reason[before]
                self._fallen.pop(before, None)
                self._firsts.pop(before, None)

    def is_alike(self, job: Job) -> bool:
        """Whether a job does not stand alone, and is tried in one partition; whether or not it is kept here."""
        return len(job.partitions) == 1 and job.spec.het_id is None and not self._stands_alone(job)

    def in_vain(self, job: Job) -> str | Standing | None:
        """Return why a job that does not stand alone would wait if it were tried; None: that is not known."""
        return self._in_vain(job)

    def _stands_alone(self, job: Job) -> bool:
        """Whether more than its request counts: it ran before, or had others make way."""
        ran = job.starts or job.restarts or job.preemptions
        return bool(ran or job.asked_at is not None or job.id in self._on_hold or not self._by_request(job))

    def _request(self, job: Job) -> Hashable:
        """Return all that a job asks for, and why it waits unless that is left open."""
        known = self._asked.get(job.index)
        if known is None or known[0] is not job.spec:
            asked = (
                *_PLAIN(job.spec),
                *[repr(sorted(each.items())) if each else "" for each in _TABLES(job.spec)],
            )
            known = self._asked[job.index] = job.spec, asked
        asked = (
            job.time_limit,
            id(job.qos),
            job.account,
            job.required,
            job.excluded,
            job.marks,
            known[1],
        )
        reason = "" if self._unheard else job.reason
        return reason, self._numbers.setdefault(asked, len(self._numbers))

    def lists(self) -> list[list[Entry]]:
        """Return those who stand alone, and all entries of each request of which somebody is to be asked."""
        found = self._lists_awake()
        for reason in self._fallen:
            found += self._lists_of(reason)
        return found

    def _lists_awake(self) -> list[list[Entry]]:
        """Return those lists beside those whose reason no longer stands."""
        if self._reasons:
            self._look_at_reasons()
        return [self.apart, *[shape.entries for shape in self._awake.values()]]

    def _lists_of(self, reason: Standing) -> list[list[Entry]]:
        """Return the entries of each request that shares a reason."""
        kept = self._kept
        return [kept[key].entries for key in self._by_reason.get(reason, ())]

    def heads(self, after: Entry | None) -> Heads:
        """Return who is tried next, of those behind an entry in the queue; None: of all.

        Of requests that share a reason which no longer stands, the first one often takes all that has come free. So
        the others are not looked at before it was asked, where nobody hears why jobs wait.
        """
        if not self._unheard:
            return Heads(self.lists(), after)
        lists = self._lists_awake()
        if not self._fallen and len(lists) == 1 and not self.apart:
            return _NOBODY
        groups: list[_Group] = []
        for reason in self._fallen:
            entry, listed = self._first_of(reason)
            if after is None or entry > after:
                groups.append((entry, listed, functools.partial(self._lists_of, reason)))
            else:
                lists += self._lists_of(reason)
        return Heads(lists, after, groups)

    def _look_at_reasons(self) -> None:
        """Let those be asked again for whom no reason stands any more, and those rest for whom one does again."""
        turned = self._turned()
        if turned is None:
            self._reasons.clear()
            self._by_reason.clear()
            self._fallen.clear()
            self._firsts.clear()
            self._awake.update(self._kept)
            return
        for reason in turned:
            if reason.stands:
                self._fallen.pop(reason, None)
            elif reason in self._by_reason:
                self._fallen[reason] = None


class _Alike(Shape):
    """Entries of one request: their time limits are all the same."""

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        bisect.insort(self.entries, entry)

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        entries = self.entries
        del entries[0 if entries[0] is entry else bisect.bisect_left(entries, entry)]


def hashable(value: Any) -> Hashable:
    return repr(sorted(value.items())) if isinstance(value, Mapping) else value


class Heads:
    """Who is tried next: the first of each list, or whoever stands behind the last one that was tried of it."""

    def __init__(
        self, lists: Sequence[list[Entry]], after: Entry | None, groups: Sequence[_Group] = ()
    ) -> None:
        """Begin behind an entry in the queue; None: at its head.

        :param groups: lists of which one holds the first entry, which stands behind that one in the queue. The others
            are looked at once somebody asks who comes after it.
        """
        if after is None:
            heads = [(listed[0], listed) for listed in lists if listed]
        else:
            places = [(bisect.bisect_right(listed, after), listed) for listed in lists]
            heads = [(listed[at], listed) for at, listed in places if at < len(listed)]
        self._after = after
        self._groups = {id(listed): others for _, listed, others in groups}
        """By the list with the first entry: all of them."""
        heads += [(entry, listed) for entry, listed, _ in groups]
        heapq.heapify(heads)
        self._heads = heads
        self._last: list[Entry] | None = None
        """The list whose entry was returned last, if it is that of a group."""

    def next(self) -> tuple[Entry, list[Entry]] | None:
        """Return the first entry with its list; None: there is none."""
        if self._last is not None:
            self._look_at_others(self._last)
        if not self._heads:
            return None
        entry, listed = heapq.heappop(self._heads)
        if id(listed) in self._groups:
            self._last = listed
        return entry, listed

    def _look_at_others(self, first: list[Entry]) -> None:
        self._last = None
        for listed in self._groups.pop(id(first))():
            if listed is not first:
                self.go_on(listed, self._after)

    def go_on(self, listed: list[Entry], after: Entry | None) -> None:
        """Have whoever stands behind an entry in its list tried."""
        at = 0 if after is None else bisect.bisect_right(listed, after)
        if at < len(listed):
            heapq.heappush(self._heads, (listed[at], listed))


_NOBODY = Heads((), None)
"""Nobody is to be tried; shared, since nobody is ever put into it."""
_Group = tuple[Entry, list[Entry], Callable[[], list[list[Entry]]]]
"""The first entry of several lists, the list that it stands in, and what returns all of them."""
_First = tuple[Entry, int, Hashable]
"""The first entry of a request, a number that no other has, and the request."""
_SPARE = 16
"""So many more entries are kept in a heap than are needed before it is built anew."""


__all__ = ["ASKED", "Heads", "Requests", "hashable"]

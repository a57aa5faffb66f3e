"""Keep books as they would be without some jobs, for searches that take out much the same jobs one after the other.

A search may ask where a job fits once all suspended jobs have made way, then once others have as well. `Books.copy`
and `Books.take_out` come to the same, job by job; `tests/test_absent.py` holds one to the other. Only nodes are looked
at anew where anything changed: in the books, or in who is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from makeway.bitmap import CoreBits
from makeway.model import Allocation, ClusterView, Job, PreemptMode
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.request import MARK_OF

_MOST_GROUPS = 16
_MOST_SIZES = 3
_NEAR = 8
"""Books without so many more or fewer jobs are near enough to be changed rather than others kept beside them."""
_MOST_HISTORY = 4_000
_MOST_NAMED = 4


@attrs.frozen(eq=False)
class _Gone:
    """A job that is absent."""

    job: Job
    allocation: Allocation
    wholly: bool
    """Whether its memory is given back as well."""


class AbsentBooks:
    """Books without some jobs, kept in step with those of everybody."""

    def __init__(self, whole: Books) -> None:
        """Begin with nobody absent."""
        self._whole = whole
        self.books = twin = whole.copy()
        for index, part in whole.parts.items():
            twin.parts[index] = part.copy()
        twin._own_parts = set(twin.parts)
        self._seen = len(whole.history)
        self._era = whole.era
        self._wanted: Sequence[tuple[Job, bool]] = ()
        """Who was to be absent the last time."""
        self._gone: dict[str, _Gone] = {}
        self._on: dict[int, dict[str, _Gone]] = {}
        """By node."""

    @property
    def is_worn(self) -> bool:
        """Whether beginning anew is simpler than keeping in step; those of everybody are up to date."""
        return self._era != self._whole.era or len(self.books.history) > _MOST_HISTORY

    @property
    def absent(self) -> int:
        """How many are absent."""
        return len(self._gone)

    def without(self, jobs: Sequence[tuple[Job, bool]]) -> Books:
        """Return the books as they are without some jobs; those of everybody are up to date.

        :param jobs: active jobs, each with whether it gives back all that it holds, or its cores alone.
        """
        whole = self._whole
        stale = set(whole.history[self._seen :])
        self._seen = len(whole.history)
        wanted = self._wanted
        odd = len(wanted) != len(self._gone)  # somebody was named twice
        if odd or self._hold_otherwise(stale):
            self._let_go({job.id: (job, wholly) for job, wholly in jobs}, stale)
        elif jobs is not wanted:
            head, tail = _alike(wanted, jobs)
            others = {job.id: (job, wholly) for job, wholly in jobs[head : len(jobs) - tail]}
            for job, wholly in wanted[head : len(wanted) - tail]:
                now = others.get(job.id)
                if now is None or now[0] is not job or now[1] is not wholly:
                    self._take_back([job.id], stale)
            if others:
                self._add(others.values(), stale)
        self._wanted = jobs
        if stale:
            self._look_at(sorted(stale))
        return self.books

    def _hold_otherwise(self, nodes: Iterable[int]) -> bool:
        """Whether any who is absent from some nodes holds something else by now; on others nobody does."""
        on = self._on
        for index in nodes:
            for each in on.get(index, _NOBODY).values():
                if each.job.allocation is not each.allocation:
                    return True
        return False

    def _let_go(self, wanted: Mapping[str, tuple[Job, bool]], stale: set[int]) -> None:
        """Let others be absent; add the nodes to `stale` where that changes anything."""
        gone = self._gone
        left = [
            job_id
            for job_id, each in gone.items()
            if (now := wanted.get(job_id)) is None
            or now[0] is not each.job
            or now[0].allocation is not each.allocation
            or now[1] is not each.wholly
        ]
        self._take_back(left, stale)
        if len(gone) < len(wanted):
            self._add(wanted.values(), stale)

    def _take_back(self, ids: Iterable[str], stale: set[int]) -> None:
        for job_id in ids:
            each = self._gone.pop(job_id)
            for index in each.allocation.node_indices:
                del self._on[index][job_id]
            stale.update(each.allocation.node_indices)

    def _add(self, jobs: Iterable[tuple[Job, bool]], stale: set[int]) -> None:
        gone, on = self._gone, self._on
        for job, wholly in jobs:
            if job.id in gone:
                continue
            allocation = job.allocation
            assert allocation is not None
            gone[job.id] = each = _Gone(job, allocation, wholly)
            for index in allocation.node_indices:
                if index in on:
                    on[index][job.id] = each
                else:
                    on[index] = {job.id: each}
            stale.update(allocation.node_indices)

    def _look_at(self, nodes: Iterable[int]) -> None:
        """Let nodes be as they are in the books of everybody, less what absent jobs hold there."""
        whole, books = self._whole, self.books
        full, rowless, on = books.layout.full, whole._rowless, self._on
        busy, memory, marks, sharing = books.busy, books.memory, books.marks, books.sharing
        if len(books.parts) < len(whole.parts):
            for index in whole.parts.keys() - books.parts.keys():
                books.parts[index] = whole.parts[index].copy()  # nobody is in there who was absent before
                books._own_parts.add(index)
        pairs = []
        for number, part in whole.parts.items():
            mine = books.parts[number].rows[0]
            pairs.append((number, part.rows[0].cores, mine.cores, mine))
        overlaid, looked = whole._overlaid, []
        for node in nodes:
            looked.append(node)
            every = 0
            there = on.get(node)
            if not there and node not in overlaid:  # as everybody's, and nobody lies over others
                for _, cores_of, mine_of, mine in pairs:
                    cores, before = cores_of[node], mine_of[node]
                    if cores != before:
                        mine_of[node] = cores
                        mine.count += cores.bit_count() - before.bit_count()
                    every |= cores
                books._overlaid.discard(node)
                busy[node], marks[node] = every, whole.marks[node]
                sharing[node], memory[node] = whole.sharing[node], whole.memory[node]
                continue
            taken: dict[int, CoreBits] = {}
            mark = shares = held = 0
            for each in (there or _NOBODY).values():
                allocation = each.allocation
                at = allocation.node_indices.index(node)
                if each.job.id not in rowless:
                    cores = full[node] if allocation.cores is None else allocation.cores[at]
                    number = each.job.partition.index
                    taken[number] = taken.get(number, 0) | cores
                its_mark, its_share = MARK_OF[allocation.marks]
                mark += its_mark
                shares += its_share
                if each.wholly and allocation.memory_mb is not None:
                    held += allocation.memory_mb[at]
            twice = False
            for number, cores_of, mine_of, mine in pairs:
                cores, before = cores_of[node], mine_of[node]
                if cores:
                    if number in taken:
                        cores &= ~taken[number]
                    twice = twice or bool(every & cores)
                    every |= cores
                if cores != before:
                    mine_of[node] = cores
                    mine.count += cores.bit_count() - before.bit_count()
            busy[node] = every
            if node in overlaid and (twice or not taken):
                books._overlaid.add(node)
            else:
                books._overlaid.discard(node)
            marks[node] = max(0, whole.marks[node] - mark)
            sharing[node] = whole.sharing[node] - shares
            memory[node] = whole.memory[node] - held
        books._rowless = whole._rowless
        books.touched += looked
        books.sync()


_NOBODY: Mapping[str, _Gone] = {}


def _alike(one: Sequence[tuple[Job, bool]], other: Sequence[tuple[Job, bool]]) -> tuple[int, int]:
    """Return how many are the same at the head of two lists, and how many of the rest at their ends."""
    most = min(len(one), len(other))
    head = _same(most, lambda size: one[:size] == other[:size])
    ends = len(one), len(other)
    tail = _same(most - head, lambda size: one[ends[0] - size :] == other[ends[1] - size :])
    return head, tail


def _same(most: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number up to `most` for which something holds; it does for all that are smaller."""
    if holds(most):
        return most
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        if holds(middle):
            least = middle
        else:
            most = middle
    return least


class Absent:
    """Books without some jobs, by who asks."""

    def __init__(self, whole: Books, *, plain: bool) -> None:
        """Be there for one run.

        :param plain: whether each partition has one row, and marks leave with their jobs.
        """
        self._whole = whole
        self._plain = plain
        self._groups: dict[int, list[AbsentBooks]] = {}
        """By the partition for whose jobs others make way: those without few jobs, and without many."""
        self._named: tuple[tuple[Sequence[tuple[Job, PreemptMode]], Sequence[tuple[Job, bool]]], ...] = ()
        """Whom somebody named lately, and who is absent then."""

    def named(self, pairs: Sequence[tuple[Job, PreemptMode]]) -> Sequence[tuple[Job, bool]]:
        """Return who is absent once jobs have made way, each with whether it gives back all that it holds.

        :param pairs: the jobs, with how they make way; the same tuple names the same.
        """
        for before, absent in self._named:
            if before is pairs:
                return absent
        stops, off = PreemptMode.SUSPEND, PreemptMode.OFF
        if not [mode for _, mode in pairs if mode is not stops]:
            absent = [(job, False) for job, _ in pairs]
        else:
            absent = [(job, mode is not stops and mode.frees_all) for job, mode in pairs if mode is not off]
        if type(pairs) is tuple:
            self._named = ((pairs, absent), *self._named[: _MOST_NAMED - 1])
        return absent

    def applies(self, view: ClusterView) -> bool:
        """Whether rows, marks and memory are all that the books are about."""
        whole = self._whole
        return self._plain and not (
            view.heterogeneous or whole.gres or whole.slots or whole._stopped or whole._overflown
        )

    def without(self, preemptor: Job, jobs: Sequence[tuple[Job, bool]]) -> Books:
        """Return the books without some jobs, to be read until somebody asks again."""
        self._whole.sync()
        number = preemptor.partition.index
        kept = self._groups.get(number)
        if kept is None:
            if len(self._groups) >= _MOST_GROUPS:
                self._groups.clear()
            kept = self._groups[number] = []
        return self._nearest(kept, len(jobs)).without(jobs)

    def _nearest(self, kept: list[AbsentBooks], wanted: int) -> AbsentBooks:
        """Return the books without about so many jobs: a search asks about few and about many in turns."""
        best, least = -1, float("inf")
        for at, each in enumerate(kept):
            far = abs(each.absent - wanted)
            if far < least:
                best, least = at, far
        if best < 0 or (least > max(_NEAR, wanted // 4) and len(kept) < _MOST_SIZES):
            kept.append(AbsentBooks(self._whole))
            return kept[-1]
        if kept[best].is_worn:
            kept[best] = AbsentBooks(self._whole)
        return kept[best]


__all__ = ["Absent"]

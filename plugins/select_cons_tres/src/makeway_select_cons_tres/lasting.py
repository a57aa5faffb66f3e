"""Say that a forecast still holds although jobs have started and ended since.

The first job that waits is looked ahead for again and again, mostly with the same answer: who ended was to be over by
then anyway, and who started will be. So what the nodes have left by then is kept, and followed from notice to notice.
`makeway_select_cons_tres.ahead` works it out anew; `tests/test_lasting.py` holds one to the other.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Allocation, ClusterView, Forecast, Job, JobState, Seconds
from makeway_select_cons_tres.books import Books

_RUNNING = JobState.RUNNING
Release = tuple[Seconds, int, Job]
"""Deadline and index of a job, and the job (`ClusterView.releases`)."""


@attrs.define(eq=False)
class Lasting:
    """A forecast, for as long as it surely holds.

    It was made by letting jobs leave in the order of their deadlines, up to the first moment with enough for the job.
    Who starts or ends and has left by then leaves what there is at that moment as it was, and no moment before it
    offers more. Others change what there is. The forecast is dropped as soon as one of them comes to a node that
    serves, or leaves one that serves from then on. Where one node is wanted it is enough that the node found serves.
    """

    forecast: Forecast
    nodes: NodeBits
    """Those that could serve at all."""
    alone: bool
    """Whether one node is wanted: the first of those that serve."""
    gone: list[Release]
    """Who has left at that moment, in order."""
    last: tuple[Seconds, float]
    """Up to which deadline and index."""
    free: list[int]
    """Per node, how many cores are idle at that moment."""
    left: list[int]
    """Per node, how much memory there is."""
    cores: int
    """So many a node has at least if it serves."""
    memory: int
    """The same of memory."""

    def holds(self, view: ClusterView) -> bool:
        """Whether it is not too late, and nobody's deadline was moved without a notice."""
        last, gone, releases = self.last, self.gone, view.releases()
        if view.now > last[0]:
            return False
        count = len(gone)
        return releases[:count] == gone and (len(releases) == count or releases[count][:2] > last)

    def placed(self, job: Job, books: Books) -> bool:
        """Take note that a job has started; say whether the forecast still holds."""
        end_at, held = job.end_at, job.allocation
        if held is None or books.any_odd:
            return False
        if end_at is not None and (end_at, job.index) <= self.last:
            bisect.insort(self.gone, (end_at, job.index, job))
            return True
        if not held.nodes & self.nodes:
            return True
        free, left, cores, memory = self.free, self.left, self.cores, self.memory
        for index, had, took in _held_on_each(held, books):
            served = free[index] >= cores and left[index] >= memory
            free[index] -= had
            left[index] -= took
            if served and self.nodes >> index & 1:
                if not self.alone:
                    return False
                if self.forecast.nodes >> index & 1 and (free[index] < cores or left[index] < memory):
                    return False
        return True

    def released(self, job: Job, books: Books) -> bool:
        """Take note that a job is about to leave its nodes; say whether the forecast still holds."""
        end_at, held = job.end_at, job.allocation
        if held is None or books.any_odd or job.state is not _RUNNING:
            return False
        if end_at is not None and (end_at, job.index) <= self.last:
            gone = self.gone
            at = bisect.bisect_left(gone, (end_at, job.index))
            if end_at == self.last[0] or at == len(gone) or gone[at][2] is not job:
                return False
            del gone[at]
            return True
        if not held.nodes & self.nodes:
            return True
        free, left, cores, memory = self.free, self.left, self.cores, self.memory
        for index, had, took in _held_on_each(held, books):
            free[index] += had
            left[index] += took
            if free[index] >= cores and left[index] >= memory and self.nodes >> index & 1:
                return False
        return True


def _held_on_each(held: Allocation, books: Books) -> Iterator[tuple[int, int, int]]:
    """Yield each node of an allocation, with its cores and memory that are held."""
    cores, memory, sizes = held.cores, held.memory_mb, books.layout.core_count
    for place, index in enumerate(held.node_indices):
        yield (
            index,
            sizes[index] if cores is None else cores[place].bit_count(),
            memory[place] if memory is not None else 0,
        )


__all__ = ["Lasting", "Release"]

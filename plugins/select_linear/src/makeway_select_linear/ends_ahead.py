"""Know which nodes are idle once the first so many jobs have ended."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.levels import Levels
from makeway.model import ClusterView, Job, Seconds
from makeway_select_linear.books import Books
from makeway_slurm_rules.over_time import leaves_at

_AT_ONCE = 48
"""So many ends are looked at together: most jobs want no more than the first of them."""


def leaves(end: Seconds, view: ClusterView) -> Seconds:
    """Return when a job with a deadline leaves as an estimate has it."""
    return leaves_at(end, view.now, in_a_second=view.rule("linear_forecast_over_time_in_a_second"))


class EndsAhead:
    """Nodes idle after each end that is to come; worked out anew when jobs came, left, or end at another time.

    Only as many ends are looked at as are asked for.
    """

    def __init__(self) -> None:
        self._version = -1
        self._books: Books | None = None
        self._left = Levels()
        """Jobs that run on each node after the last end that was looked at."""
        self._releases: Sequence[tuple[Seconds, int, Job]] = ()
        self.idle: list[NodeBits] = []
        """By how many jobs have ended, as far as that was asked; nodes outside the cluster count as idle."""

    def of(self, books: Books, view: ClusterView) -> EndsAhead:
        """Return it as things stand."""
        releases: Sequence[tuple[Seconds, int, Job]] = view.releases()
        if self._version != books.version or self._releases is not releases:
            self._version, self._releases, self._books = books.version, releases, books
            self._left = books.running.copy()
            self.idle = [~self._left.over[0]]
        return self

    def jobs_to_end(self, nodes: NodeBits, wanted: int) -> int | None:
        """Return how many jobs have to end until so many of `nodes` are idle; None: all of them do not suffice."""
        low = 0
        while (self.idle[-1] & nodes).bit_count() < wanted:
            low = len(self.idle)
            if low > len(self._releases):
                return None
            self._look_on()
        high = len(self.idle) - 1
        while low < high:
            middle = (low + high) // 2
            if (self.idle[middle] & nodes).bit_count() < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _look_on(self) -> None:
        """Look at some more ends."""
        assert self._books is not None
        done, left = len(self.idle) - 1, self._left
        for _, _, job in self._releases[done : done + _AT_ONCE]:
            if self._books.counts_job(job):
                left.remove(job.nodes)
            self.idle.append(~left.over[0])

    def when(self, ended: int, view: ClusterView) -> Seconds:
        """Return when so many jobs have ended."""
        return leaves(self._releases[ended - 1][0], view) if ended else view.now

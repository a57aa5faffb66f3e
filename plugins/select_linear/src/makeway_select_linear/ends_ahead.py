"""Know which nodes are idle once the first so many jobs have ended."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, Seconds
from makeway_select_linear.books import Books


class EndsAhead:
    """Nodes idle after each end that is to come; worked out anew when jobs came, left, or end at another time."""

    def __init__(self) -> None:
        self._version = -1
        self._releases: list[tuple[Seconds, int, Job]] = []
        self.idle: list[NodeBits] = []
        """By how many jobs have ended; nodes outside the cluster count as idle."""

    def of(self, books: Books, view: ClusterView) -> EndsAhead:
        """Return it as things stand."""
        releases: Sequence[tuple[Seconds, int, Job]] = view.releases()
        if self._version != books.version or self._releases != releases:
            self._version, self._releases = books.version, list(releases)
            left = books.running.copy()
            self.idle = [~left.over[0]]
            for _, _, job in releases:
                if books.counts_job(job):
                    left.remove(job.nodes)
                self.idle.append(~left.over[0])
        return self

    def jobs_to_end(self, nodes: NodeBits, wanted: int) -> int | None:
        """Return how many jobs have to end until so many of `nodes` are idle; None: all of them do not suffice."""
        low, high = 0, len(self.idle) - 1
        if (self.idle[high] & nodes).bit_count() < wanted:
            return None
        while low < high:
            middle = (low + high) // 2
            if (self.idle[middle] & nodes).bit_count() < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def when(self, ended: int, now: Seconds) -> Seconds:
        """Return when so many jobs have ended; who overstays counts as about to end."""
        return max(self._releases[ended - 1][0], now) if ended else now

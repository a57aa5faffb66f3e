"""Keep the eligible entries of a deep queue by partition, and know who waits for another reason than most.

`Strict` closes a partition behind the first job that has to wait: those behind it need no look, unless their reason
is still another one. Its loop over all entries says what a pass comes to without this, and
`tests/test_deep_queues.py` holds one to the other.
"""

from __future__ import annotations

import bisect
from collections.abc import Container, Iterator

from makeway.engine.ledger import Ledger
from makeway.engine.queue import Entry, Queue
from makeway.model import Job

BEHIND = "Priority"
"""Why those wait that stand behind somebody who has to wait."""


class Lanes:
    """The eligible entries of a queue by partition, each lane in the order of the queue."""

    def __init__(self, queue: Queue, ledger: Ledger) -> None:
        self._queue = queue
        self._entry_of: dict[int, Entry] = {}
        """By the place of a job in the job table."""
        self._several = 0
        """How many entries are of jobs that are tried in several partitions, or together with others: not kept."""
        self._odd: dict[int, Entry] = {}
        """Of these, who waits for another reason."""
        self._stale = True
        self.lanes: dict[int, list[Entry]] = {}
        """By the index of the partition; none is empty."""
        queue.listener = self
        ledger.on_wait = self._waits

    many = 64
    """From so many entries on it is worth while to keep them by lane; down to half as many it goes on."""

    def complete(self) -> bool:
        """Whether all who are eligible are here, each in one lane; brings the lanes up to date."""
        if len(self._queue.entries) < (self.many if self._stale else self.many // 2):
            self._stale = True
            return False
        if self._stale:
            self._stale = False
            self.lanes.clear()
            self._entry_of.clear()
            self._odd.clear()
            self._several = 0
            for entry in self._queue.entries:
                self.came(entry)
        return not self._several

    def next(self, after: Entry | None, closed: Container[int]) -> Entry | None:
        """Return the first entry behind one in the queue whose partition is not closed; None: there is none."""
        found: Entry | None = None
        for index, listed in self.lanes.items():
            if index in closed:
                continue
            at = 0 if after is None else bisect.bisect_right(listed, after)
            if at < len(listed) and (found is None or listed[at] < found):
                found = listed[at]
        return found

    def odd(self, partition: int, after: Entry) -> Iterator[Entry]:
        """Yield who stands behind an entry in a partition and does not yet wait for that reason."""
        return (entry for entry in self._odd.values() if entry[2].index == partition and entry > after)

    def _waits(self, job: Job) -> None:
        """The reason for which a job waits has changed."""
        entry = self._entry_of.get(job.index)
        if entry is None:
            return
        if job.reason == BEHIND:
            self._odd.pop(job.index, None)
        else:
            self._odd[job.index] = entry

    # ------------------------------------------------------------------------ listening to the queue
    def reordered(self) -> None:
        """All entries may stand elsewhere: they are looked at anew when they are wanted."""
        self._stale = True

    def came(self, entry: Entry) -> None:
        """An entry was added to the queue."""
        if self._stale:
            return
        _, job, partition = entry
        if len(job.partitions) > 1 or job.spec.het_id is not None:
            self._several += 1
            return
        self._entry_of[job.index] = entry
        if job.reason != BEHIND:
            self._odd[job.index] = entry
        bisect.insort(self.lanes.setdefault(partition.index, []), entry)

    def left(self, job: Job) -> None:
        """The entries of a job were taken out, if it had any."""
        if self._stale:
            return
        if len(job.partitions) > 1 or job.spec.het_id is not None:
            self._stale = True  # few sites have them: counting anew is simple
            return
        entry = self._entry_of.pop(job.index, None)
        if entry is None:
            return
        self._odd.pop(job.index, None)
        lane = self.lanes[entry[2].index]
        del lane[bisect.bisect_left(lane, entry)]
        if not lane:
            del self.lanes[entry[2].index]

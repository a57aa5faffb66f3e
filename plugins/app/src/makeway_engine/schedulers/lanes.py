"""Keep the eligible entries of a deep queue by partition, and know which wait for another reason than most.

`Strict` closes a partition behind the first job that has to wait: those behind it need no look, unless their reason
is still another one. Its loop over all entries says what a pass comes to without this, and
`tests/test_deep_queues.py` holds one to the other.
"""

from __future__ import annotations

import bisect
from collections.abc import Container, Iterator

from makeway.model import Job
from makeway_engine.entries import Entry
from makeway_engine.ledger import Ledger
from makeway_engine.queue import Queue
from makeway_engine.schedulers.deep import DeepQueue

BEHIND = "Priority"
"""Why those wait that stand behind one that has to wait."""


def wait_behind(ledger: Ledger, job: Job) -> None:
    """Let a job wait behind another; some reasons it keeps (`Ledger.settled_reasons`)."""
    if job.reason not in ledger.settled_reasons:
        ledger.wait_for(job, BEHIND)


class Lanes(DeepQueue):
    """The eligible entries of a queue by partition, each lane in the order of the queue."""

    many = 16

    def __init__(self, queue: Queue) -> None:
        super().__init__(queue)
        self._settled_reasons = queue.settled_reasons
        self._entry_of: dict[int, Entry] = {}
        """By the place of a job in the job table."""
        self._odd: dict[int, Entry] = {}
        """Of these, those that wait for another reason."""
        self.lanes: dict[int, list[Entry]] = {}
        """By the index of the partition; none is empty."""

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
        """Yield those that stand behind an entry in a partition and have yet to wait for that reason."""
        return (entry for entry in self._odd.values() if entry[2].index == partition and entry > after)

    def waits(self, job: Job) -> None:
        """A job waits for another reason than before."""
        entry = self._entry_of.get(job.index)
        if entry is None:
            return
        if job.reason in self._settled_reasons:
            self._odd.pop(job.index, None)
        else:
            self._odd[job.index] = entry

    # ------------------------------------------------------------------------------------ the index
    def _forget(self) -> None:
        self.lanes.clear()
        self._entry_of.clear()
        self._odd.clear()

    def _keep(self, entry: Entry) -> None:
        _, job, partition = entry
        self._entry_of[job.index] = entry
        if job.reason not in self._settled_reasons:
            self._odd[job.index] = entry
        bisect.insort(self.lanes.setdefault(partition.index, []), entry)

    def _drop(self, job: Job) -> None:
        entry = self._entry_of.pop(job.index, None)
        if entry is None:
            return
        self._odd.pop(job.index, None)
        lane = self.lanes[entry[2].index]
        del lane[bisect.bisect_left(lane, entry)]
        if not lane:
            del self.lanes[entry[2].index]

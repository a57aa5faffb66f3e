"""Make passes of EASY over a short queue of plain jobs, without an attempt for each look.

`Easy` says what a pass comes to; its reservation is the one that counts here too, so that each pass may go either way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from makeway.bitmap import NodeBits
from makeway.model import Job, Partition, Placement, Seconds
from makeway_engine.entries import Entry
from makeway_engine.placing import Question
from makeway_engine.schedulers.easy import Easy, Reserved

_NO_ROOM = "Resources"


class Starter(Protocol):
    """Finds nodes for plain jobs, and starts them."""

    def idle(self) -> NodeBits | None:
        """Return the nodes that plain jobs may take now; None: something unusual is under way."""

    def find(self, job: Job, idle: NodeBits, wanted: int) -> Placement | None:
        """Return where a job starts on these nodes of its partition; None: too few, or it is not that simple."""

    def start(self, job: Job, found: Placement, now: Seconds, *, waits: bool = True) -> None:
        """Start a job."""


class ExpressPasses:
    """Passes of EASY over the queue of one run, while all who wait are plain and few."""

    def __init__(self, easy: Easy, starter: Starter, wanted_by: Callable[[Job], int | None]) -> None:
        """Be ready for the first pass.

        :param wanted_by: says how many nodes a job wants that waits; None: it is not plain.
        """
        self._easy = easy
        self._starter = starter
        self._wanted_by = wanted_by
        attempts = easy.attempts
        self._attempts = attempts
        self._ledger = attempts.ledger
        self._queue = attempts.queue
        self._placer = attempts.placer
        self._transitions = attempts.placer.transitions
        self._shapes = easy.shapes
        self.stale = True
        """Whether others may stand in the queue than those who are known."""
        self.wanted: dict[int, int | None] = {}
        """How many nodes each of those who wait wants, by place in the job table."""

    def run(self, now: Seconds) -> bool:
        """Make a pass; False: it has to go the plain way, and nothing was done yet."""
        queue, ledger, easy, attempts = self._queue, self._ledger, self._easy, self._attempts
        entries = queue.entries
        shapes = self._shapes
        if shapes is not None and (not shapes.stale or len(entries) >= shapes.many):
            return False
        idle = self._starter.idle()
        if idle is None or (self.stale and not self._look_anew(entries)):
            return False
        ledger.searches = 0
        self._transitions.changed = self._transitions.left_nodes = False
        again, attempts.again = attempts.again, False
        arrivals = queue.take_arrivals()
        reserved = easy.reserved
        if reserved is not None and not again and reserved.holds(ledger):
            reserved.doubtful = False
            if not arrivals:
                return True
            if reserved.entry < (arrivals[0] if len(arrivals) == 1 else min(arrivals)):
                self._follow(arrivals, reserved, idle, now)
                return True
        easy.reserved = None
        size = idle.bit_count()
        while entries:
            head = entries[0]
            _, job, partition = head
            if job.size <= size or job.reason != _NO_ROOM:
                found = self._try(job, partition, idle, now)
                if found is not None:
                    idle &= ~found.allocation.nodes
                    size = idle.bit_count()
                    continue
            reserved = easy.reserved = Reserved(head, ledger)
            if len(entries) > 1:
                self._follow(entries[1:], reserved, idle, now)
            break
        return True

    def _try(self, job: Job, partition: Partition, idle: NodeBits, now: Seconds) -> Placement | None:
        """Start a job, or let it wait; return where it started."""
        wanted = self.wanted[job.index]
        assert wanted is not None
        found = self._starter.find(job, idle & partition.nodes, wanted)
        if found is not None:
            del self.wanted[job.index]
            self._starter.start(job, found, now)
        elif self._placer.telling.notes:
            question = Question(job, partition, self._ledger.all_nodes)
            self._placer.try_start(question)
        else:
            self._ledger.wait_for(job, _NO_ROOM)
        return found

    def _follow(self, entries: Sequence[Entry], reserved: Reserved, idle: NodeBits, now: Seconds) -> None:
        """Start those of `entries` that do not delay the reserved job."""
        size = idle.bit_count()
        for at, (_, job, partition) in enumerate(entries):
            if job.size > size:
                continue
            if not reserved.settled:
                self._easy.settle(reserved)
            forecast, spare = reserved.forecast, reserved.spare
            long = False
            if forecast is not None:
                if spare is None:
                    self._easy.backfill(entries[at:], reserved)
                    return
                limit = job.time_limit
                long = limit is None or now + limit > reserved.shadow(self._ledger)
                if long and job.size > spare and not partition.nodes & ~forecast.eligible:
                    continue
            found = self._try(job, partition, idle, now)
            if found is None:
                continue
            nodes = found.allocation.nodes
            idle &= ~nodes
            size = idle.bit_count()
            reserved.passed_by(self._ledger)
            if long and spare is not None and forecast is not None:
                reserved.spare = spare - (nodes & forecast.eligible).bit_count()

    def _look_anew(self, entries: Sequence[Entry]) -> bool:
        """Learn what those who wait want; say whether all of them are plain."""
        wanted = self.wanted
        if len(wanted) > 2 * len(entries) + 100:
            wanted.clear()
        for _, job, _ in entries:
            index = job.index
            if index not in wanted:
                wanted[index] = self._wanted_by(job)
            if wanted[index] is None:
                return False
        self.stale = False
        return True


__all__ = ["ExpressPasses", "Starter"]

"""Keep an index of a deep queue up to date, while it is worth while.

A queue of few entries is walked. A deeper one is kept by whatever spares a scheduler the walk: `Lanes` by partition,
`Shapes` by what a glance looks at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from makeway.model import Job
from makeway_engine.entries import Entry
from makeway_engine.queue import Queue


class DeepQueue(ABC):
    """Listens to a queue once it is deep. What is kept of each entry is up to the kind of index."""

    many = 64
    """From so many entries on it is worth while to keep them; down to half as many it goes on."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._several = 0
        """How many entries are of jobs that are tried in several partitions, or together with others: not kept."""
        self.stale = True
        """Whether nothing is kept at present."""
        self._listens = False
        """Whether anything has ever been kept: until then nothing need be told."""

    def complete(self) -> bool:
        """Whether all that are eligible are here, each once; brings the index up to date."""
        if len(self._queue.entries) < (self.many if self.stale else self.many // 2):
            self.stale = True
            return False
        if self.stale:
            if not self._listens:
                self._queue.listeners.join(self)
                self._listens = True
            self.stale = False
            self._several = 0
            self._forget()
            for entry in self._queue.entries:
                self.came(entry)
        return not self._several

    # ------------------------------------------------------------------------ listening to the queue
    def reordered(self) -> None:
        """All entries may stand elsewhere: they are looked at anew when they are wanted."""
        self.stale = True

    def came(self, entry: Entry) -> None:
        """An entry was added to the queue."""
        if self.stale:
            return
        job = entry[1]
        if len(job.partitions) > 1 or job.spec.het_id is not None:
            self._several += 1
        else:
            self._keep(entry)

    def left(self, job: Job) -> None:
        """The entries of a job were taken out, if it had any."""
        if self.stale:
            return
        if len(job.partitions) > 1 or job.spec.het_id is not None:
            self.stale = True  # few sites have them: counting anew is simple
        else:
            self._drop(job)

    # ------------------------------------------------------------------------------------ the index
    @abstractmethod
    def _forget(self) -> None:
        """Drop all entries."""

    @abstractmethod
    def _keep(self, entry: Entry) -> None:
        """Add an entry."""

    @abstractmethod
    def _drop(self, job: Job) -> None:
        """Drop the entry of a job, if it is here."""

"""Go on with the partitions of a job that has started, for the next one that has to wait (a defect of Slurm).

While it walks the job table unsorted, Slurm's main scheduler does not forget the partitions that a job has left when it
starts in one before them. The next job that has to wait is tried in those, and stays in the last one of them, whether
it asked for it or not (rule ``raw_order_goes_on_with_partitions``; recorded: builtin_goes_on_with_partitions).
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Job, JobState, Partition
from makeway.partition_bounds import beyond
from makeway_engine.entries import Entry
from makeway_engine.placing import Placer
from makeway_engine.queue import Queue

_PENDING = JobState.PENDING


class GoingOn:
    """The partitions that a pass goes on with."""

    def __init__(self, queue: Queue, placer: Placer) -> None:
        self._queue = queue
        self._placer = placer
        self._left: Sequence[Partition] = ()

    def begin(self) -> None:
        """Begin a pass."""
        self._left = ()

    def looked_at(self, entry: Entry) -> None:
        """Take note of what has become of a job that was tried where its entry says."""
        _, job, partition = entry
        if len(job.partitions) == 1:
            return
        if job.state is _PENDING:
            self._left = ()
        elif job.partition is partition:
            self._left = job.partitions[job.partitions.index(partition) + 1 :]

    def move(self, job: Job) -> Partition | None:
        """Let a job that has to wait be in the next of those partitions alone; None: there is none for it.

        The tasks of an array that have not started go with the first of them.
        """
        if (
            not self._left
            or job.state is not _PENDING
            or len(job.partitions) > 1
            or job.spec.het_id is not None
        ):
            return None
        partition, *self._left = self._left
        for each in self._alike(job):
            self._queue.confine(each, partition)
            reason = beyond(each, partition)
            if reason:
                self._placer.beyond[each.id] = reason
            else:
                self._placer.beyond.pop(each.id, None)
        return partition

    def _alike(self, job: Job) -> Sequence[Job]:
        """Return the jobs that share a record with one."""
        if job.spec.array_id is None or job.starts:
            return (job,)
        tasks = self._queue.throttle.tasks[job.spec.array_id].values()
        return [each for each in tasks if each.state is _PENDING and not each.starts]

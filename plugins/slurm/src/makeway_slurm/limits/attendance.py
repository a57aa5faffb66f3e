"""Keep which jobs are present and which are active, for the limits of one run.

Of most jobs, limits want no more than to know that they are there. So each event is taken at one go: what it means for
counts, and for jobs that may have to end, is noted where each of these finds it.
"""

from __future__ import annotations

from makeway.model import ClusterView, Job
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.limits.asked import Remembered
from makeway_slurm.limits.counts import CountBook, Holding, Seat
from makeway_slurm.limits.elsewhere import Elsewhere
from makeway_slurm.limits.ending import Ending

_new = tuple.__new__


class Attendance:
    """Is told of all jobs. See `makeway.model.Roll`."""

    ending: Ending
    """Running jobs that may have to end."""

    def __init__(self, view: ClusterView, *, ends: bool) -> None:
        """Begin with no jobs there.

        :param ends: whether limits end jobs that run.
        """
        self._view = view
        self._usage = view.book(UsageBook)
        self._counts = CountBook(self._usage)
        self._ends = ends
        self._elsewhere = Elsewhere(view, self._counts)
        self._remembered: Remembered = {}

    def came(self, job: Job, view: ClusterView) -> None:
        """Count a job that was submitted."""
        del view
        counts, job_id = self._counts, job.id
        seat = counts.present[job_id] = counts.seat_anew(job)
        counts.came_so_far += 1
        seat.more += 1
        if not seat.noted:
            seat.noted = True
            counts.noted.append(seat)
        if len(job.partitions) > 1:
            self._elsewhere.came(job, seat)

    def gone(self, job: Job, view: ClusterView) -> None:
        """Count it no longer."""
        del view
        counts, job_id = self._counts, job.id
        if job_id in self._elsewhere.present:
            self._elsewhere.left(job_id)
        seat = counts.present.pop(job_id, None)
        if seat is not None:
            seat.more -= 1
            if not seat.noted:
                seat.noted = True
                counts.noted.append(seat)
        if job_id in self._remembered:
            del self._remembered[job_id]

    def started(self, job: Job, view: ClusterView) -> None:
        """Count what a job holds that has started."""
        counts, job_id = self._counts, job.id
        held = self._usage.held_by(job, view.cluster)
        if job_id in self._elsewhere.present:
            self._elsewhere.left(job_id)
        seat, allocation = counts.present.get(job_id), job.allocation
        if seat is None or seat.partition is not job.partition or seat.qos is not job.qos:
            before, seat = seat, counts.seat_anew(job)
            if before is not None and before.partition is not job.partition:
                self._move(job_id, before, seat)
        nodes = allocation.nodes if allocation is not None else 0
        holding = _new(Holding, (seat, held, nodes, job))
        counts.held[job_id] = counts.begun[job_id] = holding
        if job_id in self._remembered:
            del self._remembered[job_id]
        if self._ends:
            self.ending.started(job, seat.group, held)

    def _move(self, job_id: str, before: Seat, seat: Seat) -> None:
        """Let a job be present where it has started (recorded: limit_submit_runs_in_second)."""
        counts = self._counts
        counts.present[job_id] = seat
        for each, more in ((before, -1), (seat, 1)):
            each.more += more
            if not each.noted:
                each.noted = True
                counts.noted.append(each)

    def left(self, job: Job, view: ClusterView) -> None:
        """Count no longer what it held: at once, before its nodes are clean (11.1)."""
        del view
        counts, job_id = self._counts, job.id
        holding = counts.held.pop(job_id)
        if job_id in counts.begun:
            del counts.begun[job_id]
        else:
            counts.over.append(holding)
        if self._ends:
            self.ending.left(job_id, holding.seat.group)

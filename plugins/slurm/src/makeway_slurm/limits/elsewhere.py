"""Count a job that waits in several partitions in the QOS of each of them (recorded: limit_submit_in_partitions)."""

from __future__ import annotations

import attrs

from makeway.model import ClusterView, Job
from makeway_slurm.limits.counts import Count, CountBook, Seat


class Elsewhere:
    """Where jobs of one run are present beside their first partitions."""

    def __init__(self, view: ClusterView, counts: CountBook) -> None:
        self._counts = counts
        self.any = any(each.qos is not None for each in view.cluster.partitions)
        """Whether any partition has a QOS."""
        self.present: dict[str, list[Count]] = {}
        """By job that waits: counts of all but the first partition that it is present in as well."""

    def seats(self, job: Job) -> list[Seat]:
        """Return where a job would count in its partitions but the first, where any has a QOS."""
        if len(job.partitions) < 2 or not self.any:
            return []
        return [self._counts.seat_anew(attrs.evolve(job, partition=each)) for each in job.partitions[1:]]

    def came(self, job: Job, own: Seat) -> None:
        """Count a job that was submitted."""
        if not self.any:
            return
        found = {
            key: count
            for seat in self.seats(job)
            for key, count in zip(seat.keys, seat.counts, strict=True)
            if key not in own.keys
        }
        for count in found.values():
            count.present += 1
        self.present[job.id] = list(found.values())

    def left(self, job_id: str) -> None:
        """Count it no longer: it has ended, or runs in one of them (recorded: limit_submit_runs)."""
        for count in self.present.pop(job_id):
            count.present -= 1

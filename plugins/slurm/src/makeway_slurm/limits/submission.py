"""Say whether a job is taken at its submission (slurm-priority-and-limits 6.3, 7)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from makeway.model import Job, Partition
from makeway_slurm.limits.access import Door
from makeway_slurm.limits.counts import CountBook, Seat
from makeway_slurm.limits.deny import Strictness, TooLarge
from makeway_slurm.limits.submits import Submits

_MANY = 100_000
_OF_ITS_OWN = frozenset(("groups", "array_last", "array_size"))
"""Attributes of a job that count at the door."""


class Submission:
    """Which jobs are taken in one run, and which are refused."""

    def __init__(
        self,
        door: Door,
        submits: Submits,
        too_large: TooLarge,
        strictness: Strictness,
        counts: CountBook,
        *,
        has_partition_qos: bool,
    ) -> None:
        self._door = door
        self._submits = submits
        self._too_large = too_large
        self._strictness = strictness
        self._counts = counts
        self._has_partition_qos = has_partition_qos
        self._arrays: dict[str, str] = {}
        """Arrays whose first task has come -> why it was refused; empty: it was taken."""
        self._open: dict[Hashable, tuple[Sequence[Partition], bool]] = {}
        """By seat, nodes and time: in which partitions such a job is surely not refused, numbers of jobs apart."""

    def refused(self, job: Job) -> str:
        """Return why a job is refused at its submission; empty: it is taken."""
        array = job.spec.array_id
        if array is not None and array in self._arrays:
            return self._arrays[array]
        found = self._door.refused(job) or self._submits.too_many(job) or self._too_large.why(job)
        if array is not None:
            self._arrays[array] = found
        return found

    def takes(self, job: Job) -> bool:
        """Whether a job that is submitted is surely not refused."""
        spec, counts = job.spec, self._counts
        if len(job.partitions) > 1 and self._has_partition_qos:
            return False
        if (
            spec.array_id is not None
            or spec.nice < 0
            or (spec.attributes and not _OF_ITS_OWN.isdisjoint(spec.attributes))
        ):
            return False
        seat = counts.present.get(job.id)
        if seat is None or seat.partition is not job.partition or seat.qos is not job.qos:
            seat = counts.seat_anew(job)
        if job.partition.index in self._door.open and len(job.partitions) == 1:
            if seat.welcome is None:
                seat.welcome = self._is_welcome(seat, job)
            if not seat.welcome:
                return False
        elif not self._is_let_through(seat, job):
            return False
        if counts.came_so_far > seat.came_at_most:
            spare = self._submits.spare(seat, job.user)
            if spare < 0:
                return False
            seat.came_at_most = counts.came_so_far + spare
        return True

    def _is_let_through(self, seat: Seat, job: Job) -> bool:
        """Whether the same holds of a job whose partitions are not open to all."""
        spec = job.spec
        key = seat, spec.max_nodes, job.time_limit, spec.group
        known = self._open.get(key)
        if known is None or known[0] is not job.partitions:
            if len(self._open) > _MANY:
                self._open.clear()
            known = self._open[key] = job.partitions, self._is_welcome(seat, job)
        return known[1]

    def _is_welcome(self, seat: Seat, job: Job) -> bool:
        """Whether a job is not refused, numbers of jobs apart."""
        return not self._strictness.denies(seat.places, named=False) and not self._door.refused(job)

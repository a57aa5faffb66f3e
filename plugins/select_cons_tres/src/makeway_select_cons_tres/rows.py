"""Keep the rows of one partition: which jobs share a core over time (slurm-gang-and-select 4.3.1)."""

from __future__ import annotations

from collections.abc import Iterable

from makeway import bitmap
from makeway.bitmap import CoreBits
from makeway.model import Allocation, Job, Partition


class Row:
    """Jobs of a partition that have no core in common."""

    __slots__ = ("cores", "count", "jobs")

    def __init__(self, size: int) -> None:
        self.cores: list[CoreBits] = [0] * size
        self.count = 0
        """How many cores are set."""
        self.jobs: dict[str, Job] = {}
        """What is in it; kept only where there are several rows."""

    def copy(self) -> Row:
        """Return an independent copy."""
        twin = Row.__new__(Row)
        twin.cores = self.cores.copy()
        twin.count = self.count
        twin.jobs = self.jobs.copy()
        return twin

    def has_room(self, allocation: Allocation, full: list[CoreBits]) -> bool:
        """Whether none of the cores is set."""
        cores, held = self.cores, allocation.cores
        if not self.count:
            return True
        for index, mine in zip(
            allocation.node_indices,
            held if held is not None else [full[index] for index in allocation.node_indices],
            strict=True,
        ):
            if cores[index] & mine:
                return False
        return True

    def put(self, allocation: Allocation, full: list[CoreBits]) -> None:
        """Set the cores of a job."""
        cores, held = self.cores, allocation.cores
        for at, index in enumerate(allocation.node_indices):
            mine = full[index] if held is None else held[at]
            cores[index] |= mine
            self.count += mine.bit_count()

    def drop(self, allocation: Allocation, full: list[CoreBits]) -> None:
        """Clear the cores of a job."""
        cores, held = self.cores, allocation.cores
        for at, index in enumerate(allocation.node_indices):
            mine = full[index] if held is None else held[at]
            cores[index] &= ~mine
            self.count -= mine.bit_count()

    def put_anew(self, full: list[CoreBits]) -> None:
        """Set the cores of all jobs that are left; the one that went may have lain over others."""
        self.cores, self.count = [0] * len(full), 0
        for job in self.jobs.values():
            if job.allocation is not None:
                self.put(job.allocation, full)


class Rows:
    """The rows of a partition."""

    def __init__(self, partition: Partition, number: int, full: list[CoreBits], *, sorts: bool) -> None:
        self.partition = partition
        self.rows = [Row(len(full)) for _ in range(number)]
        self._full = full
        self._sorts = sorts
        """Whether the fullest row comes first; not with preempt/qos, whose extra row is the last."""
        self.crowded = False
        """Whether jobs of one row may have cores in common."""

    def copy(self) -> Rows:
        """Return an independent copy."""
        twin = Rows.__new__(Rows)
        twin.__dict__.update(self.__dict__)
        twin.rows = [row.copy() for row in self.rows]
        return twin

    def enter(self, job: Job, allocation: Allocation) -> bool:
        """Put a job into the first row with room; say whether there is one."""
        rows = self.rows
        for row in rows:
            if row.has_room(allocation, self._full):
                row.put(allocation, self._full)
                if len(rows) > 1:
                    row.jobs[job.id] = job
                return True
        return False

    def squeeze(self, job: Job, allocation: Allocation) -> None:
        """Put a job into the last row, over those that are there."""
        self.seat(job, allocation, -1)
        self.crowded = True

    def seat(self, job: Job, allocation: Allocation, place: int) -> None:
        """Put a job into the row of this number, where it was before."""
        row = self.rows[place]
        row.put(allocation, self._full)
        if len(self.rows) > 1:
            row.jobs[job.id] = job

    def leave(self, job: Job, allocation: Allocation) -> bool:
        """Take a job out of its row; say whether the rows are to be put together anew."""
        rows = self.rows
        row = rows[0]
        if len(rows) > 1:
            row = next(row for row in rows if job.id in row.jobs)
            del row.jobs[job.id]
        row.drop(allocation, self._full)
        if self.crowded:
            row.put_anew(self._full)
        return len(rows) > 1 and not self.all_in_first

    @property
    def all_in_first(self) -> bool:
        """Whether no job is in another row than the first: then putting the rows together anew changes nothing."""
        rows = self.rows
        if len(rows) == 2:
            return not rows[1].count
        return not any(row.count for row in rows[1:])

    def leave_first(self, jobs: Iterable[Job]) -> None:
        """Forget what is in the first row, where all are; its cores are the caller's business."""
        if len(self.rows) > 1:
            known = self.rows[0].jobs
            for job in jobs:
                del known[job.id]

    def sort(self) -> None:
        """Let the fullest row come first."""
        if self._sorts:
            self.rows.sort(key=_fullness)

    def rebuild(self) -> None:
        """Put all jobs into rows anew, unless one of them would find no room.

        The job with the lowest core comes first, then the one of fewer CPUs (slurm-gang-and-select 4.3.1;
        recorded: rows_lowest_core_first). Each goes into the first row with room, the fullest row first. Here that is
        so with preempt/qos as well: a large job may push others out of the first row (recorded: rows_larger_first).
        """
        jobs = [job for row in self.rows for job in row.jobs.values()]
        jobs.sort(key=_place)
        fresh = [Row(len(self._full)) for _ in self.rows]
        for job in jobs:
            allocation = job.allocation
            assert allocation is not None
            row = next((row for row in fresh if row.has_room(allocation, self._full)), None)
            if row is None:
                return
            row.put(allocation, self._full)
            row.jobs[job.id] = job
            fresh.sort(key=_fullness)
        self.rows, self.crowded = fresh, False


def _fullness(row: Row) -> int:
    return -row.count


def _place(job: Job) -> tuple[int, int, int]:
    allocation = job.allocation
    assert allocation is not None
    first = bitmap.lowest(allocation.cores[0]) if allocation.cores is not None else 0
    size = sum(allocation.cpus) if allocation.cpus is not None else len(allocation.node_indices)
    return allocation.node_indices[0], first, size

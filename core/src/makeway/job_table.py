"""Know where the job table has the records of jobs and arrays (slurm-priority-and-limits 8 no. 3).

Tasks that wait share a record. The first of them that starts has that record from then on, and those that are left get
a new one, behind all that there are (recorded: preempt_array_order).
"""

from __future__ import annotations

from makeway.model import ClusterView, Job, Partition

Place = tuple[int, int]
"""Index of a job, and how many records were made for arrays since it was submitted; order is that of the table."""


class JobTable:
    """The places of one run, as a book that every call finds again. See `makeway.model.Roll`."""

    def __init__(self, view: ClusterView) -> None:
        del view
        self._last = 0
        """Index of the last job that was submitted."""
        self._made = 0
        """How many records were made for what is left of arrays."""
        self._of_rest: dict[str, Place] = {}
        """By array: the record of the tasks that have not started."""
        self._of_task: dict[str, Place] = {}
        """By job id: the records of tasks that have started, or were set apart."""
        self._present: dict[str, int] = {}
        """By array: how many of its tasks there are."""

    def came(self, job: Job, view: ClusterView) -> None:
        """A job was submitted."""
        del view
        self._last = max(self._last, job.index)
        array = job.spec.array_id
        if array is not None:
            self._of_rest.setdefault(array, (job.index, 0))
            self._present[array] = self._present.get(array, 0) + 1

    def gone(self, job: Job, view: ClusterView) -> None:
        """A job has ended, or was refused."""
        del view
        array = job.spec.array_id
        if array is None:
            return
        self._of_task.pop(job.id, None)
        self._present[array] -= 1
        if not self._present[array]:
            del self._present[array], self._of_rest[array]

    def started(self, job: Job, view: ClusterView) -> None:
        """A job starts: a task that does so for the first time gets a record of its own."""
        del view
        self.set_apart(job)

    def set_apart(self, job: Job) -> None:
        """Give a task that waits with others a record of its own, before it starts.

        It has the one that they shared, and those that are left get a new one (recorded: preempt_array_aging).
        """
        array = job.spec.array_id
        if array is not None and job.id not in self._of_task:
            self._of_task[job.id] = self._of_rest[array]
            self._made += 1
            self._of_rest[array] = (self._last, self._made)

    def left(self, job: Job, view: ClusterView) -> None:
        """A job gives its nodes back: its record stays where it is."""

    def place(self, job: Job) -> Place:
        """Return where the record of a job is."""
        array = job.spec.array_id
        if array is None:
            return (job.index, 0)
        return self._of_task.get(job.id) or self._of_rest[array]

    def shares(self, job: Job) -> str | None:
        """Return the array whose record it shares with others that have not started; None: it has one of its own."""
        return job.spec.array_id if job.id not in self._of_task else None


def turn_of(job: Job, partition: Partition) -> int:
    """Return which of its partitions one is, in the order in which the job names them (recorded: part_named_order)."""
    if len(job.partitions) == 1:
        return 0
    return next((at for at, each in enumerate(job.partitions) if each is partition), 0)

"""Let so many tasks of a job array be at work at a time (slurm-priority-and-limits 8 no. 2)."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

from makeway.model import Job, JobState

WAITS = "JobArrayTaskLimit"
"""Reason of a task that waits for others of its array."""

_AT_WORK = (JobState.RUNNING, JobState.SUSPENDED)
_Place = tuple[int, int]


class Throttle:
    """Which tasks of each array are there, and which of them have their turn.

    A task has its turn from when it may be tried until it ends or is killed: the next one may start while its nodes are
    still being cleaned (recorded: array_next_while_cleaned).
    """

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Job]] = {}
        """Those that have not ended, by array and id."""
        self._inside: dict[str, set[str]] = {}
        self._waiting: dict[str, list[tuple[_Place, Job]]] = {}
        self._began_unseen: dict[str, bool] = {}
        """Of the arrays that the main scheduler has looked at: whether tasks were at work by then."""

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def tasks_of(self, array_id: str) -> Sequence[str]:
        """Return the ids of an array's tasks that have not ended, in order of submission."""
        return tuple(self.tasks.get(array_id, ()))

    def came(self, job: Job) -> None:
        """Take note of a new task."""
        if job.spec.array_id is not None:
            self.tasks.setdefault(job.spec.array_id, {})[job.id] = job

    def lets_in(self, job: Job) -> bool:
        """Say whether a task may be tried; otherwise it waits here until it is handed out by `left`."""
        array_id, limit = job.spec.array_id, job.spec.array_limit
        if array_id is None or limit is None:
            return True
        inside = self._inside.setdefault(array_id, set())
        if job.id in inside or len(inside) < limit:
            inside.add(job.id)
            return True
        entry = (_place(job), job)
        waiting = self._waiting.setdefault(array_id, [])
        if entry not in waiting:
            bisect.insort(waiting, entry, key=lambda each: each[0])
        return False

    def left(self, job: Job, *, ended: bool) -> Sequence[Job]:
        """A task ended, or gave its turn up; return those whose turn it is now.

        Their priorities decide, as a task that is requeued may have another one than the rest; then those go first that
        never ran, in order of their indices (recorded: array_requeued_task,
        array_requeued_task_basic).
        """
        array_id = job.spec.array_id
        if array_id is None:
            return ()
        if ended:
            tasks = self.tasks.get(array_id, {})
            tasks.pop(job.id, None)
            if not tasks:
                self.tasks.pop(array_id, None)
        inside = self._inside.get(array_id)
        if inside is None or job.spec.array_limit is None:
            return ()
        inside.discard(job.id)
        waiting = [entry for entry in self._waiting.get(array_id, ()) if entry[1] is not job]
        free = max(0, job.spec.array_limit - len(inside))
        turns = waiting
        if any(each.restarts for _, each in waiting):
            turns = sorted(waiting, key=lambda entry: (-entry[1].priority, entry[1].restarts > 0))
        came = [each for _, each in turns[:free]]
        self._waiting[array_id] = [entry for entry in waiting if entry[1] not in came]
        if not (self.tasks.get(array_id) or inside):
            del self._inside[array_id]
            self._waiting.pop(array_id, None)
            self._began_unseen.pop(array_id, None)
        return came

    def looked_at(self) -> None:
        """Take note of a look of the main scheduler at what may be tried."""
        for array_id, inside in self._inside.items():
            if array_id not in self._began_unseen:
                tasks = self.tasks.get(array_id, {})
                self._began_unseen[array_id] = any(tasks[each].state in _AT_WORK for each in inside)

    def held_up_by(self, job: Job) -> Sequence[Job]:
        """Return the tasks that become eligible only now that one gives its turn up, among others all at work.

        As Slurm has it, backfill started those that are at work before the main scheduler had looked at their array:
        what is left of that did not age meanwhile (recorded: array_limit_age). Once it has looked, all that wait age
        (recorded: array_limits).
        """
        array_id, limit = job.spec.array_id, job.spec.array_limit
        inside = self._inside.get(array_id or "", set())
        if array_id is None or limit is None or job.id not in inside or len(inside) < limit:
            return ()
        tasks = self.tasks.get(array_id, {})
        others = [tasks[each].state for each in inside if each != job.id]
        if job.started_at is None or any(state not in _AT_WORK for state in others):
            return ()
        if not self._began_unseen.get(array_id, False):
            return ()
        del self._began_unseen[array_id]
        return [each for _, each in self._waiting.get(array_id, ())]

    def behind(self, job: Job) -> Sequence[Job]:
        """Return the tasks that wait for others of their array, in their order, behind the last one that may be tried.

        No task stands behind any other.
        """
        array_id = job.spec.array_id
        if array_id is None or not self._waiting.get(array_id):
            return ()
        tasks, place = self.tasks[array_id], _place(job)
        for other in self._inside[array_id]:
            if tasks[other].state is JobState.PENDING and _place(tasks[other]) > place:
                return ()
        return [each for _, each in self._waiting[array_id]]

    # ---------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, list[str]]:
        """Return the tasks of each limited array that have their turn."""
        return {array_id: sorted(inside) for array_id, inside in self._inside.items()}

    def restore(self, jobs: Mapping[str, Job], turns: Mapping[str, Sequence[str]] | None) -> None:
        """Go on with the tasks among `jobs`, all that have not ended.

        :param turns: those whose turn has come; None: those that run or are suspended.
        """
        for job in jobs.values():
            self.came(job)
            array_id = job.spec.array_id
            if array_id is None or job.spec.array_limit is None:
                continue
            inside = self._inside.setdefault(array_id, set())
            self._began_unseen[array_id] = False
            if job.id in turns.get(array_id, ()) if turns is not None else job.state in _AT_WORK:
                inside.add(job.id)
            elif turns is not None and job.reason == WAITS:
                self._waiting.setdefault(array_id, []).append((_place(job), job))
        for waiting in self._waiting.values():
            waiting.sort(key=lambda each: each[0])


def _place(job: Job) -> _Place:
    return job.spec.array_task, job.index

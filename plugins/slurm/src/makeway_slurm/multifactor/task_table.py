"""Keep the order of Slurm's job table, in which all tasks of an array that have not started share one record.

A task gets a record of its own when it starts, or when it may age and others of its array may not. What is left of the
array then moves to the end of the table (recorded: accrual_arrays).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from makeway.model import Job


class TaskTable:
    """Which tasks have records of their own, and where what is left of each array stands."""

    def __init__(self) -> None:
        self._split: set[str] = set()
        self._left: dict[str, int] = {}
        """By the id of an array: how many tasks shared its record when it was last looked at."""
        self._moved: dict[str, tuple[int, int]] = {}
        """By the id of an array: the last job before it in the table, and how many such moves there were before."""
        self._moves = 0
        self._last = -1
        """The highest index of a job that was there at the last look."""

    def records(self, waiting: Sequence[Job], done: Container[str]) -> list[list[Job]]:
        """Return the tasks of each record that is not `done`, in the order of the table.

        :param waiting: all that wait and could start, in the order of their submission.
        """
        arrays: dict[str, list[Job]] = {}
        present: set[str] = set()
        records: list[list[Job]] = []
        for job in waiting:
            array = job.spec.array_id
            if array is None:
                if job.id not in done:
                    records.append([job])
                continue
            present.add(job.id)
            if job.restarts or job.id in self._split:
                if job.id not in done:
                    records.append([job])
                continue
            tasks = arrays.get(array)
            if tasks is None:
                tasks = arrays[array] = []
                records.append(tasks)
            tasks.append(job)
        self._split &= present
        self._note(arrays)
        if waiting:
            self._last = max(self._last, waiting[-1].index)
        records = [tasks for tasks in records if tasks[0].id not in done]
        if self._moved:
            records.sort(key=self._place)
        return records

    def _note(self, arrays: Mapping[str, Sequence[Job]]) -> None:
        """Move those to the end of which tasks have started since the last look."""
        for array, tasks in arrays.items():
            if len(tasks) < self._left.get(array, 0):
                self._move(array)
        self._left = {array: len(tasks) for array, tasks in arrays.items()}
        self._moved = {array: place for array, place in self._moved.items() if array in arrays}

    def split(self, tasks: Sequence[Job]) -> None:
        """Give these tasks of one array, but not all of it, records of their own."""
        array = tasks[0].spec.array_id
        if array is None:
            return
        self._split.update(job.id for job in tasks)
        self._left[array] -= len(tasks)
        self._move(array)

    def _move(self, array: str) -> None:
        self._moves += 1
        self._moved[array] = self._last, self._moves

    def _place(self, tasks: Sequence[Job]) -> tuple[int, int]:
        first = tasks[0]
        array = first.spec.array_id
        if array is not None and first.id not in self._split and not first.restarts:
            return self._moved.get(array, (first.index, 0))
        return first.index, 0

    def save(self) -> Mapping[str, Any]:
        """Return what is kept, in values that JSON has."""
        return {
            "split": sorted(self._split),
            "left": dict(sorted(self._left.items())),
            "moved": {array: list(place) for array, place in sorted(self._moved.items())},
            "moves": self._moves,
            "last": self._last,
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with that."""
        self._split = set(memory["split"])
        self._left = dict(memory["left"])
        self._moved = {array: (int(last), int(count)) for array, (last, count) in memory["moved"].items()}
        self._moves, self._last = int(memory["moves"]), int(memory["last"])

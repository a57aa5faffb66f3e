"""Remember jobs that have ended, for as long as a person may have them run again (slurm-preemption 4.11)."""

from __future__ import annotations

import attrs

from makeway.history import History
from makeway.model import Job, Seconds


@attrs.define(eq=False)
class Remembered:
    """Jobs that ended no longer ago than MinJobAge, in the order of their ends."""

    age: Seconds
    """How long each is remembered; 0: for good."""
    _jobs: dict[str, tuple[Seconds, Job, History]] = attrs.field(factory=dict)

    def ended(self, job: Job, history: History, now: Seconds) -> None:
        """Take note of a job that has ended."""
        self._forget_before(now)
        self._jobs[job.id] = now, job, history

    def named(self, name: str, now: Seconds) -> list[Job]:
        """Return the job of this id, or the tasks or components of the array or heterogeneous job, in their order."""
        self._forget_before(now)
        found = [
            job for _, job, _ in self._jobs.values() if name in (job.id, job.spec.array_id, job.spec.het_id)
        ]
        return sorted(found, key=lambda job: job.index)

    def take(self, job: Job) -> History:
        """Forget a job that runs again, and return what happened to it."""
        return self._jobs.pop(job.id)[2]

    def _forget_before(self, now: Seconds) -> None:
        while self.age and self._jobs:
            first, (at, _, _) = next(iter(self._jobs.items()))
            if at + self.age >= now:
                return
            del self._jobs[first]

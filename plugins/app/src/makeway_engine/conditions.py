"""Keep what jobs wait for of others, and judge it as these start and end (``sbatch --dependency``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from makeway.dependencies import NOT_OK, OK, STARTED, TASK
from makeway.model import Job, JobState, Seconds

NEVER = "DependencyNeverSatisfied"
"""Reason of a job that waits for what cannot come any more."""


@attrs.define
class Condition:
    """One word of what a job waits for."""

    kind: str
    waits: set[str]
    """Ids of the jobs whose start or end counts that have not come to it."""
    failed: bool = False
    """Whether one of them ended other than COMPLETED."""
    delay: Seconds = 0.0

    def met(self) -> bool | None:
        """Say whether it is met; None: not yet, False: it never will be."""
        if self.kind in (OK, TASK) and self.failed:
            return False
        if self.waits:
            return None
        return self.failed if self.kind == NOT_OK else True


class Conditions:
    """The conditions of the jobs that wait for others."""

    def __init__(self) -> None:
        self.of: dict[str, list[Condition]] = {}
        """By the id of the job that waits."""
        self.dependents: dict[str, list[Job]] = {}
        """Jobs that wait for another, by the id of that one."""
        self._failed: set[str] = set()
        """Jobs that ended other than COMPLETED, and their arrays and heterogeneous jobs."""

    def failed(self, name: str) -> bool:
        """Whether a job, or one of an array or a heterogeneous job, ended other than COMPLETED."""
        return name in self._failed

    def add(self, job: Job, conditions: list[Condition]) -> None:
        """Let a job wait."""
        self.of[job.id] = conditions
        for other in sorted({each for condition in conditions for each in condition.waits}):
            self.dependents.setdefault(other, []).append(job)

    def verdict(self, job: Job) -> bool | None:
        """Say whether all conditions of a job are met; None: not yet, False: one never will be."""
        verdicts = [condition.met() for condition in self.of[job.id]]
        return False if False in verdicts else None if None in verdicts else True

    def ended(self, job: Job) -> dict[Job, Seconds]:
        """A job has ended: return what waits for something else now, and how long after this instant at least."""
        failed = job.state is not JobState.COMPLETED
        if failed:
            names = (job.id, job.spec.array_id, job.spec.het_id)
            self._failed.update(name for name in names if name is not None)
        return self._came_to(job, self.dependents.pop(job.id, ()), failed=failed)

    def started(self, job: Job) -> dict[Job, Seconds]:
        """A job has started: return the same of those that wait for that."""
        return self._came_to(job, self.dependents.get(job.id, ()), only=STARTED)

    def _came_to(
        self, job: Job, dependents: Iterable[Job], *, failed: bool = False, only: str = ""
    ) -> dict[Job, Seconds]:
        found: dict[Job, Seconds] = {}
        for dependent in dependents:
            for condition in self.of.get(dependent.id, ()):
                if job.id in condition.waits and only in ("", condition.kind):
                    condition.waits.discard(job.id)
                    condition.failed = condition.failed or failed
                    found[dependent] = max(found.get(dependent, 0.0), condition.delay)
        return found

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what `restore` takes."""
        return {
            "dependents": {
                other: [job.id for job in jobs if job.id in self.of]
                for other, jobs in self.dependents.items()
            },
            "conditions": {
                job_id: [[each.kind, sorted(each.waits), each.failed, each.delay] for each in conditions]
                for job_id, conditions in self.of.items()
            },
            "failed": sorted(self._failed),
        }

    def restore(self, waiting: dict[str, Job], memory: dict[str, Any]) -> None:
        """Go on where others stood."""
        self.dependents = {
            other: [waiting[job_id] for job_id in ids if job_id in waiting]
            for other, ids in memory["dependents"].items()
        }
        self.of = {
            job_id: [Condition(kind, set(waits), failed, delay) for kind, waits, failed, delay in conditions]
            for job_id, conditions in memory["conditions"].items()
        }
        self._failed = set(memory["failed"])

"""Hold jobs back until others have started or ended as they ask (``--dependency``).

The engine's own conditions (`JobSpec.depends_on`) know the jobs of its own run. Here those that ended before it count,
too, and `why` tells how each condition stands. So a job with conditions comes in held, and is released once they are
met: two steps, but each is in the journal, and after a crash the conditions are looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from makeway.model import Job, JobState
from makeway.record import Line
from makeway.worlds.events import Command
from makeway_engine.engine import Engine
from makeway_local_world.requests import HOLD, After, conditions

NEVER = "DependencyNeverSatisfied"
_ENDS = frozenset(state.value for state in JobState if state.ended)
_STARTED = frozenset({JobState.RUNNING.value, JobState.SUSPENDED.value, JobState.COMPLETING.value})


class Waiting:
    """The jobs that wait for others; used on the engine's thread alone."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        state_of: Callable[[str], str | None],
        tasks_of: Callable[[str], Sequence[str]],
        feed: Callable[[Command], None],
    ) -> None:
        """Begin with the jobs that wait now.

        :param state_of: the state of a job, also of one that has ended; None: it is unknown.
        :param tasks_of: the tasks of an array, also of those that have ended; empty: it is none.
        """
        self._engine = engine
        self._state_of = state_of
        self._tasks_of = tasks_of
        self._feed = feed
        self._waiting: dict[str, tuple[After, ...]] = {}
        self._never: set[str] = set()
        self.look(engine().ledger.jobs.values())

    def look(self, jobs: Iterable[Job]) -> None:
        """Take jobs up that wait for others, and release those whose conditions are met."""
        for job in jobs:
            afters = tuple(conditions(job.spec))
            if afters and job.held and not job.starts and job.state is JobState.PENDING:
                self._waiting[job.id] = afters
        for job_id in list(self._waiting):
            self._judge(job_id)

    def renew(self, job_ids: Iterable[str]) -> None:
        """Take up anew what jobs wait for, since that was changed."""
        jobs = self._engine().ledger.jobs
        for job_id in dict.fromkeys(job_ids):
            self._forget(job_id)
            if job_id in jobs:
                self.look([jobs[job_id]])

    def heard(self, lines: Sequence[Line]) -> None:
        """Take note of what happened in a step."""
        jobs = self._engine().ledger.jobs
        moved = [line for line in lines if line.kind == "state"]
        new = [jobs[line.job] for line in moved if line.data.get("state") == "PENDING" and line.job in jobs]
        if not (self._waiting or any(job.spec.attributes for job in new)):
            return
        if (
            any(line.data.get("state") in _ENDS or line.data.get("state") in _STARTED for line in moved)
            or new
        ):
            self.look(new)

    def why(self, job_id: str) -> str | None:
        """Return why a job is held back: its conditions are not met, or never will be; None: it is not."""
        if job_id not in self._waiting:
            return None
        return NEVER if job_id in self._never else "Dependency"

    def stand(self, job_id: str) -> dict[str, str]:
        """Return the conditions that a job waits for, and how each stands."""
        told = {True: "met", False: "it can never be met; cancel the job", None: "not yet"}
        return {
            f"{after.kind} {other}": told[self._met(after, other)]
            for after in self._waiting.get(job_id, ())
            for other in self._named(after)
        }

    def _judge(self, job_id: str) -> None:
        job = self._engine().ledger.jobs.get(job_id)
        if job is None or not job.held or job.state is not JobState.PENDING:
            self._forget(job_id)
            return
        verdicts = [self._met(each, other) for each in self._waiting[job_id] for other in self._named(each)]
        if False in verdicts:
            self._never.add(job_id)
        elif all(verdicts):
            self._forget(job_id)
            if not job.spec.attributes.get(HOLD):
                self._feed(Command("release", job_id))

    def _forget(self, job_id: str) -> None:
        self._waiting.pop(job_id, None)
        self._never.discard(job_id)

    def _named(self, after: After) -> list[str]:
        return [each for name in after.jobs for each in self._tasks_of(name) or (name,)]

    def _met(self, after: After, other: str) -> bool | None:
        """Say whether a condition is met; None: not yet, False: it never will be."""
        live = self._engine().ledger.jobs.get(other)
        state = live.state.value if live is not None else self._state_of(other)
        if after.kind == "after":
            return True if state in _STARTED or state in _ENDS or (live and live.starts) else None
        if state is not None and state not in _ENDS:
            return None
        ended_well = state == JobState.COMPLETED.value
        if after.kind == "afterok":
            return ended_well
        return not ended_well if after.kind == "afternotok" else True

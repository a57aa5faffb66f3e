"""Keep the jobs that have a deadline in the order in which these come: running ones, and suspended ones."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from makeway.model import Job, JobState, Seconds

Release = tuple[Seconds, int, Job]
_RUNNING = JobState.RUNNING

_put_field = object.__setattr__


class Deadlines:
    """Deadlines of active jobs: of their time limits, or of a grace time."""

    def __init__(self) -> None:
        self.by_end: list[Release] = []
        """Running jobs: deadline, place in the job table, job; soonest first."""
        self._stopped: list[Release] = []
        """Suspended jobs, likewise: nothing happens to them at their deadline."""
        self._listed: Sequence[Release] | None = None
        """What `releases` returned last; None: a deadline has changed since."""

    def releases(self, *, suspended: bool) -> Sequence[Release]:
        """Return the running jobs, soonest first: the very same sequence until a deadline changes.

        :param suspended: whether the suspended ones are among them.
        """
        if self._listed is None:
            both = (
                sorted([*self.by_end, *self._stopped], key=_deadline_and_index) if suspended else self.by_end
            )
            self._listed = tuple(both)
        return self._listed

    def note(self, job: Job) -> None:
        """Take in an active job whose deadline is set."""
        if job.end_at is not None:
            self._listed = None
            listed = self.by_end if job.state is _RUNNING else self._stopped
            bisect.insort(listed, (job.end_at, job.index, job))

    def set(self, job: Job, at: Seconds) -> None:
        """Give an active job a deadline, or another one."""
        self.clear(job)
        _put_field(job, "end_at", at)
        self.note(job)

    def stopped(self, job: Job) -> None:
        """Take note that a job was suspended: its deadline stays where it is."""
        self.clear(job)
        self.note(job)

    def clear(self, job: Job) -> None:
        """Strike a job off, if it is here; it goes on saying when its deadline was."""
        if job.end_at is None:
            return
        self._listed = None
        for listed in (self.by_end, self._stopped):
            at = bisect.bisect_left(listed, (job.end_at, job.index))
            if at < len(listed) and listed[at][2] is job:
                del listed[at]
                return


def _deadline_and_index(release: Release) -> tuple[Seconds, int]:
    return release[:2]

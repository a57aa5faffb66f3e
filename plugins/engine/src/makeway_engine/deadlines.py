"""Keep the running jobs that have a deadline in the order in which these come."""

from __future__ import annotations

import bisect

from makeway.model import Job, Seconds

_put_field = object.__setattr__


class Deadlines:
    """Deadlines of running jobs: of their time limits, or of a grace time."""

    def __init__(self) -> None:
        self.by_end: list[tuple[Seconds, int, Job]] = []
        """Deadline, place in the job table, job; soonest first."""

    def note(self, job: Job) -> None:
        """Take in a job whose deadline is set."""
        if job.end_at is not None:
            bisect.insort(self.by_end, (job.end_at, job.index, job))

    def set(self, job: Job, at: Seconds) -> None:
        """Give a deadline to a job that has none here."""
        _put_field(job, "end_at", at)
        bisect.insort(self.by_end, (at, job.index, job))

    def clear(self, job: Job) -> None:
        """Strike a job off, if it is here; it goes on saying when its deadline was."""
        if job.end_at is None:
            return
        by_end = self.by_end
        at = bisect.bisect_left(by_end, (job.end_at, job.index))
        if at < len(by_end) and by_end[at][2] is job:
            del by_end[at]


__all__ = ["Deadlines"]

"""Tell a job from another one that has its number now.

A controller that is killed forgets jobs that it took seconds before, and gives their numbers again (spec 4.2). A job
that was requeued has a later SubmitTime too, but counts one restart more. While it leaves its nodes it shows that
restart and the old SubmitTime (seen on Slurm 22.05.8), so nobody is judged then.
"""

from __future__ import annotations

import attrs

from makeway.model import Seconds
from makeway_slurm_world.reading.jobs import LiveJob

_SETTLED = ("PENDING", "RUNNING", "SUSPENDED")
"""States in which Restarts and SubmitTime go together."""


@attrs.frozen
class _Bearer:
    submitted: Seconds
    restarts: int


class Bearers:
    """Remembers which job had an id when it was seen last."""

    def __init__(self) -> None:
        self._seen: dict[str, _Bearer] = {}

    def is_another(self, job: LiveJob) -> bool:
        """Whether a job has the id of one that was seen before, and is not that one; it is remembered from now on."""
        if job.word not in _SETTLED:
            return False
        now = _Bearer(job.spec.submit_at, job.restarts)
        before = self._seen.get(job.id, now)
        self._seen[job.id] = now
        return now.submitted > before.submitted and now.restarts <= before.restarts

    def forget(self, job_id: str) -> None:
        """The job has ended."""
        self._seen.pop(job_id, None)


__all__ = ["Bearers"]

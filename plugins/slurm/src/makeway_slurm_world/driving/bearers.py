"""Tell a job from another one that has its number now.

A controller that is killed forgets jobs that it took seconds before, and gives their numbers again (4.2). A job
that was requeued has a later SubmitTime too, but counts one restart more. While it leaves its nodes it shows that
restart and the old SubmitTime (seen on Slurm 22.05.8), so no job is judged then.
"""

from __future__ import annotations

from collections import OrderedDict

import attrs

from makeway.model import Seconds
from makeway_slurm_world.reading.jobs import LiveJob

_SETTLED = ("PENDING", "RUNNING", "SUSPENDED")
"""States in which Restarts and SubmitTime go together."""
_KEPT = 100_000
"""Jobs that are remembered, gone or not: the number of one that was seen to be gone comes back, too."""


@attrs.frozen
class _Bearer:
    submitted: Seconds
    restarts: int


class Bearers:
    """Remembers which job had an id when it was seen last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, _Bearer] = OrderedDict()

    def is_another(self, job: LiveJob) -> bool:
        """Whether a job has the id of one that was seen before, and is not that one; it is remembered from now on."""
        if job.word not in _SETTLED:
            return False
        now = _Bearer(job.spec.submit_at, job.restarts)
        before = self._seen.get(job.id, now)
        self._seen[job.id] = now
        self._seen.move_to_end(job.id)
        if len(self._seen) > _KEPT:
            self._seen.popitem(last=False)
        return now.submitted > before.submitted and now.restarts <= before.restarts

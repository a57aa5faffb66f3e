"""Define what plugins say about commands that people give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from makeway.model.jobs import Job
from makeway.model.views import ClusterView


@attrs.frozen(kw_only=True)
class Commands:
    """Which jobs people mean by a command, and what they may not do."""

    names: Callable[[str, str, str | None, ClusterView], Sequence[str] | None] | None = None
    """Given what stands in place of a job id, the command, who asks (None: an administrator) and the cluster as of now,
    returns ids of jobs in the order in which they are to be dealt with, each by itself. Empty: the command is refused,
    since it means no job. None: no opinion; if all pass, the expression is the id of one job."""
    refuses: Callable[[str, Job, str | None, ClusterView], str | None] | None = None
    """Given the command (suspend, resume, requeue, cancel, checkpoint, hold, release, priority or start), the job, who
    asks and the cluster as of now, returns the reason for refusing. None: no objection."""

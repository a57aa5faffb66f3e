"""What was found out of a job that waits (slurm-priority-and-limits 1.1)."""

from __future__ import annotations

import math

import attrs

from makeway.model import Job
from makeway_slurm.accounts.tree import Association
from makeway_slurm.multifactor.factors import Fixed

_TINY = 1e-6


@attrs.define(eq=False)
class Known:
    """What was found out of a waiting job."""

    qos: str
    association: Association | None
    fixed: dict[str, Fixed]
    """By partition."""
    alone: Fixed | None = None
    """Those of its only partition; None: it has several."""
    later: dict[str, Fixed] | None = None
    """Those that hold once a scheduler has looked for nodes for it; None: these do already, or they are the same."""
    age: float = 0.0
    """Weighted, as of the last computation."""
    fairshare: float = 0.0
    values: dict[str, int] = attrs.field(factory=dict)
    """Priority by partition, as of the last computation."""

    def brought_to(self, job: Job, second: int) -> None:
        """Let those factors hold that do at a second: a job was looked at before if it could start before."""
        since = job.eligible_since
        if self.later is not None and since is not None and math.floor(since + _TINY) < second:
            self.grow()

    def grow(self) -> None:
        """Let those factors hold that do once a scheduler has looked for nodes."""
        if self.later is not None:
            self.fixed, self.later = self.later, None
            if self.alone is not None:
                self.alone = next(iter(self.fixed.values()))

"""Tell limits apart by what they are about, and say what one limit is (slurm-priority-and-limits 6.1)."""

from __future__ import annotations

import enum
from typing import NamedTuple

from makeway_slurm.limits.counts import Key


class Kind(enum.Enum):
    """What a limit is about."""

    JOBS = "jobs"
    """Running jobs."""
    USED_WALL = "used wall"
    """Minutes of wall time used up."""
    WALL = "wall"
    """Minutes of one job."""
    USED_MINUTES = "used minutes"
    """TRES-minutes used up."""
    TRES = "tres"
    """What running jobs hold together."""
    RUN_MINUTES = "run minutes"
    """TRES-minutes that running jobs may still use."""
    JOB_MINUTES = "job minutes"
    """TRES-minutes of one job."""
    JOB_TRES = "job tres"
    NODE_TRES = "node tres"
    LEAST_TRES = "least tres"
    LEAST_FACTOR = "least factor"
    """The fair-share factor of its user."""
    PRESENT = "present"
    """Jobs that were submitted and have not ended."""


class Rule(NamedTuple):
    """One limit that holds for a job."""

    kind: Kind
    key: str
    """Whose count: assoc, qos, pu, pa; empty: the job alone."""
    whose: int | str
    """Index of the association, or name of the QOS."""
    name: str
    """The TRES; empty: none."""
    most: int
    reason: str
    least: float = 0.0
    """The least fair-share factor, of `Kind.LEAST_FACTOR`."""

    @property
    def qos_of_all(self) -> str:
        """The name of the QOS whose jobs it counts together; empty: it counts other jobs, or one alone."""
        return self.whose if self.key == "qos" and isinstance(self.whose, str) else ""

    def count_key(self, user: str, account: str) -> Key:
        """Return the key of the count that it is about."""
        if self.key == "pu":
            return ("pu", self.whose, user)
        if self.key == "pa":
            return ("pa", self.whose, account)
        return (self.key, self.whose)


AS_MAXIMUM = frozenset((Kind.TRES, Kind.JOB_TRES))
"""Limits on TRES that bound what one job may have, others apart."""
OF_WALL = frozenset((Kind.WALL, Kind.USED_WALL))
OF_MINUTES = frozenset((Kind.USED_MINUTES, Kind.RUN_MINUTES, Kind.JOB_MINUTES))
EACH = ("pu", "pa")
"""Keys of limits that each user or account has for itself in a QOS."""

"""Know how a preemptee stands, and which rule protects it (C2, C3, X2, X3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Job, JobState
from makeway_moab_qos.actions import Method
from makeway_moab_qos.settings import Settings

SUSPENDED = "K19 it is suspended, so it is not active"
RESUMED = "K19 it was resumed; Maui does not list it again"


@attrs.define(eq=False)
class Preemptee:
    """An active job that may be displaced."""

    job: Job
    nodes: NodeBits
    out: str
    """Why no job may displace it now; empty: that depends on which asks."""
    priority: int | None = None
    """Its start priority, once it has been asked for."""
    method: Method | None = None
    """How it would make way, once that has been asked for."""


class Protected(Mapping[str, str]):
    """Job -> the rule that protects it; rules that name priorities are put into words when they are read."""

    def __init__(self) -> None:
        """Begin with no job."""
        self._rules: dict[str, str | tuple[int, int]] = {}

    def add(self, job_id: str, rule: str) -> None:
        """Add a job with its rule."""
        self._rules[job_id] = rule

    def outranked(self, job_id: str, theirs: int, mine: int) -> None:
        """Add a job whose priority is not below the preemptor's (C3)."""
        self._rules[job_id] = (theirs, mine)

    def __getitem__(self, job_id: str) -> str:
        """Return the rule in words."""
        rule = self._rules[job_id]
        return rule if isinstance(rule, str) else f"K03 its priority {rule[0]} is not below {rule[1]}"

    def __iter__(self) -> Iterator[str]:
        """Yield the jobs, in job-table order."""
        return iter(self._rules)

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self._rules)


def standing(job: Job, settings: Settings) -> Preemptee:
    """Return how a preemptee stands."""
    out = ""
    if job.state is not JobState.RUNNING:
        out = SUSPENDED
    elif settings.maui and job.resumed_at != job.started_at:
        out = RESUMED
    return Preemptee(job, job.nodes, out)

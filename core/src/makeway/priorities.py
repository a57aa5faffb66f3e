"""What a policy of priorities answers: how urgent each waiting job is, and when that has to be worked out anew.

A plugin builds a `Prioritizer` (`makeway.hookspecs.makeway_priority`). The engine asks it with whole collections: for
jobs that came or changed, and for all that wait whenever its own clock says so. Where no plugin answers, jobs stand
in order of submission.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from makeway.model import ClusterView, Job, Seconds

Priority = int | Mapping[str, int]
"""The higher goes first; it is at least 1. Given by the partition's name where partitions differ."""


class Occasion(enum.Enum):
    """Why the priority of single jobs is asked for."""

    SUBMITTED = "submitted"
    """They have just come."""
    REQUEUED = "requeued"
    """They wait again."""
    RELEASED = "released"
    """They were held, or suspended by a person."""
    CHANGED = "changed"
    """A person changed what they ask for."""


class Prioritizer(Protocol):
    """Says how urgent jobs are. Pure: what it knows comes from the view, its books and earlier calls."""

    @property
    def next_at(self) -> Seconds | None:
        """When all priorities have to be worked out anew; None: never."""

    def fresh(self, jobs: Sequence[Job], occasion: Occasion, view: ClusterView) -> Sequence[Priority | None]:
        """Return the priority of each of `jobs`, none of which is held; None: the job keeps the one it has.

        :param jobs: pending jobs, or suspended ones that go on; the nice value in their spec has not been taken off.
        """

    def again(self, jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Priority]:
        """Work all priorities out anew, since `next_at` has come; afterwards `next_at` lies later.

        :param jobs: all pending jobs that are neither held nor have a priority that a user gave them.
        :returns: job id -> priority; jobs left out keep theirs. Active jobs may be among them.
        """


class WatchfulPrioritizer(Prioritizer, Protocol):
    """One that takes note when a scheduler looks at the queue: clocks of jobs may start then."""

    @property
    def watches(self) -> bool:
        """Whether it wants to be told; asked once, at the start of a run."""

    def look(self, view: ClusterView) -> None:
        """Take note that a pass begins, or ends. Priorities stay as they are until they are asked for."""


class AdoptingPrioritizer(Prioritizer, Protocol):
    """One that remembers more than the jobs show: what each user has used so far."""

    def save(self) -> Mapping[str, Any]:
        """Return what the jobs do not tell, in values that JSON has. Changes nothing."""

    def restore(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        """Go on with what one of the same plugin handed over, perhaps some seconds before; active jobs are known."""

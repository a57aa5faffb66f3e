"""What a policy of priorities answers: how urgent each waiting job is, and when that has to be worked out anew.

A plugin builds a `Prioritizer` (`makeway.hookspecs.makeway_priority`). The engine asks it with whole collections: for
jobs that came or changed, and for all that wait whenever its own clock says so. Where nobody answers, jobs stand in
order of submission.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
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

        :param jobs: all pending jobs that are neither held nor have a priority that somebody gave them.
        :returns: job id -> priority; jobs left out keep theirs. Active jobs may be among them.
        """


class PatientPrioritizer(Prioritizer, Protocol):
    """One that can tell for how long working everything out anew would change nothing that matters."""

    def steady_until(self, jobs: Sequence[Job], view: ClusterView) -> Seconds | None:
        """Return the first instant of `next_at` at which these jobs may come to stand otherwise; None: the next one.

        Asked right after `again`. Until then nobody comes, starts, ends or changes; if somebody does, `again` is
        called first with the view as it was, and has to bring everything to where single calls would have brought it.

        :param jobs: the eligible ones, as they stand in line; once for each of their partitions. None of them where
            nobody has room, whoever stands first: recalculations may then be made up for at once, in whatever order
            they leave.
        """


class WatchfulPrioritizer(Prioritizer, Protocol):
    """One that takes note when a scheduler looks at the queue: clocks of jobs may start then."""

    @property
    def watches(self) -> bool:
        """Whether it wants to be told; asked once, at the start of a run."""

    def look(self, view: ClusterView) -> None:
        """Take note that a pass begins, or ends. Priorities stay as they are until they are asked for."""


class LeisurelyPrioritizer(PatientPrioritizer, Protocol):
    """One that is asked only when an order decides something, and then gives what it would have given in time.

    Where nobody looks at a replay meanwhile, jobs may so come, start and end without having had a priority.
    """

    @property
    def at_leisure(self) -> bool:
        """Whether that holds in this run: if not, it is asked as ever."""

    @property
    def worked_out_at(self) -> Seconds:
        """The last instant of `next_at` that priorities were worked out for; before the run if there was none."""

    def note(self, job: Job, view: ClusterView) -> None:
        """See a job that was just submitted, for which `fresh` is not called."""

    def current(self, jobs: Sequence[Job], view: ClusterView) -> Sequence[Priority]:
        """Return the priority of each of these jobs as if everything had been done in time.

        If `next_at` has come meanwhile, that is what `again` gives as of its last instant before now; afterwards
        `next_at` lies later. Else it is what `fresh` gave those that came since.

        :param jobs: pending jobs: all of them if `next_at` has come, else those that were noted since the last call.
        """

    def leads_until(self, jobs: Sequence[Job], view: ClusterView) -> Seconds | None:
        """Return the first instant of `next_at` at which the first of these jobs may come to stand behind another one.

        Asked after a pass, with several jobs whose priorities have been worked out. Until then nobody comes, starts,
        ends or changes. None: the next one.
        """


class KindredPrioritizer(LeisurelyPrioritizer, Protocol):
    """One that knows which jobs keep their order among themselves, so that the first of each kind can stand for all.

    Where only the first jobs of a queue matter, nobody else is then given a priority. Asked only while it is at
    leisure, after `note`, of jobs of one partition.
    """

    def kind_of(self, job: Job, view: ClusterView) -> Hashable:
        """Return what jobs have in common that keep their order while they wait; None: this one may pass anybody.

        Of two of a kind, one that was submitted and became eligible no later than the other, and has a lower index if
        both came at once, never has the lower priority.
        """

    def of_some(self, jobs: Sequence[Job], view: ClusterView) -> Sequence[int]:
        """Return what `current` would return for these of the jobs that wait; what `current` is asked later stands."""

    def ranks(self, view: ClusterView) -> object:
        """Return one and the same object as long as nothing but age changes any priority."""

    def standings(self, jobs: Sequence[Job], view: ClusterView) -> Sequence[tuple[float, Seconds] | None]:
        """Return about where these jobs stand, and up to when; None: that cannot be said of one.

        Whoever stands more than 1 above another has the higher priority by now. As long as `ranks` returns the same,
        that remains so up to the instant of the one above: others can but fall behind.
        """

    def leads_among(self, jobs: Sequence[Job], view: ClusterView) -> Seconds:
        """Return the first instant of `next_at` from now on at which the first may stand behind another of these jobs.

        That holds as long as `ranks` returns the same.
        """

    def next_after(self, view: ClusterView) -> Seconds:
        """Return the first instant of `next_at` after now, all those up to now being done with."""

    def ranks_until(self, view: ClusterView) -> Seconds:
        """Return the first instant of `next_at` from now on at which `ranks` may change though nothing happens."""


class OrderlyPrioritizer(LeisurelyPrioritizer, Protocol):
    """One that knows that those who wait stand as they did, and where those who came stand among them.

    Asked only where a replay does not look at the priorities themselves: they may then be older than `current` is.
    """

    def line_up(self, jobs: Sequence[Job], view: ClusterView) -> None:
        """See all that may be tried, in the order in which they stand; `current` has just given the priority of each.

        :param jobs: once for each of their partitions; nobody gave them their priority.
        """

    def beside(self, jobs: Sequence[Job], view: ClusterView) -> Sequence[Priority] | None:
        """Return by which priorities these jobs stand among those lined up where `current` would put them.

        Afterwards they are in the line, and `next_at` lies later. None: that is not sure, and the line is done with.

        :param jobs: those that may be tried since the last call; perhaps none.
        """


class AdoptingPrioritizer(Prioritizer, Protocol):
    """One that remembers more than the jobs show: what everybody has used so far."""

    def hand_over(self) -> Mapping[str, Any]:
        """Return what the jobs do not tell, in values that JSON has. Changes nothing."""

    def take_over(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        """Go on with what one of the same plugin handed over, perhaps some seconds before; active jobs are known."""


__all__ = [
    "AdoptingPrioritizer",
    "KindredPrioritizer",
    "LeisurelyPrioritizer",
    "Occasion",
    "OrderlyPrioritizer",
    "PatientPrioritizer",
    "Prioritizer",
    "Priority",
    "WatchfulPrioritizer",
]

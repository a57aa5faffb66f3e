"""Define what makes answers quicker and changes none.

A plugin is complete without any of it: it is for those that are asked about thousands of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from makeway.bitmap import NodeBits
from makeway.model.answers import Candidates
from makeway.model.jobs import Job
from makeway.model.parts import Selector
from makeway.model.values import PreemptMode, Seconds
from makeway.model.views import ClusterView


class ScreeningSelector(Selector, Protocol):
    """A selector that says which jobs are alike to its `screen`, so that a deep queue is looked at shape by shape."""

    def equivalence_key(self, job: Job) -> Hashable:
        """Return all that decides an answer about a pending job, beside its size, its partition and nodes required.

        Jobs for which these are the same are of one class: at one moment `screen`, `ForesightedSelector.screen_without`
        and an attempt on the same nodes come to the same for all of them, whatever their licences and their users.
        """


class ForesightedSelector(Selector, Protocol):
    """A selector that sees at a glance for which jobs a search for victims is in vain; for those that search too."""

    def screen_without(
        self,
        jobs: Sequence[Job],
        nodes: NodeBits,
        candidates: Candidates,
        kind: Hashable,
        view: ClusterView,
    ) -> Sequence[Job]:
        """Return those of `jobs`, order kept, that might start now on `nodes` if all candidates were gone.

        Only a filter to save work, as `screen` is.

        :param jobs: pending jobs, all of which have these candidates.
        :param kind: the same for the same kind of preemptors, for what is worth remembering.
        """


StartsBy = Callable[[NodeBits, Seconds], bool]
"""Whether jobs might start on some nodes by an instant."""


class ForecastingSelector(Selector, Protocol):
    """A selector that says which jobs its `forecast` answers alike, for a long plan."""

    def forecast_key(self, job: Job, view: ClusterView) -> Hashable | None:
        """Return what tells jobs of one partition and size apart for `forecast` as things stand.

        Jobs of one key get the same answer, and do so for as long as both wait. Whether a job may start now, and where,
        depends on the nodes that no running job keeps to itself; later starts are ends of jobs. Without `starts_by`,
        no job is forecast to start earlier on fewer nodes. None: that does not hold for the job.
        """

    def starts_by(
        self, job: Job, view: ClusterView, removable: Sequence[tuple[Job, PreemptMode]] = ()
    ) -> StartsBy:
        """Return what says whether such jobs might start on some nodes by an instant, as things stand.

        If not, then not on fewer nodes, or earlier, either. Optional: it costs less than `forecast`, which is asked
        next.

        :param removable: jobs that are gone from now on; the same list is known again.
        """


class Turns(Protocol):
    """Names the job that is tried next in a pass, built by `makeway.model.QueueOrder`, once per run.

    It hears of eligible jobs only, each of which waits in one partition.
    """

    def forget(self) -> None:
        """No job waits; those that do come again, one by one."""

    def came(self, job: Job) -> None:
        """A pending job is eligible from now on; during a pass, from the next one on."""

    def left(self, job: Job) -> None:
        """An eligible job is so no more: it started, ended, or is held."""

    def waits(self, job: Job) -> None:
        """An eligible job waits for another reason than before (``job.reason``)."""

    def begin(self, *, alone: bool, every_job: bool) -> bool:
        """A pass begins; say whether jobs are to be named for it. If not, `QueueOrder.sort` is asked.

        :param alone: whether all pending jobs are eligible.
        :param every_job: whether no job is to be passed over: attempts are recorded.
        """

    def next(self) -> Job | None:
        """Return the eligible job to be tried next; None: the pass is over. The one named before has been tried.

        Jobs are named in the order that `QueueOrder.sort` would have them in. One that is passed over would wait
        for the reason that it has already, if it were tried.
        """

    def waits_as_before(self, job: Job) -> bool:
        """Whether the job that was just named would have been passed over, were not every job to be named."""

    def kind(self, job: Job) -> Hashable | None:
        """Return what is the same for jobs of one request to which the plugin gives the same room; None: not known.

        Asked about the job that was just named, if it found no room before. No limit keeps it out now. Once one of a
        kind has found no room, the next one finds none either until something is given back, where the selector says
        the same (`Selector`, ``ignores_time_limits``).
        """

"""Define what makes answers quicker and changes none.

A plugin is complete without any of it: it is for those that are asked about thousands of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from makeway.bitmap import NodeBits
from makeway.model.answers import Blocked, Candidates, Placement
from makeway.model.jobs import Job
from makeway.model.parts import Selector
from makeway.model.views import ClusterView


class ScreeningSelector(Selector, Protocol):
    """A selector that says which jobs are alike to its `screen`, so that a deep queue is looked at shape by shape."""

    def screen_key(self, job: Job) -> Hashable:
        """Return all that `screen` looks at in a pending job, beside its size and its partition.

        Jobs of one size and partition for which it is the same stay or are dropped together, whenever `screen` or
        `ForesightedSelector.screen_without` is asked. It never changes for a job.
        """


class ForesightedSelector(Selector, Protocol):
    """A selector that sees at a glance for whom a search for victims would be in vain; for those that search too."""

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


class ForecastingSelector(Selector, Protocol):
    """A selector that says which jobs its `forecast` lets start no earlier than others, for a long plan."""

    def forecast_key(self, job: Job, view: ClusterView) -> tuple[Hashable, int] | None:
        """Return what tells jobs of one partition apart for `forecast` as things stand, and how much one wants.

        Of two jobs with the same first part, whoever wants more is never forecast to start earlier, on the same
        nodes or on some of them. Whom `removable` names makes nobody start later. Whether a job may start now, and
        where, depends on the nodes that no running job keeps to itself; later starts are ends of jobs. Jobs that were
        told the same once are told the same later on, or nothing. None: that does not hold for it.
        """


class PromptSelector(Selector, Protocol):
    """A selector that answers for a plain job without making an attempt."""

    def place_now(self, job: Job, nodes: NodeBits, view: ClusterView) -> Placement | Blocked:
        """Return what ``attempt(job, nodes, view).probe()`` returns."""


class RetentiveSelector(ForesightedSelector, Protocol):
    """A selector that keeps in mind who stays whatever some preemptors do, and so sees at once who waits in vain."""

    def still_without(
        self,
        job: Job,
        nodes: NodeBits,
        spares: Callable[[Job], bool],
        kind: Hashable,
        view: ClusterView,
    ) -> bool:
        """Whether the active jobs that are spared leave `job` no room on `nodes`, though all others were gone.

        False: they leave room, or that is not known.

        :param spares: `makeway.hookspecs.Steady.spares` of the job's kind; the same says the same for as long as a
            job is active.
        :param kind: the same for the same `spares`, and as in `screen_without`.
        """

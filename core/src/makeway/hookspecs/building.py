"""Specify the hooks at the start of a run: what is built for it."""

from __future__ import annotations

from makeway.hookspecs.marks import hookspec
from makeway.model import ClusterView, Gang, Grouping, Selector
from makeway.priorities import Prioritizer


@hookspec(firstresult=True)
def makeway_selector(view: ClusterView) -> Selector | None:
    """Build the selector of the run: the one that finds nodes and cores.

    Called once, before the first event. Decision hook of the kind *select*.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.Selector`; it may keep books, but only from what the engine tells it.
        None: no opinion; if no plugin answers, the run does not start.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. See `makeway.model.Selector` and `makeway.model.Attempt` for what is asked of it.

    One that a plugin took from elsewhere::

        @hookimpl
        def makeway_selector(view):
            return WholeNodes(view.cluster)

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_displaces_by(view: ClusterView) -> Grouping | None:
    """Say by what the policy tells preemptors and victims apart.

    Called once, before the first event. Tables of preemptions are grouped by it; nothing is decided by it.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.Grouping`. None: no opinion; if all pass, jobs are grouped by partition.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    A policy about accounts::

        @hookimpl
        def makeway_displaces_by():
            return Grouping("account", lambda job: job.account or "(none)")

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_gang(view: ClusterView) -> Gang | None:
    """Build the arbiter that decides which jobs are active on shared resources and resumes those that were stopped.

    Called once, before the first event, after `makeway_selector`. Decision hook of the kind *gang*.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.Gang`, or a `makeway.model.QueuedGang`, whose suspended jobs wait in the queue
        beside the pending ones. None: no opinion; if no plugin answers, no job is ever suspended.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. With ``gang`` among the preempt modes the arbiter does the suspending as well: the engine
    starts the preemptor, and the arbiter's answer to ``started`` has to stop the victims whose cores it took. In
    any case what was suspended by policy goes on by its orders only.

    No job takes turns::

        @hookimpl
        def makeway_gang(view):
            return None

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_priority(view: ClusterView) -> Prioritizer | None:
    """Build what gives jobs their priority, and knows when priorities have to be worked out anew.

    Called once, before the first event, after `makeway_gang`. Decision hook of the kind *priority*. The default order
    of the queue goes by priority within a tier, backfill plans in that order, and some preempt policies compare
    the priorities of preemptors and victims. An active job keeps the priority with which it started, unless `again`
    changes it.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.priorities.Prioritizer`; what it has to count it keeps in a book (``view.book``).
        One whose clocks start when a scheduler looks at the queue is told of each pass
        (`makeway.priorities.WatchfulPrioritizer`).
        None: no opinion; if all pass, jobs stand in order of submission.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    The longer it waits the more urgent it is, worked out every five minutes::

        class ByAge:
            next_at = 300.0

            def fresh(self, jobs, occasion, view):
                return [1] * len(jobs)

            def again(self, jobs, view):
                self.next_at = view.now + 300.0
                return {job.id: 1 + int(view.now - job.submit_at) for job in jobs}

        @hookimpl
        def makeway_priority(view):
            return ByAge()

    .. versionadded:: 0.1
    """

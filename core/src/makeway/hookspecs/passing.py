"""Specify the hooks that build what decides of a scheduling pass: the order of the queue, and limits."""

from __future__ import annotations

from makeway.hookspecs.marks import hookspec
from makeway.model import ClusterView, Limits, QueueOrder


@hookspec(firstresult=True)
def makeway_queue(view: ClusterView) -> QueueOrder | None:
    """Build what orders the queue: which jobs are tried first.

    Called once, before the first event, after `makeway_selector`. Decision hook of the kind *queue*.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.QueueOrder`. None: no opinion; if all pass, the queue stands in the default order, which
        is priority tier, priority, submission, job index (slurm-preemption 7.1).
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Longest wait first::

        class Longest(QueueOrder):
            def sort(self, pending, view):
                return sorted(pending, key=lambda job: (job.submit_at, job.index))

        @hookimpl
        def makeway_queue():
            return Longest()

    .. versionadded:: 0.1
    """


@hookspec
def makeway_limits(view: ClusterView) -> Limits | None:
    """Build what keeps single jobs out, closes nodes to them, and ends them.

    Called once, before the first event, after `makeway_selector`.

    :param view: the empty cluster; the same object stays valid for the whole run.
    :returns: a `makeway.model.Limits`: it refuses jobs at their submission, keeps pending ones out, keeps nodes from
        them, says in which sets of nodes they go, and ends those whose time is over. None: the plugin limits nothing.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked; each answer stands.

    No more than ten active jobs per user, and none of more than a day::

        class Ten(Limits):
            def validate(self, job, view):
                return "longer than a day" if (job.time_limit or 0) > 86400 else ""

            def admit(self, job, view):
                if sum(other.user == job.user for other in view.active) < 10:
                    return None
                return Blocked(reason="QOSMaxJobsPerUserLimit", resource="jobs", wanted=1)

        @hookimpl
        def makeway_limits():
            return Ten()

    .. versionadded:: 0.1
    """

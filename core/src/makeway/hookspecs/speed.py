"""Mark implementations so that they are asked less often, and answer the same.

A plugin is complete without any of it: it is for those that are asked about thousands of jobs. Selectors find the
like in `makeway.model.speed`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from makeway.hookspecs.marks import F
from makeway.model import ClusterView, Job


def alike_by(kinds: Callable[[ClusterView], Callable[[Job], Hashable | None] | None]) -> Callable[[F], F]:
    """Mark an implementation of `makeway_preempt_candidates` with which jobs may displace the same others.

    Goes below ``@hookimpl``. The hook is then asked once for all of them.

    :param kinds: called once per run with the cluster before the first job. The function that it returns is called
        for pending jobs that find no room, and returns anything hashable: jobs for which it is the same, and that are
        tried in the same partition, have the same candidates at any one moment. None, for a
        job or instead of a function: that is not known.

    Jobs of one user may displace those of all others::

        def users(view):
            return lambda job: job.user

        @hookimpl
        @alike_by(users)
        def makeway_preempt_candidates(preemptor, active):
            jobs = tuple(job for job in active if job.user != preemptor.user)
            return Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * len(jobs))

    .. versionadded:: 0.1
    """

    def mark(function: F) -> F:
        function.makeway_kinds = kinds  # type: ignore[attr-defined]
        return function

    return mark


def by_request(
    holds: Callable[[ClusterView], Callable[[Job], bool] | None],
) -> Callable[[F], F]:
    """Mark an implementation as one that answers about a pending job by what the job asks for, and by nothing else.

    Goes below ``@hookimpl``, on `makeway_protect`, `makeway_preempt_candidates` and `makeway_search`. A plugin with
    limits says so there (`makeway.model.Limits`, ``by_request``), for all of its answers. If all plugins with a say
    about a try say so, the scheduler ``greedy`` tries one job of each request, and the others of it once something
    has changed. Searches of selectors (`of_selector`), and what takes no arguments, need no mark.

    :param holds: called once per run with the cluster before the first job. The function that it returns says of a
        pending job whether, at any one moment, the answer is the same for all jobs of the same request. None instead
        of a function: it never is.

    .. versionadded:: 0.1
    """

    def mark(function: F) -> F:
        function.makeway_by_request = holds  # type: ignore[attr-defined]
        return function

    return mark

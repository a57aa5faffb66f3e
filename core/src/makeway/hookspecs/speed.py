"""Mark implementations so that they are asked less often, and answer the same.

A plugin is complete without any of it: it is for those that are asked about thousands of jobs. Selectors find the
like in `makeway.model.speed`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from makeway.hookspecs.marks import F
from makeway.model import Attempt, Candidates, Choice, ClusterView, Job


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


def at_once(
    knows: Callable[
        [ClusterView], Callable[[Job, Callable[..., Attempt]], tuple[Candidates, Choice] | None] | None
    ],
) -> Callable[[F], F]:
    """Mark an implementation of `makeway_search` with what often knows the choice before all candidates are named.

    Goes below ``@hookimpl``. Only looked at where nobody records or traces attempts, where the same plugin names the
    candidates (`makeway_preempt_candidates`) and is asked first for both, and where nobody is protected
    (`makeway_protect`) and no node is held exclusively.

    :param knows: called once per run with the cluster before the first job. None instead of a function: nothing is
        known beforehand. The function that it returns is called for a pending job that may not start as things stand,
        with a function that begins an attempt for it. It returns the choice with as many of the candidates as that is
        about. Both hooks would have come to the same: victims in this order, in these modes, and this placement;
        without a wish to be asked again, and with nothing else that `Candidates` may say. None: the hooks are asked.
        An attempt asks limits how things would be without those removed from it.
        The plugin may spare that with an argument, a bitmap of the nodes that are closed to the job then: it knows
        that no limit of its own keeps the job out. Where others have a say about that, they are asked all the same.

    Stopped jobs first, whose nodes are there for the taking::

        def stopped(view):
            def known(job, begin):
                found = tuple(other for other in view.active if other.state is JobState.SUSPENDED)
                attempt = begin()
                for other in found:
                    attempt.remove(other, PreemptMode.SUSPEND)
                place = attempt.probe() if found else None
                if not isinstance(place, Placement):
                    return None
                modes = (PreemptMode.SUSPEND,) * len(found)
                victims = tuple(range(len(found)))
                return Candidates(jobs=found, modes=modes), Choice(placement=place, victims=victims)

            return known

    .. versionadded:: 0.1
    """

    def mark(function: F) -> F:
        function.makeway_at_once = knows  # type: ignore[attr-defined]
        return function

    return mark

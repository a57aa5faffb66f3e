"""Mark implementations so that they are asked less often, and answer the same.

A plugin is complete without any of it: it is for those that are asked about thousands of jobs. Selectors find the
like in `makeway.model.speed`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import attrs

from makeway.hookspecs.marks import F
from makeway.model import Attempt, Candidates, Choice, ClusterView, Job, Turns


def about(wanted: Callable[[Job], bool]) -> Callable[[F], F]:
    """Mark an implementation of `makeway_admit` or `makeway_node_sets` as being about some jobs only.

    Goes below ``@hookimpl``. The hook is not called for a job that no implementation is about.

    :param wanted: says of a pending job, by what it asked for, whether the limit, or the sets, are about it.
    """

    def mark(function: F) -> F:
        function.makeway_about = wanted  # type: ignore[attr-defined]
        return function

    return mark


def ranked_by(ranks: Callable[[ClusterView], Callable[[Job], int | None] | None]) -> Callable[[F], F]:
    """Mark an implementation of `makeway_queue_order` with ranks that say all about it: the order is then kept.

    Goes below ``@hookimpl``. The same order comes out, but it is kept between passes instead of being made anew. Not
    looked at if suspended jobs wait in the queue.

    :param ranks: called once per run with the cluster before the first job. The function that it returns is called
        when a job becomes eligible, once for each partition that it was submitted to, with ``job.partition`` the one
        to be tried. It returns a whole number: the lower goes first, and of one number the default order holds. It
        depends on nothing that changes while the job waits, save its priority: a job with a new priority is ranked
        anew. Once it returns None, for a job about which a number does not say all, the hook is asked from then on.
        None instead of a function: the hook is asked anyway.

    Short jobs first::

        def lengths(view):
            return lambda job: int((job.time_limit or 0) > 3600)

        @hookimpl
        @ranked_by(lengths)
        def makeway_queue_order(pending):
            return sorted(pending, key=lambda job: (job.time_limit or 0) > 3600)

    .. versionadded:: 0.1
    """

    def mark(function: F) -> F:
        function.makeway_ranks = ranks  # type: ignore[attr-defined]
        return function

    return mark


def one_by_one(turns: Callable[[ClusterView], Turns | None]) -> Callable[[F], F]:
    """Mark an implementation of `makeway_queue_order` with what names one job after the other, instead of all at once.

    Goes below ``@hookimpl``. The scheduler ``greedy`` then tries those who are named, and leaves all others as they
    are: a deep queue need not be ordered, nor gone through, for each pass. Where attempts are recorded all are named,
    and those that would wait as before are only counted. Not looked at where attempts are traced, where suspended jobs
    wait in the queue, or where another plugin may have a say: one that orders the queue first, one whose
    `makeway_admit` is about all jobs, or one that wants to know who was tried before. While a job waits that another
    limit is about, or one that waits in several partitions, the hook is asked.

    :param turns: called once per run with the cluster before the first job. Returns a `makeway.model.Turns`. None:
        the hook is asked.

    First come, first served::

        class InLine:
            def __init__(self):
                self.waiting, self.to_try = {}, iter(())

            def forget(self):
                self.waiting.clear()

            def came(self, job):
                self.waiting[job.index] = job

            def left(self, job):
                del self.waiting[job.index]

            def waits(self, job):
                pass

            def begin(self, *, alone, everybody):
                self.to_try = iter(sorted(self.waiting.values(), key=lambda job: job.index))
                return True

            def next(self):
                return next(self.to_try, None)

            def waits_as_before(self, job):
                return False

            def kind(self, job):
                return None

        @hookimpl
        @one_by_one(lambda view: InLine())
        def makeway_queue_order(pending):
            return sorted(pending, key=lambda job: job.index)

    .. versionadded:: 0.1
    """

    def mark(function: F) -> F:
        function.makeway_turns = turns  # type: ignore[attr-defined]
        return function

    return mark


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


@attrs.define(eq=False)
class Standing:
    """A reason for which jobs of a request would wait (`by_request`), for as long as its plugin says so.

    .. versionadded:: 0.1
    """

    reason: str
    """For which they wait; it never changes."""
    stands: bool = True
    """Whether they would now; the plugin sets it, and tells that by `turned`."""


def by_request(
    holds: Callable[[ClusterView], Callable[[Job], bool] | None],
    in_vain: Callable[[ClusterView], Callable[[Job], str | Standing | None] | None] | None = None,
    turned: Callable[[ClusterView], Callable[[], Iterable[Standing] | None]] | None = None,
    idle: Callable[[ClusterView], Callable[[Job], Standing | None] | None] | None = None,
) -> Callable[[F], F]:
    """Mark an implementation as one that answers about a pending job by what the job asks for, and by nothing else.

    Goes below ``@hookimpl``, on `makeway_admit`, `makeway_closed_nodes`, `makeway_protect`,
    `makeway_preempt_candidates`, `makeway_search`, `makeway_windows` and `makeway_node_sets`. If all implementations
    of these are marked, the scheduler ``greedy`` tries one job of each request, and the others of it once something
    has changed. Those of selectors (`of_selector`), and those that take no arguments, need no mark.

    :param holds: called once per run with the cluster before the first job. The function that it returns says of a
        pending job whether, at any one moment, the answer is the same for all jobs of the same request. The request
        is the partition, the time limit and all of `makeway.model.JobSpec`, but for id, name, command, times, nice
        value and priority. Who stands before the job (``before``) and `ClusterView.searches` must not count either.
        None instead of a function: it never is.
    :param in_vain: called like `holds`; only looked at on `makeway_admit`, and where no other plugin has a say about
        the job. The function that it returns gives the reason for which a pending job would wait if it were tried
        now, without anybody making way for it and without a wish to be asked again. The job then waits for that
        reason, and is not tried. None, for a job or instead of a function: that is not known. A `Standing` is a
        reason that holds for all of the request for as long as it stands: nobody asks again meanwhile.
    :param turned: called like `holds`; wanted where `in_vain` answers with a `Standing`. The function that it returns
        is called before anybody is tried, and after each start. It returns those that no longer stand, or stand
        again, since the last call. None: none of those that it ever gave stands any more.
    :param idle: called like `holds`; asked before `in_vain` where nobody hears what jobs wait for until the run is
        over, and no other plugin looks on. The function that it returns gives a `Standing` for as long as the job would
        wait for any reason that `in_vain` knows: which one is asked in the end. So it need not change whenever the
        reason does. None instead of a function: `in_vain` is asked. None for a job: it is tried, or `in_vain` is asked
        first.

    A limit for each user::

        def always(view):
            return lambda job: True

        @hookimpl
        @by_request(always)
        def makeway_admit(jobs, view):
            used = view.usage("user")
            return {job.id: Blocked() for job in jobs if used[job.user].jobs >= 10}

    .. versionadded:: 0.1
    """

    def mark(function: F) -> F:
        function.makeway_by_request = holds  # type: ignore[attr-defined]
        function.makeway_in_vain = in_vain  # type: ignore[attr-defined]
        function.makeway_turned = turned  # type: ignore[attr-defined]
        function.makeway_idle = idle  # type: ignore[attr-defined]
        return function

    return mark


def sure_by(knows: Callable[[ClusterView], Callable[..., Any] | None]) -> Callable[[F], F]:
    """Mark an implementation with what knows for sure, at little cost, that asking it would change nothing.

    Goes below ``@hookimpl``, on `makeway_admit`, `makeway_accept`, `makeway_overdue` and `makeway_marks`. The hook is
    then asked only where that is not known.

    :param knows: called once per run with the cluster before the first job. None instead of a function: nothing is
        known. The function that it returns is called with the books as they stand:

        - on `makeway_admit` with a pending job. It returns the instant up to which the job is let in, if no other
          starts or comes meanwhile; now or earlier: that is not known.
        - on `makeway_accept` with a job that is submitted: whether it surely takes it.
        - on `makeway_overdue` with nothing, after a start or an end. It returns the instant up to which nobody has to
          end, and at which the hook is asked; now or earlier: that is not known.
        - on `makeway_marks` with nothing, before a pass. It returns the instant up to which no job gets other marks,
          whatever happens until then; now or earlier: that is not known.

    A limit on running jobs that is often far away::

        def far(view):
            return lambda job: math.inf if len(view.active) < 1000 else view.now

        @hookimpl
        @sure_by(far)
        def makeway_admit(jobs, view):
            return {job.id: Blocked() for job in jobs if len(view.active) >= 1000}

    .. versionadded:: 0.1
    """

    def mark(function: F) -> F:
        function.makeway_sure = knows  # type: ignore[attr-defined]
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
        An attempt asks `makeway_admit` and `makeway_closed_nodes` how things would be without those removed from it.
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

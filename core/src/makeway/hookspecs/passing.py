"""Specify the hooks of a scheduling pass: order, limits, what is kept and remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from makeway.bitmap import NodeBits
from makeway.hookspecs.marks import hookspec
from makeway.model import Blocked, ClusterView, Job, NodeSets, Window


@hookspec(firstresult=True)
def makeway_queue_order(pending: Sequence[Job], view: ClusterView, now: float) -> Sequence[Job] | None:
    """Order the queue: who is tried first.

    Called at the start of every scheduling and backfill pass that has eligible jobs waiting, unless an
    implementation is marked with ranks (`ranked_by`).

    :param pending: eligible pending jobs, one entry per job and partition it was submitted to, with
        ``job.partition`` the one to be tried; in the default order. Suspended jobs are among them if the
        gang lets them wait in the queue (`makeway.model.QueuedGang`).
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: the same entries in another order. None: the default order, which is priority tier,
        priority, submission, job index (slurm-preemption 7.1).
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. Entries left out or added are an error.

    Longest wait first::

        @hookimpl
        def makeway_queue_order(pending):
            return sorted(pending, key=lambda job: (job.submit_at, job.index))

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_next(tried: Sequence[Job], view: ClusterView, now: float) -> Sequence[Job] | None:
    """Name who is tried next in this pass, after those that were tried already.

    Called by the scheduler ``greedy`` at the start of each pass, and again each time that all jobs named before have
    been tried, until the answer names nobody new. So an order may follow what the pass has come to so far (shares of
    what was just given away), and a policy that tries the heads of its queues alone need not be asked about all
    others. Who that is may be kept in a book (`makeway.model.Roll`), at a cost that does not grow with the queue.

    :param tried: jobs that were named before in this pass, in that order, those that started among them; empty: the
        pass begins.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: pending jobs, to be tried in this order; those that are not eligible, and those that were tried in this
        pass, are passed over. Jobs that nobody names wait for the reason that they have. Empty: the pass is over. None
        at the start of a pass: no opinion; if all pass, the whole queue is tried in the order of
        `makeway_queue_order`.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Only the two jobs that have waited longest::

        @hookimpl
        def makeway_next(tried, view):
            waiting = [job for job in view.pending if job.eligible_since is not None]
            return () if tried else waiting[:2]

    .. versionadded:: 0.1
    """


@hookspec
def makeway_admit(
    jobs: Sequence[Job], before: Sequence[Job], view: ClusterView, now: float
) -> Mapping[str, Blocked] | None:
    """Say which pending jobs a limit keeps out, whatever room there is.

    Called for each job that is about to be tried, and again while victims are sought for it. Those chosen so
    far are then gone from `view` (``view.made_way``): a preemption that would only run into a limit is not
    begun. A limit that says of itself that it is ``liftable`` does not end the attempt:
    victims are sought until the limit lets the job through as well as room is found. One that says ``never``
    refuses the job for good, with its `detail` as the reason. One that knows whose leaving would help says so in
    ``frees``, so that searches need not try everybody. Slurm's licences are such a limit (`makeway.licences`). An
    implementation that concerns few jobs is marked with `about`, and is not called for the others.

    :param jobs: pending jobs in the order in which they will be tried.
    :param before: jobs that were tried before it in this pass and have to wait, in that order, so that a limit may
        be kept for them; schedulers other than ``greedy`` leave it empty.
    :param view: the cluster as of `now`, or as it would be without the victims.
    :param now: seconds since the start of the replay.
    :returns: job id -> what stands in its way; a job left out may go on. None: nobody is kept out.
        Jobs in ``view.made_way`` are shown there as they would be: suspended, or not at all.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked; the first reason given for a job is the one reported.

    No more than ten active jobs per user::

        @hookimpl
        def makeway_admit(jobs, view):
            active = Counter(job.user for job in view.active)
            return {job.id: Blocked(reason="QOSMaxJobsPerUserLimit", resource="jobs", wanted=1)
                    for job in jobs if active[job.user] >= 10}

    .. versionadded:: 0.1
    """


@hookspec
def makeway_accept(jobs: Sequence[Job], view: ClusterView, now: float) -> Mapping[str, str] | None:
    """Refuse jobs at their submission.

    Called once for each job that is submitted, when it has entered the job table and before it is tried. A job that
    may be taken and only has to wait is the affair of `makeway_admit`.

    :param jobs: jobs that have just come.
    :param view: the cluster as of `now`; the jobs are among ``view.pending``.
    :param now: seconds since the start of the replay.
    :returns: job id -> why it is refused; a job left out is taken. None: all are.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked; the first reason given for a job is the one reported.

    No job of more than a day::

        @hookimpl
        def makeway_accept(jobs):
            return {job.id: "longer than a day" for job in jobs if (job.time_limit or 0) > 86400}

    .. versionadded:: 0.1
    """


@hookspec
def makeway_closed_nodes(job: Job, before: Sequence[Job], view: ClusterView, now: float) -> NodeBits | None:
    """Close nodes to one pending job: kept for others, or full by a limit that counts per node.

    Called for each job that is about to be tried, after `makeway_admit`, and again while victims are sought
    for it, with those chosen so far already gone from `view`.

    :param job: the pending job.
    :param before: jobs that were tried before it in this pass and have to wait, in that order; schedulers
        other than ``greedy`` leave it empty.
    :param view: the cluster as of `now`, or as it would be without the victims.
    :param now: seconds since the start of the replay.
    :returns: nodes that the job must leave alone, as a bitmap. None: none.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, answers are joined.

    The first job that waits keeps what is idle in its partition::

        @hookimpl
        def makeway_closed_nodes(job, before, view):
            return before[0].partition.nodes & view.idle if before else 0

    .. versionadded:: 0.1
    """


@hookspec
def makeway_windows(job: Job, view: ClusterView, now: float) -> Sequence[Window] | None:
    """Name the times for which nodes are kept from a pending job: reservations, maintenance.

    Called for each job that is about to be tried, after `makeway_admit`, and when its start is planned. By its time
    limit the job may not run into a window on the window's nodes; backfill plans around it.

    :param job: the pending job.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: `makeway.model.Window`, in any order; those that are over may be left out. None: there are none.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, answers are joined.

    Nobody runs into the night in which the machine room is closed::

        @hookimpl
        def makeway_windows(job):
            return [Window(nodes=job.partition.nodes, start=72000.0, end=108000.0)]

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_node_sets(job: Job, nodes: NodeBits, view: ClusterView, now: float) -> NodeSets | None:
    """Say in which sets of nodes a pending job is to be placed, best first: below one switch, in one rack.

    Called for each job that is about to be placed on free nodes, and when its start is planned. The selector is asked
    for each set in turn; the first in which the job fits is taken. Victims are sought without it.

    :param job: the pending job.
    :param nodes: nodes that it may use, busy or not, as a bitmap.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: `makeway.model.NodeSets`; nodes that are not in `nodes` are left out of each. A job that may use any of
        them in the end has `nodes` itself in the last place. None: no opinion; if all pass, the selector is asked
        for `nodes`.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    On the first half of the machine if it fits there::

        @hookimpl
        def makeway_node_sets(nodes, view):
            half = len(view.cluster.nodes) // 2
            return NodeSets(sets=(nodes & ((1 << half) - 1), nodes))

    .. versionadded:: 0.1
    """


@hookspec
def makeway_marks(view: ClusterView, now: float) -> Mapping[str, frozenset[str]] | None:
    """Say what is to be remembered about single jobs.

    Called at the start of every pass, after the arbiter's `before_pass`, and at its end. Marks are words of the
    policy's own (BACKFILL, ...); the engine only keeps them in ``job.marks``, until the job is requeued or marked anew.

    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: id of a pending or active job -> all of its marks; a job left out keeps those it has. None: nobody
        is marked anew.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, in order; the last to mark a job counts.

    Who has run for an hour is a veteran for good::

        @hookimpl
        def makeway_marks(view, now):
            return {job.id: job.marks | {"veteran"} for job in view.active if job.ran_until(now) >= 3600}

    .. versionadded:: 0.1
    """

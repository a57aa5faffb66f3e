"""Define the order in which jobs are tried: the base class of what `makeway_queue` builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from makeway.model.jobs import Job
from makeway.model.speed import Turns
from makeway.model.views import ClusterView


class QueueOrder:
    """What is tried first: a plugin overrides `sort`, which is pure, or `heads`, which goes on from call to call."""

    def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job] | None:
        """Order the queue.

        Asked at the start of every scheduling and backfill pass that has eligible jobs waiting, unless `rank` says
        all about it.

        :param pending: eligible pending jobs, one entry per job and partition it was submitted to, with
            ``job.partition`` the one to be tried; in the default order. Suspended jobs are among them if the gang
            lets them wait in the queue (`makeway.model.QueuedGang`).
        :param view: the cluster as of now.
        :returns: the same entries in another order; entries left out or added are an error. None: the default order,
            which is priority tier, priority, submission, job index (slurm-preemption 7.1).
        """
        return None

    def heads(self, tried: Sequence[Job], view: ClusterView) -> Sequence[Job] | None:
        """Name what is tried next in this pass, after what was tried already.

        Asked by the scheduler ``greedy`` at the start of each pass, and again each time that all jobs named before
        have been tried, until the answer names no new one. So an order may follow what the pass has come to so far
        (shares of what was just given away), and a policy that tries the heads of its queues alone need not be asked
        about all others. Which these are may be kept in a book (`makeway.model.Roll`), at a cost that does not grow
        with the queue.

        :param tried: jobs that were named before in this pass, in that order, those that started among them; empty:
            the pass begins.
        :param view: the cluster as of now.
        :returns: pending jobs, to be tried in this order; those that are not eligible, and those that were tried in
            this pass, are passed over. Jobs that are not named wait for the reason that they have. Empty: the pass is
            over. None at the start of a pass: no opinion; the whole queue is tried in the order of `sort`.
        """
        return None

    def turns(self) -> Turns | None:
        """Build what names one job after the other, instead of ordering all at once; None: `sort` is asked.

        Called once per run, before the first job. The scheduler ``greedy`` then tries those that are named, and
        leaves all others as they are: a deep queue need not be ordered, nor gone through, for each pass. The same
        order comes out. Where attempts are recorded all are named, and those that would wait as before are only
        counted. Not looked at where attempts are traced, where suspended jobs wait in the queue, or where the limits
        of another plugin are about all jobs or close nodes. While a job waits that another limit is about, or one
        that waits in several partitions, `sort` is asked.
        """
        return None

    rank: Callable[[Job], int | None] | None = None
    """A number that says all about the order, which is then kept between passes; None: `sort` is asked.

    Asked when a job becomes eligible, once for each partition that it was submitted to, with ``job.partition`` the
    one to be tried: the lower goes first, and of one number the default order holds. It depends on nothing that
    changes while the job waits, save its priority: a job with a new priority is ranked anew. Once it returns None,
    for a job about which a number does not say all, `sort` is asked from then on. Not looked at if suspended jobs
    wait in the queue.
    """

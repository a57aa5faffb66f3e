"""Define what keeps single jobs out, whatever room there is: the base class of what `makeway_limits` builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from makeway.bitmap import NodeBits
from makeway.model.answers import Blocked, NodeSets, Overdue, Plan, Window
from makeway.model.jobs import Job
from makeway.model.values import Seconds
from makeway.model.views import ClusterView


class Limits:
    """What keeps single jobs out, closes nodes to them, and ends them: a plugin overrides what it has to say.

    All methods are pure: same books, same answer. Whatever one raises ends the run as PolicyError. Where several
    plugins have limits all are asked; of a method that is not overridden nothing is.

    The attributes below the methods are promises that spare asking thousands of times; a plugin is complete without
    them, and sets those that it can keep, before the first job. None: nothing is promised.
    """

    # ------------------------------------------------------------------------- at the submission
    def validate(self, job: Job, view: ClusterView) -> str:
        """Refuse a job at its submission.

        Asked once, when `job` has entered the job table and before it is tried. One that may be taken and only has
        to wait is the affair of `admit`.

        :param job: one that has just come; it is among ``view.pending``.
        :param view: the cluster as of now.
        :returns: why it is refused; empty: it is taken. The first reason given is the one reported.
        """
        return ""

    # ----------------------------------------------------------------------------- before a start
    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say what keeps a pending job out, whatever room there is.

        Asked for each job that is about to be tried, and again while victims are sought for it. Those chosen so far
        are then gone from `view` (``view.made_way``): a preemption that would only run into a limit is not begun. A
        limit that says of itself that it is ``liftable`` does not end the attempt: victims are sought until the
        limit lets the job through as well as room is found. One that says ``never`` refuses the job for good, with
        its ``detail`` as the reason. One that knows whose leaving would help says so in ``frees``, so that searches
        need not try all. Slurm's licences are such a limit (`makeway.licences`).

        :param job: the pending job.
        :param view: the cluster as of now, or as it would be without the victims: jobs in ``view.made_way`` are
            shown suspended, or not at all.
        :returns: what stands in its way; None: nothing does. The first reason given is the one reported.
        """
        return None

    def closed_nodes(self, job: Job, before: Sequence[Job], view: ClusterView) -> NodeBits:
        """Close nodes to one pending job: kept for others, or full by a limit that counts per node.

        Asked for each job that is about to be tried, after `admit`, and again while victims are sought for it, with
        those chosen so far already gone from `view`. The answers of all plugins are joined.

        :param job: the pending job.
        :param before: jobs that were tried before it in this pass and have to wait, in that order; schedulers
            other than ``greedy`` leave it empty.
        :param view: the cluster as of now, or as it would be without the victims.
        :returns: nodes that the job must leave alone, as a bitmap; 0: none.
        """
        return 0

    def reservations(self, job: Job, view: ClusterView) -> Sequence[Window]:
        """Name the times for which nodes are kept from a pending job: reservations, maintenance.

        Asked for each job that is about to be tried, after `admit`, and when its start is planned. By its time limit
        the job may not run into a window on the window's nodes; backfill plans around it. The answers of all plugins
        are joined.

        :returns: `makeway.model.Window`, in any order; those that are over may be left out.
        """
        return ()

    def node_sets(self, job: Job, nodes: NodeBits, view: ClusterView) -> NodeSets | None:
        """Say in which sets of nodes a pending job is to be placed, best first: below one switch, in one rack.

        Asked for each job that is about to be placed on free nodes, and when its start is planned. The selector is
        asked for each set in turn; the first in which the job fits is taken. Victims are sought without it.

        :param nodes: nodes that it may use, busy or not, as a bitmap.
        :returns: `makeway.model.NodeSets`; nodes that are not in `nodes` are left out of each. A job that may use
            any of them in the end has `nodes` itself in the last place. None: no opinion; the first opinion counts,
            and if there is none the selector is asked for `nodes`.
        """
        return None

    # ------------------------------------------------------------------------------ while they run
    def expired(self, view: ClusterView) -> Overdue | None:
        """Name running jobs that have to end although their time limit is not reached: what they may use is used up.

        Asked after each step in which a job started or ended, and when the answer before said so. A job that makes
        way already is left to that.

        :returns: `makeway.model.Overdue`. None: no job has to end, and no wish to be asked without an event.
        """
        return None

    def past_time_limit(self, job: Job, view: ClusterView) -> Plan | None:
        """Plan how a job leaves that has reached its time limit.

        Asked at the instant at which it would be ended.

        :returns: a `Plan` for `job`. None: it ends as TIMEOUT, unless another plugin has a plan.
        """
        return None

    def marks(self, view: ClusterView) -> Mapping[str, frozenset[str]]:
        """Say what is to be remembered about single jobs, in words of the policy's own (BACKFILL, ...).

        Asked at the start of every pass, after the arbiter's ``before_pass``, and at its end. The engine only keeps
        them in ``job.marks``, until the job is requeued or marked anew.

        :returns: id of a pending or active job -> all of its marks; a job left out keeps those it has. The last plugin
            that marks a job counts.
        """
        return {}

    # ------------------------------------------------------------------- from one engine to the next
    def save(self, view: ClusterView) -> Mapping[str, Any] | None:
        """Return what the plugin remembers from one call to the next, so that another engine can go on from here.

        Asked between two steps: when the state of a run is written down, before another configuration takes over,
        and by the journal of a live run. Whatever follows from jobs and settings is best left out: it is found out
        again.

        :returns: values that JSON has: text, finite numbers, true and false, lists, and mappings with text as keys.
            None: nothing is remembered.
        """
        return None

    def restore(self, memory: Mapping[str, Any], view: ClusterView) -> None:
        """Go on from what a plugin of the same name saved.

        Asked once, when an engine adopts the state of another one, after the jobs are known and before selector and
        arbiter are told of them; never if nothing was saved.

        :param memory: as `save` returned it, perhaps by way of JSON. It may be some seconds older than the jobs after
            a crash: it may name jobs that are gone, and know nothing of new ones. Settings may have changed.
        :raises: whatever is raised is reported as a ConfigError that names the file; the state is not adopted.
        """

    # ------------------------------------------------------------------------ what spares asking
    asked_at_submission: bool = False
    """Whether `admit` is also asked for each job that is submitted behind others.

    An answer with ``Blocked.at_submission`` is then the reason of the job at once. Otherwise a job waits for its turn
    (reason Priority) until it is tried.
    """
    concerns: Callable[[Job], bool] | None = None
    """Whether `admit` has anything to say about a pending job, by what it asked for; None: about each."""
    in_sets: Callable[[Job], bool] | None = None
    """Whether `node_sets` has; None: about each."""
    by_request: Callable[[Job], bool] | None = None
    """Whether, at any one moment, all that the plugin says about a pending job is the same for all of its request.

    That is about `admit`, `closed_nodes`, `reservations` and `node_sets`, and about its candidates, vetoes and search.
    The request is the partition, the time limit and all of `makeway.model.JobSpec`, but for id, name, command, times,
    nice value and priority. Which jobs stand before it and `ClusterView.searches` must not count either. None: not
    promised.
    """
    inadmissible: Callable[[Job], str | None] | None = None
    """Why a pending job would wait if it were tried now, without any job making way for it and without a wish to be
    asked again; only looked at where no other plugin has a say about the job. It then waits for that reason, and is
    not tried. None for a job: that is not known.
    """
    surely_valid: Callable[[Job], bool] | None = None
    """Whether `validate` surely takes a job that is submitted; None: not promised."""
    calm_until: Callable[[], Seconds] | None = None
    """Up to when `expired` names no job; asked after a start or an end. `expired` is asked then; None: always."""
    marked_until: Callable[[], Seconds] | None = None
    """Up to when `marks` says nothing new, whatever happens until then; asked before a pass. None: not promised."""

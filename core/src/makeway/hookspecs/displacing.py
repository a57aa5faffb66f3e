"""Specify the hooks of a job that does not fit: what it displaces, and how each job makes way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from makeway.hookspecs.marks import hookspec
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Check,
    Choice,
    ClusterView,
    Job,
    Plan,
    PreemptMode,
    Protection,
)


@hookspec(firstresult=True)
def makeway_preempt_candidates(
    preemptor: Job, active: Sequence[Job], view: ClusterView, now: float
) -> Candidates | None:
    """Name the jobs that `preemptor` may displace, cheapest to lose first, and how each makes way.

    Called for a pending job that finds no room, or that a liftable limit keeps out. How many jobs that are depends
    on the scheduler: under ``easy`` only the first job that waits may have others make way; under ``builtin`` the
    first one of each partition; under ``backfill`` and ``greedy`` every job that is tried. Called again for the
    same job whenever it is tried again, and for estimates of its start; once for all jobs of one kind where the
    implementation is marked with kinds (`alike_by`). Not called while preemption is off. Decision hook of the
    kind *preempt candidates*.

    :param preemptor: the pending job; its partition and QOS exist.
    :param active: all running and suspended jobs, in job-table order.
    :param view: the cluster as of `now`; read-only, valid during the call.
    :param now: seconds since the start of the replay; the only clock there is.
    :returns: `makeway.model.Candidates`: some of `active`, none twice, each with its mode; a job left
        out is safe. Empty: none of them. None: no opinion; if all pass, nothing is preempted.
    :raises: whatever is raised ends the run as PolicyError naming plugin, hook and job.

    First answer wins.

    Any job, youngest first, as Slurm's ``youngest_first`` orders them::

        @hookimpl
        def makeway_preempt_candidates(active):
            jobs = sorted(active, key=lambda job: (-job.started_at, job.index))
            return Candidates(jobs=tuple(jobs), modes=(PreemptMode.REQUEUE,) * len(jobs))

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_preempt_mode(jobs: Sequence[Job], view: ClusterView, now: float) -> Sequence[PreemptMode] | None:
    """Say how each of `jobs` would make way.

    Called when something other than the preempt policy decides that a job has to leave: the gang arbiter that
    finds a job under a shadow.

    :param jobs: active jobs.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: one mode per job, same order. None: no opinion; if all pass, the cluster-wide mode.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Every job is suspended::

        @hookimpl
        def makeway_preempt_mode(jobs):
            return [PreemptMode.SUSPEND] * len(jobs)

    .. versionadded:: 0.1
    """


@hookspec
def makeway_protect(
    preemptor: Job, candidates: Sequence[Job], view: ClusterView, now: float
) -> Mapping[str, str | Protection] | None:
    """Protect some of the candidates, and say why.

    Called after `makeway_preempt_candidates` when it named any. Veto hook: any plugin may protect a
    job, none may unprotect it.

    :param preemptor: the pending job.
    :param candidates: those that the preempt policy would let go, in its order.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: job id -> reason in words that people can read, or a `makeway.model.Protection`, which says as well
        when it ends by itself. None: none is protected.
    :raises: whatever is raised ends the run as PolicyError.

    All plugins are asked, answers are joined; the first reason for a job is the one reported.

    No job within five minutes of its end::

        @hookimpl
        def makeway_protect(candidates, now):
            return {job.id: f"ends in {job.end_at - now:.0f} s" for job in candidates
                    if job.end_at is not None and job.end_at - now < 300}

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_search(
    attempt: Attempt, candidates: Candidates, view: ClusterView, now: float
) -> Choice | Blocked | None:
    """Choose which candidates to take, probing as you go.

    Called when a job was blocked and candidates are left after the vetoes. Decision hook of the kind
    *search*.

    :param attempt: the blocked job against the cluster, with no job removed yet. Limits (`makeway_limits`) and
        closed nodes are part of it, except for a search that is marked with `of_selector`.
    :param candidates: the jobs that it may displace, in order, with modes.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: `makeway.model.Choice`, victims as positions in `candidates`. `makeway.model.Blocked`: no job shall be
        displaced; no other plugin is asked, and its `detail` is told to people. None: no opinion; the next plugin
        is asked, with an attempt of its own. If all pass, the job waits.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins. A selector usually brings the search of the scheduler that it models, which is used unless
    ``policy.search`` or the preempt plugin answers first. Where no plugin in use has a search,
    ``search/in_order`` is used.

    `makeway.searching.in_order` takes candidates in an order of your own, and gives back those not needed.

    One at a time until it fits::

        @hookimpl
        def makeway_search(attempt, candidates):
            for at, (job, mode) in enumerate(zip(candidates.jobs, candidates.modes)):
                attempt.remove(job, mode)
                found = attempt.probe()
                if isinstance(found, Placement):
                    return Choice(placement=found, victims=tuple(range(at + 1)))

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def makeway_preempt_action(
    preemptor: Job | None,
    victims: Sequence[Job],
    modes: Sequence[PreemptMode],
    reasons: Sequence[str],
    view: ClusterView,
    now: float,
) -> Sequence[Plan] | None:
    """Plan how each victim makes way: notice, grace time, and what is done in the end.

    Called with the victims that a search chose, and once more for a victim whose grace time is over.
    Not called for a job that the arbiter finds under a shadow, unless the rule ``gang_skips_grace`` is off.
    Decision hook of the kind *preempt action*.

    :param preemptor: the job that they make way for; None when a grace time ran out after the preemptor was gone.
    :param victims: active jobs, in the order in which they are to be told.
    :param modes: the modes that the candidates came with; parallel to `victims`.
    :param reasons: why each was chosen (`Choice.reasons`, else `Candidates.reasons`), parallel to `victims`; empty
        texts where nothing was said. They are recorded whatever is returned.
    :param view: the cluster as of `now`.
    :param now: seconds since the start of the replay.
    :returns: one `makeway.model.Plan` per victim, same order; its table says what a plan may ask in each mode.
        None: each in its mode, at once.
    :raises: whatever is raised ends the run as PolicyError.

    First answer wins.

    Ten minutes for every job::

        @hookimpl
        def makeway_preempt_action(victims, modes):
            return [Plan(job=job, mode=mode, notice=(Signal(name="TERM"),), grace_time=600.0)
                    for job, mode in zip(victims, modes)]

    .. versionadded:: 0.1
    """


@hookspec
def makeway_explain(job: Job, view: ClusterView, now: float) -> Sequence[Check] | None:
    """Go through the policy's check list for a job that could not start.

    Called by ``makeway explain`` for the job in question, each time that it was tried and had to wait, at that
    very moment. Not called while it waits for victims of its own to leave. Nothing is decided by the answer.

    :param job: the pending job.
    :param view: the cluster as of `now`, as it was when the job was tried.
    :param now: seconds since the start of the replay.
    :returns: `makeway.model.Check`, in the order of the list. None: the plugin has none.
    :raises: whatever is raised ends the run as PolicyError.

    All answers are joined, plugins in the order of the config.

    One question::

        @hookimpl
        def makeway_explain(job, view):
            busy = not view.idle & job.partition.nodes
            return [Check(code="E1", verdict="fail" if busy else "pass", question="is any node idle?",
                          found="none is" if busy else "yes")]

    .. versionadded:: 0.1
    """

"""Hold jobs to the limits of QOS, associations and partitions, as Slurm does (slurm-priority-and-limits 6, 7).

A job that a limit keeps out holds up nobody, and nobody makes way for it: limits are never lifted by preempting
(11.2). What the job has to wait for is said in Slurm's words.

Which limits there are, and for whom:

* `kinds`: what limits are about.
* `qos_limits`: the limits of a QOS.
* `association_limits`: the limits of an association.
* `rulebook`: which of them hold for a job, the hidden ones left out.
* `listing`: the same beside counts and usage.
* `reasons`: their names in Slurm's words.
* `stages`: in which order they are looked at.
* `settings`: keys of ``[policy.settings."limits/slurm"]``.

One rule each:

* `tres`: TRES that several jobs hold (GrpTRES, MaxTRESPU, MaxTRESPA).
* `tres_minutes`: TRES-minutes that they use up, or may still use (GrpTRESMins, GrpTRESRunMins).
* `wall_time`: wall time that they use up (GrpWall).
* `jobs`: how many run (GrpJobs, MaxJobs).
* `alone`: what a job breaks on its own (MaxWall, MaxTRES, MinTRES, MaxTRESMins).
* `usage_threshold`: the fair share that a job needs (UsageThreshold).
* `node_cap`: to how many nodes limits cap a job (GrpTRES=node, MaxTRES=node).
* `limit_stop`: what a job holds up that a limit keeps out (assoc_limit_stop).
* `lifting`: limits that preempting may lift.
* `access`: who may use a partition (AllowAccounts, DenyQos, EnforcePartLimits).
* `barred`: what is said to a job that waits for a partition that it may not use.
* `ending`: running jobs that have to end, since minutes are used up.

At the submission:

* `submission`: who is taken and who is refused.
* `submits`: how many jobs may be present (GrpSubmitJobs, MaxSubmitJobs).
* `deny`: refusing jobs that break a limit on their own (DenyOnLimit).
* `given_time`: the time limit that limits give a job without one.

What is counted:

* `attendance`: who is present and who is active.
* `counts`: what they hold, by where they count.
* `elsewhere`: jobs that wait in several partitions.
* `requested`: the TRES that a job asks for by its words.
* `requests`: what it asks for, and which limits it does not pass for good.
* `asked`: the values that say so.

What comes of it:

* `judge`: all that limits know of one run.
* `waiting`: which limit keeps a pending job out.
* `answers`: that limit in words.
* `headroom`: knowing for sure that none keeps a job out.
* `room`: how much limits leave beside a job.
* `simple`: jobs of whom little has to be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from makeway.hookspecs import asked_at_submission, hookimpl, sure_by
from makeway.model import Blocked, Check, ClusterView, Job, Overdue, Seconds
from makeway_slurm.limits.judge import Judge, admitted
from makeway_slurm.limits.settings import Settings


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the class that holds the settings."""
    return Settings


def _let_in(view: ClusterView) -> Callable[[Job], Seconds]:
    """Say up to when limits surely let a job in."""
    return view.book(Judge).headroom.until


def _taken(view: ClusterView) -> Callable[[Job], bool]:
    """Say whether a job is surely taken."""
    return view.book(Judge).submission.takes


def _calm(view: ClusterView) -> Callable[[], Seconds]:
    """Say up to when no job that runs has to end."""
    if view.settings(Settings).safe:
        return lambda: math.inf
    return view.book(Judge).ending.calm_until


@hookimpl
@asked_at_submission
@sure_by(_let_in)
def makeway_admit(jobs: Sequence[Job], view: ClusterView) -> Mapping[str, Blocked]:
    """Say which pending jobs a limit keeps out."""
    return admitted(jobs, view)


@hookimpl
@sure_by(_taken)
def makeway_accept(jobs: Sequence[Job], view: ClusterView) -> Mapping[str, str]:
    """Refuse jobs that exceed what may be submitted, or that may never run."""
    submission = view.book(Judge).submission
    reasons = {job.id: submission.refused(job) for job in jobs}
    return {job_id: why for job_id, why in reasons.items() if why}


@hookimpl
@sure_by(_calm)
def makeway_overdue(view: ClusterView) -> Overdue | None:
    """End running jobs when what they may use is used up (6.4); with safe they only start if it lasts."""
    if view.settings(Settings).safe:
        return None
    return view.book(Judge).ending.overdue()


@hookimpl
def makeway_explain(job: Job, view: ClusterView) -> list[Check]:
    """Say which limit keeps a job out that waits, and how much of it is taken."""
    blocked = view.book(Judge).waiting.blocked(job, view)
    question = "does a limit of a QOS, an association or the partition keep it out?"
    if blocked is None:
        return [Check(code="LI1", verdict="pass", question=question, found="none does")]
    return [Check(code="LI1", verdict="fail", question=question, found=blocked.detail)]


__all__ = ["Settings"]

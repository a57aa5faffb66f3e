"""Hold jobs to the limits of QOS, associations and partitions, as Slurm does (slurm-priority-and-limits 6, 7).

A job that a limit keeps out holds up no other, and none makes way for it: limits are never lifted by preempting
(11.2). What the job has to wait for is said in Slurm's words.

Which limits there are, and what they hold for:

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

* `submission`: which jobs are taken and which are refused.
* `submits`: how many jobs may be present (GrpSubmitJobs, MaxSubmitJobs).
* `deny`: refusing jobs that break a limit on their own (DenyOnLimit).
* `given_time`: the time limit that limits give a job without one.

What is counted:

* `attendance`: which jobs are present and which are active.
* `counts`: what they hold, by where they count.
* `elsewhere`: jobs that wait in several partitions.
* `requested`: the TRES that a job asks for by its words.
* `requests`: what it asks for, and which limits it does not pass for good.
* `asked`: the values that say so.

What comes of it:

* `judge`: all that limits know of one run.
* `waiting`: which limit keeps a pending job out.
* `answers`: that limit in words.
"""

from __future__ import annotations

import math

from makeway.hookspecs import hookimpl
from makeway.model import Blocked, Check, ClusterView, Job, Limits, Overdue
from makeway_slurm.limits.judge import Judge
from makeway_slurm.limits.settings import Settings


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the class that holds the settings."""
    return Settings


class SlurmLimits(Limits):
    """The limits of QOS, associations and partitions."""

    asked_at_submission = True

    def __init__(self, view: ClusterView) -> None:
        """Judge by them."""
        judge = self._judge = view.book(Judge)
        self._safe = view.settings(Settings).safe
        self.surely_valid = judge.submission.takes
        self.calm_until = (lambda: math.inf) if self._safe else judge.ending.calm_until

    def validate(self, job: Job, view: ClusterView) -> str:
        """Refuse a job that exceeds what may be submitted, or that may never run."""
        return self._judge.submission.refused(job)

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say which limit keeps a pending job out."""
        return self._judge.waiting.blocked(job, view)

    def expired(self, view: ClusterView) -> Overdue | None:
        """End running jobs when what they may use is used up (6.4); with safe they only start if it lasts."""
        return None if self._safe else self._judge.ending.overdue()


@hookimpl
def makeway_limits(view: ClusterView) -> Limits:
    """Keep to the limits of the site."""
    return SlurmLimits(view)


@hookimpl
def makeway_explain(job: Job, view: ClusterView) -> list[Check]:
    """Say which limit keeps a job out that waits, and how much of it is taken."""
    blocked = view.book(Judge).waiting.blocked(job, view)
    question = "does a limit of a QOS, an association or the partition keep it out?"
    if blocked is None:
        return [Check(code="LI1", verdict="pass", question=question, found="none does")]
    return [Check(code="LI1", verdict="fail", question=question, found=blocked.detail)]


__all__ = ["Settings"]

"""Protect victims, each with a reason that people can read (lsf 4).

Any one protection is enough; none lifts another, save PREEMPT_JOBTYPE for kinds of jobs.
"""

from __future__ import annotations

from collections.abc import Callable

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_lsf_queue import jobs
from makeway_lsf_queue.site import Site

_TINY = 1e-6


class Guard:
    """Judges the candidates of one preemptor."""

    def __init__(self, site: Site, preemptor: Job, view: ClusterView, now: Seconds) -> None:
        self._site = site
        self._preemptor = preemptor
        self._view = view
        self._now = now
        self._reserving = _reserving(site, preemptor, view) if site.settings.backfill_guard == "7.3" else ()
        self.ask_again: list[Seconds] = []
        """When a protection ends by itself."""
        set_anywhere = site.protections
        by_level: tuple[tuple[str, Callable[[Job], str]], ...] = (
            ("run_time", self._run_time),
            ("finish_time", self._finish_time),
            ("interval", self._interval),
            ("most", self._count),
            ("total_time", self._total_time),
        )
        self._rules: tuple[Callable[[Job], str], ...] = (
            self._kind,
            self._backfill,
            self._service_class,
            self._gpu,
            *(rule for name, rule in by_level if name in set_anywhere),
        )

    def reason(self, job: Job) -> str:
        """Return why `job` may not be preempted; empty: it may."""
        for rule in self._rules:
            why = rule(job)
            if why:
                return why
        return ""

    # -------------------------------------------------------------------------- kinds of jobs
    def _kind(self, job: Job) -> str:
        site = self._site
        if site.settings.brun_protected and jobs.by_brun(job):
            return "started with brun"
        if jobs.is_exclusive(job) and not site.exclusive_may:
            return "exclusive (bsub -x); PREEMPT_JOBTYPE=EXCLUSIVE with LSB_DISABLE_LIMLOCK_EXCL=Y lifts that"
        if jobs.is_exclusive(job) and not site.queue_of(job).line.is_marked:
            return f"exclusive (bsub -x), of queue {job.partition.name} without PREEMPTION"
        if job.spec.attributes.get("affinity") and "AFFINITY" not in site.jobtypes:
            return "holds cores by affinity; PREEMPT_JOBTYPE=AFFINITY lifts that"
        return ""

    def _backfill(self, job: Job) -> str:
        """Section 7.1: jobs of backfill queues, whether they backfill or not."""
        site, queue = self._site, self._site.queue_of(job)
        if not queue.backfill:
            return ""
        if "BACKFILL" not in site.jobtypes:
            return "job of a backfill queue; PREEMPT_JOBTYPE=BACKFILL lifts that"
        if not queue.line.preemptable:
            return "job of a backfill queue without PREEMPTION=PREEMPTABLE"
        for other, nodes in self._reserving:
            started = job.started_at if job.started_at is not None else 0.0
            if started >= other.submit_at and job.nodes & nodes:
                return f"uses slots that job {other.id} of the higher queue {other.partition.name} reserves"
        return ""

    def _service_class(self, job: Job) -> str:
        name = jobs.service_class(job)
        ignored = self._site.queue_of(self._preemptor).ignores_sla
        if not name or ignored or not self._site.settings.sla_protected:
            return ""
        return (
            f"attached to service class {name}; SLA_GUARANTEES_IGNORE=Y in the preemptor's queue lifts that"
        )

    def _gpu(self, job: Job) -> str:
        """Section 8.3."""
        if not jobs.gpus(job):
            return ""
        if not self._site.gpus:
            return "holds GPUs; needs LSB_GPU_NEW_SYNTAX and ngpus_physical in PREEMPTABLE_RESOURCES"
        if not jobs.gpus(self._preemptor):
            return "holds GPUs, which the preemptor does not ask for"
        if jobs.shares_gpus(job):
            return "shares its GPUs: neither mode=exclusive_process nor j_exclusive=yes"
        if not (jobs.rerunnable(job, self._site) and jobs.may_migrate(job, self._site) is not None):
            return "holds GPUs and is not set up to migrate (MIG and RERUNNABLE)"
        return ""

    # ------------------------------------------------------------------------- how long it ran
    def _run_time(self, job: Job) -> str:
        portion = self._site.level_of(job).run_time
        if portion is None:
            return ""
        most = portion.of(jobs.duration(job, self._site))
        if most is None:
            return self._unknown(f"NO_PREEMPT_RUN_TIME is {portion}")
        ran = jobs.run_time(job, self._site, self._now)
        if ran < most - _TINY:
            return ""
        return f"has run {ran / 60:g} min, NO_PREEMPT_RUN_TIME is {portion}"

    def _finish_time(self, job: Job) -> str:
        portion = self._site.level_of(job).finish_time
        if portion is None:
            return ""
        whole = jobs.duration(job, self._site)
        near = portion.of(whole)
        if near is None or whole is None:
            return self._unknown(f"NO_PREEMPT_FINISH_TIME is {portion}")
        left = whole - jobs.run_time(job, self._site, self._now)
        if left > near + _TINY or (left < 0 and not self._site.settings.overrun_protected):
            return ""
        return f"finishes in {left / 60:g} min, NO_PREEMPT_FINISH_TIME is {portion}"

    def _unknown(self, rule: str) -> str:
        """Judge a job that has neither an estimate nor a run limit."""
        if self._site.settings.without_duration == "protected":
            return f"has neither an estimated run time nor a run limit, and {rule}"
        return ""

    def _interval(self, job: Job) -> str:
        least = self._site.level_of(job).interval
        if not least or job.state is not JobState.RUNNING:
            return ""
        run = jobs.unbroken_run(job, self._now)
        if run > least + _TINY:
            return ""
        # "longer than": at the very end of the interval the job is still safe, so ask right after it.
        self.ask_again.append(self._now + least - run + _AFTER)
        return f"has run {run / 60:g} min without a break, NO_PREEMPT_INTERVAL is {least / 60:g} min"

    # ----------------------------------------------------------------------------- how often
    def _count(self, job: Job) -> str:
        site = self._site
        most = site.level_of(job).most
        if most is None:
            return ""
        times = jobs.times_preempted(job, site)
        if times < most or (site.settings.preempt_count == "exceeded" and times == most):
            return ""
        return f"was preempted {times} times, MAX_JOB_PREEMPT is {most}"

    def _total_time(self, job: Job) -> str:
        most = self._site.level_of(job).total_time
        spent = jobs.time_preempted(job, self._now)
        if most is None or spent < most - _TINY:
            return ""
        return f"spent {spent / 60:g} min preempted, MAX_TOTAL_TIME_PREEMPT is {most / 60:g} min"


def _reserving(site: Site, preemptor: Job, view: ClusterView) -> tuple[tuple[Job, NodeBits], ...]:
    """Return pending jobs of reserving queues that are at least as high as the preemptor's (7.2, LSF 7.3).

    The preemptor itself takes nothing away from its own reservation.
    """
    mine = site.queue_of(preemptor).priority
    return tuple(
        (job, jobs.hosts_of(job))
        for job in view.pending
        if job is not preemptor
        and (queue := site.queue_of(job)).reserve_turns is not None
        and queue.priority >= mine
    )


_AFTER = 1e-3
"""A moment after an interval that has to be exceeded."""

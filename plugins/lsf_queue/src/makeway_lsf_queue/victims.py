"""Name what a job may preempt, in LSF's order (lsf 2.2, 3.2, 3.3, 3.5).

Suspended jobs whose slots the preemptor may use come first: they cost nothing (5.3).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs

from makeway.bitmap import NodeBits
from makeway.model import Candidates, ClusterView, Job, PreemptMode, Seconds
from makeway_lsf_queue import gaps, jobs, pacing, reserve
from makeway_lsf_queue.asking import KEY
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.limits import limits_of
from makeway_lsf_queue.protection import Guard
from makeway_lsf_queue.site import Rank, Site
from makeway_lsf_queue.slots import could_resume
from makeway_lsf_queue.survey import Survey, survey_of

_SUSPEND, _REQUEUE = PreemptMode.SUSPEND, PreemptMode.REQUEUE


def candidates(preemptor: Job, view: ClusterView, now: Seconds) -> Candidates:
    """Return the candidates of `preemptor`; the same for all that ask alike until a job comes or goes."""
    site = site_of(view)
    if site.has_reserving_queues or site.level_of(preemptor).delay:
        return _candidates(site, preemptor, view, now)
    survey = survey_of(site, view)
    survey.begin(view.now)
    named, key = survey.named, _asks(preemptor)
    known = named.get(key)
    if known is None:
        known = named[key] = _candidates(site, preemptor, view, now)
    return known


def _asks(preemptor: Job) -> object:
    """Return all that its candidates depend on, where no job collects slots."""
    wants = bool(jobs.gpus(preemptor)), bool(preemptor.spec.attributes.get("resize"))
    kinds = jobs.is_exclusive(preemptor), jobs.is_parallel(preemptor)
    order = preemptor.spec.attributes.get(KEY)
    return (preemptor.partition.name, jobs.hosts_of(preemptor), *kinds, *wants, order)


def _candidates(site: Site, preemptor: Job, view: ClusterView, now: Seconds) -> Candidates:
    held_back = _held_back(site, preemptor, now)
    lapses = _slots_let_go(site, preemptor, view, now)
    opens = pacing.opens_at(site, preemptor, view)
    lapses += [] if opens is None else [opens]
    if held_back is not None:
        again = [at for at in (held_back.ask_again_at, *lapses) if at is not None]
        return attrs.evolve(held_back, ask_again_at=min(again, default=None))
    targets = site.targets[preemptor.partition.name]
    survey = survey_of(site, view)
    protected: dict[str, str] = {}
    guard = Guard(site, preemptor, view, now)
    # Jobs elsewhere are of use only where a limit or a resource binds (9.3 HOSTS).
    anywhere = bool(limits_of(site) or site.settings.resources)
    hosts = -1 if anywhere else jobs.hosts_of(preemptor)
    running = _running(survey, targets, hosts, guard, protected)
    stopped = _stopped(survey, preemptor, guard, protected, view) if survey.stopped else []
    if len(running) > 1:
        running.sort(key=_key(survey, preemptor, targets, now))
    chosen = (*stopped, *running)
    return Candidates(
        jobs=chosen,
        modes=tuple(mode_of(job, site) for job in chosen),
        protected=protected,
        vacated=frozenset(job.id for job in stopped),
        note="" if running or protected else _no_victims(site, preemptor),
        ask_again_at=min([*guard.ask_again, *lapses], default=None),
        reason=reason_on_hosts(survey, preemptor, view),
    )


def _held_back(site: Site, preemptor: Job, now: Seconds) -> Candidates | None:
    """Return the answer for a job that may not preempt any other now (4.4, 4.6, 4.7)."""
    delay = site.level_of(preemptor).delay
    if delay and now < preemptor.spec.submit_at + delay:
        note = f"PREEMPT_DELAY: it may preempt {delay:g} s after its submission"
        return Candidates(note=note, reason=GRACE, ask_again_at=preemptor.spec.submit_at + delay)
    if jobs.is_exclusive(preemptor) and not site.exclusive_may:
        note = "an exclusive job preempts only with PREEMPT_JOBTYPE=EXCLUSIVE and LSB_DISABLE_LIMLOCK_EXCL=Y"
        return Candidates(note=note, reason="PEND_HOST_NONEXCLUSIVE")
    if jobs.is_exclusive(preemptor) and not site.queue_of(preemptor).line.is_marked:
        note = f"an exclusive job preempts only from a queue with PREEMPTION, and {preemptor.partition.name} has none"
        return Candidates(note=note, reason="PEND_HOST_NONEXCLUSIVE")
    if preemptor.spec.attributes.get("resize") and not site.settings.resize_preempts:
        return Candidates(note="a request to grow preempts no job")
    return None


def _slots_let_go(site: Site, preemptor: Job, view: ClusterView, now: Seconds) -> list[Seconds]:
    """Return when a job before this one lets go of the slots that it collects (7.1), if it does."""
    if not site.has_reserving_queues:
        return []
    at = reserve.lets_go_at(preemptor, site, view, now)
    return [] if at is None else [at]


GRACE = "6701"
"""Pending reason of a job that waits out PREEMPT_DELAY; the documentation gives it no name."""


def _running(
    survey: Survey, targets: Mapping[str, Rank], hosts: NodeBits, guard: Guard, protected: dict[str, str]
) -> list[Job]:
    """Return the running jobs of the target queues on `hosts` that nothing protects."""
    found: list[Job] = []
    for name in targets:
        for job in survey.running.get(name, ()):
            if not job.nodes & hosts:
                continue
            why = guard.reason(job)
            if why:
                protected[job.id] = why
            else:
                found.append(job)
    return found


def _stopped(
    survey: Survey,
    preemptor: Job,
    guard: Guard,
    protected: dict[str, str],
    view: ClusterView,
) -> list[Job]:
    """Return the suspended jobs whose slots the preemptor may use (5.3, 12 no. 3)."""
    site, mine = survey.site, preemptor.partition.name
    targets = site.targets[mine]
    kept_from = gaps.kept_from(site, survey, view, mine)
    found = []
    for job in survey.stopped:
        if job.partition.name in targets:
            # One that could go on at once is as good as running: what protects it protects it now.
            why = guard.reason(job)
            if why and could_resume(job, survey.used):
                protected[job.id] = why
            else:
                found.append(job)
        elif job.id not in kept_from:
            found.append(job)
    return found


# ------------------------------------------------------------------------------------------ order
def _key(
    survey: Survey, preemptor: Job, targets: Mapping[str, Rank], now: Seconds
) -> Callable[[Job], tuple[object, ...]]:
    """Return the comparator of section 3.5."""
    site = survey.site
    by_preference = site.queue_of(preemptor).line.has_preferences
    by_run_time = "LEAST_RUN_TIME" in site.preempt_for
    ranks = {} if by_run_time else survey.host_ranks(preemptor)
    youngest = -1 if site.settings.ties == "youngest" else 1
    by_queue = by_preference or site.settings.same_host == "priority"

    def key(job: Job) -> tuple[object, ...]:
        queue = job.partition.name
        return (
            # 1. the queue with the better preference number, where any has one (row 6)
            targets[queue] if by_preference else (),
            # 2. the shortest run, or the least loaded host
            jobs.run_time(job, site, now) if by_run_time else _rank(job, ranks),
            # 3. the lower queue
            site.queues[queue].priority if by_queue else 0,
            # 4. the latest start, then the larger id
            youngest * (job.started_at or 0.0),
            youngest * job.index,
        )

    return key


def _rank(job: Job, ranks: Mapping[int, int]) -> int:
    """Return the rank of the best of its hosts."""
    allocation = job.allocation
    indices = allocation.node_indices if allocation is not None else ()
    return min((ranks[index] for index in indices if index in ranks), default=len(ranks))


# ------------------------------------------------------------------------------------------ modes
@functools.lru_cache(maxsize=4)
def modes_of(site: Site) -> Callable[[Job], PreemptMode]:
    """Return what says of a job how it makes way."""
    return functools.partial(mode_of, site=site)


def mode_of(job: Job, site: Site) -> PreemptMode:
    """Return how a job makes way (6.1)."""
    manner = site.queue_of(job).manner
    migrates = manner.migrates
    mode = manner.mode
    if jobs.gpus(job) and mode is _SUSPEND:
        mode, migrates = _REQUEUE, True
    elif mode is _REQUEUE and not job.spec.batch:
        mode = _SUSPEND  # brequeue does not work on interactive jobs
    if mode is _REQUEUE and migrates and jobs.checkpointable(job, site):
        mode = PreemptMode.CHECKPOINT
    return mode


# ----------------------------------------------------------------------------------------- reasons
def _no_victims(site: Site, preemptor: Job) -> str:
    if not site.preemption:
        return "preemption is off: no queue is preemptive or preemptable"
    mine = preemptor.partition.name
    names = ", ".join(site.targets[mine])
    return f"no job of {names} runs" if names else f"queue {mine} may preempt no other queue"


def reason_on_hosts(survey: Survey, preemptor: Job, view: ClusterView) -> str:
    """Return LSF's name for what stands in the way on the hosts (section 10)."""
    mine = jobs.hosts_of(preemptor)
    if survey.exclusive and not mine & ~survey.exclusive:
        return "PEND_HOST_EXCLUSIVE"
    if jobs.is_exclusive(preemptor):
        return "PEND_HOST_NONEXCLUSIVE"
    stopped = gaps.not_offered(survey.site, survey, preemptor.partition.name)
    if stopped and not mine & ~(survey.exclusive | stopped):
        return "PEND_HOST_JOB_SSUSP"
    fresh = pacing.closed(survey.site, preemptor, view)
    if fresh and not mine & ~(survey.exclusive | stopped | fresh):
        return pacing.WAITS
    return "PEND_HOST_LESS_SLOTS" if jobs.is_parallel(preemptor) else "PEND_HOST_JOB_LIMIT"

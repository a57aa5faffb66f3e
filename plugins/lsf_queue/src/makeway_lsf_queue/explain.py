"""Go through what keeps a pending job from starting or preempting, for ``makeway explain`` (lsf 2.2, 4.7, 5)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.hostlist import fold_hostlist
from makeway.model import Check, ClusterView, Job, JobState, Seconds
from makeway_lsf_queue import jobs, judging, resources
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.relation import why_not
from makeway_lsf_queue.settings import NAME
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.victims import mode_of

PASS, FAIL = "pass", "fail"
_SHOWN = 5


def checks(job: Job, view: ClusterView, now: Seconds) -> list[Check]:
    """Return the list: the right to preempt, the preemptor's wait, its kind, limits, shared resources."""
    site = site_of(view)
    counted = Counted.of(site, view, functools.partial(mode_of, site=site))
    limits = _limits(site, counted, job)
    return [
        _right(site, job),
        *_wait(site, job, now),
        *_kind(site, job),
        *limits,
        *_out_of_reach(site, job, view),
    ]


def _check(code: str, passed: bool, question: str, found: str, setting: str = "") -> Check:
    return Check(code=code, verdict=PASS if passed else FAIL, question=question, found=found, setting=setting)


def _right(site: Site, job: Job) -> Check:
    """2.2: whose jobs the queue may take."""
    mine, targets = job.partition.name, site.targets[job.partition.name]
    by_rank = sorted(targets, key=lambda name: targets[name])
    found = f"yes: {', '.join(by_rank)}" if targets else f"no: {_why_none(site, mine)}"
    setting = f"partition[{job.partition.index}].attributes.PREEMPTION"
    return _check("Q1", bool(targets), f"may queue {mine} preempt others?", found, setting)


def _why_none(site: Site, mine: str) -> str:
    if not site.preemption:
        return "preemption is off, no queue is PREEMPTIVE or PREEMPTABLE"
    lower = [q.name for q in site.queues.values() if q.priority < site.queues[mine].priority]
    if not lower:
        return "no queue has a lower PRIORITY"
    return f"it is not entitled to any of the lower queues {', '.join(lower)}"


def _out_of_reach(site: Site, job: Job, view: ClusterView) -> Iterator[Check]:
    """2.2: the running jobs on its hosts that are none of its victims, by queue; jobs of others may be protected."""
    mine, hosts = site.queue_of(job), jobs.hosts_of(job)
    running: dict[str, list[str]] = {}
    for other in view.active:
        if other.state is JobState.RUNNING and other.nodes & hosts:
            running.setdefault(other.partition.name, []).append(other.id)
    for name in sorted(running.keys() - site.targets[mine.name].keys()):
        queue = site.queues[name]
        why = why_not(mine, queue, site.settings)
        decides = queue if queue.line.preemptable and queue.line.by is not None else mine
        setting = f"partition[{decides.index}].attributes.PREEMPTION"
        if mine is queue or mine.priority <= queue.priority:
            setting = f"partition[{queue.index}].attributes.PRIORITY"
        found = f"no: {why}; running: {_few(running[name])}"
        yield Check(
            code="Q6",
            verdict="warning",
            question=f"may it take jobs of queue {name}?",
            found=found,
            setting=setting,
        )


def _few(ids: Sequence[str]) -> str:
    more = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _wait(site: Site, job: Job, now: Seconds) -> Iterator[Check]:
    """4.7: PREEMPT_DELAY."""
    delay = site.level_of(job).delay
    if delay:
        left = job.spec.submit_at + delay - now
        found = f"{delay:g} s are over" if left <= 0 else f"not for another {left:g} s"
        yield _check("Q2", left <= 0, "is PREEMPT_DELAY over?", found)


def _kind(site: Site, job: Job) -> Iterator[Check]:
    """4.4: exclusive jobs."""
    if jobs.is_exclusive(job):
        lifted = "PREEMPT_JOBTYPE=EXCLUSIVE and LSB_DISABLE_LIMLOCK_EXCL=Y"
        found = f"yes: {lifted}" if site.exclusive_may else f"no: that takes {lifted}"
        setting = f'policy.settings."{NAME}".params.PREEMPT_JOBTYPE'
        marked = site.queue_of(job).line.is_marked
        if site.exclusive_may and not marked:
            found = f"no: queue {job.partition.name} has no PREEMPTION"
            setting = f"partition[{job.partition.index}]"
        yield _check("Q3", site.exclusive_may and marked, "may an exclusive job preempt?", found, setting)


def _names(hosts: NodeBits, counted: Counted) -> str:
    """Return host names, folded; empty: none."""
    return fold_hostlist(counted.view.cluster.nodes[index].name for index in bitmap.indices(hosts))


def _limits(site: Site, counted: Counted, job: Job) -> Iterator[Check]:
    """5 and 8.1: each limit that is about the job, with its count."""
    for verdict in judging.verdicts(site, counted, job):
        check = _check(
            "Q4",
            verdict.fits,
            f"is there room under {verdict.limit.label}?",
            verdict.count,
            verdict.setting,
        )
        elsewhere = not verdict.fits and judging.leaves_other_hosts(verdict.limit, job)
        shut = (
            _names(judging.closed_by(counted, verdict.limit, job), counted) if verdict.limit.per_host else ""
        )
        if elsewhere or (verdict.fits and shut):
            found = f"{check.found}; closed to it: {shut}" if shut else check.found
            check = attrs.evolve(check, verdict="warning", found=found)
        yield check
    short = resources.blocked(site, counted, job)
    if jobs.rusage(job):
        found = short.detail if short is not None else "yes"
        yield _check("Q5", short is None, "are the shared resources there that it reserves?", found)

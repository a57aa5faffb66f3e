"""Keep the slots of suspended jobs for those that may use them (lsf 5.3).

A suspended job keeps its slots, whichever cores it happens to hold: they are for queues with a preemption relation
to its own. Beyond that, the first host of a job that the system has suspended is not offered to queues of the same
or a lower priority at all (PEND_HOST_JOB_SSUSP).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobState
from makeway_lsf_queue import jobs
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import covered, held_on
from makeway_lsf_queue.survey import KeptSlots, Survey


def kept_hosts(job: Job, site: Site, survey: Survey, view: ClusterView) -> NodeBits:
    """Return the hosts that suspended jobs close to `job`, a pending one."""
    if not survey.suspended:
        return 0
    mine = job.partition.name
    known, used, wanted = slots_kept(site, survey, view, mine), survey.used, job.spec.cpus
    full = known.short.get(wanted)
    if full is None:
        full = known.short[wanted] = bitmap.of([at for at, left in known.left.items() if left < wanted])
    gone = [other for other in view.made_way if other.state is JobState.RUNNING]
    if gone:
        freed = full & functools.reduce(operator.or_, (other.nodes for other in gone))
        for index in bitmap.indices(freed):
            if used.nodes[index].cpus - used.running(index, gone) - known.on[index] >= wanted:
                full ^= 1 << index
    return not_offered(site, survey, mine) | full & jobs.hosts_of(job)


def not_offered(site: Site, survey: Survey, mine: str) -> NodeBits:
    """Return the first hosts of SSUSP jobs of queues of the same or a higher priority than `mine`."""
    known = survey.not_offered.get(mine)
    if known is None:
        known = survey.not_offered[mine] = _not_offered(site, survey, mine)
    return known


def _not_offered(site: Site, survey: Survey, mine: str) -> NodeBits:
    if not site.settings.ssusp_closes_host:
        return 0
    priority = site.queues[mine].priority
    closed = 0
    for name, hosts in survey.stopped_first.items():
        lets_in = site.use_susp_slots and site.may_preempt(name, mine)
        if site.queues[name].priority >= priority and not lets_in:
            closed |= hosts
    return closed


def may_use(site: Site, view: ClusterView, mine: str, stopped: Job) -> bool:
    """Whether jobs of queue `mine` may use the slots of a suspended job (5.3, 12 no. 3)."""
    always, between = _relation(site, mine, stopped.partition.name)
    if always or not between:
        return always
    return covered(stopped, view, lambda other: other.partition.name in between)


def _relation(site: Site, mine: str, below: str) -> tuple[bool, frozenset[str]]:
    """Return whether the slots of suspended jobs of queue `below` are for `mine`, whatever runs there.

    Beside that, the queues whose jobs may be taken from `mine`, and may themselves have taken from `below`.
    """
    known = site.slots_of.get((mine, below))
    if known is None:
        related = site.may_preempt(mine, below) or (site.use_susp_slots and site.may_preempt(below, mine))
        between = (name for name in site.targets.get(mine, ()) if site.may_preempt(name, below))
        known = related, frozenset(between if site.settings.chain else ())
        site.slots_of[mine, below] = known
    return known


def kept_slots(site: Site, survey: Survey, view: ClusterView, mine: str) -> dict[int, int]:
    """Return host -> slots of suspended jobs that are not for queue `mine`."""
    return slots_kept(site, survey, view, mine).on


def kept_from(site: Site, survey: Survey, view: ClusterView, mine: str) -> Collection[str]:
    """Return the ids of the suspended jobs whose slots queue `mine` may not use, as `may_use` says."""
    return slots_kept(site, survey, view, mine).by_job


def slots_kept(site: Site, survey: Survey, view: ClusterView, mine: str) -> KeptSlots:
    """Return the slots of suspended jobs that are not for queue `mine`, with the jobs."""
    known = survey.kept.get(mine)
    if known is None:
        relations = [_relation(site, mine, below) for below in site.queues]
        covered = any(between and not always for always, between in relations)
        known = survey.kept[mine] = KeptSlots(covered=covered)
        survey.any_covered = survey.any_covered or covered
    if known.stale:
        _look_again(known, site, survey, view, mine)
    if known.changed:
        used, on = survey.used, known.on
        for index in bitmap.indices(known.changed & known.hosts):
            known.left[index] = used.nodes[index].cpus - used.running(index) - on[index]
        known.changed = 0
        known.short.clear()
    return known


def _look_again(kept: KeptSlots, site: Site, survey: Survey, view: ClusterView, mine: str) -> None:
    """Look at those jobs again that came, went, were stopped or go on, or on whose hosts any job did.

    The latter only where it counts what runs there (`KeptSlots.covered`): of all others their queues say whose slots
    these are.
    """
    stale, kept.stale = kept.stale, 0
    on, jobs_on = kept.on, kept.jobs_on
    there: dict[str, None] = {}
    for at in bitmap.indices(stale) if stale >= 0 else list(jobs_on):
        if at in jobs_on:
            there |= jobs_on[at]
    for job_id in there:
        hosts, held_there = kept.by_job.pop(job_id)
        kept.changed |= hosts
        for index, held in held_there:
            del jobs_on[index][job_id]
            left = on.get(index, 0) - held
            if left:
                on[index] = left
            else:
                on.pop(index, None)
                kept.left.pop(index, None)
                kept.hosts &= ~(1 << index)
    nodes = survey.used.nodes
    for job in survey.suspended_on(stale):
        if not may_use(site, view, mine, job):
            held_there = tuple(
                (index, held_on(job, index, nodes[index].cpus)) for index in bitmap.indices(job.nodes)
            )
            kept.by_job[job.id] = job.nodes, held_there
            kept.changed |= job.nodes
            for index, held in held_there:
                on[index] = on.get(index, 0) + held
                kept.hosts |= 1 << index
                jobs_on.setdefault(index, {})[job.id] = None

"""Keep out what a limit, dedicated time or a stopped queue keeps out, pending or suspended (sections 2.6 and 5.1)."""

from __future__ import annotations

from collections.abc import Iterator

from makeway.model import Blocked, ClusterView, Job, JobState, Seconds
from makeway_openpbs_sched import calendar
from makeway_openpbs_sched.limits import Usage, hit_hard
from makeway_openpbs_sched.reasons import Reason
from makeway_openpbs_sched.room import Room
from makeway_openpbs_sched.site import QRUN, Site, usage_of


def blocked(job: Job, view: ClusterView, now: Seconds, site: Site) -> Blocked | None:
    """Return what keeps a job out, be it suspended; None: nothing does."""
    found = _refused(job, site) or _by_time(job, now, site) or _by_limits(job, usage_of(site, view), site)
    if found is None and job.state is JobState.SUSPENDED and not can_resume(job, view, now, site):
        return Blocked(reason="its vnodes are in use", resource="vnodes")
    return found


def incurable(job: Job, now: Seconds, site: Site) -> bool:
    """Whether something blocks `job` that no preemption can cure (section 2.6)."""
    return _refused(job, site) is not None or _by_time(job, now, site) is not None


def _refused(job: Job, site: Site) -> Blocked | None:
    attributes = job.partition.attributes
    for key, text in (("started", "the queue is not started"), ("enabled", "the queue takes no jobs")):
        if attributes.get(key) is False and (key == "started" or job.state is JobState.PENDING):
            return Blocked(
                reason=text, resource="queue", detail=f"{key} = False of queue {job.partition.name}"
            )
    try:
        site.targets(job)
    except ValueError as error:
        return Blocked(reason="preempt_targets is refused", resource="preempt_targets", detail=str(error))
    return None


def _by_time(job: Job, now: Seconds, site: Site) -> Blocked | None:
    if QRUN in job.spec.flags:
        return None
    until = site.dedicated(job, now)
    if until is None:
        return None
    text = f"it would run into dedicated time, which ends at {until:g} s"
    return Blocked(reason="dedicated time", resource="time", detail=text, ask_again_at=until)


def limits_hit(job: Job, usage: Usage, site: Site) -> Iterator[tuple[Reason, float, float]]:
    """Yield the hard limits that a start of `job` would break: the server's, then its queue's."""
    if QRUN in job.spec.flags or not site.any_hard:
        return
    queue = job.partition.name
    yield from hit_hard(job, site.server, "", usage)
    yield from hit_hard(job, site.queues[queue], queue, usage)


def _by_limits(job: Job, usage: Usage, site: Site) -> Blocked | None:
    for reason, wanted, left in limits_hit(job, usage, site):
        return Blocked(
            reason=reason.text,
            resource=reason.resource,
            wanted=wanted,
            available=max(0.0, left),
            detail=f"{wanted:g} wanted, {max(0.0, left):g} left",
            liftable=True,
        )
    return None


def can_resume(job: Job, view: ClusterView, now: Seconds, site: Site) -> bool:
    """Whether a suspended job may go on now: room on its own vnodes, limits, time, and no job ahead (section 5)."""
    if _refused(job, site) or _by_time(job, now, site):
        return False
    if any(limits_hit(job, usage_of(site, view), site)):
        return False
    if job.nodes & calendar.closed(job, view, now, site):
        return False
    room = Room(view.cluster, site.settings.restrict_res_to_release_on_suspend, view.active)
    return room.could_resume(job, view.up & ~view.completing)

"""Let limits and shared resources keep jobs out, pending ones and suspended ones (lsf 5, 6.3, 8.1)."""

from __future__ import annotations

from makeway.bitmap import NodeBits
from makeway.model import Blocked, ClusterView, Job
from makeway_lsf_queue import gaps, jobs, judging, opening, resources
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted, sums_now
from makeway_lsf_queue.limits import limits_of
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.sums import Sums
from makeway_lsf_queue.survey import survey_of
from makeway_lsf_queue.victims import modes_of


def blocked(job: Job, view: ClusterView) -> Blocked | None:
    """Return what keeps a job out; None: nothing does."""
    site = site_of(view)
    wrong = jobs.refused(job, site)
    if wrong:
        return Blocked(reason="PEND_JOB_NEW", detail=wrong, never=True)
    why = opening.blocked(site, job, view.now) if site.has_windows else None
    if why is None and (limits_of(site) or site.settings.resources):
        return _blocked(site, counted(site, view), job)
    return why


def counted(site: Site, view: ClusterView) -> Counted:
    """Return what active jobs take of limits."""
    return Counted.of(site, view, modes_of(site))


def _blocked(site: Site, counted: Counted, job: Job) -> Blocked | None:
    found = judging.blocked(site, counted, job)
    return resources.blocked(site, counted, job) if found is None and site.settings.resources else found


def full_hosts(job: Job, view: ClusterView) -> NodeBits:
    """Return the hosts that limits, suspended jobs, or RES_REQ of its queue or its own close to `job`."""
    site = site_of(view)
    survey = survey_of(site, view)
    kept = gaps.kept_hosts(job, site, survey, view) | site.unselected(job)
    if not limits_of(site):
        return kept
    return kept | judging.closed(site, counted(site, view), job)


def sums_of(site: Site, view: ClusterView) -> Sums | None:
    """Return what active jobs take of limits, as things stand; None: more than active jobs counts."""
    return None if site.has_reserving_queues else sums_now(site, view, modes_of(site))


def keeps_stopped(
    site: Site, job: Job, view: ClusterView, known: dict[str, judging.Stopper] | None = None
) -> bool:
    """Whether a suspended job would break a limit, or lack a resource, if it went on; or its window is closed.

    :param known: job id -> the limit that stopped it last; kept for the next time.
    """
    if opening.may_not_run(site, job, view.now):
        return True
    if not limits_of(site) and not site.settings.resources:
        return False
    now = counted(site, view)
    stopped = judging.stopper(now, job, known.pop(job.id, None) if known else None)
    if stopped is not None:
        if known is not None:
            known[job.id] = stopped
        return True
    return resources.blocked(site, now, job) is not None

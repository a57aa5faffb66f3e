"""Tell at a glance which pending jobs would be tried in vain, whoever made way for them (spec lsf 5.1, 5.3).

Two things are looked at. A limit may be taken up by jobs that would count in it whatever became of those that may be
preempted. Or the hosts lack slots: what running jobs hold that may not be preempted, and suspended jobs keep, leaves
too few. What is said here is what a try comes to; `tests/test_in_vain.py` holds one to the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, ModeFlag, OverSubscribe
from makeway_lsf_queue import gaps, jobs, judging
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.limits import Counts
from makeway_lsf_queue.requested import Bound, Request
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.sums import Sums
from makeway_lsf_queue.survey import Survey, survey_of
from makeway_lsf_queue.victims import mode_of, reason_on_hosts

_MANY = 10_000
"""So many requests are kept compiled."""


def in_vain(view: ClusterView) -> Callable[[Job], str | None] | None:
    """Return what says why a job would wait if it were tried; None: more than limits and slots counts."""
    site = site_of(view)
    return None if site.settings.resources or _looks_at_time(site) else _Glance(site, view)


def _looks_at_time(site: Site) -> bool:
    """Whether a try may come to something else by time alone."""
    paced = site.accept_interval or any(queue.accept_interval for queue in site.queues.values())
    return bool(
        site.anybody_reserves or site.has_windows or paced or any(level.interval for level in site.levels)
    )


class _Glance:
    """Looks at the jobs of one run."""

    def __init__(self, site: Site, view: ClusterView) -> None:
        self._site = site
        self._view = view
        shared = any(part.oversubscribe != OverSubscribe() for part in view.cluster.partitions)
        threads = any(node.cpus != node.cores for node in view.cluster.nodes)
        self._whole_cores = not (shared or threads or ModeFlag.GANG in view.preempt_mode.flags)
        self._version = -1
        self._said: dict[object, str | None] = {}
        """What was said to those who ask for the same, at that version of the cluster."""
        self._requests: dict[object, Request] = {}
        self._refused: dict[tuple[str, str], bool] = {}
        self._modes = functools.partial(mode_of, site=site)

    def __call__(self, job: Job) -> str | None:
        view, spec = self._view, job.spec
        beyond = spec.licenses or spec.licenses_any or spec.gres or spec.gres_total or spec.attributes
        if beyond or spec.exclusive is not None or view.heterogeneous or self._is_refused(job):
            return None
        if not jobs.hosts_of(job):
            return None
        if self._version != view.version:
            self._version = view.version
            self._said.clear()
        counted = Counted.of(self._site, view, self._modes)
        asked = counted.request(job), spec.oversubscribe
        if asked not in self._said:
            self._said[asked] = self._reason(counted, job)
        return self._said[asked]

    def _reason(self, counted: Counted, job: Job) -> str | None:
        below = self._site.targets[job.partition.name]
        sums = counted.brought()
        request = self._request(counted, job)
        found = request.first(sums)
        if found is not None:
            if _stays(sums, request, found, below) or self._finds_no_room(counted, job, below):
                return found.reason(counted, sums, job)
            return None
        if not self._finds_no_room(counted, job, below):
            return None
        survey = survey_of(self._site, self._view)
        # While no host is closed, whoever could never run is told so when it is tried.
        if not gaps.not_offered(self._site, survey, job.partition.name) and not judging.closed(
            self._site, counted, job
        ):
            return None
        return reason_on_hosts(survey, job, self._view)

    def _request(self, counted: Counted, job: Job) -> Request:
        """Return the limits about jobs that ask for the same."""
        key = counted.request(job)
        known = self._requests.get(key)
        if known is None:
            if len(self._requests) >= _MANY:
                self._requests.clear()
            known = self._requests[key] = Request.of(counted, job)
        return known

    def _finds_no_room(self, counted: Counted, job: Job, below: Container[str]) -> bool:
        """Whether its hosts have too few slots for it, all together, whoever makes way."""
        if not self._whole_cores or job.spec.oversubscribe:
            return False
        survey, queue = survey_of(self._site, self._view), job.partition.name
        asked = queue, jobs.hosts_of(job), job.spec.cpus
        lacks = survey.lacking.get(asked)
        if lacks is None:
            lacks = survey.lacking[asked] = self._lacks_slots(survey, job, below, 0)
        if lacks:
            return True
        closed = _closed_for_good(counted, job, below)
        return bool(closed) and self._lacks_slots(survey, job, below, closed)

    def _lacks_slots(self, survey: Survey, job: Job, below: Container[str], closed: NodeBits) -> bool:
        """Whether too few slots are left on its hosts without those that are `closed`."""
        queue, wanted = job.partition.name, job.spec.cpus
        kept = gaps.kept_slots(self._site, survey, self._view, queue)
        hosts = jobs.hosts_of(job) & ~(closed | gaps.not_offered(self._site, survey, queue))
        left = 0
        for index, free in lasting_room(survey, queue, below):
            held = kept.get(index, 0)
            if hosts >> index & 1 and (not held or free - held >= min(wanted, survey.used.nodes[index].cpus)):
                left += free
        return left < wanted

    def _is_refused(self, job: Job) -> bool:
        who = job.partition.name, job.user
        known = self._refused.get(who)
        if known is None:
            known = self._refused[who] = bool(jobs.refused(job, self._site))
        return known


def _stays(sums: Sums, request: Request, first: Bound, below: Container[str]) -> bool:
    """Whether a limit would keep the job out whoever of the queues `below`, or of suspended jobs, made way."""
    if first in request.lasting and sums.lasting(first.share, below) + first.wanted > first.bound:
        return True
    return any(sums.lasting(each.share, below) + each.wanted > each.bound for each in request.lasting)


def _closed_for_good(counted: Counted, job: Job, below: Container[str]) -> NodeBits:
    """Return the hosts that limits close to a job, whoever of the queues `below`, or of suspended jobs, makes way."""
    sums = counted.brought()
    closed: NodeBits = 0
    for limit, key, _ in sums.about(job):
        if not limit.per_host and (limit.hosts is None or limit.counts is Counts.JOBS):
            continue
        if not sums.may_fall((limit, key), below):
            closed |= judging.closed_by(counted, limit, job)
    return closed


def lasting_room(survey: Survey, queue: str, below: Container[str]) -> Sequence[tuple[int, int]]:
    """Return the hosts where jobs of `queue` could get cores, whoever made way for them, and how many."""
    known = survey.room.get(queue)
    if known is None:
        busy: dict[int, int] = {}
        for name, running in survey.running.items():
            if name in below:
                continue
            for job in running:
                held = job.allocation
                if held is not None and held.cores is not None:
                    for index, cores in zip(held.node_indices, held.cores, strict=True):
                        busy[index] = busy.get(index, 0) | cores
        left = ((node.index, node.cores - busy.get(node.index, 0).bit_count()) for node in survey.used.nodes)
        known = survey.room[queue] = [(index, free) for index, free in left if free]
    return known

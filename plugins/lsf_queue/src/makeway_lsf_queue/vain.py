"""Tell at a glance which pending jobs would be tried in vain, whoever made way for them (spec lsf 5.1, 5.3).

Two things are looked at. A limit may be taken up by jobs that would count in it whatever became of those that may be
preempted. Or the hosts lack slots: what running jobs hold that may not be preempted, and suspended jobs keep, leaves
too few. What is said here is what a try comes to; `tests/test_in_vain.py` holds one to the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobSpec, JobState, ModeFlag, OverSubscribe, Partition
from makeway_lsf_queue import gaps, jobs, judging
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.limits import Counts
from makeway_lsf_queue.requested import Bound, Request
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.sums import Cell, Sums
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


@attrs.define(eq=False)
class _Said:
    """What is known of the jobs of one request, and what was said of them last."""

    request: Request
    whose: tuple[str, NodeBits, int]
    """Their queue, their hosts, how many slots they want."""
    below: Container[str]
    """Whose jobs they may preempt."""
    never_lacks: bool
    """Whether slots say nothing about them."""
    version: int = -1
    """Of the cluster, when they were asked about last."""
    reason: str | None = None
    taken: int = -1
    """Of the limits about them, by which the rest was found."""
    first: Bound | None = None
    """The first limit that keeps them out."""
    limit: str = ""
    """The reason that it gives."""
    stays: bool = False
    """Whether a limit keeps them out whoever makes way."""
    watched: tuple[Cell, ...] = ()
    """If one does: what `limit` and `stays` depend on."""
    watched_at: int = -1
    """What their versions add up to."""
    closed: NodeBits | None = None
    """Hosts that limits close to them; None: not looked at yet."""
    closed_for_good: NodeBits | None = None
    """The same, whoever makes way."""


@attrs.frozen
class _Asked:
    """A job as it was when its request was looked up."""

    spec: JobSpec
    partition: Partition
    required: NodeBits
    excluded: NodeBits
    size: int
    said: _Said | None
    """None: its request is not all that counts."""


class _Glance:
    """Looks at the jobs of one run."""

    def __init__(self, site: Site, view: ClusterView) -> None:
        self._site = site
        self._view = view
        shared = any(part.oversubscribe != OverSubscribe() for part in view.cluster.partitions)
        threads = any(node.cpus != node.cores for node in view.cluster.nodes)
        self._whole_cores = not (shared or threads or ModeFlag.GANG in view.preempt_mode.flags)
        self._asked: dict[str, _Asked] = {}
        """By the job's id."""
        self._said: dict[object, _Said] = {}
        """By all that a request depends on."""
        self._refused: dict[tuple[str, str], bool] = {}
        self._modes = functools.partial(mode_of, site=site)
        self._counted: tuple[int, Counted] | None = None
        """What counts, at a version of the cluster."""

    def __call__(self, job: Job) -> str | None:
        view, said = self._view, self._said_of(job)
        if said is None or view.heterogeneous:
            return None
        if said.version != view.version:
            said.reason = self._reason(said, job)
            said.version = view.version
        return said.reason

    def _said_of(self, job: Job) -> _Said | None:
        """Return what is known of the request of a job; None: more than its request counts."""
        known = self._asked.get(job.id)
        if (
            known is None
            or known.spec is not job.spec
            or known.partition is not job.partition
            or known.required != job.required
            or known.excluded != job.excluded
            or known.size != job.size
        ):
            if len(self._asked) >= _MANY:
                self._asked.clear()
            said = self._new(job)
            known = _Asked(job.spec, job.partition, job.required, job.excluded, job.size, said)
            self._asked[job.id] = known
        return known.said

    def _new(self, job: Job) -> _Said | None:
        spec, hosts = job.spec, jobs.hosts_of(job)
        beyond = spec.licenses or spec.licenses_any or spec.gres or spec.gres_total or spec.attributes
        if beyond or spec.exclusive is not None or self._is_refused(job) or not hosts:
            return None
        counted = Counted.of(self._site, self._view, self._modes)
        asked = counted.request(job), spec.oversubscribe
        known = self._said.get(asked)
        if known is None:
            if len(self._said) >= _MANY:
                self._said.clear()
                self._asked.clear()
            queue = job.partition.name
            known = self._said[asked] = _Said(
                Request.of(counted, job),
                (queue, hosts, spec.cpus),
                self._site.targets[queue],
                not self._whole_cores or bool(spec.oversubscribe),
            )
        return known

    def _reason(self, said: _Said, job: Job) -> str | None:
        version = self._view.version
        if self._counted is None or self._counted[0] != version:
            self._counted = version, Counted.of(self._site, self._view, self._modes)
        counted = self._counted[1]
        sums = counted.brought()
        if said.request.sums is not sums:
            said.request, said.taken, said.stays = Request.of(counted, job), -1, False
        if said.stays and sum([cell.version for cell in said.watched]) == said.watched_at:
            return said.limit
        self._look_at_limits(said, counted, job)
        if said.first is not None:
            return said.limit if said.stays or self._finds_no_room(said, counted, job) else None
        if not self._finds_no_room(said, counted, job):
            return None
        survey = survey_of(self._site, self._view)
        queue, hosts, wanted = said.whose
        # While no host is closed, whoever could never run is told so when it is tried.
        if not gaps.not_offered(self._site, survey, queue):
            if said.closed is None:
                said.closed = judging.closed(self._site, counted, job)
            if not said.closed:
                return None
        asked = queue, hosts, wanted > 1
        reason = survey.reasons.get(asked)
        if reason is None:
            reason = survey.reasons[asked] = reason_on_hosts(survey, job, self._view)
        return reason

    @staticmethod
    def _look_at_limits(said: _Said, counted: Counted, job: Job) -> None:
        """Find the first limit that keeps jobs out, unless nothing was taken or given back since."""
        request = said.request
        taken = request.version()
        if taken == said.taken:
            return
        first = said.first = request.first()
        said.limit = "" if first is None else first.reason(counted, job)
        said.stays = first is not None and _stays(request.sums, request, first, said.below)
        if first is not None and said.stays:
            alone = _stays_by(request.sums, request, first, said.below)
            said.watched = request.until(first) if alone else request.cells
            said.watched_at = sum([cell.version for cell in said.watched])
        said.closed = said.closed_for_good = None
        said.taken = taken

    def _finds_no_room(self, said: _Said, counted: Counted, job: Job) -> bool:
        """Whether its hosts have too few slots for it, all together, whoever makes way."""
        if said.never_lacks:
            return False
        survey = survey_of(self._site, self._view)
        lacks = survey.lacking.get(said.whose)
        if lacks is None:
            lacks = survey.lacking[said.whose] = self._lacks_slots(survey, said, 0)
        if lacks:
            return True
        closed = said.closed_for_good
        if closed is None:
            closed = said.closed_for_good = _closed_for_good(counted, job, said.below)
        return bool(closed) and self._lacks_slots(survey, said, closed)

    def _lacks_slots(self, survey: Survey, said: _Said, closed: NodeBits) -> bool:
        """Whether too few slots are left on its hosts without those that are `closed`."""
        wanted, left = said.whose[2], 0
        for index, free in self._roomy(survey, said):
            if not closed >> index & 1:
                left += free
                if left >= wanted:
                    return False
        return True

    def _roomy(self, survey: Survey, said: _Said) -> Sequence[tuple[int, int]]:
        """Return the hosts of `lasting_room` that such jobs may use, with how many slots."""
        known = survey.roomy.get(said.whose)
        if known is None:
            queue, hosts, wanted = said.whose
            kept = gaps.kept_slots(self._site, survey, self._view, queue)
            hosts &= ~gaps.not_offered(self._site, survey, queue)
            nodes = survey.used.nodes
            known = survey.roomy[said.whose] = [
                (index, free)
                for index, free in lasting_room(survey, self._view, queue, said.below)
                if hosts >> index & 1
                and (not (held := kept.get(index, 0)) or free - held >= min(wanted, nodes[index].cpus))
            ]
        return known

    def _is_refused(self, job: Job) -> bool:
        who = job.partition.name, job.user
        known = self._refused.get(who)
        if known is None:
            known = self._refused[who] = bool(jobs.refused(job, self._site))
        return known


def _stays(sums: Sums, request: Request, first: Bound, below: Container[str]) -> bool:
    """Whether a limit would keep the job out whoever of the queues `below`, or of suspended jobs, made way."""
    return _stays_by(sums, request, first, below) or any(
        sums.lasting(each.share, below) + each.wanted > each.bound for each in request.lasting
    )


def _stays_by(sums: Sums, request: Request, first: Bound, below: Container[str]) -> bool:
    """Whether the first limit that keeps the job out would do so whoever made way."""
    return first in request.lasting and sums.lasting(first.share, below) + first.wanted > first.bound


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


def lasting_room(
    survey: Survey, view: ClusterView, queue: str, below: Container[str]
) -> Sequence[tuple[int, int]]:
    """Return the hosts where jobs of `queue` could get cores, whoever made way for them, and how many.

    Only hosts on which anything has changed are looked at again; `room_at_length` looks at all of them.
    """
    known = survey.room.get(queue)
    if known is None:
        kept, stale = survey.lasting.get(queue, ({}, -1))
        if stale < 0:
            kept = {node.index: 0 for node in survey.used.nodes}
            stale = bitmap.of(list(kept))
        for index in bitmap.indices(stale):
            kept[index] = _lasting_on(survey, view, index, below)
        survey.lasting[queue] = kept, 0
        known = survey.room[queue] = [(index, free) for index, free in kept.items() if free]
    return known


def _lasting_on(survey: Survey, view: ClusterView, index: int, below: Container[str]) -> int:
    busy = 0
    for job in view.jobs_on(index):
        held = job.allocation
        if (
            job.state is JobState.RUNNING
            and job.preempt_at is None
            and job.partition.name not in below
            and held is not None
            and held.cores is not None
        ):
            busy |= held.cores[held.node_indices.index(index)]
    return survey.used.nodes[index].cores - busy.bit_count()


def room_at_length(survey: Survey, below: Container[str]) -> Sequence[tuple[int, int]]:
    """Return what `lasting_room` comes to, job by job."""
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
    return [(index, free) for index, free in left if free]

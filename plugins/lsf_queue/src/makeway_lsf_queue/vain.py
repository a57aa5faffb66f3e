"""Tell at a glance which pending jobs would be tried in vain, whatever made way for them (lsf 5.1, 5.3).

Two things are looked at. A limit may be taken up by jobs that would count in it whatever became of those that may be
preempted. Or the hosts lack slots: what running jobs hold that may not be preempted, and suspended jobs keep, leaves
too few. What is said here is what a try comes to; `tests/test_in_vain.py` holds one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, ModeFlag, OverSubscribe
from makeway_lsf_queue import gaps, jobs, judging
from makeway_lsf_queue.capacity import Hosts, Shutter, holds_nothing
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.presence import presence_of
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.sums import Cell, Share
from makeway_lsf_queue.survey import Room, survey_of
from makeway_lsf_queue.victims import modes_of

_MANY = 10_000
"""So many requests are kept compiled."""


def inadmissible(view: ClusterView) -> Callable[[Job], str | None] | None:
    """Return what says why a job would wait (`makeway.model.Limits`); None: more than limits and slots counts."""
    site = site_of(view)
    return None if site.settings.resources or _looks_at_time(site) else _Glance(site, view)


def _looks_at_time(site: Site) -> bool:
    """Whether a try may come to something else by time alone."""
    timed = any(level.interval for level in site.levels)
    return bool(site.has_reserving_queues or site.has_windows or site.paces or timed)


@attrs.define(eq=False)
class _Said:
    """What is known of the jobs of one request, and what was said of them last."""

    cells: tuple[Cell, ...]
    """What is taken of all limits that are about them."""
    below: Container[str]
    """Whose jobs they may preempt."""
    never_lacks: bool
    """Whether slots say nothing about them."""
    hosts: Hosts
    """Their hosts, and how many slots they want there."""
    own: tuple[Shutter | Share, ...]
    """Limits that may close hosts to them, and not to all who want as much of these hosts."""
    version: int = -1
    """Of the cluster, when they were asked about last."""
    reason: str | None = None
    taken: int = -1
    """Of the limits about them, by which the rest was found."""
    limit: str = ""
    """The reason of the first limit that keeps them out; empty: none does."""
    stays: bool = False
    """Whether a limit keeps them out whatever makes way."""
    closed: NodeBits | None = None
    """Hosts that limits close to them; None: not looked at yet."""
    closed_for_good: NodeBits | None = None
    """The same, whatever makes way."""


class _Glance:
    """Looks at the jobs of one run."""

    def __init__(self, site: Site, view: ClusterView) -> None:
        self.site = site
        self._view = view
        shared = any(part.oversubscribe != OverSubscribe() for part in view.cluster.partitions)
        threads = any(node.cpus != node.cores for node in view.cluster.nodes)
        self._whole_cores = not (shared or threads or ModeFlag.GANG in view.preempt_mode.flags)
        self._said: dict[object, _Said] = {}
        """By all that a request depends on."""
        self._hosts: dict[object, Hosts] = {}
        """By queue, hosts, what is wanted of each, and the limits that close some of them to all who want that."""
        self._refused: dict[tuple[str, str], bool] = {}
        self._modes = modes_of(site)
        self._counted: tuple[int, Counted] | None = None
        """What counts, at a version of the cluster."""

    def __call__(self, job: Job) -> str | None:
        view = self._view
        said = self._said_of(job)
        if said is None or presence_of(view).any_heterogeneous:
            return None
        if said.version != view.version:
            said.reason = self._reason(said, job)
            said.version = view.version
        return said.reason

    def _counted_now(self) -> Counted:
        version = self._view.version
        if self._counted is None or self._counted[0] != version:
            self._counted = version, Counted.of(self.site, self._view, self._modes)
        return self._counted[1]

    def _said_of(self, job: Job) -> _Said | None:
        """Return what is known of the request of a job; None: more than its request counts."""
        spec, hosts = job.spec, jobs.hosts_of(job)
        beyond = spec.licenses or spec.licenses_any or spec.gres or spec.gres_total or spec.attributes
        if beyond or spec.exclusive is not None or self._is_refused(job) or not hosts:
            return None
        counted = self._counted_now()
        beside = bool(job.required)  # a selector may add others to the hosts that a job requires
        asked = counted.request(job), spec.oversubscribe, beside
        known = self._said.get(asked)
        if known is None:
            if len(self._said) >= _MANY:
                self._said.clear()
            counted.brought()
            queue, sums = job.partition.name, counted.sums
            shared, own = _closing(counted, job)
            known = self._said[asked] = _Said(
                tuple({sums.cell((limit, key)): None for limit, key, _ in sums.about(job)}),
                self.site.targets[queue],
                not self._whole_cores or bool(spec.oversubscribe) or beside,
                self._hosts_of(queue, hosts, job, tuple(shared)),
                tuple(self._shutter(counted, job, *share) if share[0].per_host else share for share in own),
            )
        return known

    def _hosts_of(self, queue: str, hosts: NodeBits, job: Job, shared: tuple[Share, ...]) -> Hosts:
        spec, counted = job.spec, self._counted_now()
        asked = queue, hosts, spec.cpus, spec.memory_mb_per_node, spec.memory_mb_per_cpu, shared
        known = self._hosts.get(asked)
        if known is None:
            shutters = tuple(self._shutter(counted, job, limit, key) for limit, key in shared)
            known = self._hosts[asked] = Hosts(self.site, queue, hosts, spec.cpus, job, Room(), shutters)
        return known

    def _shutter(self, counted: Counted, job: Job, limit: Limit, key: str) -> Shutter:
        bound = limit.bound(key)
        assert bound is not None
        rows = judging.rows_of(counted, limit, job, bound)
        return Shutter(limit, key, counted.brought(), rows, self.site.targets[job.partition.name])

    def _reason(self, said: _Said, job: Job) -> str | None:
        counted = self._counted_now()
        counted.brought()
        self._look_at_limits(said, counted, job)
        if said.stays:
            return said.limit
        survey, where = survey_of(self.site, self._view), said.hosts
        if said.limit and holds_nothing(self.site, where.queue, survey, self._view):
            return said.limit
        if not self._finds_no_room(said, counted, job):
            return None
        if said.limit:
            return said.limit
        # While no host is closed, a job that could never run is told so when it is tried.
        if not gaps.not_offered(self.site, survey, where.queue):
            if said.closed is None:
                said.closed = judging.closed(self.site, counted, job)
            if not said.closed:
                return None
        return where.look(survey, self._view)[2]

    @staticmethod
    def _look_at_limits(said: _Said, counted: Counted, job: Job) -> None:
        """Find the first limit that keeps jobs out, unless nothing was taken or given back since."""
        taken = sum(cell.version for cell in said.cells)
        if taken == said.taken:
            return
        first = judging.first_limit(counted, job)
        said.limit = "" if first is None else judging.reason_of(counted, *first, job)
        said.stays = first is not None and _stays(counted, job, said.below)
        said.closed = said.closed_for_good = None
        said.taken = taken

    def _finds_no_room(self, said: _Said, counted: Counted, job: Job) -> bool:
        """Whether its hosts have too few slots for it, all together, whatever makes way."""
        if said.never_lacks:
            return False
        lacks, _, _ = said.hosts.look(survey_of(self.site, self._view), self._view)
        if lacks:
            return True
        closed = said.closed_for_good
        if closed is None:
            closed = said.closed_for_good = _closed_for_good(counted, job, said.own, said.below)
        if not closed:
            return False
        left, wanted = 0, said.hosts.wanted
        for index, free in said.hosts.room.free.items():
            if not closed >> index & 1:
                left += free
                if left >= wanted:
                    return False
        return left < wanted

    def _is_refused(self, job: Job) -> bool:
        who = job.partition.name, job.user
        known = self._refused.get(who)
        if known is None:
            known = self._refused[who] = bool(jobs.refused(job, self.site))
        return known


def _stays(counted: Counted, job: Job, below: Container[str]) -> bool:
    """Whether any limit would keep a job out, whichever jobs of the queues `below`, or suspended, made way."""
    sums = counted.sums
    return any(
        sums.lasting((limit, key), below) + judging.wanted_of(job, limit, counted) > bound
        for limit, key, bound in sums.about(job)
        if limit.counts is Counts.SLOTS and limit.hosts is None and not limit.per_host
    )


def _closed_for_good(
    counted: Counted, job: Job, own: Sequence[Shutter | Share], below: Container[str]
) -> NodeBits:
    """Return the hosts that limits close to a job, whichever jobs of the queues `below`, or suspended, make way."""
    sums = counted.brought()
    closed: NodeBits = 0
    for each in own:
        if isinstance(each, Shutter):
            closed |= each.bits()
        elif not sums.cell(each).may_fall(below):
            closed |= judging.closed_by(counted, each[0], job)
    return closed


def _closing(counted: Counted, job: Job) -> tuple[list[Share], list[Share]]:
    """Return the limits that may close hosts to a job: those per host that do not depend on its user, and others."""
    shared: list[Share] = []
    own: list[Share] = []
    for limit, key, _ in counted.sums.about(job):
        if not limit.per_host and (limit.hosts is None or limit.counts is Counts.JOBS):
            continue
        for_all = limit.per_host and job.user not in key.split("/")
        (shared if for_all else own).append((limit, key))
    return shared, own

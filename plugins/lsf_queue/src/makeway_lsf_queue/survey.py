"""Look over the active jobs, and remember it; who starts, stops, goes on or leaves is looked at again."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import Allocation, Candidates, ClusterView, Exclusive, Job, JobState, Seconds
from makeway_lsf_queue import jobs, opening
from makeway_lsf_queue.changes import Changes
from makeway_lsf_queue.presence import MEMO, News, Presence, presence_of
from makeway_lsf_queue.requirement import SLOTS, Order, size_of
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.slots import Used

_by_index = operator.attrgetter("index")
_SUSPENDED, _RUNNING = JobState.SUSPENDED, JobState.RUNNING
_NODE = Exclusive.NODE


_MOST_STARTED = 1_000
"""So many jobs are kept as just started, if nothing asks what they leave free."""
Ground = tuple[NodeBits, dict[int, int], dict[int, int]]
"""Hosts that suspended jobs close to a queue, cores that it could get on each host, and slots kept from it there."""


class Seen:
    """The active jobs as they were looked at last, from one survey to the next."""

    def __init__(self, presence: Presence) -> None:
        """Begin with no job."""
        self.hosts: dict[str, NodeBits] = {}
        """Id of an active job -> its hosts."""
        self.used = Used(presence.view)
        self.running: dict[str, list[Job]] = {}
        """Running jobs that were not told to leave, by queue, in job-table order."""
        self.suspended: list[Job] = []
        """Jobs suspended by the system or by people, in job-table order."""
        self.suspended_on: dict[int, dict[str, Job]] = {}
        """The same by host, by id."""
        self.stopped: list[Job] = []
        """Those suspended by the system."""
        self.exclusive: dict[str, NodeBits] = {}
        """Exclusive jobs, each with its hosts."""
        self.places: dict[str, tuple[object, ...]] = {}
        """Id of a suspended job -> its place among those that may go on; filled by `resume`."""
        self.attributed: set[str] = set()
        """Active jobs that say more than their fields do."""
        self._listed: dict[str, tuple[Job, list[Job]]] = {}
        """Id -> in which list of `running` or `suspended` a job stands."""
        self.stopped_ids: set[str] = set()
        """Those of `stopped`."""
        self.changes = Changes()
        """Hosts where a job came, went, was stopped or goes on."""
        self.lasting: dict[str, Lasting] = {}
        """By queue; brought up to date by `capacity`."""
        self.lasting_stale: NodeBits = 0
        """Hosts where that is to be looked at anew."""
        self.just_started: list[tuple[str, Allocation]] = []
        """Queue and cores of jobs that nothing else has happened to: these cores are to be added on other hosts."""

    def look_at(self, job_id: str, job: Job | None) -> tuple[NodeBits, bool]:
        """Look at a job again; return its hosts, then and now, and whether the suspended ones are others, or others'.

        :param job: None: it is no longer active.
        """
        changed = self.hosts.pop(job_id, 0)
        self.exclusive.pop(job_id, None)
        known = self._listed.pop(job_id, None)
        stops = False
        if known is not None:
            _strike_off(known[1], known[0])
            if known[1] is self.suspended:
                stops = True
                _strike_off(self.stopped, known[0])
                self.stopped_ids.discard(job_id)
                self.places.pop(job_id, None)
                for index in bitmap.indices(changed):
                    del self.suspended_on[index][job_id]
        if job is None:
            self.attributed.discard(job_id)
            return changed, stops
        hosts = self.hosts[job_id] = job.nodes
        if job.spec.attributes:
            self.attributed.add(job_id)
        if job.spec.exclusive is _NODE:
            self.exclusive[job_id] = hosts
        if job.state is _SUSPENDED:
            self._list(job, self.suspended)
            if jobs.is_suspended(job):
                bisect.insort(self.stopped, job, key=_by_index)
                self.stopped_ids.add(job_id)
            for index in bitmap.indices(hosts):
                self.suspended_on.setdefault(index, {})[job_id] = job
            stops = True
        elif job.state is _RUNNING and job.preempt_at is None:
            name = job.partition.name
            if name not in self.running:
                self.running[name] = []
            self._list(job, self.running[name])
        return changed | hosts, stops

    def _list(self, job: Job, listed: list[Job]) -> None:
        bisect.insort(listed, job, key=_by_index)
        self._listed[job.id] = job, listed


def _strike_off(listed: list[Job], job: Job) -> None:
    at = bisect.bisect_left(listed, job.index, key=_by_index)
    if at < len(listed) and listed[at] is job:
        del listed[at]


class Survey:
    """What all candidates are made of; it stays the same object, and follows what comes and goes."""

    def __init__(self, site: Site, version: int, seen: Seen, news: News) -> None:
        """Look over the active jobs.

        :param version: of the cluster.
        :param news: all of them.
        """
        self.site = site
        self.version = version
        self.seen = seen
        self.used = seen.used
        self.running = seen.running
        """Running jobs that were not told to leave, by queue, in job-table order."""
        self.stopped = seen.stopped
        """Jobs suspended by the system, in job-table order."""
        self.suspended = seen.suspended
        """Those, and jobs suspended by people."""
        self.stuck: dict[str, NodeBits] = {}
        """Suspended jobs that cannot have their slots, whatever they stop -> their hosts; filled by `resume`."""
        self.held: set[str] = set()
        """Suspended jobs that a limit stops, until it is looked at again; filled by `resume`."""
        self.held_now: set[str] = set()
        """Suspended jobs that something else was found to stop at this moment; filled by `resume`."""
        self.not_offered: dict[str, NodeBits] = {}
        """Queue -> first hosts of suspended jobs that are closed to it; filled by `gaps`."""
        self.kept: dict[str, KeptSlots] = {}
        """Queue -> slots of suspended jobs that are not for that queue; filled by `gaps`."""
        self.any_covered = False
        """Whether it counts for any of them who runs on those slots; set by `gaps`."""
        self.named: dict[object, Candidates] = {}
        """What was said to jobs that may preempt the same others, at this version and at `futile_at`; filled by
        `victims`."""
        self.futile: set[object] = set()
        """Requests, with their candidates, for which no choice of victims makes room then."""
        self.futile_at = -1.0
        self.grounds: dict[str, Ground] = {}
        """Queue -> what its jobs could get; filled by `capacity`."""
        self.listed: dict[NodeBits, list[int]] = {}
        """Hosts one by one; likewise."""
        self._suspended_on: dict[NodeBits, Sequence[Job]] = {}
        self._ranks: dict[tuple[NodeBits, tuple[NodeBits, ...], Order], Mapping[int, int]] = {}
        self.exclusive: NodeBits = 0
        """Hosts of exclusive jobs."""
        self.stopped_first: dict[str, NodeBits] = {}
        """Queue -> the first hosts of its jobs that the system suspended."""
        self._look_at(news)
        self.stopped_first = self._first_hosts()

    def begin(self, now: Seconds) -> None:
        """Forget what was said to jobs at another moment; to be called before it is looked at."""
        if self.futile_at != now:
            self.futile_at = now
            self.futile.clear()
            self.named.clear()

    def _look_at(self, news: News) -> tuple[NodeBits, NodeBits, NodeBits]:
        """Look at jobs again; return their hosts, then and now.

        Beside these, those of jobs that were or are suspended, and of jobs that did anything else than start.
        """
        seen = self.seen
        changed: NodeBits = 0
        stops: NodeBits = 0
        freed: NodeBits = 0
        for job_id, job in news.items():
            known = job_id in seen.hosts
            hosts, other = seen.look_at(job_id, job)
            changed |= hosts
            if other:
                stops |= hosts
            if known:
                freed |= hosts
            if known or other or job is None or len(seen.just_started) >= _MOST_STARTED:
                seen.lasting_stale |= hosts
            elif (
                seen.lasting
                and job.state is _RUNNING
                and job.preempt_at is None
                and (held := job.allocation) is not None
                and held.cores is not None
            ):
                seen.just_started.append((job.partition.name, held))
        self.used.forget_on(changed)
        if seen.exclusive or self.exclusive:
            self.exclusive = 0
            for hosts in seen.exclusive.values():
                self.exclusive |= hosts
        return changed, stops, freed

    def follow(self, version: int, news: News) -> None:
        """Be of the cluster as it is by now: what was found out stays where no job came, went or was stopped.

        :param news: which jobs changed.
        """
        self.version = version
        if self.held_now:
            self.held_now.clear()
        if self.named:
            self.named.clear()
        if self.futile:
            self.futile.clear()
        if self.grounds:
            self.grounds.clear()
        if self.listed:
            self.listed.clear()
        if self._suspended_on:
            self._suspended_on.clear()
        if self._ranks:
            self._ranks.clear()
        changed, stops, freed = self._look_at(news)
        if self.held:
            self.held.difference_update(news)
        if stops:
            self.stopped_first = self._first_hosts()
            self.not_offered.clear()
        if self.stuck:
            for job_id in news:
                self.stuck.pop(job_id, None)
            if freed:  # what starts takes slots, and stopping it again leaves no more than before
                for job in self.suspended_on(freed):
                    self.stuck.pop(job.id, None)
        for kept in self.kept.values():
            kept.changed |= changed
            kept.stale |= changed if kept.covered else stops
        if self.any_covered:
            for job in self.suspended_on(changed):
                changed |= job.nodes  # whose slots these are may be another matter now
        self.seen.changes.add(changed)

    def suspended_on(self, hosts: NodeBits) -> Sequence[Job]:
        """Return the jobs suspended by the system or by people that have any of some hosts; in any order."""
        if hosts < 0:
            return self.suspended
        found = self._suspended_on.get(hosts)
        if found is None:
            on = self.seen.suspended_on
            there: dict[str, Job] = {}
            for index in bitmap.indices(hosts):
                if index in on:
                    there |= on[index]
            found = self._suspended_on[hosts] = list(there.values())
        return found

    def _first_hosts(self) -> dict[str, NodeBits]:
        found: dict[str, NodeBits] = {}
        hosts_of, windows = self.seen.hosts, self.site.has_run_windows
        for job in self.stopped:
            if windows and opening.by_window(self.site, job):
                continue  # it closes no host (5.3)
            name, hosts = job.partition.name, hosts_of[job.id]
            found[name] = found.get(name, 0) | (hosts & -hosts)
        return found

    def busy_at(self, view: ClusterView, index: int) -> Mapping[str, CoreBits]:
        """Return which cores of a host running jobs of each queue use; who is to leave is left out."""
        busy: dict[str, CoreBits] = {}
        for job in view.jobs_on(index):
            held = job.allocation
            if (
                job.state is _RUNNING
                and job.preempt_at is None
                and held is not None
                and (cores := held.cores) is not None
            ):
                name = job.partition.name
                mine = cores[held.node_indices.index(index)] if len(cores) > 1 else cores[0]
                busy[name] = busy[name] | mine if name in busy else mine
        return busy

    def host_ranks(self, job: Job) -> Mapping[int, int]:
        """Return host -> place in the order in which hosts are considered for a job, the best first (3.3)."""
        key = (job.partition.nodes, self.site.queue_of(job).preferred, self.site.order_of(job))
        known = self._ranks.get(key)
        if known is None:
            known = self._ranks[key] = {index: at for at, index in enumerate(self.sorted_hosts(*key))}
        return known

    def sorted_hosts(self, hosts: NodeBits, preferred: tuple[NodeBits, ...], order: Order) -> list[int]:
        """Return hosts by preference, then by what `order` says, then the least loaded first (3.3, 9.3)."""
        nodes, by_config = self.used.nodes, self.site.settings.host_order
        level = {index: at for at, bits in enumerate(preferred) for index in bitmap.indices(bits)}

        def size(index: int, name: str) -> float:
            node = nodes[index]
            return node.cpus - self.used.running(index) if name == SLOTS else size_of(node, name)

        def load(index: int) -> tuple[object, ...]:
            node, place = nodes[index], level.get(index, len(preferred))
            said = tuple(
                (size(index, name) if least_first else -size(index, name)) for name, least_first in order
            )
            if by_config == "config":
                return (place, said, 0.0, 0.0, index)
            share = self.used.running(index) / max(1, node.cpus)
            return (place, said, node.load if by_config == "load" else 0.0, share, index)

        return sorted((node.index for node in nodes if hosts >> node.index & 1), key=load)


@attrs.define(eq=False)
class Room:
    """Slots that jobs of one queue could get, whatever made way, where no limit closes a host to all of them;
    filled by `capacity`."""

    free: dict[int, int] = attrs.field(factory=dict)
    """By host; hosts without any are left out."""
    total: int = 0
    not_offered: NodeBits = 0
    """Hosts that suspended jobs close."""
    read: int = -1
    """How many of the changes on hosts it follows already (`Seen.changes`)."""


@attrs.define(eq=False)
class Lasting:
    """How many cores no running jobs use, save those that the jobs of one queue may preempt; filled by `capacity`."""

    free: dict[int, int]
    """By host."""
    used: dict[int, CoreBits]
    """Host -> the cores that are not."""


class KeptSlots:
    """Slots of suspended jobs that are not for one queue; filled by `gaps`."""

    def __init__(self, *, covered: bool) -> None:
        """Begin with no job.

        :param covered: whether it also counts what runs on those slots, not only of which queues the jobs are.
        """
        self.covered = covered
        self.on: dict[int, int] = {}
        """By host; hosts without any are left out."""
        self.hosts: NodeBits = 0
        """Those hosts."""
        self.left: dict[int, int] = {}
        """By host, the slots beside these that no job runs on."""
        self.short: dict[int, NodeBits] = {}
        """Hosts with fewer left than so many."""
        self.changed: NodeBits = 0
        """Hosts where that is to be counted anew."""
        self.by_job: dict[str, tuple[NodeBits, tuple[tuple[int, int], ...]]] = {}
        """Suspended job -> its hosts, and what it keeps on each."""
        self.jobs_on: dict[int, dict[str, None]] = {}
        """Host -> those jobs."""
        self.stale: NodeBits = -1
        """Hosts where that is to be looked at anew."""


def survey_of(site: Site, view: ClusterView) -> Survey:
    """Return the survey of the cluster as it is."""
    presence = MEMO.presence if MEMO.view is view else None
    if presence is None:
        presence = presence_of(view)
    known: Survey | None = presence.survey
    version = view.version
    if known is None or known.site is not site:
        presence.news_for_survey()
        in_order = sorted(presence.active.values(), key=_by_index)
        all_jobs: News = {job.id: job for job in in_order}
        known = presence.survey = Survey(site, version, Seen(presence), all_jobs)
    elif known.version != version:
        known.follow(version, presence.news_for_survey())
    return known

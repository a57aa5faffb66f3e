"""Know how many slots the jobs of a queue could get on their hosts if all others made way (lsf 5.1, 5.3)."""

from __future__ import annotations

from collections.abc import Container

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import ClusterView, Job
from makeway_lsf_queue import gaps, judging
from makeway_lsf_queue.limits import Limit
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.sums import Rows, Sums
from makeway_lsf_queue.survey import Ground, Lasting, Room, Survey
from makeway_lsf_queue.victims import reason_on_hosts


class Shutter:
    """A limit per host that is about all jobs of a queue that want so many slots: which hosts it closes for good."""

    def __init__(self, limit: Limit, key: str, sums: Sums, rows: Rows, below: Container[str]) -> None:
        """Look at a limit.

        :param rows: of those jobs, from `judging.rows_of`.
        :param below: whose jobs they may preempt.
        """
        self.cell = sums.cell((limit, key))
        self._closed = judging.closed_in(self.cell, rows)
        self._below = below
        self.version = -1
        self.kept_bits: NodeBits = 0

    def bits(self) -> NodeBits:
        """Return the hosts that it closes, whatever makes way."""
        if self.version != self.cell.version:
            self.version = self.cell.version
            if self.cell.may_fall(self._below):
                self.kept_bits = 0
            else:
                self.kept_bits = self._closed.now(self.cell)
        return self.kept_bits


@attrs.define(eq=False)
class Hosts:
    """The hosts of jobs of a queue that want so many slots: whether these are enough, and what stands in the way."""

    site: Site
    queue: str
    hosts: NodeBits
    wanted: int
    job: Job
    """One of them."""
    room: Room
    shutters: tuple[Shutter, ...]
    """Limits that close some of them to all of those jobs."""
    closed: NodeBits = 0
    """Those that these close for good."""
    _reason: tuple[NodeBits, NodeBits, str] = (-1, -1, "")
    """The hosts that it depends on, and the reason."""
    _seen: int = -1
    """Version of the survey by which they were looked at last."""
    _answer: tuple[bool, bool, str] = (False, False, "")

    def look(self, survey: Survey, view: ClusterView) -> tuple[bool, bool, str]:
        """Return whether they lack slots, whatever makes way; whether any host is closed; what stands in the way."""
        if self._seen == survey.version:
            return self._answer
        bring_up_to_date(self, survey, view)
        lacks, closed = self.room.total < self.wanted, self.room.not_offered
        exclusive, offered, reason = self._reason
        if exclusive != survey.exclusive or offered != closed:
            reason = reason_on_hosts(survey, self.job, view)
            self._reason = survey.exclusive, closed, reason
        self._seen = survey.version
        self._answer = lacks, bool(closed), reason
        return self._answer


def holds_nothing(site: Site, queue: str, survey: Survey, view: ClusterView) -> bool:
    """Whether no job could make way for those of a queue, or let them use its slots."""
    kept_from = gaps.kept_from(site, survey, view, queue)
    if len(kept_from) < len(survey.suspended):
        return False
    return not any(survey.running.get(name) for name in site.targets[queue])


def bring_up_to_date(of: Hosts, survey: Survey, view: ClusterView) -> None:
    """Look again at hosts where a job came, went, was stopped or goes on."""
    room = of.room
    ground = survey.grounds.get(of.queue)
    if ground is None:
        ground = survey.grounds[of.queue] = _ground(of, survey, view)
    offered, lasting, kept = ground
    closed: NodeBits = 0
    for shutter in of.shutters:
        closed |= shutter.kept_bits if shutter.version == shutter.cell.version else shutter.bits()
    stale = (offered ^ room.not_offered) | (closed ^ of.closed)
    changes = survey.seen.changes
    if room.read != changes.end:
        stale |= changes.since(room.read)
        room.read = changes.end
    stale &= of.hosts
    room.not_offered, of.closed = offered, closed
    if not stale:
        return
    listed = survey.listed.get(stale)
    if listed is None:
        listed = survey.listed[stale] = list(bitmap.indices(stale))
    nodes, free_on = survey.used.nodes, room.free
    shut = offered | closed
    for index in listed:
        free = 0
        if not shut >> index & 1:
            free = lasting[index]
            if index in kept and free - kept[index] < min(of.wanted, nodes[index].cpus):
                free = 0
        before = free_on.get(index, 0)
        if free != before:
            room.total += free - before
            if free:
                free_on[index] = free
            else:
                del free_on[index]


def _ground(of: Hosts, survey: Survey, view: ClusterView) -> Ground:
    """Return which hosts are closed to a queue, which cores it could get there, and which slots are kept from it."""
    site, mine = of.site, of.queue
    offered = gaps.not_offered(site, survey, mine)
    lasting = lasting_on(survey, view, mine)
    return offered, lasting, gaps.kept_slots(site, survey, view, mine)


def lasting_on(survey: Survey, view: ClusterView, queue: str) -> dict[int, int]:
    """Return host -> how many cores jobs of `queue` could get there if all others made way.

    Only hosts on which anything has changed are looked at again, once for all queues.
    """
    seen, every = survey.seen, survey.seen.lasting
    if queue not in every:
        hosts = [node.index for node in survey.used.nodes]
        every[queue] = Lasting(dict.fromkeys(hosts, 0), dict.fromkeys(hosts, 0))
        seen.lasting_stale = bitmap.of(hosts)
    if seen.just_started:
        _add_started(survey)
    if seen.lasting_stale:
        _look_at_hosts(survey, view)
    return every[queue].free


def _add_started(survey: Survey) -> None:
    """Count the cores of jobs that have just started, on hosts that are not looked at anew."""
    seen, whole = survey.seen, survey.used.cores
    of_each = [(survey.site.targets[name], each.free, each.used) for name, each in seen.lasting.items()]
    stale = seen.lasting_stale
    for queue, held in seen.just_started:
        for index, cores in zip(held.node_indices, held.cores or (), strict=True):
            if not stale >> index & 1:
                for targets, free, used in of_each:
                    if queue not in targets:
                        used[index] |= cores
                        free[index] = whole[index] - used[index].bit_count()
    seen.just_started.clear()


def _look_at_hosts(survey: Survey, view: ClusterView) -> None:
    """Look at all that run on hosts where a job left, was stopped or goes on."""
    seen, whole = survey.seen, survey.used.cores
    of_each = [(survey.site.targets[name], each.free, each.used) for name, each in seen.lasting.items()]
    for index in bitmap.indices(seen.lasting_stale):
        busy, cores = survey.busy_at(view, index), whole[index]
        all_held: CoreBits = 0
        for held in busy.values():
            all_held |= held
        for targets, free, used in of_each:
            mine = all_held
            if targets and not targets.keys().isdisjoint(busy):
                mine = 0
                for name, held in busy.items():
                    if name not in targets:
                        mine |= held
            used[index] = mine
            free[index] = cores - mine.bit_count()
    seen.lasting_stale = 0

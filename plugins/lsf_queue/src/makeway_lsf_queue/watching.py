"""Know whose answer may be another one by now: limits that were crossed, and hosts that gained or lost room.

What `vain` says of a request holds until one of these changes. Only who watches what changed is asked again.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import ClusterView, Job, Standing
from makeway_lsf_queue import gaps, judging
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.protection import why_by_count
from makeway_lsf_queue.requested import Bound, Request
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.sums import Rows, Share, Sums, lasting_in, may_fall_in
from makeway_lsf_queue.survey import Ground, Lasting, Room, Survey
from makeway_lsf_queue.victims import reason_on_hosts
from makeway_lsf_queue.vocabulary import PARALLEL

State = tuple[object, ...]


class Gate:
    """Where a limit stands for all who want as much of it: open or shut, and for how long."""

    def __init__(self, bound: Bound, below: Container[str] | None) -> None:
        """Look at a limit.

        :param below: whose jobs they may preempt; None: it does not keep anybody out whoever makes way.
        """
        self.bound = bound
        self.watchers: dict[State, dict[Said, None]] = {}
        """Those whose answer rests on how it stood, by that."""
        self._below = below
        limit = bound.limit
        self._tells_size = limit.counts is Counts.SLOTS and limit.reason in PARALLEL
        self.version = -1
        """Of what is taken, when it was looked at last."""
        self.state: State = self.look()
        """How it stood then."""

    @property
    def keeps_out(self) -> bool:
        """Whether it lets nobody in whoever makes way, as it stood when it was looked at last."""
        return bool(self.state[2])

    def look(self) -> tuple[bool, bool, bool]:
        """Return whether it lets jobs in, else whether smaller ones, else whether it would not whoever made way."""
        bound = self.bound
        cell = bound.cell
        self.version = cell.version
        if bound.rows is not None:
            return bound.lets_in(), False, False
        running, stopped = cell.total
        total = running + stopped if bound.limit.suspended else running
        if total + bound.wanted <= bound.bound:
            return True, True, False
        below = self._below
        stays = below is not None and lasting_in(cell, below) + bound.wanted > bound.bound
        return False, self._tells_size and total + 1 <= bound.bound, stays


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
        """Return the hosts that it closes, whoever makes way."""
        if self.version != self.cell.version:
            self.version = self.cell.version
            if may_fall_in(self.cell, self._below):
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
    watchers: dict[State, dict[Said, None]] = attrs.field(factory=dict)
    """Those whose answer rests on how they stood, by that."""
    state: State = ()
    _reason: tuple[NodeBits, NodeBits, str] = (-1, -1, "")
    """The hosts that it depends on, and the reason."""
    _seen: int = -1
    """Version of the survey by which they were looked at last."""
    _answer: tuple[bool, bool, str] = (False, False, "")
    smaller: Hosts | None = None
    """Those of jobs that want the same, but fewer slots; None: there are none."""

    def look(self, survey: Survey, view: ClusterView) -> tuple[bool, bool, str]:
        """Return whether they lack slots, whoever makes way; whether any host is closed; and what stands in the way.

        Where those of jobs that want fewer slots lack them, they do so as well: a host that has room for more slots
        has room for fewer.
        """
        version = survey.version
        if self._seen == version:
            return self._answer
        smaller = self.smaller
        while smaller is not None and smaller._seen != version:
            smaller = smaller.smaller
        if smaller is not None and smaller._answer[0]:
            lacks, closed = True, gaps.not_offered(self.site, survey, self.queue)
        else:
            bring_up_to_date(self, survey, view)
            lacks, closed = self.room.total < self.wanted, self.room.not_offered
        exclusive, offered, reason = self._reason
        if exclusive != survey.exclusive or offered != closed:
            reason = reason_on_hosts(survey, self.job, view)
            self._reason = survey.exclusive, closed, reason
        self._seen = version
        self._answer = lacks, bool(closed), reason
        return self._answer


@attrs.define(eq=False)
class Targets:
    """The jobs that those of a queue may have make way, or whose slots they may use: whether there are any."""

    site: Site
    queue: str
    """Theirs."""
    queues: Collection[str]
    watchers: dict[State, dict[Said, None]] = attrs.field(factory=dict)
    """Those whose answer rests on that."""
    state: State = ()

    def look(self, survey: Survey, view: ClusterView) -> tuple[bool]:
        """Return whether there is nobody, but jobs that were preempted too often to be so again."""
        kept_from = gaps.kept_from(self.site, survey, view, self.queue)
        if len(kept_from) < len(survey.suspended):
            return (False,)
        return (not any(self._any_of(survey.running.get(name), survey) for name in self.queues),)

    def _any_of(self, running: Sequence[Job] | None, survey: Survey) -> bool:
        """Whether any of the running jobs of a queue may have to make way, as far as is known."""
        if not running or not self.site.only_counts_protect:
            return bool(running)
        plain, least = survey.seen.plain, self.site.fewest_preemptions
        for job in running:
            if job.preemptions < least or job.id not in plain or not why_by_count(job, self.site):
                return True
        return False


Watched = Gate | Hosts | Targets


@attrs.define(eq=False)
class Said:
    """What is known of the jobs of one request, and what was said of them last."""

    request: Request
    below: Container[str]
    """Whose jobs they may preempt."""
    never_lacks: bool
    """Whether slots say nothing about them."""
    hosts: Hosts
    """Their hosts, and how many slots they want there."""
    targets: Targets
    """Whom they may have make way."""
    gates: tuple[Gate, ...]
    """Where each of the limits about them stands that may keep them out."""
    own: tuple[Shutter | Share, ...]
    """Limits that may close hosts to them, and not to all who want as much of these hosts."""
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
    closed: NodeBits | None = None
    """Hosts that limits close to them; None: not looked at yet."""
    closed_for_good: NodeBits | None = None
    """The same, whoever makes way."""
    standing: Standing | None = None
    """The reason that stands while all of `rests_on` stand as they do in there; None: none does."""
    rests_on: list[tuple[Watched, State]] = attrs.field(factory=list)
    otherwise: int = 0
    """How many of them stand otherwise now."""


def concerned(watched: Watched, before: State) -> Iterator[tuple[Said, int]]:
    """Yield whose answer rested on how it stood before (1), or rests on how what is watched stands now (-1)."""
    for said in watched.watchers.get(before, ()):
        yield said, 1
    for said in watched.watchers.get(watched.state, ()):
        yield said, -1


def bring_up_to_date(of: Hosts, survey: Survey, view: ClusterView) -> None:
    """Look again at hosts where anybody came, went, was stopped or goes on."""
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
    """Return host -> how many cores jobs of `queue` could get there, whoever made way for them.

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
    """Look at all who run on hosts where anybody left, was stopped or goes on."""
    seen, whole = survey.seen, survey.used.cores
    of_each = [(survey.site.targets[name], each.free, each.used) for name, each in seen.lasting.items()]
    for index in bitmap.indices(seen.lasting_stale):
        busy, cores = survey.busy_at(view, index), whole[index]
        everybody: CoreBits = 0
        for held in busy.values():
            everybody |= held
        for targets, free, used in of_each:
            mine = everybody
            if targets and not targets.keys().isdisjoint(busy):
                mine = 0
                for name, held in busy.items():
                    if name not in targets:
                        mine |= held
            used[index] = mine
            free[index] = cores - mine.bit_count()
    seen.lasting_stale = 0

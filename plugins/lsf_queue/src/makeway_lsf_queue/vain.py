"""Tell at a glance which pending jobs would be tried in vain, whoever made way for them (lsf 5.1, 5.3).

Two things are looked at. A limit may be taken up by jobs that would count in it whatever became of those that may be
preempted. Or the hosts lack slots: what running jobs hold that may not be preempted, and suspended jobs keep, leaves
too few. What is said here is what a try comes to; `tests/test_in_vain.py` holds one to the other.
"""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Callable, Container, Iterable, Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobSpec, ModeFlag, OverSubscribe, Partition, Standing
from makeway_lsf_queue import gaps, jobs, judging
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.counting import Counted, sums_now
from makeway_lsf_queue.limits import Counts, Limit
from makeway_lsf_queue.presence import presence_of
from makeway_lsf_queue.requested import Bound, Request, compiled
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.sums import Share
from makeway_lsf_queue.survey import Room, survey_of
from makeway_lsf_queue.victims import modes_of
from makeway_lsf_queue.vocabulary import PARALLEL
from makeway_lsf_queue.watching import Gate, Hosts, Said, Shutter, State, Targets, Watched, concerned

_MANY = 10_000
"""So many requests are kept compiled."""
_by_wanted = operator.attrgetter("wanted")

Promises = tuple[
    Callable[[Job], str | Standing | None] | None,
    Callable[[], Iterable[Standing] | None] | None,
]


def promises(view: ClusterView) -> Promises:
    """Return what says why a job would wait, and which of that no longer stands.

    See `makeway.model.Limits`: ``inadmissible``, ``turned``. Neither where more than limits and slots counts. What they
    look at is only kept from the first question on.
    """
    site = site_of(view)
    if site.settings.resources or _looks_at_time(site):
        return None, None
    return lambda job: _glance(site, view)(job), lambda: _glance(site, view).turned()


def _glance(site: Site, view: ClusterView) -> _Glance:
    """Return what looks at the jobs of a run."""
    presence = presence_of(view)
    known = presence.glance
    if not isinstance(known, _Glance) or known.site is not site:
        known = presence.glance = _Glance(site, view)
    return known


def _looks_at_time(site: Site) -> bool:
    """Whether a try may come to something else by time alone."""
    timed = any(level.interval for level in site.levels)
    return bool(site.anybody_reserves or site.has_windows or site.paces or timed)


@attrs.define(eq=False)
class _Asked:
    """A job as it was when its request was looked up."""

    spec: JobSpec
    partition: Partition
    required: NodeBits
    excluded: NodeBits
    size: int
    said: Said | None
    """None: its request is not all that counts."""


class _Glance:
    """Looks at the jobs of one run."""

    def __init__(self, site: Site, view: ClusterView) -> None:
        self.site = site
        self._view = view
        self._presence = presence_of(view)
        shared = any(part.oversubscribe != OverSubscribe() for part in view.cluster.partitions)
        threads = any(node.cpus != node.cores for node in view.cluster.nodes)
        self._whole_cores = not (shared or threads or ModeFlag.GANG in view.preempt_mode.flags)
        self._asked: dict[str, _Asked] = {}
        """By the job's id."""
        self._said: dict[object, Said] = {}
        """By all that a request depends on."""
        self._gates: dict[object, Gate] = {}
        """By the limit, and all that it depends on where it stands."""
        self._hosts: dict[object, Hosts] = {}
        """By queue, hosts, what is wanted of each, and the limits that close some of them to all who want that."""
        self._sizes: dict[object, list[Hosts]] = {}
        """The same by all of this but the slots that are wanted: those who want few come first."""
        self._targets: dict[str, Targets] = {}
        """By queue."""
        self._aimed: list[Targets] = []
        """Those on which anybody's answer has ever rested."""
        self._refused: dict[tuple[str, str], bool] = {}
        self._modes = modes_of(site)
        self._counted: tuple[int, Counted] | None = None
        """What counts, at a version of the cluster."""
        self._seen = -1
        """Version of the cluster by which what stands was looked at."""
        self._turned: dict[Standing, None] = {}
        """Reasons that no longer stand, or stand again, to be told."""
        self._watched: list[Hosts] = []
        """Hosts on which anybody's answer rests: those of jobs that want few slots come first."""

    def __call__(self, job: Job) -> str | Standing | None:
        view = self._view
        if self._seen != view.version:
            self._look_again()
        said = self._said_of(job)
        if said is None or self._presence.any_heterogeneous:
            return None
        if said.standing is not None and not said.otherwise:
            return said.standing
        if said.version != view.version:
            said.reason = self._reason(said, job)
            said.version = view.version
            self._let_stand(said)
        standing: Standing | None = said.standing
        return said.reason if standing is None else standing

    def turned(self) -> list[Standing] | None:
        """Return which reasons no longer stand, or stand again, since the last call; None: none of them does."""
        view = self._view
        if self._presence.any_heterogeneous:
            return None
        if self._seen != view.version:
            self._look_again()
        found, self._turned = list(self._turned), {}
        return found

    # ----------------------------------------------------------------------------- watching
    def _look_again(self) -> None:
        """See which reasons stand no more: the limits or hosts that they rest on stand otherwise.

        Only those are looked at on which anybody's answer rests. The others are once somebody asks (`_bring`).
        """
        view = self._view
        self._seen = view.version
        sums = sums_now(self.site, view, self._modes)
        if sums.touched:
            for cell in sums.touched.values():
                unwatched = False
                for gate in cell.gates:
                    state = gate.look()
                    if state != gate.state:
                        self._turn(gate, state)
                    if not gate.watchers:
                        unwatched = True
                if unwatched:
                    cell.gates = [gate for gate in cell.gates if gate.watchers]
            sums.touched.clear()
        survey = survey_of(self.site, view)
        for hosts in self._watched.copy():
            if (now := hosts.look(survey, view)) != hosts.state:
                self._turn(hosts, now)
            if not hosts.watchers:
                self._watched.remove(hosts)
        for targets in self._aimed:
            if targets.watchers and (there := targets.look(survey, view)) != targets.state:
                self._turn(targets, there)

    def _bring(self, watched: Gate | Hosts) -> None:
        """Let a limit or hosts stand as they do by now, whether or not anybody's answer rests on them."""
        if isinstance(watched, Gate):
            if watched.version == watched.bound.cell.version:
                return
            state: State = watched.look()
        else:
            state = watched.look(survey_of(self.site, self._view), self._view)
        if state != watched.state:
            self._turn(watched, state)

    def _let_be_watched(self, watched: Watched) -> None:
        """Look at a limit, or hosts, whenever anything changes about them."""
        if isinstance(watched, Hosts):
            if watched not in self._watched:
                bisect.insort(self._watched, watched, key=_by_wanted)
        elif isinstance(watched, Gate):
            gates = watched.bound.cell.gates
            if watched not in gates:
                gates.append(watched)
        elif watched not in self._aimed:
            self._aimed.append(watched)

    def _turn(self, watched: Watched, state: State) -> None:
        before, watched.state = watched.state, state
        for said, more in concerned(watched, before) if watched.watchers else ():
            stood = not said.otherwise
            said.otherwise += more
            if stood or not said.otherwise:
                standing = said.standing
                assert standing is not None
                standing.stands = not said.otherwise
                self._turned[standing] = None

    def _let_stand(self, said: Said) -> None:
        """Let the reason stand that was just found, if all that it depends on is watched."""
        if said.standing is not None:
            for watched, state in said.rests_on:
                sharing = watched.watchers[state]
                del sharing[said]
                if not sharing:
                    del watched.watchers[state]
            said.rests_on.clear()
            said.standing, said.otherwise = None, 0
        if said.reason is None:
            return
        first, survey = said.first, survey_of(self.site, self._view)
        rests_on: Watched = said.hosts
        if not said.stays:
            (nobody,) = said.targets.state = said.targets.look(survey, self._view)
            if first is not None and nobody:
                rests_on = said.targets
            else:
                self._bring(said.hosts)
                lacks, closed, _ = said.hosts.state
                if not lacks or (first is None and not closed):
                    return
            if first is not None and first.rows is not None and first.limit.reason in PARALLEL:
                return  # which host has most room says whether smaller jobs would be let in
        bounds = said.request.bounds
        until = len(bounds) if first is None else bounds.index(first) + 1
        gates = said.gates[:until]
        for gate in gates:
            self._bring(gate)
        if said.stays and not gates[-1].keeps_out:
            return  # it is another limit that stays
        said.standing = Standing(said.reason)
        for gate in gates:
            self._watch(said, gate)
        if not said.stays:
            self._watch(said, rests_on)

    def _watch(self, said: Said, watched: Watched) -> None:
        state = watched.state
        if state in watched.watchers:
            watched.watchers[state][said] = None
        else:
            watched.watchers[state] = {said: None}
        self._let_be_watched(watched)
        said.rests_on.append((watched, state))

    def _gate(self, bound: Bound, queue: str, *, lasts: bool) -> Gate:
        asked = bound.share, bound.bound, bound.wanted, id(bound.rows), queue if lasts else ""
        known = self._gates.get(asked)
        if known is None:
            known = self._gates[asked] = Gate(bound, self.site.targets[queue] if lasts else None)
        return known

    def _counted_now(self) -> Counted:
        version = self._view.version
        if self._counted is None or self._counted[0] != version:
            self._counted = version, Counted.of(self.site, self._view, self._modes)
        return self._counted[1]

    def _said_of(self, job: Job) -> Said | None:
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

    def _new(self, job: Job) -> Said | None:
        spec, hosts = job.spec, jobs.hosts_of(job)
        beyond = spec.licenses or spec.licenses_any or spec.gres or spec.gres_total or spec.attributes
        if beyond or spec.exclusive is not None or self._is_refused(job) or not hosts:
            return None
        counted = Counted.of(self.site, self._view, self._modes)
        beside = bool(job.required)  # a selector may add others to the hosts that a job requires
        request = compiled(counted, job)
        asked = request or counted.request(job), spec.oversubscribe, beside
        known = self._said.get(asked)
        if known is None:
            if len(self._said) >= _MANY:
                self._said.clear()
                self._asked.clear()
            counted.brought()
            queue, request = job.partition.name, request or Request.of(counted, job)
            gates = [self._gate(bound, queue, lasts=bound in request.lasting) for bound in request.bounds]
            shared, own = _closing(counted, job)
            known = self._said[asked] = Said(
                request,
                self.site.targets[queue],
                not self._whole_cores or bool(spec.oversubscribe) or beside,
                self._hosts_of(queue, hosts, job, tuple(shared)),
                self._targets_of(queue),
                tuple(gates),
                tuple(self._shutter(counted, job, *share) if share[0].per_host else share for share in own),
            )
        return known

    def _targets_of(self, queue: str) -> Targets:
        known = self._targets.get(queue)
        if known is None:
            known = self._targets[queue] = Targets(self.site, queue, self.site.targets[queue])
        return known

    def _hosts_of(self, queue: str, hosts: NodeBits, job: Job, shared: tuple[Share, ...]) -> Hosts:
        spec, counted = job.spec, self._counted_now()
        asked = queue, hosts, spec.cpus, spec.memory_mb_per_node, spec.memory_mb_per_cpu, shared
        known = self._hosts.get(asked)
        if known is None:
            shutters = tuple(self._shutter(counted, job, limit, key) for limit, key in shared)
            known = self._hosts[asked] = Hosts(self.site, queue, hosts, spec.cpus, job, Room(), shutters)
            self._put_in_line(known, (queue, hosts, *asked[3:]))
        return known

    def _put_in_line(self, hosts: Hosts, alike: object) -> None:
        """Let hosts know those of jobs that want fewer slots, and nothing else otherwise."""
        line = self._sizes.setdefault(alike, [])
        bisect.insort(line, hosts, key=_by_wanted)
        for smaller, larger in itertools.pairwise(line):
            larger.smaller = smaller

    def _shutter(self, counted: Counted, job: Job, limit: Limit, key: str) -> Shutter:
        bound = limit.bound(key)
        assert bound is not None
        rows = judging.rows_of(counted, limit, job, bound)
        return Shutter(limit, key, counted.brought(), rows, self.site.targets[job.partition.name])

    def _reason(self, said: Said, job: Job) -> str | None:
        counted = self._counted_now()
        counted.brought()
        self._look_at_limits(said, counted, job)
        if said.first is not None:
            vain = said.stays or self._has_nobody(said) or self._finds_no_room(said, counted, job)
            return said.limit if vain else None
        if not self._finds_no_room(said, counted, job):
            return None
        survey = survey_of(self.site, self._view)
        where = said.hosts
        # While no host is closed, whoever could never run is told so when it is tried.
        if not gaps.not_offered(self.site, survey, where.queue):
            if said.closed is None:
                said.closed = judging.closed(self.site, counted, job)
            if not said.closed:
                return None
        return where.look(survey, self._view)[2]

    @staticmethod
    def _look_at_limits(said: Said, counted: Counted, job: Job) -> None:
        """Find the first limit that keeps jobs out, unless nothing was taken or given back since."""
        request = said.request
        taken = request.version()
        if taken == said.taken:
            return
        first = said.first = request.first()
        said.limit = "" if first is None else first.reason(counted, job)
        said.stays = first is not None and _stays(request, said.below)
        said.closed = said.closed_for_good = None
        said.taken = taken

    def _has_nobody(self, said: Said) -> bool:
        """Whether there is nobody who could make way, or whose slots it might use."""
        return said.targets.look(survey_of(self.site, self._view), self._view)[0]

    def _finds_no_room(self, said: Said, counted: Counted, job: Job) -> bool:
        """Whether its hosts have too few slots for it, all together, whoever makes way."""
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


def _stays(request: Request, below: Container[str]) -> bool:
    """Whether any limit would keep a job out whoever of the queues `below`, or of suspended jobs, made way."""
    sums = request.sums
    return any(sums.lasting(each.share, below) + each.wanted > each.bound for each in request.lasting)


def _closed_for_good(
    counted: Counted, job: Job, own: Sequence[Shutter | Share], below: Container[str]
) -> NodeBits:
    """Return the hosts that limits close to a job, whoever of the queues `below`, or of suspended jobs, makes way."""
    sums = counted.brought()
    closed: NodeBits = 0
    for each in own:
        if isinstance(each, Shutter):
            closed |= each.bits()
        elif not sums.may_fall(each, below):
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

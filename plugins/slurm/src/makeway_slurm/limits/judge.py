"""Hold one job against the limits that hold for it (slurm-priority-and-limits 6.2, 6.3)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence

import attrs

from makeway.model import Blocked, ClusterView, Exclusive, Job, Partition, Seconds, Sharing
from makeway.partition_bounds import BOUNDS
from makeway_slurm.accounts.limits import Limits, parse_limits, relative
from makeway_slurm.accounts.tres import BILLING, CPU, NODE, billable, of_cluster, requested, totals
from makeway_slurm.accounts.usage import WALL, Entry, usage_factor
from makeway_slurm.accounts.whole_nodes import WholeNodes
from makeway_slurm.limits.access import Door
from makeway_slurm.limits.asked import Asked, Listed
from makeway_slurm.limits.attendance import Attendance
from makeway_slurm.limits.counts import Count, Key, Places, Seat
from makeway_slurm.limits.ending import Ending
from makeway_slurm.limits.headroom import JOBS, RUN, Box, Headroom
from makeway_slurm.limits.rulebook import Kind, Rule, RuleBook, Rules
from makeway_slurm.limits.settings import Settings

_new = tuple.__new__
LIMIT = "limit"
_MANY = 100_000
_OF_ITS_OWN = frozenset(("groups", "array_last", "array_size"))
"""Attributes of a job that count at the door."""
_AS_MAXIMUM = frozenset((Kind.TRES, Kind.JOB_TRES))
_CAPS = {"pa": 0, "": 1, "pu": 2}
"""Which of several limits on nodes comes first, by what it counts; the others last."""
_BEFORE_NODES = frozenset((Kind.JOBS, Kind.USED_WALL, Kind.WALL, Kind.LEAST_FACTOR))
"""Limits that are looked at before nodes are chosen (stage A)."""
_ALONE = frozenset((Kind.WALL, Kind.JOB_TRES, Kind.NODE_TRES, Kind.LEAST_TRES, Kind.JOB_MINUTES))
_OF_WALL = frozenset((Kind.WALL, Kind.USED_WALL))
_OF_MINUTES = frozenset((Kind.USED_MINUTES, Kind.RUN_MINUTES, Kind.JOB_MINUTES))
_EACH = ("pu", "pa")
"""Keys of limits that each user or account has for itself in a QOS."""
_USED_UP = frozenset((Kind.USED_MINUTES, Kind.USED_WALL))
_NOT_UPWARDS = frozenset((Kind.LEAST_TRES, Kind.LEAST_FACTOR, Kind.NODE_TRES))
"""Limits that who asks for less may break."""
_IF_ANY = frozenset((Kind.TRES, Kind.USED_MINUTES, Kind.RUN_MINUTES))
_WHOLE_NODES = Exclusive.NODE
# Members of an Enum are bound once where they are asked for again and again: Python 3.11 looks them up by a detour.
_WALL, _JOB_TRES, _NODE_TRES, _LEAST_TRES = Kind.WALL, Kind.JOB_TRES, Kind.NODE_TRES, Kind.LEAST_TRES
_JOB_MINUTES = Kind.JOB_MINUTES
_TRES, _JOBS, _RUN_MINUTES = Kind.TRES, Kind.JOBS, Kind.RUN_MINUTES
_USED_MINUTES, _USED_WALL = Kind.USED_MINUTES, Kind.USED_WALL


class Judge(Attendance):
    """The limits of one run, as a book that every call finds again (`ClusterView.book`)."""

    def __init__(self, view: ClusterView) -> None:
        self._settings = view.settings(Settings)
        super().__init__(view, ends=not self._settings.safe)
        limits: dict[str, Limits] = {qos.name: parse_limits(qos.attributes) for qos in view.cluster.qos}
        self._qos = {qos.name: qos for qos in view.cluster.qos}
        tree = self._usage.tree if self._settings.enforce else None
        limits = {name: self._absolute(name, each, view) for name, each in limits.items()}
        self._rules = RuleBook(tree, self._qos, limits if self._settings.enforce else {})
        self.door = Door(view, self._settings, self._usage)
        self._unlimited = view.rule("no_time_limit_exceeds_minutes")
        self._plans_for_barred = view.rule("backfill_plans_for_barred_accounts")
        self._whole_nodes = WholeNodes(view)
        self._totals: dict[int, dict[str, int]] = {}
        self._lists: dict[Seat, tuple[Listed, ...]] = {}
        self._doors: dict[Seat, list[tuple[Rule, Count]]] = {}
        """What limits the number of jobs of a seat, with its count."""
        self._by_looks: dict[Hashable, Asked] = {}
        self._simple = [
            not (each.def_mem_per_cpu or view.cluster.def_mem_per_cpu)
            and each.oversubscribe.sharing is not Sharing.EXCLUSIVE
            for each in view.cluster.partitions
        ]
        """By partition: whether jobs get no memory for each CPU there, nor whole nodes."""
        self._alike: dict[Hashable, Asked] = {}
        """By all that tells two requests apart."""
        self._upwards: dict[Seat, bool] = {}
        """By seat: whether whoever asks for less breaks no limit that another one keeps."""
        self._open: dict[Hashable, tuple[Sequence[Partition], bool]] = {}
        """By seat, nodes and time: in which partitions such a job is surely not refused, numbers of jobs apart."""
        self.ending = Ending(view, self._rules, self._usage, self._counts, self._held_against)
        self.headroom = Headroom(view, self._known, self._box, self.door, self._fits)
        self._arrays: dict[str, str] = {}
        """Arrays whose first task has come -> why it was refused; empty: it was taken."""

    def _absolute(self, name: str, limits: Limits, view: ClusterView) -> Limits:
        """Return limits of a QOS in numbers; with the flag Relative they are percentages (6.1 no. 9)."""
        if "relative" not in {flag.lower() for flag in self._qos[name].flags}:
            return limits
        partition = next((each for each in view.cluster.partitions if each.qos == name), None)
        there = totals(partition, view.cluster) if partition is not None else of_cluster(view.cluster)
        return relative(limits, there)

    # ------------------------------------------------------------------------------- sure
    def _box(self, job: Job) -> Box | None:
        """Return what a simple job asks for; None: it is not simple."""
        spec, limit, partition = job.spec, job.time_limit, job.partition
        if (
            limit is None
            or spec.time_limit is None
            or spec.memory_mb_per_node is not None
            or spec.memory_mb_per_cpu is not None
            or spec.gres
            or spec.gres_total
            or spec.licenses
            or spec.exclusive is _WHOLE_NODES
            or (self._whole_nodes.always and job.required)
            or not self._simple[partition.index]
        ):
            return None
        counts = self._counts
        seat = counts.present.get(job.id)
        if seat is None or seat.partition is not partition or seat.qos is not job.qos:
            seat = counts.seat_anew(job)
        upwards = self._upwards.get(seat)
        if upwards is None:
            kinds = {listed.kind for listed in self._list(seat, job.user)}
            upwards = self._upwards[seat] = kinds.isdisjoint(_NOT_UPWARDS)
        return _new(Box, (seat, job.size, spec.cpus, limit)) if upwards else None

    def _fits(self, asked: Asked, headroom: Headroom) -> bool:
        """Note what limits leave to others beside one such job; False: one may keep it out."""
        self._counts.brought_up()
        limits = asked.quiet
        if limits is not asked.open and not headroom.keep_until(self.ending.quiet_until(asked.seat.group)):
            return False
        rooms: list[tuple[str, float]] = []
        for listed, wanted in limits:
            kind, name = listed.kind, listed.name
            room: float
            if kind is _TRES:
                holds = listed.holds
                have = holds.nodes.bit_count() if name == NODE else holds.tres.get(name, 0)
                room = listed.most - wanted - have
            elif kind is _JOBS:
                name, room = JOBS, listed.most - 1 - listed.holds.jobs
            elif kind is _RUN_MINUTES:
                if self._usage.drifts:
                    return False  # an end may take off more or less than its job is thought to hold
                entry = self._usage.shared.get(listed.key) if listed.rule.key in _EACH else listed.entry
                running = entry.may_use(name) / 60.0 if entry is not None else 0.0
                name, room = RUN + name, listed.most - 1.0 - _minutes(asked, wanted) - running
            elif listed.uses_up:
                name, room = self._room_when_safe(listed, wanted, asked, headroom)
            else:
                return False
            if room < 0.0:
                return False
            rooms.append((name, room))
        headroom.keep(rooms)
        return True

    def _room_when_safe(
        self, listed: Listed, wanted: int, asked: Asked, headroom: Headroom
    ) -> tuple[str, float]:
        """Return what is left of a limit on what is used up, where a job has to last, by name; less than 0: too little.

        Half of it is for those who start, half for time.
        """
        wall, entry = listed.kind is _USED_WALL, listed.entry
        name = WALL if wall else listed.name
        if entry is None:
            return RUN + name, math.inf
        if asked.booked is None:
            return RUN + name, -math.inf
        minutes = float(asked.booked) if wall else _minutes(asked, wanted)
        running = 0.0 if wall else entry.may_use(name) / 60.0
        spare = (listed.most - 2.0 - entry.used(name) / 60.0 - running - minutes) / 2.0
        if spare < 0.0 or not headroom.keep_until(self.ending.grown_by(name, spare * 60.0)):
            return RUN + name, -math.inf
        return RUN + name, math.inf if wall else spare

    def takes(self, job: Job) -> bool:
        """Whether a job that is submitted is surely not refused."""
        spec, counts = job.spec, self._counts
        if len(job.partitions) > 1 and self._has_partition_qos:
            return False
        if (
            spec.array_id is not None
            or spec.nice < 0
            or (spec.attributes and not _OF_ITS_OWN.isdisjoint(spec.attributes))
        ):
            return False
        seat = counts.present.get(job.id)
        if seat is None or seat.partition is not job.partition or seat.qos is not job.qos:
            seat = counts.seat_anew(job)
        if job.partition.index in self.door.open and len(job.partitions) == 1:
            if seat.welcome is None:
                seat.welcome = self._is_welcome(seat, job)
            if not seat.welcome:
                return False
        elif not self._is_let_through(seat, job):
            return False
        if counts.came_so_far > seat.came_at_most:
            spare = min(
                [rule.most - count.present for rule, count in self._doors_of(seat, job.user)], default=_MANY
            )
            if spare < 0:
                return False
            seat.came_at_most = counts.came_so_far + spare
        return True

    def _is_let_through(self, seat: Seat, job: Job) -> bool:
        """Whether the same holds of a job whose partitions are not open to all."""
        spec = job.spec
        key = seat, spec.max_nodes, job.time_limit, spec.group
        known = self._open.get(key)
        if known is None or known[0] is not job.partitions:
            if len(self._open) > _MANY:
                self._open.clear()
            known = self._open[key] = job.partitions, self._is_welcome(seat, job)
        return known[1]

    def _is_welcome(self, seat: Seat, job: Job) -> bool:
        """Whether a job is not refused, numbers of jobs apart."""
        return not self._denies(seat.places, named=False) and not self.door.refused(job)

    # ----------------------------------------------------------------------------- waiting
    def blocked(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return the limit that keeps a pending job out; None: none does."""
        shut = self.door.shut(job, job.partition)
        if shut in BOUNDS and len(job.partitions) > 1:
            found = self._by_limits(job, view)  # the reason, if nodes are not looked at for it
            if found is not None and found.before_nodes:
                return found
        if shut:
            planned_for = (
                self._plans_for_barred
                and self.door.bars_account_alone(job, job.partition)
                and self._by_limits(job, view) is None
            )
            return Blocked(
                reason=shut,
                resource=LIMIT,
                detail=shut,
                keeps_nothing=not planned_for,
                reserves=planned_for,
                before_nodes=True,
                at_submission=shut not in BOUNDS,
                at_submission_only=shut not in BOUNDS,
                stays=True,
            )
        return self._by_limits(job, view)

    def _by_limits(self, job: Job, view: ClusterView) -> Blocked | None:
        """Return the limit of a QOS or an association that keeps a job out; None: none does."""
        asked = self._known(job)
        if not asked.open:
            return None
        self._usage.advance(view.now)
        self._counts.brought_up()
        is_quiet = asked.quiet is not asked.open and view.now < self.ending.quiet_until(asked.seat.group)
        held: Blocked | None = None
        for each, wanted in asked.quiet if is_quiet else asked.open:
            # Most limits are far away: that is seen at a glance.
            if each.kind is _TRES:
                if each.name == NODE:
                    if not job.required and each.holds.nodes.bit_count() + wanted <= each.most:
                        continue
                elif each.holds.tres.get(each.name, 0) + wanted <= each.most:
                    continue
            elif each.kind is _JOBS and each.holds.jobs < each.most:
                continue
            found = self._against(each, job, asked, view)
            if found is None:
                continue
            if self._settings.limit_stop:
                found = self._held_up_by(found, each, job)
            if not found.depends_on_nodes:
                return found if held is None else attrs.evolve(held, counted=(), least_nodes=0)
            # It depends on the nodes that are chosen; those behind it have to let the job in, too.
            held = found if held is None else _both(held, found)
        return held

    def _held_up_by(self, blocked: Blocked, listed: Listed, job: Job) -> Blocked:
        """Say what a job holds up that a limit keeps out, with assoc_limit_stop.

        In the main loop those that are looked at first hold up nobody, but for MaxJobsPerAccount (recorded:
        limit_stop_numbers).
        Backfill keeps no nodes for one that may never have as many as it asks for (recorded: limit_stop_nodes).
        """
        of_account = listed.kind is _JOBS and listed.rule.key == "pa"
        blocked = attrs.evolve(blocked, holds_up=of_account or not blocked.before_nodes)
        if _caps_nodes(listed.rule, job.size):
            return blocked
        return attrs.evolve(
            blocked,
            keeps_nothing=False,
            reserves=True,
            retry_after=self._settings.limit_retry,
            qos=listed.rule.qos_of_all,
        )

    def _against(self, listed: Listed, job: Job, asked: Asked, view: ClusterView) -> Blocked | None:
        """Hold a job against one limit."""
        rule, key, kind, count, entry = listed.rule, listed.key, listed.kind, listed.holds, listed.entry
        if listed.alone:
            return _alone(rule, job, asked)
        if kind is _TRES:
            return self._tres(listed, job, asked.counts.get(rule.name, 0), view)
        if kind is _JOBS:
            have = count.jobs
            if have >= rule.most and self._settings.lift_by_preempting:
                have -= sum(1 for _ in self._gone(key, view))
            return self._lifted(_full(rule, 1, have), rule, key) if have >= rule.most else None
        if kind is _USED_MINUTES:
            return self._used_minutes(rule, asked, asked.counts.get(rule.name, 0), entry)
        if kind is _RUN_MINUTES:
            if rule.key in _EACH:
                entry = self._usage.shared.get(key)
            return self._run_minutes(rule, asked, asked.counts.get(rule.name, 0), entry)
        if kind is Kind.USED_WALL:
            return self._used_wall(rule, asked)
        return self._too_greedy(rule, job)

    def _held_against(self, rule: Rule) -> Entry | None:
        if rule.key == "assoc":
            return self._usage.associations.get(int(rule.whose))
        return self._usage.qos.get(str(rule.whose))

    def _gone(self, key: Key, view: ClusterView) -> Iterator[Mapping[str, int]]:
        """Yield what those hold of a count who would have ended: a suspended job counts as before (6.2)."""
        if not self._settings.lift_by_preempting or not view.made_way:
            return
        there = {job.id for job in view.active}
        for job in view.made_way:
            counts = self._counts.held_at(key, job.id) if job.id not in there else None
            if counts is not None:
                yield counts

    def _lifted(self, blocked: Blocked, rule: Rule, key: Key) -> Blocked:
        """Say who holds what is short, where preempting may lift a limit."""
        if not self._settings.lift_by_preempting:
            return blocked
        frees = {
            job_id: float(counts.get(rule.name, 0) if rule.name else 1)
            for job_id, counts in self._counts.holders(key)
        }
        return attrs.evolve(blocked, liftable=True, frees=frees)

    def _tres(self, listed: Listed, job: Job, wanted: int, view: ClusterView) -> Blocked | None:
        rule, key, count = listed.rule, listed.key, listed.holds
        have = count.used(rule.name)
        if rule.name != NODE and have + wanted > rule.most:
            have -= sum(counts.get(rule.name, 0) for counts in self._gone(key, view))
        if rule.name == NODE and job.required and job.required.bit_count() >= job.size:
            wanted = (job.required & ~count.nodes).bit_count()
        if not wanted or have + wanted <= rule.most:
            return None
        blocked = _full(rule, wanted, have)
        if rule.name == NODE and not job.required and have <= rule.most and job.size <= rule.most:
            return attrs.evolve(blocked, counted=((count.nodes, rule.most - have),))
        return self._lifted(blocked, rule, key) if rule.name != NODE and wanted <= rule.most else blocked

    def _too_greedy(self, rule: Rule, job: Job) -> Blocked | None:
        """Hold the fair-share factor of a job against UsageThreshold (6.3 no. 4)."""
        factor = self._usage.factor_of(job)
        if factor is None or factor >= rule.least:
            return None
        detail = f"{rule.reason}: fair share {factor:.6f}, {rule.least:g} wanted (QOS {rule.whose})"
        again = self._usage.next_at
        return Blocked(
            reason=rule.reason,
            resource=LIMIT,
            detail=detail,
            keeps_nothing=True,
            ask_again_at=again,
            before_nodes=True,
            at_submission=True,
            stays=True,
        )

    def _used_wall(self, rule: Rule, asked: Asked) -> Blocked | None:
        entry = self._held_against(rule)
        used = int(entry.used(WALL) // 60) if entry is not None and asked.factor else 0
        over = used >= rule.most
        if self._settings.safe and not over:
            over = asked.booked is None or used + asked.booked > rule.most
        return _full(rule, asked.minutes or 0, used, self._again(rule)) if over else None

    def _used_minutes(self, rule: Rule, asked: Asked, wanted: int, entry: Entry | None) -> Blocked | None:
        if entry is None or not wanted:
            return None
        used = int(entry.used(rule.name) // 60) if asked.factor else 0
        over = used >= rule.most
        if self._settings.safe and not over:
            running = int(entry.may_use(rule.name) // 60) if asked.factor else 0
            minutes = _minutes(asked, wanted)
            over = minutes > rule.most or minutes + running > rule.most - used
        return _full(rule, wanted, used, self._again(rule)) if over else None

    def _run_minutes(self, rule: Rule, asked: Asked, wanted: int, entry: Entry | None) -> Blocked | None:
        if not wanted:
            return None
        running = int(entry.may_use(rule.name) // 60) if asked.factor and entry is not None else 0
        minutes = _minutes(asked, wanted)
        over = running + minutes > rule.most
        again = self._again(rule) if minutes <= rule.most else None
        return _of_minutes(rule, minutes, running, again) if over else None

    def _again(self, rule: Rule) -> Seconds | None:
        """Return when time alone may lift a limit: at the next recalculation, if usage can go down."""
        if not self._usage.counts or rule.most <= 0:
            return None
        return self._usage.next_at

    def _known(self, job: Job) -> Asked:
        """Return what a pending job asks for, as long as it stays as it is from the last time."""
        before = self._requests.get(job.id)
        if before is not None:
            (spec, partition, qos, limit), asked = before
            if spec is job.spec and partition is job.partition and qos is job.qos and limit is job.time_limit:
                return asked
        mark = (job.spec, job.partition, job.qos, job.time_limit)
        asked = self._asked(job, self._view)
        self._requests[job.id] = mark, asked
        return asked

    def _asked(self, job: Job, view: ClusterView) -> Asked:
        """Return what a pending job asks for where it is tried."""
        key = self._looks(job)
        if key is None:
            return self._asked_in_full(job, view)
        found = self._by_looks.get(key)
        if found is None:
            if len(self._by_looks) > _MANY:
                self._by_looks.clear()
            found = self._by_looks[key] = self._asked_in_full(job, view)
        return found

    def _looks(self, job: Job) -> tuple[Seat, int, int, int | None, Seconds | None, bool] | None:
        """Return all that is looked at in a simple job; None: it is not simple."""
        spec = job.spec
        if (
            spec.gres
            or spec.gres_total
            or spec.licenses
            or spec.memory_mb_per_cpu is not None
            or spec.exclusive is _WHOLE_NODES
            or (self._whole_nodes.always and job.required)
            or not self._simple[job.partition.index]
        ):
            return None
        return (
            self._counts.seat(job),
            job.size,
            spec.cpus,
            spec.memory_mb_per_node,
            job.time_limit,
            spec.time_limit is None,
        )

    def _asked_in_full(self, job: Job, view: ClusterView) -> Asked:
        counts = self._requested(job, view)
        if self._whole_nodes.taken_by(job, job.partition):
            counts = {**counts, CPU: self._whole_nodes.cpus(job, job.partition)}
            counts[BILLING] = int(billable(counts, job.partition))
        limit = job.time_limit
        if self._unlimited and job.spec.time_limit is None and job.partitions[0].default_time is None:
            limit = self.time_limit(job, view) or None
        minutes = None if limit is None else int(limit // 60)
        factor = usage_factor(job.qos)
        safe = job.qos is not None and "UsageFactorSafe" in job.qos.flags
        booked = minutes if minutes is None or not safe else int(minutes * factor)
        seat = self._counts.seat(job)
        key = seat, tuple(counts.items()), minutes, booked, factor, job.spec.time_limit is None
        known = self._alike.get(key)
        if known is None:
            if len(self._alike) > _MANY:
                self._alike.clear()
            known = self._alike[key] = self._held_open(
                job, Asked(counts, minutes, booked, factor, (), (), seat)
            )
        return known

    def _requested(self, job: Job, view: ClusterView) -> dict[str, int]:
        """Return what a job asks for by its words; of whole nodes it is not known yet how many CPUs they have."""
        at = job.partition.index
        there = self._totals.get(at)
        if there is None:
            there = self._totals[at] = totals(job.partition, view.cluster)
        return requested(job, job.partition, view.cluster, there)

    def node_cap(self, job: Job) -> int | None:
        """Return to how many nodes limits cap a job before any are chosen (6.2); None: to no number."""
        rules = self._rules.of(self._counts.seat(job).places).after
        most = [rule.most for rule in rules if rule.name == NODE and rule.kind in _AS_MAXIMUM]
        return min(most, default=None)

    def _held_open(self, job: Job, asked: Asked) -> Asked:
        """Return the same with the limits that it, and all like it, does not pass for good."""
        counts, seat = asked.counts, asked.seat
        listed = self._list(seat, job.user)
        still = tuple(
            [(each, counts.get(each.name, 0)) for each in listed if not _passes_for_good(each, job, asked)]
        )
        still = _hopeless_first(still)
        quiet = still
        if not self._settings.safe:
            quiet = tuple([pair for pair in still if not pair[0].uses_up])
        return attrs.evolve(asked, open=still, quiet=quiet if len(quiet) < len(still) else still)

    def _list(self, seat: Seat, user: str) -> tuple[Listed, ...]:
        """Return the limits that hold for jobs of one seat."""
        found = self._lists.get(seat)
        if found is None:
            places = seat.places
            rules = self._rules.of(places)
            found = self._lists[seat] = tuple(
                self._listed(rule, rule.count_key(user, places.account))
                for rule in (*rules.before, *rules.after)
            )
        return found

    def _listed(self, rule: Rule, key: Key) -> Listed:
        kind, entry = rule.kind, self._held_against(rule)
        alone, if_any, uses_up = kind in _ALONE, kind in _IF_ANY, kind in _USED_UP
        return Listed(
            rule, key, alone, if_any, uses_up, self._counts.of(key), entry, kind, rule.name, rule.most
        )

    # -------------------------------------------------------------------------- submission
    def refused(self, job: Job, view: ClusterView) -> str:
        """Return why a job is refused at its submission; empty: it is taken."""
        array = job.spec.array_id
        if array is not None and array in self._arrays:
            return self._arrays[array]
        found = self.door.refused(job) or self._over_count(job) or self._too_large(job, view)
        if array is not None:
            self._arrays[array] = found
        return found

    def _over_count(self, job: Job) -> str:
        """Return which number of jobs it would exceed; of an array all tasks count (6.3 no. 2).

        Of several partitions, none may have a QOS that is exceeded (as recorded: limit_submit_in_partitions).
        """
        more = int(job.spec.attributes.get("array_size", 1)) - 1
        own = self._counts.seat(job)
        for seat in (own, *self.seats_elsewhere(job)):
            for rule, count in self._doors_of(seat, job.user):
                if count.present + more > rule.most:
                    return rule.reason
        return ""

    def _doors_of(self, seat: Seat, user: str) -> Sequence[tuple[Rule, Count]]:
        """Return what limits the number of jobs of a seat, with its count."""
        self._counts.brought_up()
        found = self._doors.get(seat)
        if found is None:
            places = seat.places
            found = self._doors[seat] = [
                (rule, self._counts.of(rule.count_key(user, places.account)))
                for rule in self._rules.of(places).door
            ]
        return found

    def _too_large(self, job: Job, view: ClusterView) -> str:
        """Return which limit a job breaks on its own, in any of its partitions (recorded: limit_deny_in_second)."""
        found = self._broken(job, view)
        if not found and len(job.partitions) > 1 and self._has_partition_qos:
            others = (attrs.evolve(job, partition=each) for each in job.partitions[1:])
            found = next((why for each in others if (why := self._broken(each, view))), "")
        return found

    def _broken(self, job: Job, view: ClusterView) -> str:
        """Return the same of the partition where it is tried, if its QOS denies such jobs (6.3 no. 1)."""
        places = self._counts.seat(job).places
        if not self._denies(places, named=job.spec.qos is not None):
            return ""
        asked = self._asked(job, view)
        whole = self._whole_nodes.taken_by(job, job.partition)
        counts = self._requested(job, view) if whole else asked.counts
        rules: Rules = self._rules.of(places)
        for rule in (*rules.before, *rules.after):
            wanted = counts.get(rule.name, 0)
            if rule.kind in _OF_MINUTES:
                over = _minutes(asked, wanted) > rule.most
            elif rule.kind is Kind.NODE_TRES:
                over = wanted // max(1, counts[NODE]) > rule.most
            elif rule.kind in _AS_MAXIMUM:
                over = wanted > rule.most
            elif rule.kind is Kind.LEAST_TRES:
                over = wanted < rule.most
            elif rule.kind in _OF_WALL:
                over = job.spec.time_limit is not None and (asked.minutes or 0) > rule.most
            else:
                over = False
            if over:
                return rule.reason
        return ""

    def _denies(self, places: Places, *, named: bool) -> bool:
        """Whether jobs that break a limit on their own are refused there (6.3 no. 1); without any QOS they are.

        :param named: whether they name a QOS: one that nobody describes may be lenient, too.
        """
        flags = [self._qos[name].flags for name in places.qos if name in self._qos]
        return any("DenyOnLimit" in each for each in flags) if flags else not named

    def time_limit(self, job: Job, view: ClusterView) -> Seconds | None:
        """Return the time limit that limits give a job without one; None: none does (6.3 no. 5).

        A DefaultTime of its first partition goes before. MaxWall and GrpWall always give one, those of the first QOS or
        association that has any (recorded: limit_time_of_which). Those on minutes of a TRES do so where DenyOnLimit
        would refuse the job: the least of limit / count. MaxTime bounds none of them.
        """
        if job.partitions[0].default_time is not None:
            return None
        places = self._counts.seat(job).places
        denies = self._denies(places, named=job.spec.qos is not None)
        counts = self._requested(job, view) if denies else {}
        rules = self._rules.of(places)
        listed = (*rules.before, *rules.after)
        of_wall = [rule for rule in listed if rule.kind in _OF_WALL]
        found = [rule.most for rule in of_wall if rule.whose == of_wall[0].whose]
        found += [
            rule.most // counts[rule.name]
            for rule in listed
            if rule.kind in _OF_MINUTES and counts.get(rule.name)
        ]
        return min(found) * 60.0 if found else None


def _hopeless_first(held: tuple[tuple[Listed, int], ...]) -> tuple[tuple[Listed, int], ...]:
    """Put limits on nodes that a job exceeds by itself before all others of stage B: they cap its nodes (6.2).

    The least of them is the reason, of a QOS before that of an association (recorded: limit_node_cap_which).
    """

    def stage(pair: tuple[Listed, int]) -> tuple[int, ...]:
        listed, wanted = pair
        if listed.kind in _BEFORE_NODES:
            return (0,)
        if not _caps_nodes(listed.rule, wanted):
            return (2,)
        return 1, listed.most, not isinstance(listed.rule.whose, str), _CAPS.get(listed.rule.key, len(_CAPS))

    return tuple(sorted(held, key=stage))


def _caps_nodes(rule: Rule, wanted: float) -> bool:
    """Whether a limit keeps a job out that wants so many nodes, whatever others hold."""
    return rule.name == NODE and rule.kind in _AS_MAXIMUM and wanted > rule.most


def _alone(rule: Rule, job: Job, asked: Asked) -> Blocked | None:
    """Hold a job against a limit that is about it alone."""
    kind, most = rule.kind, rule.most
    if kind is _WALL:
        short = asked.minutes is None or asked.minutes > most
        given = job.spec.time_limit is not None or job.partitions[0].default_time is not None
        return _full(rule, asked.minutes or 0, 0) if short and given else None
    wanted = asked.counts.get(rule.name, 0)
    if kind is _JOB_TRES:
        over = wanted > most
    elif kind is _NODE_TRES:
        over = wanted // max(1, asked.counts[NODE]) > most
    elif kind is _LEAST_TRES:
        over = wanted < most
    else:
        over = _minutes(asked, wanted) > most
    if not over:
        return None
    if kind is _JOB_MINUTES:
        return _of_minutes(rule, _minutes(asked, wanted), 0)
    blocked = _full(rule, wanted, 0)
    if (
        kind is _NODE_TRES and most > 0
    ):  # it holds for the nodes that are chosen (recorded: limit_before_nodes)
        return attrs.evolve(blocked, least_nodes=wanted // (most + 1) + 1)
    return blocked


def _both(one: Blocked, other: Blocked) -> Blocked:
    """Return the first of two limits that depend on the nodes that are chosen, with the terms of both."""
    return attrs.evolve(
        one,
        counted=one.counted + other.counted,
        least_nodes=max(one.least_nodes, other.least_nodes),
    )


def _passes_for_good(listed: Listed, job: Job, asked: Asked) -> bool:
    """Whether a limit can never keep a job out, as long as it asks for what it does."""
    if listed.alone:
        return _alone(listed.rule, job, asked) is None
    return listed.if_any and not asked.counts.get(listed.name, 0)


def _minutes(asked: Asked, wanted: int) -> float:
    """Return the TRES-minutes that a job asks for: of what it wants nothing, none, however long it may run."""
    if not wanted:
        return 0.0
    return math.inf if asked.booked is None else float(asked.booked * wanted)


def _of_minutes(rule: Rule, minutes: float, running: int, again: Seconds | None = None) -> Blocked:
    """Say that a job asks for more TRES-minutes than are left: infinitely many if it has no time limit."""
    blocked = _full(rule, int(min(minutes, 1e15)), running, again)
    if minutes < math.inf:
        return blocked
    text = f"{rule.reason}: the job has no time limit, and {rule.most:,} minutes of {rule.name} are allowed"
    return attrs.evolve(blocked, detail=text)


def _full(rule: Rule, wanted: float, have: float, again: Seconds | None = None) -> Blocked:
    whose = f"QOS {rule.whose}" if isinstance(rule.whose, str) else "its account"
    what = f" of {rule.name}" if rule.name else ""
    return Blocked(
        reason=rule.reason,
        resource=LIMIT,
        wanted=wanted,
        available=max(0, rule.most - have),
        detail=f"{rule.reason}: {wanted:g}{what} wanted, {have:g} of {rule.most} taken ({whose})",
        keeps_nothing=True,
        ask_again_at=again,
        before_nodes=rule.kind in _BEFORE_NODES,
        at_submission=rule.kind in _BEFORE_NODES or _caps_nodes(rule, wanted),
        stays=True,
    )


def admitted(jobs: Sequence[Job], view: ClusterView) -> dict[str, Blocked]:
    """Return which of some pending jobs a limit keeps out."""
    judge = view.book(Judge)
    found = {}
    for job in jobs:
        blocked = judge.blocked(job, view)
        if blocked is not None:
            found[job.id] = blocked
    return found


__all__ = ["Judge", "admitted"]

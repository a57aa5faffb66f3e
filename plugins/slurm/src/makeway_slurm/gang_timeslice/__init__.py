"""Let jobs take turns on the same resources, as Slurm's gang scheduler does (``gang/timeslice``).

Every partition has a queue of its started jobs and an *active row*: the jobs that may run now, beginning with
the *shadows* of running jobs of higher tiers. A job that does not fit into the row is suspended; when something
ends, others are let in at once as *fillers*; at every tick the active jobs go to the end of the queue and the row
is built anew. slurm-gang-and-select 1 to 3; the methods below carry its names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from makeway.clockwork import Clockwork
from makeway.hookspecs import hookimpl
from makeway.model import (
    ClusterView,
    Gang,
    GangOrder,
    GangVerb,
    Job,
    JobState,
    PreemptMode,
    Seconds,
    Stay,
    SuspendedBy,
)
from makeway_slurm.gang_timeslice import adoption
from makeway_slurm.gang_timeslice.row import Kind, Row, kind_of
from makeway_slurm.gang_timeslice.rows import GangPartition, Member, Place

__makeway_vendor__ = "slurm"

_TINY = 1e-6
_LEAST_SLICE = 5.0
HIGHER = "its resources go to a job of a higher tier"
"""Why a job is stopped that lies in the shadow of another, as people read it."""
_SLICE = 'policy.settings."gang/timeslice".timeslice'


@attrs.frozen(kw_only=True)
class Settings:
    """Keys of ``[policy.settings."gang/timeslice"]``."""

    timeslice: float = attrs.field(default=30.0, validator=attrs.validators.ge(1))
    """Seconds of one turn (SchedulerTimeSlice); below 5 Slurm takes 30 instead."""


class Timeslicer:
    """The arbiter of one run. See `makeway.model.Gang`."""

    def __init__(self, view: ClusterView) -> None:
        self._cluster = view.cluster
        settings = view.settings(Settings)
        self._slice = settings.timeslice if settings.timeslice >= _LEAST_SLICE else 30.0
        first = view.settings(Clockwork).first_tick
        self._first = first if first is not None else self._slice
        self._kind: Kind = kind_of(view)
        self._partitions: dict[str, GangPartition] = {}
        self._members: dict[str, tuple[Member, GangPartition]] = {}
        self._doomed: list[Member] = []
        self._orders: list[GangOrder] = []
        self._view = view
        self._now: Seconds = 0.0
        self._swift = False
        """Whether all rows are about to be updated: until then nothing looks at what counts as active (3.5)."""
        self._stale_shadows = view.rule("stale_shadows")
        self._any_shadow = view.rule("gang_kills_under_any_shadow")
        self._ends_leaving = view.rule("gang_ends_leaving")

    # ------------------------------------------------------------------------------ protocol
    @property
    def next_tick(self) -> Seconds | None:
        """The next wake-up that would change anything; ticks keep their rhythm whatever happens."""
        now = self._view.now
        if not self._doomed and not any(p.contended and not p.settled for p in self._partitions.values()):
            return None
        steps = math.floor((max(now, self._now) - self._first + _TINY) / self._slice) + 1
        return self._first + max(0, steps) * self._slice

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Section 2.2."""
        self._view = view
        partition = self._partition_of(job)
        self._swift = job.id not in self._members
        if self._add_job(partition, job):
            self._update_all()
        self._swift = False
        self._drain()
        return self._take_orders()

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Section 2.3; also a suspension by a person (2.4)."""
        self._view = view
        found = self._members.pop(job.id, None)
        if found is None:
            return ()
        member, partition = found
        self._swift = True
        self._clear_shadow(member)
        partition.drop(member, swift=True)
        self._doomed = [doomed for doomed in self._doomed if doomed is not member]
        self._update_all()
        self._swift = False
        return self._take_orders()

    def held(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Section 2.4: a held job is skipped from the next rebuild on."""
        self._view = view
        found = self._members.get(job.id)
        if found is not None:
            found[1].settled = False
            found[1].changed = True
        return ()

    def tick(self, view: ClusterView) -> Sequence[GangOrder]:
        """Section 3.1."""
        self._view = view
        self._now = view.now
        before = {p.name: tuple(p.shadows) for p in self._partitions.values()}
        cycled = set()
        for partition in self._by_tier():
            if partition.contended:
                self._cycle(partition)
                cycled.add(partition.name)
        if not self._stale_shadows:
            for partition in self._by_tier():
                if partition.name not in cycled and tuple(partition.shadows) != before[partition.name]:
                    self._update_row(partition, add_new=True)
        self._drain()
        return self._take_orders()

    def before_pass(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing: fillers are resumed by the event that makes room."""
        del view
        return ()

    def after_pass(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing: what starts is dealt with at once."""
        del view
        return ()

    def stays(self, job: Job, view: ClusterView) -> Sequence[Stay]:
        """Say whose shadow a job lies in, or whose turn it is (sections 1.4, 3.2)."""
        self._view = view
        found = self._members.get(job.id)
        if found is None or job.held:
            return ()
        member, partition = found
        shadows = self._in_conflict(member, partition.shadows.values())
        if shadows:
            return (Stay(why="its resources go to jobs of a higher tier", holders=shadows),)
        row = [
            each for each in partition.jobs.values() if each.place is not Place.NONE and each is not member
        ]
        turn = self._in_conflict(member, row)
        why = "it is the turn of others" if turn else "it waits for its turn"
        return (Stay(why=why, holders=turn, until=self.next_tick, setting=_SLICE),)

    def _in_conflict(self, member: Member, others: Iterable[Member]) -> tuple[str, ...]:
        """Return the ids of those that cannot be active beside `member`."""
        return tuple(
            each.job.id for each in others if self._kind.conflict(each.job, member.job, self._cluster)
        )

    # -------------------------------------------------------------------------- building blocks
    def _partition_of(self, job: Job) -> GangPartition:
        partition = job.partition
        found = self._partitions.get(partition.name)
        if found is None:
            row = Row(self._kind, self._cluster)
            found = GangPartition(partition.name, partition.priority_tier, row)
            for member, home in self._members.values():
                if home.tier > found.tier and member.running and member.place is not Place.NONE:
                    found.shadows[member.job.id] = member
            found.restart_row()
            self._partitions[partition.name] = found
        return found

    def _by_tier(self) -> list[GangPartition]:
        return sorted(self._partitions.values(), key=lambda partition: -partition.tier)

    def _cast_shadow(self, member: Member, tier: int) -> None:
        """Section 1.4: lay a running job over every partition of a lower tier."""
        for partition in self._partitions.values():
            if partition.tier < tier and member.job.id not in partition.shadows:
                partition.overcast(member, swift=self._swift)

    def _clear_shadow(self, member: Member) -> None:
        for partition in self._partitions.values():
            partition.clear_up(member, swift=self._swift)

    def _update_row(self, partition: GangPartition, *, add_new: bool) -> None:
        """Section 2.1: keep what is active, then fillers, then let others in."""
        partition.settled = False
        if not partition.stands:
            self._keep_active(partition)
        if add_new:
            outside = partition.outside()
            for member in outside:
                if not member.job.held and partition.fits(member):
                    partition.admit(member)
                    self._cast_shadow(member, partition.tier)
                    member.place = Place.FILLER
                    self._resume(member)
            partition.all_asked(outside)

    def _keep_active(self, partition: GangPartition) -> None:
        """Put the row together anew of the shadows and of those that were in it."""
        partition.restart_row()
        for place in (Place.ACTIVE, Place.FILLER):
            for member in partition.jobs.values():
                if member.place is place:
                    if partition.fits(member):
                        partition.admit(member)
                        self._cast_shadow(member, partition.tier)
                    else:
                        if member.running:
                            self._displace(partition, member)
                        member.place = Place.NONE

    def _update_all(self) -> None:
        for partition in self._by_tier():
            if not partition.quiet:
                self._update_row(partition, add_new=True)

    def _add_job(self, partition: GangPartition, job: Job) -> bool:
        """Section 2.1: append a job; return whether it runs."""
        known = self._members.get(job.id)
        running = job.state is not JobState.SUSPENDED
        if known is not None and self._forget(*known):
            running = True
        member = Member(job)
        partition.append(member, asked=running)
        partition.settled = False
        self._members[job.id] = (member, partition)
        if running and partition.fits(member):
            partition.admit(member)
            member.place = Place.FILLER
            self._cast_shadow(member, partition.tier)
            return True
        self._displace(partition, member)
        return False

    def _forget(self, member: Member, partition: GangPartition) -> bool:
        """Drop a job; return whether it goes on by that, as one that was stopped here does."""
        self._clear_shadow(member)
        partition.drop(member, swift=False)
        goes_on = not member.running and not member.job.held
        if goes_on:
            self._resume(member)
        self._update_row(partition, add_new=False)
        return goes_on

    def _displace(self, partition: GangPartition, member: Member) -> None:
        """Section 1.5: suspend what has to leave the row, or doom it to be killed or requeued."""
        mode = self._view.mode_of(member.job)
        shadow = self._shadow_over(partition, member)
        hit = bool(partition.shadows) if self._any_shadow else shadow is not None
        if hit and mode.frees_all:
            self._doomed.append(member)
        else:
            why = HIGHER if shadow else "waits for its turn"
            self._order(GangVerb.SUSPEND, member, shadow, why)
        member.running = False
        self._clear_shadow(member)

    def _shadow_over(self, partition: GangPartition, member: Member) -> Member | None:
        for shadow in partition.shadows.values():
            if self._kind.conflict(shadow.job, member.job, self._cluster):
                return shadow
        return None

    def _resume(self, member: Member) -> None:
        if not member.running:
            self._order(GangVerb.RESUME, member, None, "there is room again")
            member.running = True

    def _cycle(self, partition: GangPartition) -> None:
        """Section 3.2: rotate the queue and rebuild the row."""
        former: list[Member] = []
        others: list[Member] = []
        for member in partition.jobs.values():
            (former if member.place is Place.ACTIVE else others).append(member)
        partition.rotate(others, former)
        queue = others + former
        for member in queue:
            member.place = Place.NONE
        partition.restart_row()
        fits = partition.row.fits
        for member in queue:
            job = member.job
            if not job.held and (partition.active_count == 0 or fits(job)):
                partition.admit(member)
                member.place = Place.ACTIVE
        outside = [member for member in queue if member.place is Place.NONE]
        partition.all_asked(outside)
        for member in outside:
            if member.running:
                self._displace(partition, member)
        for member in queue:
            if member.place is Place.ACTIVE and not member.running and not member.job.held:
                self._resume(member)
                self._cast_shadow(member, partition.tier)
        partition.settled = self._is_settled(partition, former)

    def _is_settled(self, partition: GangPartition, former: Sequence[Member]) -> bool:
        """Whether more ticks change nothing: no job waits for another of the same partition."""
        if any(member.place is not Place.ACTIVE for member in former):
            return False
        waiting = [m for m in partition.jobs.values() if m.place is Place.NONE and not m.job.held]
        if any(member.running for member in partition.jobs.values() if member.place is Place.NONE):
            return False
        return all(self._shadow_over(partition, member) is not None for member in waiting)

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return the rows, and whose turn is next."""
        rows = adoption.to_plain(self._partitions.values(), self._members, self._doomed, self._now)
        return {"kind": self._kind.value, **rows}

    def restore(
        self,
        active: Sequence[Job],
        leaving: Sequence[Job],
        memory: Mapping[str, Any] | None,
        view: ClusterView,
    ) -> Sequence[GangOrder]:
        """Seat the jobs that are there: as it was handed over, else running jobs before stopped ones."""
        self._view = view
        here = [job for job in active if job.suspended_by is not SuspendedBy.ADMIN]
        if memory:
            partitions = {each.name: each for each in view.cluster.partitions}
            empty = {name: Row(self._kind, self._cluster) for name in partitions}
            rows = adoption.from_plain(memory, {job.id: job for job in (*here, *leaving)}, partitions, empty)
            self._partitions, self._members, self._doomed = rows.partitions, rows.members, rows.doomed
            self._now = rows.now
            if not rows.exact or memory.get("kind") != self._kind.value:
                self._put_right()
        for job in sorted(here, key=lambda job: job.state is JobState.SUSPENDED):
            if job.id not in self._members:
                self._seat(job)
        return self._take_orders()

    def _seat(self, job: Job) -> None:
        """Let a job that is there already take its place, as one that has just started or was just stopped."""
        partition = self._partition_of(job)
        if job.state is not JobState.SUSPENDED:
            if self._add_job(partition, job):
                self._update_all()
            return
        member = Member(job, running=False)
        partition.append(member, asked=False)
        partition.settled = False
        self._members[job.id] = (member, partition)

    def _put_right(self) -> None:
        """Build all rows anew: jobs have come, gone, been stopped or let go on since they were handed over."""
        for member, _ in self._members.values():
            stopped = member.job.state is JobState.SUSPENDED
            if member.running is stopped:
                member.running = not stopped
                member.place = Place.NONE if stopped else Place.FILLER
        for partition in self._partitions.values():
            partition.shadows = {}
            partition.changed = True
        for member, home in list(self._members.values()):
            if member.running and member.place is not Place.NONE:
                self._cast_shadow(member, home.tier)
        self._update_all()

    # ------------------------------------------------------------------------------- orders
    def _drain(self) -> None:
        """Section 2.7: act on those doomed, in order; what leaves already cannot be requeued, and is killed."""
        doomed, self._doomed = self._doomed, []
        for member in doomed:
            mode = self._view.mode_of(member.job)
            _, partition = self._members[member.job.id]
            shadow = self._shadow_over(partition, member)
            why = HIGHER if shadow else "lost its turn to a job of a higher tier"
            if mode.frees_all:
                leaves = self._ends_leaving and member.job.state is JobState.COMPLETING
                self._order(GangVerb.END if leaves else GangVerb.PREEMPT, member, shadow, why, mode)
            elif mode is PreemptMode.SUSPEND:
                self._order(GangVerb.SUSPEND, member, shadow, why)

    def _order(
        self,
        verb: GangVerb,
        member: Member,
        shadow: Member | None,
        why: str,
        mode: PreemptMode = PreemptMode.SUSPEND,
    ) -> None:
        because = shadow.job if shadow is not None else None
        self._orders.append(GangOrder(verb=verb, job=member.job, mode=mode, because_of=because, why=why))

    def _take_orders(self) -> Sequence[GangOrder]:
        orders, self._orders = self._orders, []
        return orders


@hookimpl
def makeway_settings() -> type[Settings]:
    """Offer the length of a turn."""
    return Settings


@hookimpl
def makeway_gang(view: ClusterView) -> Gang:
    """Build the timeslicer."""
    return Timeslicer(view)

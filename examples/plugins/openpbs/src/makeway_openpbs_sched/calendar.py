"""Hold back fillers for preempted jobs: sched_preempt_enforce_resumption (section 5.4).

A preempted job that cannot run now gets a start in the calendar, and jobs behind it leave its vnodes alone where
they would delay it. How much of a vnode a filler takes is judged by all that it could put there.
"""

from __future__ import annotations

import math

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_openpbs_sched.requests import request_of
from makeway_openpbs_sched.room import Room, amounts, capacity
from makeway_openpbs_sched.site import Site, is_preempted, preempted_at, usage_of


@attrs.frozen
class _Start:
    """A start in the calendar."""

    at: Seconds
    until: Seconds
    amounts: dict[int, dict[str, float]]
    """Vnode -> what it will take there."""


def closed(job: Job, view: ClusterView, now: Seconds, site: Site) -> NodeBits:
    """Return the vnodes that `job` must leave alone, for it would delay a preempted job ahead of it."""
    settings = site.settings
    if not settings.sched_preempt_enforce_resumption or not settings.backfill_depth:
        return 0
    ahead = _ahead(job, view, now, site)
    if not ahead:
        return 0
    plan = _Plan(view, now, site)
    for other in ahead:
        plan.add(other)
    return plan.closed_to(job)


def _ahead(job: Job, view: ClusterView, now: Seconds, site: Site) -> list[Job]:
    """Return the preempted jobs, normal or higher, that come before `job`, in order."""
    usage = usage_of(site, view)
    gone = {other.id for other in view.made_way}  # the view shows them as suspended, but they run
    mine = _place(job, site.value(job, usage, now))
    found = []
    for other in (*view.active, *view.pending):
        if other.id == job.id or other.id in gone or not is_preempted(other):
            continue
        value = site.value(other, usage, now)
        place = _place(other, value)
        if value >= site.levels.normal and place < mine:
            found.append((place, other))
    return [other for _, other in sorted(found, key=lambda pair: pair[0])]


def _place(job: Job, value: int) -> tuple[int, bool, Seconds, int]:
    preempted = is_preempted(job)
    return -value, not preempted, preempted_at(job) if preempted else 0.0, job.index


class _Plan:
    """What is free on each vnode, now and later."""

    def __init__(self, view: ClusterView, now: Seconds, site: Site) -> None:
        self._view = view
        self._now = now
        self._released = site.settings.restrict_res_to_release_on_suspend
        self._starts: list[_Start] = []
        self._ends: dict[Seconds, list[Job]] = {}
        for other in view.active:
            if other.state is JobState.RUNNING and other.end_at is not None:
                self._ends.setdefault(max(now, other.end_at), []).append(other)

    def add(self, job: Job) -> None:
        """Enter the earliest start of a preempted job; one without an end in sight gets none."""
        room = Room(self._view.cluster, self._released, self._view.active)
        instants = sorted({self._now, *self._ends, *(start.until for start in self._starts)})
        for at in instants:
            if math.isinf(at):
                break
            for other in self._ends.get(at, ()):
                room.charge(other, times=-1)
            wanted = self._wanted(job, room, at)
            if wanted is not None:
                limit = job.time_limit
                length = math.inf if limit is None else max(0.0, limit - job.ran_until(self._now))
                self._starts.append(_Start(at, at + length, wanted))
                return

    def _free(self, index: int, room: Room, at: Seconds) -> dict[str, float]:
        free = dict(room.free(index))
        for start in self._starts:
            if start.at <= at < start.until:
                for name, amount in start.amounts.get(index, {}).items():
                    free[name] = free.get(name, 0.0) - amount
        return free

    def _wanted(self, job: Job, room: Room, at: Seconds) -> dict[int, dict[str, float]] | None:
        """Return what `job` would take where if it started at `at`; None: it could not."""
        held = job.allocation
        if held is not None:
            wanted: dict[int, dict[str, float]] = {}
            for index, name, amount in amounts(held, self._view.cluster):
                if not self._released or name in self._released:
                    wanted.setdefault(index, {})[name] = amount
            fits = all(
                self._free(index, room, at).get(name, 0.0) >= amount
                for index, each in wanted.items()
                for name, amount in each.items()
            )
            return wanted if fits and not held.nodes & ~self._view.up else None
        return self._anywhere(job, room, at)

    def _anywhere(self, job: Job, room: Room, at: Seconds) -> dict[int, dict[str, float]] | None:
        """Place a requeued job on the first vnodes that have room."""
        asked = request_of(job)
        left, wanted = asked.chunks, dict[int, dict[str, float]]()
        for index in bitmap.indices(job.partition.nodes & self._view.up):
            free = self._free(index, room, at)
            fits = min(
                [asked.chunks]
                + [
                    int((free.get(name, 0.0) - asked.per_vnode.get(name, 0.0)) // each)
                    for name, each in asked.chunk.items()
                ]
            )
            use = min(fits, left, asked.most_per_vnode or left)
            if use > 0:
                wanted[index] = {name: each * use for name, each in asked.chunk.items()}
                left -= use
            if not left:
                return wanted
        return None

    def closed_to(self, job: Job) -> NodeBits:
        """Return the vnodes on which `job`, started now, would be in the way of a start in the calendar."""
        limit = job.time_limit
        end = math.inf if limit is None else self._now + max(0.0, limit - job.ran_until(self._now))
        found = 0
        for start in self._starts:
            if end <= start.at:
                continue
            room = Room(self._view.cluster, self._released, self._view.active)
            for at, jobs in self._ends.items():
                if at <= start.at:
                    for other in jobs:
                        room.charge(other, times=-1)
            for index in start.amounts:
                free = self._free(index, room, start.at)
                mine = self._most(job, index)
                if any(free.get(name, 0.0) < amount for name, amount in mine.items()):
                    found |= 1 << index
        return found

    def _most(self, job: Job, index: int) -> dict[str, float]:
        """Return all that `job` could take on a vnode."""
        held = job.allocation
        if held is not None:
            return {name: amount for at, name, amount in amounts(held, self._view.cluster) if at == index}
        asked = request_of(job)
        total = capacity(self._view.cluster.nodes[index])
        chunks = min(
            asked.chunks - asked.vnodes + 1,
            asked.most_per_vnode or asked.chunks,
            *(int(total.get(name, 0.0) // each) for name, each in asked.chunk.items()),
        )
        most = {name: each * max(1, chunks) for name, each in asked.chunk.items()}
        for name, each in asked.per_vnode.items():
            most[name] = most.get(name, 0.0) + each
        return most

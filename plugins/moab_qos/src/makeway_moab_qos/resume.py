"""Resume suspended jobs: none takes turns, but what was displaced goes on when its nodes are free (moab 7.4).

Before every pass each suspended job is tried, in queue order, on its own nodes and cores only, and not
before its hold-down is over. A person's resume is not bound to the hold-down. Under Maui's profile one
whose nodes come free while it is held down is never resumed (section 17, observed in its simulator).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from makeway import bitmap
from makeway.clockwork import Clockwork
from makeway.model import (
    ClusterView,
    GangOrder,
    GangVerb,
    Job,
    JobState,
    ModeFlag,
    Seconds,
    Stay,
    SuspendedBy,
)
from makeway_moab_qos.credentials import settings_of
from makeway_moab_qos.limits import Limit, any_limits, limits_of, used
from makeway_moab_qos.priority import start_priority
from makeway_moab_qos.settings import path
from makeway_moab_qos.tasks.suspended import kept_when_suspended

_SUSPENDED = JobState.SUSPENDED
_TINY = 1e-6
_RESUME_MANUAL = path("choices", "resume_manual")


class Resumer:
    """The arbiter of one run. See `makeway.model.Gang`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._settings = settings_of(view)
        self._interval = view.settings(Clockwork).sched_interval
        self._stopped: dict[str, Job] = {}
        self._missed: set[str] = set()
        """Jobs that Maui forgets: their nodes came free too early."""

    @property
    def next_tick(self) -> Seconds | None:
        """When the next hold-down ends."""
        now = self._view.now
        ends = [
            self._held_until(job) for job in self._view.active if job.state is _SUSPENDED and self._waits(job)
        ]
        later = [end for end in ends if end > now + _TINY]
        if not later:
            return None
        first = min(later)
        if self._interval:
            return math.ceil((first - _TINY) / self._interval) * self._interval
        return first

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing: what starts has found room."""
        del job
        self._view = view
        return ()

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing: the pass that follows resumes."""
        if job.id in self._missed:
            self._missed.discard(job.id)
            self._settings.memo["booked"] = frozenset(self._missed)
        self._view = view
        return ()

    def held(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        del job
        self._view = view
        return ()

    def tick(self, view: ClusterView) -> Sequence[GangOrder]:
        """A hold-down is over."""
        return self.before_pass(view)

    def before_pass(self, view: ClusterView) -> Sequence[GangOrder]:
        """Resume all whose nodes are free."""
        self._view = view
        waiting = [job for job in view.active if job.state is _SUSPENDED and self._waits(job)]
        if not waiting:
            return ()
        now = view.now
        waiting.sort(key=lambda job: (-start_priority(job, view, now), job.submit_at, job.index))
        orders: list[GangOrder] = []
        resumed: list[Job] = []
        for job in waiting:
            if not self._free(job, resumed):
                continue
            if now < self._held_until(job) - _TINY:
                if self._settings.maui:
                    self._missed.add(job.id)
                    self._settings.memo["booked"] = frozenset(self._missed)
                continue
            resumed.append(job)
            why = "its nodes are free again"
            orders.append(GangOrder(verb=GangVerb.RESUME, job=job, why=why))
        return orders

    def after_pass(self, view: ClusterView) -> Sequence[GangOrder]:
        """Nothing."""
        self._view = view
        return ()

    def stays(self, job: Job, view: ClusterView) -> list[Stay]:
        """Say why a suspended job is not resumed: the hold-down, nodes, holders, memory, limits (7.4)."""
        self._view = view
        if job.id in self._missed:
            why = "its nodes came free within the hold-down, and Maui forgets such a job"
            return [Stay(why=why, setting=path("profile"))]
        if not self._waits(job):
            return [Stay(why="the scheduler resumes no job that a person suspended", setting=_RESUME_MANUAL)]
        found = []
        end = self._held_until(job)
        if view.now < end - _TINY:
            why = f"hold-down of {self._settings.hold_down:g} s after its suspension"
            found.append(Stay(why=why, until=end, setting=path("min_admin_stime")))
        return found + self._in_the_way(job)

    def _in_the_way(self, job: Job) -> list[Stay]:
        """Return what `_free` finds in the way, each by itself."""
        view, held = self._view, job.allocation
        if held is None:
            return []
        found = []
        if held.nodes & ~view.up:
            found.append(Stay(why="its nodes are out of service"))
        if held.nodes & view.completing:
            found.append(Stay(why="its nodes are still being left by jobs that have ended"))
        asking = tuple(
            other.id
            for other in view.pending
            if other.asked_at == view.now and other.asked_nodes & held.nodes
        )
        if asking:
            found.append(Stay(why="its nodes were freed a moment ago for others", holders=asking))
        running = [other for other in view.active if other.state is JobState.RUNNING]
        holders = tuple(other.id for other in running if overlap(job, other))
        if holders:
            found.append(Stay(why="others run on its processors", holders=holders))
        if not kept_when_suspended(job, self._settings).memory and not self._memory(job, running):
            found.append(Stay(why="its memory was given away", setting=path("suspend_resources")))
        limit = self._over_limit(job, running)
        if limit is not None:
            kind, name = limit.group
            why = f"{limit.whose}: at most {limit.hard}, and others use it up"
            found.append(Stay(why=why, setting=path(kind, name, limit.kind)))
        return found

    # ----------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return which jobs Maui has forgotten; which wait to go on is seen from the jobs."""
        return {"missed": sorted(self._missed)} if self._missed else {}

    def restore(
        self,
        active: Sequence[Job],
        leaving: Sequence[Job],
        memory: Mapping[str, Any] | None,
        view: ClusterView,
    ) -> Sequence[GangOrder]:
        """Forget the same jobs."""
        self._view = view
        known = {job.id for job in (*active, *leaving)}
        self._missed = known.intersection(memory["missed"]) if memory else set()
        if self._missed:
            self._settings.memo["booked"] = frozenset(self._missed)
        return ()

    # ----------------------------------------------------------------------------- asking
    def _waits(self, job: Job) -> bool:
        if job.state is not _SUSPENDED or job.id in self._missed:
            return False
        return job.suspended_by is SuspendedBy.POLICY or self._settings.choices.resume_manual

    def _held_until(self, job: Job) -> Seconds:
        return (job.suspended_at or 0.0) + self._settings.hold_down

    def _free(self, job: Job, resumed: Sequence[Job]) -> bool:
        """Whether no job runs on the job's cores, its nodes are in service, and hard limits allow it."""
        view = self._view
        held = job.allocation
        if held is None or held.nodes & (view.completing | ~view.up):
            return False
        kept = [other for other in view.pending if other.asked_at == view.now]
        if any(other.asked_nodes & held.nodes for other in kept):
            return False  # freed a moment ago, for another job
        running = [other for other in view.active if other.state is JobState.RUNNING]
        if any(overlap(job, other) for other in (*running, *resumed)):
            return False
        if not kept_when_suspended(job, self._settings).memory and not self._memory(job, running):
            return False
        return self._over_limit(job, (*running, *resumed)) is None

    def _memory(self, job: Job, running: Sequence[Job]) -> bool:
        """Whether its memory is there: it was given away while the job was stopped."""
        held = job.allocation
        if held is None or held.memory_mb is None:
            return True
        for at, index in enumerate(held.node_indices):
            used_mb = held.memory_mb[at]
            for other in running:
                theirs = other.allocation
                if theirs is not None and theirs.memory_mb is not None and theirs.nodes >> index & 1:
                    used_mb += theirs.memory_mb[theirs.node_indices.index(index)]
            if used_mb > self._view.cluster.nodes[index].memory_mb:
                return False
        return True

    def _over_limit(self, job: Job, others: Sequence[Job]) -> Limit | None:
        """Return the hard limit that `job` would be beyond beside `others`; None: none."""
        view = self._view
        if not any_limits(view):
            return None
        found = limits_of(job, view)
        return next((limit for limit in found if used(limit, (*others, job), view) > limit.hard), None)


def overlap(one: Job, other: Job) -> bool:
    """Whether two jobs hold a common core."""
    first, second = one.allocation, other.allocation
    if first is None or second is None or not first.nodes & second.nodes:
        return False
    if first.cores is None or second.cores is None:
        return True
    for index in bitmap.indices(first.nodes & second.nodes):
        mine = first.cores[first.node_indices.index(index)]
        if mine & second.cores[second.node_indices.index(index)]:
            return True
    return False


def arbiter(view: ClusterView) -> Resumer | None:
    """Build the arbiter, unless the site lets jobs take turns."""
    if ModeFlag.GANG in view.preempt_mode.flags:
        return None
    return Resumer(view)

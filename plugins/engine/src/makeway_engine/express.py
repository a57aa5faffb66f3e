"""Take plain jobs the short way: submit, start and end them with few calls, and the same in the books.

A plain job asks for a number of nodes and for nothing else: no licences, features, named nodes, begin time, array or
components; it is not shared, and ends by itself. `Submission`, `Queue`, `Placer`, `Moves`, `Ledger` and `Endings` say
what happens to it. Here the same is done at one go where nothing unusual is under way: nobody is leaving his nodes, no
timer is due, no arbiter and no prioritizer is there. Everything else goes the plain way, event by event.
`tests/test_express.py` holds one way to the other.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any, cast

from makeway import licences
from makeway.bitmap import NodeBits
from makeway.config import McsTable, SchedulerTable
from makeway.model import (
    CountingSelector,
    Exclusive,
    Job,
    JobDraft,
    JobSpec,
    JobState,
    ModeFlag,
    Partition,
    Placement,
    Seconds,
)
from makeway.record_express import ExpressRecord
from makeway.worlds.events import Action, Event, Finished, Start, Submitted
from makeway_engine.endings import Endings
from makeway_engine.express_passes import ExpressPasses
from makeway_engine.ledger import put_field
from makeway_engine.parts import Parts
from makeway_engine.queue import key_of
from makeway_engine.rhythm import Rhythm

_new = tuple.__new__
_COMPLETED = JobState.COMPLETED
_PENDING = JobState.PENDING
_RUNNING = JobState.RUNNING
_ENDS = (_COMPLETED, JobState.FAILED, JobState.CANCELLED)
_USER = Exclusive.USER
_HOOK = "makeway_selector"
_MOST_SOUND = 1 << 14
"""Placements that are remembered as sound."""


class _Door:
    """What a job comes to that names certain partitions and asks for nothing unusual."""

    __slots__ = ("least", "limit", "longest", "most", "partition", "partitions", "tier")

    def __init__(self, partitions: tuple[Partition, ...]) -> None:
        self.partitions = partitions
        self.partition = partition = partitions[0]
        self.tier = -partition.priority_tier
        there = partition.nodes.bit_count()
        self.least = partition.min_nodes
        self.most = there if partition.max_nodes is None else min(there, partition.max_nodes)
        self.longest = partition.max_time
        self.limit = partition.default_time if partition.default_time is not None else partition.max_time


class Express:
    """The short way of one run."""

    def __init__(
        self, parts: Parts, endings: Endings, rhythm: Rhythm, handle: Callable[[Event], None]
    ) -> None:
        """Be ready for the first step.

        :param handle: takes an event the plain way.
        """
        self._parts = parts
        self._endings = endings
        self._rhythm = rhythm
        self._handle = handle
        self._ledger = ledger = parts.ledger
        self._queue = parts.queue
        self._transitions = transitions = parts.transitions
        self._placer = placer = parts.placer
        self._submission = parts.submission
        self._reports = parts.reports
        self._deeds = parts.deeds
        self._retries = transitions.making_way
        self._selector = transitions.selector
        self._scheduler: SchedulerTable = parts.config.scheduler
        self._left_nodes = parts.clockwork.pass_on_own_end
        self._first = transitions.priorities.first
        self._record = ExpressRecord(parts.recorder)
        selector = cast(CountingSelector, parts.selector)
        self._wants = selector.wants
        self._free = selector.idle
        self._place = selector.place
        limited = placer.rulings.limited
        self._limited = None if limited is licences.wants else limited
        self._forgiveness = placer.forgiveness
        self._attempts = parts.schedulers.attempts
        self._easy = parts.schedulers.easy if self._scheduler.type == "easy" else None
        self._passes: ExpressPasses | None = None
        if self._easy is not None and not placer.preemption and parts.recorder.traced is None:
            self._passes = ExpressPasses(self._easy, self, self._wanted_by)
        self._doors: dict[tuple[str, ...], _Door | None] = {}
        self._sound: dict[NodeBits, Placement] = {}
        """Placements that were looked at, by their nodes."""
        self._active, self._held, self._exclusive, self._books = ledger.express

    # -------------------------------------------------------------------------- stepping
    def step(self, now: Seconds, events: Sequence[Event]) -> list[Action] | None:
        """Make a step later than the last one; None: it has to go the plain way, and nothing was done yet."""
        ledger, transitions, queue = self._ledger, self._transitions, self._queue
        by_end, timers = ledger.by_end, self._reports.timers
        if (
            (by_end and by_end[0][0] <= now)
            or queue.later
            or queue.bounced
            or transitions.graces
            or transitions.survived_grace
            or self._retries.retries
            or self._forgiveness.on
            or (timers and timers[0][0] <= now)
            or not events
        ):
            if self._passes is not None:
                self._passes.stale = True
            return None
        for event in events:
            if type(event) is not Finished and type(event) is not Submitted:
                if self._passes is not None:
                    self._passes.stale = True
                return None
        ledger.now = now
        transitions.actions = []
        alone = len(events) == 1 and not queue.entries and not transitions.changed
        for event in events:
            if type(event) is Finished:
                self._finish(event, now)
            else:
                self._submit(cast(Submitted, event), now, alone=alone)
        if not queue.entries:
            transitions.changed = False
        elif transitions.changed and (self._passes is None or not self._passes.run(now)):
            if self._passes is not None:
                self._passes.stale = True
            self._rhythm.run(now)
        if ledger.gone:
            self._reports.ended(ledger.gone)
        if self._deeds is not None and transitions.actions:
            return self._deeds.number(transitions.actions)
        return transitions.actions

    # ------------------------------------------------------------------------------ come
    def _submit(self, event: Submitted, now: Seconds, *, alone: bool) -> None:
        """Enter a job, and start it if nobody else waits and there is room.

        :param alone: whether nothing else happened in this step, and nobody waits.
        """
        spec, ledger, submission = event.spec, self._ledger, self._submission
        door = self._doors[spec.partitions] if spec.partitions in self._doors else self._find_door(spec)
        if door is None or not _is_plain(spec) or spec.id in ledger.jobs:
            self._submit_plainly(event)
            return
        limit = spec.time_limit
        if limit is None:
            limit = door.limit
        size = spec.min_nodes if spec.min_nodes > 1 else 1
        if not door.least <= size <= door.most or (
            door.longest is not None and limit is not None and limit > door.longest
        ):
            self._submit_plainly(event)
            return
        draft: Any = JobDraft(  # in the order of its fields: names take three times as long
            spec,
            spec.id,
            submission.last_index + 1,
            spec.user,
            spec.account,
            door.partitions,
            door.partition,
            None,
            now,  # submitted
            now,  # eligible
            limit,
            0,  # priority
            spec.batch and (spec.requeue if spec.requeue is not None else self._scheduler.requeue),
            size,
        )
        wanted = self._wants(draft)
        if (
            wanted is None
            or (self._limited is not None and self._limited(draft))
            or (self._deeds is not None and self._reports.has_ended(spec.id))
        ):
            self._submit_plainly(event)
            return
        submission.last_index += 1
        draft.priority = self._first(draft)
        draft.eligible_since = now
        draft.__class__ = Job
        job: Job = draft
        ledger.jobs[job.id] = job
        if self._books.kept:
            self._books.came(job)
        self._record.entered(job, now)
        if alone and self._easy is not None:
            idle = self.idle()
            if idle is not None and (found := self.find(job, idle & door.partition.nodes, wanted)):
                self.start(job, found, now, waits=False)
                self._easy.passed()
                return
        self._enqueue(job, door, wanted)
        self._transitions.changed = True

    def _submit_plainly(self, event: Submitted) -> None:
        if self._passes is not None:
            self._passes.stale = True
        if self._deeds is None:
            self._submission.submit(event.spec)
        else:
            self._handle(event)

    def _find_door(self, spec: JobSpec) -> _Door | None:
        """Return the door for these partitions; None: what they come to is not that simple."""
        partitions, problem = self._submission.partitions_of(spec)
        partition = partitions[0]
        door = None
        if not (
            problem or len(partitions) > 1 or partition.exclusive_user or not (partition.up and partition.accepts)
        ):
            door = _Door(partitions)
        self._doors[spec.partitions] = door
        return door

    def _enqueue(self, job: Job, door: _Door, wanted: int) -> None:
        """Let an eligible job wait."""
        queue, ledger = self._queue, self._ledger
        queue.waiting[job.id] = job
        ledger.pending_now = None
        key = (0, door.tier, -job.priority, job.submit_at, job.index, door.partition.index)
        if queue.key_of is not key_of:
            key = queue.key_of(job, door.partition)
        entry = (key, job, door.partition)
        entries = queue.entries
        if not entries or entries[-1][0] < key:
            entries.append(entry)
        else:
            bisect.insort(entries, entry)
        queue.arrivals.append(entry)
        for listener in queue.listeners.all:
            listener.came(entry)
        if len(entries) > 1:
            ledger.wait_for(job, "Priority")
        if self._passes is not None:
            self._passes.wanted[job.index] = wanted

    def _wanted_by(self, job: Job) -> int | None:
        """Return how many nodes a job wants that waits; None: it is not plain."""
        door = self._doors[job.spec.partitions] if job.spec.partitions in self._doors else self._find_door(job.spec)
        if (
            door is None
            or len(job.partitions) > 1
            or job.partition is not door.partition
            or not _is_plain(job.spec)
            or (self._limited is not None and self._limited(job))
        ):
            return None
        return self._wants(job)

    # ----------------------------------------------------------------------------- start
    def idle(self) -> NodeBits | None:
        """Return the nodes that plain jobs may take now; None: something unusual is under way."""
        ledger, placer = self._ledger, self._placer
        if ledger.completing or ledger.anyone_exclusive or placer.beyond or placer.kept.claims:
            return None
        idle = self._free(ledger.up)
        return None if idle is None or idle & self._held.any else idle

    def find(self, job: Job, idle: NodeBits, wanted: int) -> Placement | None:
        """Return where a job starts on these nodes of its partition; None: there are too few.

        :raises PolicyError: the selector answers what it may not answer.
        """
        found = self._place(idle, wanted)
        if found is None:
            return None
        nodes = found.allocation.nodes
        if self._sound.get(nodes) is not found:
            self._look_at(job, found)
        if nodes & ~idle or len(found.allocation.node_indices) < job.size:
            self._placer.prober.check(job, found, _HOOK)
            raise self._placer.policies.fault(_HOOK, job, "placed it on nodes that are not idle")
        return found

    def _look_at(self, job: Job, found: Placement) -> None:
        """Check a placement that is a new one."""
        self._placer.prober.check(job, found, _HOOK)
        allocation = found.allocation
        if found.alternative or found.overlays or allocation.licenses or allocation.shared:
            raise self._placer.policies.fault(_HOOK, job, "placed it otherwise than on nodes of its own")
        if len(self._sound) >= _MOST_SOUND:
            self._sound.clear()
        self._sound[allocation.nodes] = found

    def start(self, job: Job, found: Placement, now: Seconds, *, waits: bool = True) -> None:
        """Start a plain job.

        :param waits: whether it stands in the queue.
        """
        ledger, allocation = self._ledger, found.allocation
        if self._placer.telling.notes:
            self._placer.telling.starts(job, found)
        if waits:
            queue = self._queue
            del queue.waiting[job.id]
            for listener in queue.listeners.all:
                listener.left(job)
            entries = queue.entries
            if entries[0][1] is job:
                del entries[0]
            else:
                del entries[bisect.bisect_left(entries, (queue.key_of(job, job.partition),))]
        ledger.pending_now = None
        put_field(job, "__class__", JobDraft)  # many fields are set sooner while nothing forbids it
        draft: JobDraft = job
        draft.allocation = allocation
        draft.state = _RUNNING
        draft.reason = "None"
        draft.starts += 1
        draft.started_at = draft.resumed_at = now
        if draft.restarts or draft.preemptions:
            draft.ran = draft.stopped = 0.0
            draft.preemptions_before = draft.preemptions
        limit = draft.time_limit
        if limit is not None:
            draft.end_at = now + limit
            bisect.insort(ledger.by_end, (draft.end_at, draft.index, job))
        draft.__class__ = Job
        self._active.add(job)
        nodes = allocation.nodes
        self._held.add(nodes)
        self._exclusive.add(nodes)
        if self._books.kept:
            self._books.started(job)
        ledger.version += 1
        self._selector.placed(job)
        self._transitions.actions.append(_new(Start, (job, 0, 0, (), allocation, False)))
        self._record.started(job, now)

    # ------------------------------------------------------------------------------- end
    def _finish(self, event: Finished, now: Seconds) -> None:
        """Let a plain job end."""
        ledger, transitions = self._ledger, self._transitions
        job = self._active.by_id.get(event.job_id)
        state = event.state
        if (
            job is None
            or not event.cleaned
            or (event.incarnation != job.starts and event.incarnation)
            or (state is not _COMPLETED and state not in _ENDS)
            or job.state is not _RUNNING
            or job.begun_with
            or job.resumed_at is None
            or (allocation := job.allocation) is None
            or allocation.licenses
            or allocation.shared
            or ledger.anyone_exclusive
            or job.spec.het_id is not None
        ):
            if self._passes is not None:
                self._passes.stale = True
            self._endings.finished(event)
            return
        end_at = job.end_at
        if end_at is not None:
            if end_at < now:
                if self._passes is not None:
                    self._passes.stale = True
                self._endings.finished(event)
                return
            by_end = ledger.by_end
            at = bisect.bisect_left(by_end, (end_at, job.index))
            if at < len(by_end) and by_end[at][2] is job:
                del by_end[at]
        ran = job.ran + now - job.resumed_at
        self._selector.released(job)
        if self._books.kept:
            self._books.left(job)
        self._active.remove(job)
        nodes = allocation.nodes
        self._held.remove(nodes)
        self._exclusive.remove(nodes)
        ledger.version += 1
        ledger.freed += 1
        transitions.changed = True
        if self._left_nodes:
            transitions.left_nodes = True
        put_field(job, "state", state)
        self._record.ended(job, state, ran, now)
        put_field(job, "allocation", None)
        ledger.forget(job)
        queue = self._queue
        if queue.dependents or queue.throttle:
            if self._passes is not None:
                self._passes.stale = True
            queue.ended(job, now)


def _is_plain(spec: JobSpec) -> bool:
    """Whether a job asks for nothing that concerns more than the selector."""
    return (
        spec.qos is None
        and spec.begin_at is None
        and not spec.features
        and not spec.licenses
        and spec.het_id is None
        and spec.array_id is None
        and not spec.depends_on
        and not spec.required_nodes
        and not spec.excluded_nodes
        and spec.priority is None
        and not spec.nice
        and spec.exclusive is not _USER
        and spec.reservation is None
    )


def express_of(
    parts: Parts, endings: Endings, rhythm: Rhythm, handle: Callable[[Event], None]
) -> Express | None:
    """Return the short way for a run; None: with these plugins and this configuration there is none."""
    policies, selector = parts.policies, parts.selector
    ledger, priorities = parts.ledger, parts.transitions.priorities
    hooks = (
        *("makeway_accept", "makeway_closed_nodes", "makeway_marks", "makeway_next", "makeway_node_sets"),
        *("makeway_overdue", "makeway_queue_order", "makeway_windows"),
    )
    simple = (
        parts.gang is None
        and priorities.prioritizer is None
        and not rhythm.periodic
        and not rhythm.on_grids
        and parts.config.scheduler.enforce_part_limits
        and ledger.settings(McsTable).label == "none"
        and ModeFlag.GANG not in ledger.preempt_mode.flags
        and not any(map(policies.implements, hooks))
        and all(hasattr(selector, verb) for verb in ("wants", "idle", "place"))
    )
    return Express(parts, endings, rhythm, handle) if simple else None


__all__ = ["Express", "express_of"]

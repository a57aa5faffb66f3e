"""Start and end plain jobs with few calls, while no node is held by two jobs and nobody is leaving one.

`Moves`, `Ledger`, `Queue` and `Deadlines` say what a start and an end come to.
"""

from __future__ import annotations

import bisect
from typing import cast

from makeway.bitmap import NodeBits
from makeway.model import Allocation, CountingSelector, Job, JobDraft, JobState, Partition, Placement, Seconds
from makeway.record_express import ExpressRecord
from makeway.worlds.events import Finished, Start
from makeway_engine.entries import Entry
from makeway_engine.ledger import put_field
from makeway_engine.parts import Parts

_new = tuple.__new__
_COMPLETED = JobState.COMPLETED
_RUNNING = JobState.RUNNING
_ENDS = (_COMPLETED, JobState.FAILED, JobState.CANCELLED)
_HOOK = "makeway_selector"
_SMALL = 1024
"""Placements on clusters of so many nodes are worth remembering: larger sets take long to look up."""
_MOST = 1 << 14
"""So many of them."""


class ExpressMoves:
    """Starts and ends of plain jobs in one run."""

    shares = False
    """Whether several may lie on a node."""

    def __init__(self, parts: Parts) -> None:
        self._begin(parts)
        selector = cast(CountingSelector, parts.selector)
        self._idle_of = selector.idle
        self._place = selector.place

    def _begin(self, parts: Parts) -> None:
        """Have at hand what all of it is about."""
        self._ledger = ledger = parts.ledger
        self._queue = parts.queue
        self._placer = parts.placer
        self._transitions = parts.transitions
        self._selector = parts.transitions.selector
        self._active = ledger.jobs_active
        self._held = ledger.held_tally
        self._exclusive = ledger.exclusive_tally
        self.books = ledger.kept_books
        self._own_end = parts.clockwork.pass_on_own_end
        self.record = ExpressRecord(parts.recorder)
        self._everywhere = {
            each.index for each in ledger.cluster.partitions if each.nodes == ledger.all_nodes
        }
        """Partitions with all nodes, by index: large sets take long to compare."""
        self.idle: NodeBits = 0
        """Nodes in service that nobody holds."""
        self._sound: dict[NodeBits, Placement] = {}
        """Placements that were looked at, by their nodes."""

    def look_around(self) -> bool:
        """See which nodes are idle; say whether each node is held by one job at most."""
        held, idle = self._held, self._idle_of(self._ledger.up)
        if idle is None or idle & held.any or any(held.digits) or any(self._exclusive.digits):
            return False
        self.idle = idle
        return True

    def wait(self, job: Job, entry: Entry) -> None:
        """Let an eligible job wait behind others; it has been tried."""
        queue = self._queue
        queue.waiting[job.id] = job
        self._ledger.pending_now = None
        bisect.insort(queue.entries, entry)
        for listener in queue.listeners.all:
            listener.came(entry)
        self._ledger.wait_for(job, "Priority")

    # ----------------------------------------------------------------------------- start
    def find(self, job: Job, partition: Partition, wanted: int) -> Placement | None:
        """Return where a job starts that wants so many nodes; None: there are too few.

        :raises PolicyError: the selector answers what it may not answer.
        """
        idle = self.idle if partition.index in self._everywhere else self.idle & partition.nodes
        found = self._place(idle, wanted)
        if found is None:
            return None
        nodes = found.allocation.nodes
        if nodes.bit_length() > _SMALL or self._sound.get(nodes) is not found:
            self._look_at(job, found)
        if nodes & idle != nodes or len(found.allocation.node_indices) < job.size:
            self._placer.prober.check(job, found, _HOOK)
            raise self._placer.policies.fault(_HOOK, job, "placed it on nodes that are not idle")
        return found

    def _look_at(self, job: Job, found: Placement) -> None:
        """Check a placement that is a new one."""
        self._placer.prober.check(job, found, _HOOK)
        allocation = found.allocation
        if found.alternative or found.overlays or allocation.licenses or allocation.shared:
            raise self._placer.policies.fault(_HOOK, job, "placed it otherwise than on nodes of its own")
        if allocation.nodes.bit_length() <= _SMALL:
            if len(self._sound) >= _MOST:
                self._sound.clear()
            self._sound[allocation.nodes] = found

    def start(self, job: Job, found: Placement, now: Seconds, entry: Entry | None = None) -> None:
        """Start a plain job.

        :param entry: its entry in the queue; None: it has never waited.
        """
        ledger, allocation = self._ledger, found.allocation
        if self._placer.telling.notes:
            self._placer.telling.starts(job, found)
        if entry is not None:
            self._leave_queue(job, entry)
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
            end_at = draft.end_at = now + limit
            bisect.insort(ledger.by_end, (end_at, draft.index, job))
        draft.__class__ = Job
        active = self._active
        if active.listed:
            active.add(job)
        else:
            active.by_id[job.id] = job
            active.now = None
        self._occupy(allocation)
        if self.books.kept:
            self.books.started(job)
        ledger.version += 1
        self._selector.placed(job)
        self._transitions.actions.append(_new(Start, (job, 0, 0, (), allocation, False)))
        self.record.started(job, now)

    def _occupy(self, allocation: Allocation) -> None:
        """Enter nodes that nobody else holds."""
        nodes, held, exclusive = allocation.nodes, self._held, self._exclusive
        held.odd = held.any = held.odd | nodes
        exclusive.odd = exclusive.any = exclusive.odd | nodes
        self.idle ^= nodes

    def _vacate(self, allocation: Allocation) -> None:
        """Take out nodes that nobody else holds."""
        nodes, held, exclusive = allocation.nodes, self._held, self._exclusive
        held.odd = held.any = held.odd ^ nodes
        exclusive.odd = exclusive.any = exclusive.odd ^ nodes
        self.idle |= nodes & self._ledger.up

    def _leave_queue(self, job: Job, entry: Entry) -> None:
        queue = self._queue
        del queue.waiting[job.id]
        for listener in queue.listeners.all:
            listener.left(job)
        entries = queue.entries
        if entries[0] is entry:
            del entries[0]
        else:
            del entries[bisect.bisect_left(entries, entry)]

    # ------------------------------------------------------------------------------- end
    def finish(self, event: Finished, now: Seconds) -> bool:
        """Let a plain job end that has ended by itself; False: it is none, and nothing was done."""
        active = self._active
        job = active.by_id.get(event.job_id)
        state, ledger = event.state, self._ledger
        if (
            job is None
            or not event.cleaned
            or (event.incarnation != job.starts and event.incarnation)
            or (state is not _COMPLETED and state not in _ENDS)
            or job.state is not _RUNNING
            or job.begun_with
            or (began := job.resumed_at) is None
            or (allocation := job.allocation) is None
            or allocation.licenses
            or (allocation.shared and not self.shares)
            or job.spec.het_id is not None
        ):
            return False
        end_at = job.end_at
        if end_at is not None:
            if end_at < now:
                return False
            by_end = ledger.by_end
            if by_end and by_end[0][2] is job:
                del by_end[0]
            else:
                at = bisect.bisect_left(by_end, (end_at, job.index))
                if at < len(by_end) and by_end[at][2] is job:
                    del by_end[at]
        self._selector.released(job)
        if self.books.kept:
            self.books.left(job)
        if active.listed:
            active.remove(job)
        else:
            del active.by_id[job.id]
            active.now = None
        self._vacate(allocation)
        ledger.version += 1
        ledger.freed += 1
        if self._own_end:
            self._transitions.left_nodes = True
        put_field(job, "state", state)
        self.record.ended(job, state, job.ran + now - began, now)
        put_field(job, "allocation", None)
        del ledger.jobs[job.id]
        if self.books.kept:
            self.books.gone(job)
        if ledger.gone is not None:
            ledger.gone.append(job.id)
        queue = self._queue
        if queue.dependents or queue.throttle.tasks:
            queue.ended(job, now)
        return True


__all__ = ["ExpressMoves"]

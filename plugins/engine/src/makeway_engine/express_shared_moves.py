"""Start and end plain jobs that share nodes with few calls, while nobody is leaving one.

`Placer`, `Moves`, `Ledger`, `Queue` and `Deadlines` say what a start and an end come to.
"""

from __future__ import annotations

import bisect
from typing import cast

from makeway.bitmap import NodeBits
from makeway.model import Allocation, Blocked, Job, JobDraft, JobState, Placement, PromptSelector, Seconds
from makeway.worlds.events import Finished, Start
from makeway_engine.express_moves import ExpressMoves
from makeway_engine.ledger import put_field
from makeway_engine.parts import Parts

_new = tuple.__new__
_COMPLETED = JobState.COMPLETED
_RUNNING = JobState.RUNNING
_ENDS = (_COMPLETED, JobState.FAILED, JobState.CANCELLED)
_HOOK = "makeway_selector"
_MOST = 1 << 14
"""So many placements are remembered."""


class SharedMoves(ExpressMoves):
    """Starts and ends of plain jobs in one run, where several may lie on a node."""

    def __init__(self, parts: Parts) -> None:
        self._begin(parts)
        self._place_now = cast(PromptSelector, parts.selector).place_now
        self._checked: dict[int, Placement] = {}
        """Placements that were looked at, by identity."""

    def look_around(self) -> bool:
        """Say that nothing in the books of nodes stands in the way of the short way."""
        return True

    # ----------------------------------------------------------------------------- start
    def look(self, job: Job, nodes: NodeBits) -> Placement | Blocked:
        """Return where a job starts on some of these nodes of its partition, or why it does not.

        :raises PolicyError: the selector answers what it may not answer.
        """
        ledger, placer = self._ledger, self._placer
        nodes &= ledger.up & ~self._exclusive.any
        if ledger.completing:
            nodes &= ~ledger.completing
        try:
            found = self._place_now(job, nodes, ledger)
        except Exception as error:
            raise placer.policies.blame(_HOOK, job, error) from error
        if type(found) is not Placement:
            return found if isinstance(found, Blocked) else placer.prober.checked(job, found)
        allocation = found.allocation
        if type(allocation) is not Allocation:
            return placer.prober.checked(job, found)
        held = allocation.nodes
        inside = held & nodes == held
        known = self._checked.get(id(found)) is found or _is_on_one_node(allocation)
        if not (inside and known) or len(allocation.node_indices) < job.size:
            placer.prober.check(job, found, _HOOK)
            if len(self._checked) >= _MOST:
                self._checked.clear()
            self._checked[id(found)] = found
        if held & self._held.any and not (inside and allocation.shared):
            placer.action.check_overlap(job, allocation, _HOOK)
        return found

    def start_waiting(self, job: Job, found: Placement) -> None:
        """Start a plain job that stands in the queue."""
        self._queue.remove(job)
        self.begin(job, found, self._ledger.now)

    def begin(self, job: Job, found: Placement, now: Seconds) -> None:
        """Start a plain job that stands in no queue."""
        ledger, allocation = self._ledger, found.allocation
        if self._placer.telling.notes:
            self._placer.telling.starts(job, found)
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
        nodes = allocation.nodes
        self._held.add(nodes)
        if not allocation.shared:
            self._exclusive.add(nodes)
        if self.books.kept:
            self.books.started(job)
        ledger.version += 1
        self._selector.placed(job)
        self._transitions.actions.append(_new(Start, (job, 0, 0, (), allocation, False)))
        self.record.started(job, now)

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
        self._held.remove(allocation.nodes)
        if not allocation.shared:
            self._exclusive.remove(allocation.nodes)
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


def _is_on_one_node(allocation: Allocation) -> bool:
    """Whether an allocation is sound by itself, and of one node; False: it takes more to say."""
    cpus, cores, memory = allocation.cpus, allocation.cores, allocation.memory_mb
    return (
        len(allocation.node_indices) == 1
        and allocation.nodes == 1 << allocation.node_indices[0]
        and (cpus is None or len(cpus) == 1)
        and (cores is None or len(cores) == 1)
        and (memory is None or len(memory) == 1)
    )


__all__ = ["SharedMoves"]

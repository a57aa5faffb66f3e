"""Put the books right where a world went another way than was decided."""

from __future__ import annotations

from makeway.model import Job, JobState, Seconds, SuspendedBy
from makeway.record import Recorder
from makeway_engine.ledger import Ledger, enter, put
from makeway_engine.queue import Queue
from makeway_engine.transitions import Transitions


class Corrections:
    """What was taken for done and was not, and what others have done."""

    def __init__(self, ledger: Ledger, queue: Queue, transitions: Transitions, recorder: Recorder) -> None:
        self._ledger = ledger
        self._queue = queue
        self._transitions = transitions
        self._recorder = recorder

    # ------------------------------------------------------------------- what was not done
    def put_back(self, job: Job, reason: str, at: Seconds, *, held: bool) -> None:
        """Let a job that could not be started wait as before, not before `at`; its place in the queue is kept."""
        transitions, ledger = self._transitions, self._ledger
        transitions.give_back(job)
        put(
            job,
            state=JobState.PENDING,
            priority=0 if held else job.priority,
            eligible_at=max(job.eligible_at, at),
            started_at=None,
            limit_at_start=None,
            resumed_at=None,
            suspended_at=None,
            suspended_by=None,
            ran=0.0,
            end_at=None,
            preempt_at=None,
            asked_at=None,
            asked_nodes=0,
            checkpointed=0.0,
            marked_saved=False,
            obstacle="",
        )
        if job.spec.partitions:
            enter(job, job.partitions[0])
        self._queue.add(job, ledger.now)
        ledger.note_reason(job, reason)
        self._recorder.moved(job, JobState.PENDING, ledger.now)

    def went_on(self, job: Job, since: Seconds) -> None:
        """A job that was to be stopped at `since` was not: it has run on."""
        ledger, now = self._ledger, self._ledger.now
        if job.state is JobState.SUSPENDED:
            self._transitions.resumed(job)
        gap = now - since
        put(job, ran=job.ran + gap, stopped=max(0.0, job.stopped - gap))
        if job.time_limit is not None and job.preempt_at is None:
            ledger.move_deadline(job, now + max(0.0, job.time_limit - job.ran))
        if gap > 0:
            self._recorder.amended(job, JobState.RUNNING)

    def still_stopped(self, job: Job) -> None:
        """A job that was to go on was not continued: it has stood still since."""
        now = self._ledger.now
        gap = now - (job.resumed_at if job.resumed_at is not None else now)
        self._transitions.suspended(job, SuspendedBy.POLICY)
        put(job, ran=max(0.0, job.ran - gap), stopped=job.stopped + gap)
        if gap > 0:
            self._recorder.amended(job, JobState.SUSPENDED)

    def not_saved(self, job: Job, before: Seconds | None) -> None:
        """The state of a job could not be saved: it goes back to what was saved before, or that it started from.

        :param before: work of this incarnation that was saved before; None: none was.
        """
        if not job.marked_saved:
            return
        saved = job.checkpointed - (before or 0.0)
        put(job, checkpointed=before or 0.0, marked_saved=before is not None or job.begun_with > 0)
        if self._transitions.is_leaving(job) and saved:
            put(job, lost=job.lost + saved)
            self._recorder.work_kept(job, -saved)
            self._recorder.work_lost(job, saved)

    # ------------------------------------------------------------------ what others have done
    def stopped_by_others(self, job: Job) -> None:
        """Somebody stopped a running job: only a person lets it go on."""
        put(job, priority=0)
        self._transitions.suspended(job, SuspendedBy.ADMIN)
        self._transitions.changed = True
        self._transitions.tell_gang("ended", job)

    def continued_by_others(self, job: Job) -> None:
        """Somebody continued a stopped job."""
        transitions = self._transitions
        by_person = job.suspended_by is SuspendedBy.ADMIN
        if job.held:
            put(job, priority=transitions.fresh_priority(job))
        transitions.resumed(job)
        if by_person:
            transitions.tell_gang("started", job)

    def requeued_by_others(self, job: Job) -> None:
        """Somebody had an active job wait again; its nodes are free."""
        put(job, started_at=None)  # it was not this instant's own start that came to nothing
        self._transitions.requeue_finished(job, cleaned=True)

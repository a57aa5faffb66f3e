"""Move jobs from state to state: start, end, suspend, resume, requeue, kill.

Each verb keeps ledger, selector, queue and record in step, and leaves behind the actions that a world has to carry
out. What a gang arbiter says to a move is up to `makeway_engine.transitions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.model import (
    PREEMPTIONS_KEPT,
    Allocation,
    Gang,
    Job,
    JobState,
    ModeFlag,
    Plan,
    PreemptMode,
    Seconds,
    Selector,
    SuspendedBy,
)
from makeway.priorities import Occasion
from makeway.record import Recorder
from makeway.registry import Policies
from makeway.state import REQUEUED, Standing, grace_of, plan_of
from makeway.worlds.events import Action, Kill, Resume, SendSignal, Start, Suspend
from makeway.worlds.events import Checkpoint as SaveState
from makeway_engine.ledger import Ledger, enter, put, put_field
from makeway_engine.priorities import Priorities
from makeway_engine.queue import Queue
from makeway_engine.remembered import Remembered

REQUEUE = "requeue"
_RUNNING = JobState.RUNNING


class Moves:
    """The verbs, over the books of one run."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        selector: Selector,
        gang: Gang | None,
        policies: Policies,
        recorder: Recorder,
        clockwork: Clockwork,
        *,
        max_requeues: int | None,
        priorities: Priorities,
    ) -> None:
        """Begin with nothing moved.

        :param max_requeues: the most times a job is requeued; None: any number.
        :param priorities: what gives jobs their priority.
        """
        self.ledger = ledger
        self.queue = queue
        self.selector = selector
        self.gang = gang
        self.policies = policies
        self.recorder = recorder
        self.clockwork = clockwork
        self.actions: list[Action] = []
        self._max_requeues = max_requeues
        self.priorities = priorities
        self.graces: dict[str, Plan] = {}
        """Jobs in their grace time, and what awaits them."""
        self.survived_grace: set[str] = set()
        """Jobs that rode out a grace time and were requeued (rule grace_mark_survives_requeue)."""
        self._leaving: dict[str, JobState | str] = {}
        self._told_to_leave: set[str] = set()
        self.changed = False
        """Whether anything happened that a scheduling pass should look at."""
        self.left_nodes = False
        """Whether a job has left its nodes in a way that triggers a pass of its own."""
        self.remembered: Remembered | None = None
        """Jobs that a person may have run again; None: no person gives commands."""
        self._by_gang = policies.who("makeway_gang")
        self.takes_turns = gang is not None and ModeFlag.GANG in ledger.preempt_mode.flags
        """Whether the arbiter suspends what is in the way of a job that starts."""
        self._by_preempt = policies.who("makeway_preempt_candidates")

    # --------------------------------------------------------------------------- priority
    def fresh_priority(self, job: Job, occasion: Occasion = Occasion.RELEASED) -> int:
        """Return the priority of a job that is requeued, resumed or released."""
        return self.priorities.fresh(job, occasion)

    # ------------------------------------------------------------------------------- gang
    def tell_gang(self, event: str, job: Job) -> None:
        """Let the arbiter know: started, ended, held; where there is none, nothing is told."""

    # ------------------------------------------------------------------------------ start
    def start(self, job: Job, allocation: Allocation) -> None:
        """Start a pending job."""
        ledger = self.ledger
        self.queue.remove(job)
        ledger.start(job, allocation)
        self.selector.placed(job)
        self.actions.append(tuple.__new__(Start, (job, 0, 0, (), allocation, False)))
        self.recorder.moved(job, _RUNNING, ledger.now)
        if self.queue.conditions.dependents:
            self.queue.started(job, ledger.now)
        if self.gang is not None:
            self.tell_gang("started", job)

    # -------------------------------------------------------------------------------- end
    def finish(self, job: Job, state: JobState, *, cleaned: bool = False) -> None:
        """An active job's processes have ended."""
        if job.begun_with:
            self._keep(job)
        else:
            self.recorder.work_kept(job, job.ran_until(self.ledger.now))
        if self.graces:
            self.graces.pop(job.id, None)
        if not cleaned:
            self._leave(job, state)
            if self.clockwork.completing_time:
                self._move(job, JobState.COMPLETING)
            return
        self.selector.released(job)
        self.ledger.release(job, at_once=True)
        self.changed = True
        if self.clockwork.pass_on_own_end:
            self.left_nodes = True
        self._reach(job, state)

    def _reach(self, job: Job, state: JobState) -> None:
        """Let a job that has left its nodes reach its final state; `job.allocation` is still set."""
        ledger = self.ledger
        put_field(job, "state", state)
        self._ended(job, state)
        put_field(job, "allocation", None)
        if self.gang is not None:
            self.tell_gang("ended", job)
        ledger.forget(job)
        if state is not JobState.COMPLETED or self.queue.conditions.dependents or self.queue.throttle:
            self.queue.ended(job, ledger.now)

    def _ended(self, job: Job, state: JobState) -> None:
        recorder, now = self.recorder, self.ledger.now
        if self.remembered is not None and job.spec.withdrawn_at is None:
            self.remembered.ended(job, recorder.histories[job.id], now)
        recorder.ended(job, state, now)

    def run_again(self, job: Job) -> None:
        """Let a job wait again that has ended and is remembered."""
        assert self.remembered is not None  # it remembers the job
        self.recorder.revived(self.remembered.take(job), self.ledger.now)
        self.ledger.revive(job)
        self._throw_away(job)
        self._wait_again(job)
        self.changed = True

    def requeue_leaving(self, job: Job) -> None:
        """Let a job wait again that has ended or was killed, and is leaving its nodes."""
        if self._leaving[job.id] is not JobState.PREEMPTED:  # else that was counted
            self._throw_away(job)
        self._leaving[job.id] = REQUEUE

    def _throw_away(self, job: Job) -> None:
        """Count all that a job has come to as lost, for it begins anew."""
        put(job, lost=job.lost + self.recorder.thrown_away(job), checkpointed=0.0, marked_saved=False)

    def kill(self, job: Job, final: JobState, why: str) -> None:
        """Terminate an active job for good."""
        if final is JobState.PREEMPTED or final is JobState.NODE_FAIL:
            self._lose(job)
        else:
            self._keep(job)
        self.graces.pop(job.id, None)
        self._leave(job, final)
        self._told_to_leave.add(job.id)
        self._move(job, JobState.COMPLETING)
        self.actions.append(Kill(job, why, becomes=final))

    def requeue(self, job: Job, why: str) -> None:
        """Terminate an active job and let it wait again."""
        if job.id in self.graces and self.ledger.rule("grace_mark_survives_requeue"):
            self.survived_grace.add(job.id)
        self.graces.pop(job.id, None)
        self._lose(job)
        self._leave(job, REQUEUE)
        self._told_to_leave.add(job.id)
        self._move(job, JobState.COMPLETING)
        self.actions.append(Kill(job, why, becomes=JobState.PENDING))

    def fail_instead(self, job: Job) -> None:
        """Let a job that is leaving its nodes end as FAILED, not as it was told to; a requeue counts all the same."""
        if self._leaving[job.id] == REQUEUE:
            put(job, restarts=job.restarts + 1)
        self._leaving[job.id] = JobState.FAILED
        if self.ledger.rule("killed_at_resume_keeps_nodes"):
            self.ledger.never_cleaned(job)

    def not_requeued(self, job: Job) -> None:
        """Let a job that is leaving its nodes to wait again end as CANCELLED; the requeue counts all the same."""
        if self._leaving[job.id] == REQUEUE:
            put(job, restarts=job.restarts + 1)
            self._leaving[job.id] = JobState.CANCELLED

    def requeue_finished(self, job: Job, *, cleaned: bool) -> None:
        """A job ended by itself but counts as preempted: it waits again."""
        self.graces.pop(job.id, None)
        self._lose(job)
        self._leave(job, REQUEUE)
        if cleaned:
            self.cleaned(job)
        else:
            self._move(job, JobState.COMPLETING)

    def give_back(self, job: Job) -> None:
        """Take back what an active job holds that was never really started."""
        self.graces.pop(job.id, None)
        self._lose(job)
        self.selector.released(job)
        self.ledger.release(job, at_once=True)
        self.changed = self.left_nodes = True
        put(job, allocation=None)
        self.tell_gang("ended", job)

    def _leave(self, job: Job, final: JobState | str) -> None:
        self.selector.released(job)
        self.ledger.release(job)
        self._leaving[job.id] = final
        self.changed = True
        if job.spec.array_limit is not None:
            self.queue.gave_up_turn(job, self.ledger.now)

    def _keep(self, job: Job) -> None:
        """Count the running time of an incarnation as work, save what it took to read a checkpoint."""
        run = job.ran_until(self.ledger.now)
        if not job.begun_with:
            self.recorder.work_kept(job, run)
            return
        read = min(run, self.clockwork.restart_time)
        self.recorder.work_kept(job, run - read)
        if read:
            put(job, lost=job.lost + read)
            self.recorder.checkpoint_read(job, read)
            self.recorder.work_lost(job, read)

    def _lose(self, job: Job) -> None:
        """Count what a requeue or cancel throws away: all that no checkpoint taken right now has saved."""
        run = job.ran_until(self.ledger.now)
        if job.begun_with:
            self.recorder.checkpoint_read(job, min(run, self.clockwork.restart_time))
        kept, lost = job.checkpointed, max(0.0, run - job.checkpointed)
        if job.begun_with and not job.marked_saved:
            kept -= job.begun_with
            lost += job.begun_with
        put(job, lost=job.lost + lost)
        if kept:
            self.recorder.work_kept(job, kept)
        self.recorder.work_lost(job, lost)

    def cleaned_partly(self, job: Job, nodes: NodeBits) -> None:
        """A job has left some of its nodes, and is still on the others.

        The next look may use them; only a job that has left all its nodes triggers one.
        """
        self.ledger.cleaned_partly(job, nodes)
        self.changed = True

    def cleaned(self, job: Job) -> None:
        """A job has left its nodes: it reaches its final state, or waits again."""
        ledger = self.ledger
        final = self._leaving.pop(job.id)
        allocation = job.allocation
        ledger.cleaned(job)
        self.changed = True
        told = job.id in self._told_to_leave
        self._told_to_leave.discard(job.id)
        if self.clockwork.pass_on_completion if told else self.clockwork.pass_on_own_end:
            self.left_nodes = True
        if isinstance(final, JobState):
            put(job, allocation=allocation)
            self._reach(job, final)
        else:
            self.tell_gang("ended", job)
            self._wait_again(job)

    def _wait_again(self, job: Job) -> None:
        now = self.ledger.now
        started = job.started_at
        put(job, eligible_since=None)
        given = job.spec.priority is not None or job.id in self.priorities.given
        keep = job.held or given or self.ledger.rule("requeue_keeps_priority")
        priority = job.priority if keep else self.fresh_priority(job, Occasion.REQUEUED)
        too_often = self._max_requeues is not None and job.restarts + 1 > self._max_requeues
        if too_often:
            priority = 0
        put(
            job,
            state=JobState.PENDING,
            restarts=job.restarts + 1,
            priority=priority,
            submit_at=self.clockwork.whole_second(now),  # recorded: requeue_in_the_second_of_a_submission
            eligible_at=max(job.eligible_at, self.clockwork.whole_second(now) + self.clockwork.requeue_delay),
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
            marks=frozenset(),
            begun_with=job.begun_with + job.checkpointed if job.marked_saved else 0.0,
            checkpointed=0.0,
            marked_saved=False,
            obstacle="",
        )
        if job.spec.partitions:
            enter(job, job.partitions[0])
        bounced = started == now and not self.clockwork.requeue_delay
        self.queue.add(job, now, bounced=bounced)
        if too_often:
            self.ledger.wait_for(job, "JobHoldMaxRequeue")
        self.recorder.moved(job, JobState.PENDING, now)

    def cancel_pending(self, job: Job, state: JobState = JobState.CANCELLED) -> None:
        """End a job that waits."""
        self.queue.remove(job)
        put(job, state=state)
        if state is JobState.CANCELLED:
            self._ended(job, state)
        else:  # it can never run here
            self.recorder.ended(job, state, self.ledger.now)
        self.ledger.forget(job)
        self.queue.ended(job, self.ledger.now)
        self.changed = True

    def becomes(self, job: Job) -> JobState | None:
        """Return what a job that is leaving comes to: its end, or PENDING if it waits again; None: it stays."""
        final = self._leaving.get(job.id)
        if final is None:
            return None
        return final if isinstance(final, JobState) else JobState.PENDING

    def is_leaving(self, job: Job) -> bool:
        """Whether the job has ended or been killed but still occupies its nodes."""
        return job.id in self._leaving

    # ------------------------------------------------------------------ suspend and resume
    def suspend(self, job: Job, by: SuspendedBy, signal: str = "") -> None:
        """Stop a running job, by one signal if it is named."""
        self.actions.append(Suspend(job, signal))
        self.suspended(job, by)
        shared = job.allocation is not None and job.allocation.shared
        if by is SuspendedBy.ADMIN or not (shared and self.takes_turns):
            self.changed = True  # taking turns makes no room for others

    def suspended(self, job: Job, by: SuspendedBy) -> None:
        """A running job has been stopped."""
        self.ledger.suspend(job, by)
        self.selector.suspended(job)
        self.recorder.moved(job, JobState.SUSPENDED, self.ledger.now)

    def resume(self, job: Job) -> None:
        """Continue a suspended job."""
        self.actions.append(Resume(job))
        self.resumed(job)

    def resumed(self, job: Job) -> None:
        """A suspended job goes on."""
        self.selector.resumed(job)
        keep = job.end_at if job.preempt_at is not None else None
        self.ledger.resume(job, keep)
        self.recorder.moved(job, _RUNNING, self.ledger.now)

    def signal(self, job: Job, signal: str, *, steps_only: bool) -> None:
        """Send a signal to a job."""
        self.actions.append(SendSignal(job, signal, steps_only))

    def checkpoint(self, job: Job, within: Seconds = 0.0) -> None:
        """Save the state of a job, so that what it has done so far is not lost.

        :param within: after which that has failed; 0: as the world says.
        """
        run = job.ran_until(self.ledger.now)
        if job.begun_with:
            run = max(0.0, run - self.clockwork.restart_time)
        interval = self.clockwork.checkpoint_interval
        saved = run - run % interval if interval else run
        before = job.checkpointed if job.marked_saved else None
        put(job, checkpointed=saved, marked_saved=True)
        self.recorder.checkpointed(job, self.clockwork.checkpoint_time, self.ledger.now)
        self.actions.append(SaveState(job, within=within, before=before))

    def _move(self, job: Job, state: JobState) -> None:
        put(job, state=state)
        self.recorder.moved(job, state, self.ledger.now)

    def displaced(self, victim: Job, preemptor: Job | None, mode: PreemptMode, why: str) -> None:
        """Take note that a job makes way for another."""
        now = self.ledger.now
        before = victim.preempted_at[1 - PREEMPTIONS_KEPT :]
        put(victim, preemptions=victim.preemptions + 1, preempted_at=(*before, now))
        by = self._by_preempt or self._by_gang
        self.recorder.preempted(victim, preemptor, mode, by, why or NO_REASON, self.ledger.now)

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what a look at the jobs does not tell, for `restore`."""
        return {
            **self.priorities.save(),
            "changed": self.changed,
            "left_nodes": self.left_nodes,
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self.priorities.restore(memory)
        self.changed = memory["changed"]
        self.left_nodes = memory["left_nodes"]

    def no_priority_above(self, lowest: int) -> None:
        """Let the priorities that are handed out next be `lowest` or less."""
        self.priorities.lowest = min(self.priorities.lowest, lowest)

    def departure_of(self, job: Job) -> dict[str, Any]:
        """Return what `Standing` says of a job that makes way or leaves."""
        found: dict[str, Any] = {}
        plan = self.graces.get(job.id)
        if plan is not None:
            found["grace"] = grace_of(plan)
        if job.id in self.survived_grace:
            found["survived_grace"] = True
        final = self._leaving.get(job.id)
        if final is not None:
            found["leaving"] = final.value if isinstance(final, JobState) else REQUEUED
            found["told_to_leave"] = job.id in self._told_to_leave
        return found

    def adopt(self, job: Job, told: Standing) -> None:
        """Take note of a job that is in its grace time, or is leaving."""
        if told.grace is not None:
            self.graces[job.id] = plan_of(job, told.grace)
        if told.survived_grace:
            self.survived_grace.add(job.id)
        if told.leaving:
            self._leaving[job.id] = REQUEUE if told.leaving == REQUEUED else JobState(told.leaving)
            if told.told_to_leave:
                self._told_to_leave.add(job.id)


NO_REASON = "no reason given"
"""Why a victim makes way if neither the policy nor the search says so."""

"""Make victims leave: kill window, notice, grace time, and the action in the end (slurm-preemption 4)."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.model import Job, JobState, Plan, PreemptMode, Seconds, SuspendedBy
from makeway.registry import Policies
from makeway_engine.ledger import Ledger, put
from makeway_engine.moves import Moves

_TINY = 1e-6
_WEEK: Seconds = 7 * 86400.0


class MakingWay:
    """Carries out plans, and remembers what is under way."""

    def __init__(self, ledger: Ledger, policies: Policies, moves: Moves) -> None:
        self._ledger = ledger
        self._policies = policies
        self._moves = moves
        self._recorder = moves.recorder
        self._clockwork = clockwork = moves.clockwork
        self.window: Seconds = clockwork.kill_wait + clockwork.message_timeout
        """How long a preemptor waits before it may have others killed again (section 4.1)."""
        self.unable: tuple[Job, ...] = ()
        """Those told last that could not make way."""
        self.held_back = False
        """Whether none was told, the last time, since the preemptor waits for those told before."""
        self.leaving: tuple[Job, ...] = ()
        """Those told last that leave their nodes."""
        self.retries: list[Seconds] = []
        self._quiet: tuple[int, int, Seconds] = (-1, -1, 0.0)
        """Version of the books and number of jobs when something last came of asking, and when that was."""
        self._awaited: dict[str, tuple[Job, ...]] = {}

    # ------------------------------------------------------------------------ retry times
    def remember(self, at: Seconds) -> None:
        """Let a pass be made at `at` even if nothing happens until then."""
        if at > self._ledger.now:
            heapq.heappush(self.retries, at)

    def has_come(self, now: Seconds) -> bool:
        """Whether asking again may help at `now`; `due` has not said so yet."""
        return bool(self.retries) and self.retries[0] <= now + _TINY

    def next_retry(self, now: Seconds, *, passed: bool = False) -> Seconds | None:
        """Return the next instant at which asking again may help; None: none is known.

        :param passed: whether one that has passed stands until it is `due`.

        Jobs that can never start must not keep a replay going for ever: where no job is active, and nothing has
        come of asking for a week, the longest time in which windows repeat, asking waits until something happens.
        """
        if self._is_in_vain(now):
            return None
        while not passed and self.retries and self.retries[0] <= now - _TINY:
            heapq.heappop(self.retries)
        return self.retries[0] if self.retries else None

    def _is_in_vain(self, now: Seconds) -> bool:
        ledger = self._ledger
        version, count, since = self._quiet
        if ledger.active_count or version != ledger.version or count != len(ledger.jobs):
            self._quiet = ledger.version, len(ledger.jobs), now
            return False
        return now - since > _WEEK

    def due(self, now: Seconds) -> bool:
        """Whether an instant remembered has come; it is forgotten."""
        came = False
        while self.has_come(now):
            heapq.heappop(self.retries)
            came = True
        return came

    # ----------------------------------------------------------------------------- telling
    def tell(
        self,
        preemptor: Job,
        victims: Sequence[Job],
        modes: Sequence[PreemptMode],
        reasons: Sequence[str] = (),
        *,
        piecemeal: bool = False,
        once_more: bool = False,
    ) -> bool:
        """Tell `victims` to make way; say whether `preemptor` has to wait for them.

        :param reasons: why each was chosen; empty: nothing was said.
        :param piecemeal: whether those that can make way do so although others cannot; the latter are then
            in `unable`.
        :param once_more: whether they are told although some of those told before are still leaving.

        Suspension under a gang arbiter is not carried out here: the arbiter stops what is in the way once
        the preemptor starts (section 3.3).
        """
        self.unable = ()
        self.held_back = False
        if not victims:
            return False
        now = self._ledger.now
        plans = self._policies.plans(preemptor, victims, modes, self._ledger, reasons)
        asked = preemptor.asked_at
        held_back = asked is not None and self._may_ask_again(asked) > now + _TINY
        if not self.window and self._awaits(preemptor):
            held_back = True
        if once_more:
            held_back = False
        failing = [plan for plan in plans if plan.fails]
        if failing:
            self.unable = tuple(plan.job for plan in failing)
            for plan in failing if piecemeal else plans:
                self._recorder.failed(plan.job, preemptor, plan.mode, plan.because, now)
            if not piecemeal:
                return True
            plans = [plan for plan in plans if not plan.fails]
        self._ledger.told(len(plans))
        kills = suspended = 0
        self.leaving = tuple(plan.job for plan in plans if plan.mode is not PreemptMode.SUSPEND)
        for plan in plans:
            if plan.mode is PreemptMode.SUSPEND:
                self._note_suspension(plan, preemptor)
                suspended += 1
            else:
                kills += 1
                if not held_back:
                    self._act(plan, preemptor)
        self.held_back = held_back and bool(kills) and not suspended
        if kills and not held_back:
            put(preemptor, asked_at=now)
            if not self.window:
                self._awaited[preemptor.id] = (*self.awaited(preemptor), *self.leaving)
            if self.window:
                self.remember(self._may_ask_again(now))
        return kills > 0 or bool(failing)

    def _may_ask_again(self, asked: Seconds) -> Seconds:
        return self._clockwork.whole_second(asked) + self.window

    def tell_one(self, victim: Job, preemptor: Job | None, mode: PreemptMode, why: str = "") -> None:
        """Let one job make way that no search chose, as others do, with its notice and grace time."""
        for plan in self._policies.plans(preemptor, [victim], [mode], self._ledger, [why] if why else ()):
            if not plan.fails:
                self._act(plan, preemptor)
            elif preemptor is not None:
                self._recorder.failed(plan.job, preemptor, plan.mode, plan.because, self._ledger.now)

    def awaited(self, preemptor: Job) -> tuple[Job, ...]:
        """Return those that `preemptor` has had told to leave and that are still there; none where a window is kept."""
        moves = self._moves
        found = self._awaited.get(preemptor.id, ())
        return tuple(job for job in found if moves.is_leaving(job) or job.id in moves.graces)

    def _awaits(self, preemptor: Job) -> bool:
        """Whether a job that `preemptor` had told to leave is still there."""
        if self.awaited(preemptor):
            return True
        self._awaited.pop(preemptor.id, None)
        return False

    def _note_suspension(self, plan: Plan, preemptor: Job) -> None:
        job = plan.job
        if self._moves.takes_turns:
            if self._ledger.rule("linear_suspend_keeps_deadline"):
                self._ledger.tell_to_leave(job)
        elif job.state is JobState.RUNNING:
            self._suspend(plan, preemptor)

    def _suspend(self, plan: Plan, preemptor: Job | None) -> None:
        """Stop a running victim."""
        job, moves = plan.job, self._moves
        moves.displaced(job, preemptor, PreemptMode.SUSPEND, plan.because)
        for signal in plan.farewell:
            moves.signal(job, signal.name, steps_only=signal.steps_only)
        if plan.hold_down:
            put(job, resume_after=self._ledger.now + plan.hold_down)
        moves.suspend(job, SuspendedBy.POLICY, plan.stop_signal)

    def _act(self, plan: Plan, preemptor: Job | None) -> None:
        """Give notice and wait out the grace time, or act at once (section 4.3).

        Components of a heterogeneous job leave together, once none of them is in its grace time; the leader last.
        """
        together = self._components(plan, preemptor)
        in_grace = [self._in_grace(part, preemptor) for part in together]  # each is given notice
        if not any(in_grace):
            for part in reversed(together):
                self._carry_out(part, preemptor)

    def _components(self, plan: Plan, preemptor: Job | None) -> list[Plan]:
        """Return the plans of all components, in the mode of their leader's and with grace times of their own."""
        job = plan.job
        if job.spec.het_id is None:
            return [plan]
        parts = [part for part in self._ledger.components(job) if self._ledger.is_active(part)]
        plans = self._policies.plans(preemptor, parts, [plan.mode] * len(parts), self._ledger)
        return [attrs.evolve(each, mode=plan.mode, reason=plan.reason) for each in plans]

    def _in_grace(self, plan: Plan, preemptor: Job | None) -> bool:
        """Whether a victim has time left; the first time it is told."""
        job = plan.job
        if job.preempt_at is None:
            self._ledger.tell_to_leave(job)
            if plan.grace_time > 0:
                self._begin_grace(plan, preemptor)
                return True
            return False
        return job.id in self._moves.graces and not self._grace_over(job)

    def _begin_grace(self, plan: Plan, preemptor: Job | None) -> None:
        job = plan.job
        end = self._clockwork.whole_second(self._ledger.now) + plan.grace_time
        over_limit = preemptor is None and job.end_at is not None and job.end_at <= self._ledger.now
        if job.end_at is None or end < job.end_at or over_limit:
            self._ledger.move_deadline(job, end)
        self._moves.graces[job.id] = plan
        self._moves.displaced(job, preemptor, plan.mode, plan.because)
        if job.state is JobState.RUNNING:
            for signal in plan.notice:
                self._moves.signal(job, signal.name, steps_only=signal.steps_only)

    def _grace_over(self, job: Job) -> bool:
        return job.end_at is not None and self._ledger.now >= job.end_at - _TINY

    def _carry_out(self, plan: Plan, preemptor: Job | None) -> None:
        moves = self._moves
        job = plan.job
        if not self._ledger.is_active(job):
            return
        if job.id not in moves.graces:
            moves.displaced(job, preemptor, plan.mode, plan.because)
        for signal in plan.farewell:
            moves.signal(job, signal.name, steps_only=signal.steps_only)
        self._ledger.tell_to_leave(job)
        if plan.mode is PreemptMode.CHECKPOINT:
            moves.checkpoint(job, plan.within)
        if plan.mode in (PreemptMode.REQUEUE, PreemptMode.CHECKPOINT):
            moves.requeue(job, "preempted")
        else:
            moves.kill(job, JobState.PREEMPTED, "preempted")

    def send_away(self, plan: Plan) -> None:
        """Let a job leave for none in particular: it has reached its limit."""
        self._ledger.told(1)
        if plan.mode is PreemptMode.SUSPEND:
            self._suspend(plan, None)
        else:
            self._act(plan, None)

    # ------------------------------------------------------------------------------ sweeps
    def deadline_passed(self, job: Job) -> bool:
        """Act on a running victim whose deadline has come; say whether it was one (section 4.3)."""
        if job.preempt_at is None:
            return False
        plan = self._moves.graces.get(job.id)
        if plan is None:
            plan = Plan(job=job, mode=PreemptMode.CANCEL, why="its deadline came while it made way")
        if job.spec.het_offset:
            self._carry_out(plan, None)  # a component whose own grace time ends leaves alone (section 4.3)
        else:
            self._act(plan, None)
        return True

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, Any]:
        """Return what is under way, for `restore`."""
        there = self._ledger.jobs
        awaited = {
            job_id: [job.id for job in jobs if there.get(job.id) is job]
            for job_id, jobs in self._awaited.items()
            if job_id in there
        }
        return {"retries": sorted(self.retries), "awaited": awaited}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with what was under way; what has ended meanwhile is no longer awaited."""
        jobs = self._ledger.jobs
        self.retries = sorted(memory["retries"])
        self._awaited = {
            job_id: tuple(jobs[each] for each in ids if each in jobs)
            for job_id, ids in memory["awaited"].items()
            if job_id in jobs
        }

"""End jobs: those that end by themselves, whose time is over, and whose nodes go down."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.config import SchedulerTable
from makeway.model import Job, JobState, PreemptMode, Seconds
from makeway.registry import Policies
from makeway.worlds.events import Cleaned, Finished
from makeway_engine.ledger import Ledger
from makeway_engine.reports import Reports
from makeway_engine.transitions import Transitions

_TINY = 1e-6
_NATURAL_ENDS = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.OUT_OF_MEMORY)


class Endings:
    """What becomes of the jobs of one run in the end."""

    def __init__(
        self,
        ledger: Ledger,
        transitions: Transitions,
        reports: Reports,
        policies: Policies,
        scheduler: SchedulerTable,
        clockwork: Clockwork,
    ) -> None:
        self._ledger = ledger
        self._transitions = transitions
        self._making_way = transitions.making_way
        self._reports = reports
        self._policies = policies
        self._scheduler = scheduler
        self._clockwork = clockwork
        self._plans_for_late = policies.limits_say("past_time_limit")
        self.looks = policies.limits_say("expired")
        """Whether plugins end jobs that run."""
        self._quiet = policies.calm_until() if self.looks else None
        """Says up to when they end no job; None: that is not known."""
        self.look_at: Seconds | None = None
        """When they are asked; None: not before another job starts."""
        self.calm_until: Seconds = -math.inf
        """Up to when they surely end no job, until another job starts; in the past: that is not known."""
        self._seen = -1

    def finished(self, event: Finished) -> None:
        """A job has ended by itself."""
        transitions = self._transitions
        job = self._ledger.active_job(event.job_id)
        if job is None or event.incarnation not in (0, job.starts) or event.state not in _NATURAL_ENDS:
            self._no_end(event, job)
            return
        if transitions.graces and self._ends_as_preempted(job):
            plan = transitions.graces[job.id]
            if plan.mode is PreemptMode.REQUEUE and job.requeueable:
                transitions.requeue_finished(job, cleaned=event.cleaned)
            else:
                transitions.finish(job, JobState.PREEMPTED, cleaned=event.cleaned)
        elif transitions.survived_grace and job.id in transitions.survived_grace:
            transitions.survived_grace.discard(job.id)
            transitions.requeue_finished(job, cleaned=event.cleaned)
        else:
            state = event.state
            if job.end_at is not None and job.end_at < self._ledger.now and state is JobState.COMPLETED:
                state = self._end_after(job.end_at)
            transitions.finish(job, state, cleaned=event.cleaned)

    def _no_end(self, event: Finished, job: Job | None) -> None:
        """Count an end that is none."""
        if job is not None and event.state not in _NATURAL_ENDS:
            self._reports.no_news(
                event, f"{event.state.value} is no end that a job comes to by itself", job.id
            )
            return
        job = self._reports.known(event, event.job_id, event.incarnation)
        if job is not None and not self._transitions.is_leaving(
            job
        ):  # else it was killed at the same instant
            self._reports.no_news(event, f"the job is {job.state.value}", job.id)

    def _end_after(self, deadline: Seconds) -> JobState:
        """Return how a job counts that ended by itself after a deadline that was not noticed yet.

        A controller that counts in seconds takes an end within the second of the deadline as in time.
        """
        scheduler, second = self._scheduler, self._clockwork.whole_second
        late = second(deadline + scheduler.over_time_limit) < second(self._ledger.now) - _TINY
        return JobState.TIMEOUT if late and scheduler.enforce_time_limits else JobState.COMPLETED

    def _ends_as_preempted(self, job: Job) -> bool:
        return job.id in self._transitions.graces and self._ledger.rule("grace_exit_is_preemption")

    def cleaned(self, event: Cleaned) -> None:
        """Nodes of a job that was ended are clean."""
        job = self._reports.known(event, event.job_id, event.incarnation)
        if job is None:
            return
        if not self._transitions.is_leaving(job):
            self._reports.no_news(event, f"the job is {job.state.value}", job.id)
        elif event.nodes is not None:
            self._transitions.cleaned_partly(job, event.nodes)
        else:
            self._transitions.cleaned(job)

    def nodes_down(self, nodes: NodeBits) -> None:
        """Nodes are out of service: requeue or end the jobs on them."""
        self._ledger.set_down(nodes)
        for job in self._ledger.active:
            if job.nodes & nodes:
                self._transitions.recorder.node_failed(
                    job, job.nodes & nodes, self._ledger.now, again=job.requeueable
                )
                if job.requeueable:
                    self._transitions.requeue(job, "node failure")
                else:
                    self._transitions.kill(job, JobState.NODE_FAIL, "node failure")

    def deadlines(self, now: Seconds) -> None:
        """End or requeue whose deadline has passed by `now`, or have them make way."""
        by_end = self._ledger.by_end
        due = [job for _, _, job in itertools.takewhile(lambda each: each[0] <= now + _TINY, by_end)]
        over = self._scheduler.over_time_limit
        late = []
        for job in due:
            if job.preempt_at is not None and self._making_way.deadline_passed(job):
                continue
            if (
                self._scheduler.enforce_time_limits
                and job.end_at is not None
                and job.end_at + over <= now + _TINY
            ):
                late.append(job)
        if late:
            self._over_limit(late)

    def look_ahead(self, now: Seconds) -> None:
        """Find out when plugins want to end jobs that run, where one may have started since that was last asked."""
        ledger = self._ledger
        if ledger.version == self._seen:
            return
        self._seen = ledger.version
        if not ledger.jobs_active.by_id:
            self.look_at = None
            return
        if self._quiet is not None:
            self.calm_until = until = self._quiet()
            if until > now:
                self.look_at = until if until < math.inf else None
                return
        jobs, again = self._policies.expired(ledger)
        later = again if again is not None and again > now else None
        self.look_at = now if any(map(self._may_end, jobs)) else later

    def overdue(self, now: Seconds) -> None:
        """End the jobs that plugins want to end now."""
        ledger = self._ledger
        jobs, again = self._policies.expired(ledger)
        for job_id, why in jobs.items():
            if self._may_end(job_id):
                self._transitions.kill(ledger.jobs[job_id], JobState.TIMEOUT, why)
        self.look_at = again if again is not None and again > now else None
        self._seen = ledger.version

    def _may_end(self, job_id: str) -> bool:
        job = self._ledger.active_job(job_id)
        return job is not None and job.preempt_at is None

    def _over_limit(self, late: Sequence[Job]) -> None:
        for job in late:
            plan = self._policies.past_time_limit(job, self._ledger) if self._plans_for_late else None
            if plan is None:
                self._transitions.kill(job, JobState.TIMEOUT, "time limit")
            else:
                self._making_way.send_away(plan)

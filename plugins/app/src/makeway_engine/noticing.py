"""Take note of what others than the engine did to jobs, and of what jobs saved."""

from __future__ import annotations

from collections.abc import Callable

from makeway.config import FailureTable
from makeway.metrics import tidy
from makeway.model import Job, JobState
from makeway.record import Recorder
from makeway.worlds.events import BegunAnew, Checkpointed, Noticed, Obstructed, Reused, Suspend
from makeway_engine.corrections import Corrections
from makeway_engine.deeds import overlap
from makeway_engine.echoes import Echoes
from makeway_engine.ledger import Ledger, put
from makeway_engine.transitions import Transitions


class Noticing:
    """What a world noticed in one run."""

    def __init__(
        self,
        ledger: Ledger,
        transitions: Transitions,
        corrections: Corrections,
        recorder: Recorder,
        table: FailureTable,
        echoes: Echoes,
        ended: Callable[[list[str]], None],
    ) -> None:
        """Begin with nothing noticed.

        :param ended: remembers jobs that have ended, and empties the list.
        """
        self._ledger = ledger
        self._transitions = transitions
        self._corrections = corrections
        self._recorder = recorder
        self._table = table
        self._echoes = echoes
        self._ended = ended

    def noticed(self, event: Noticed) -> None:
        """Something other than the engine changed a job."""
        job = self._echoes.job_of(event)
        if job is None:
            return
        if job.state is event.state and not self._transitions.is_leaving(job):
            self._echoes.no_news(event, f"the job is {job.state.value}", job.id)
        elif self._transitions.is_leaving(job):
            self._noticed_of_leaving(event, job)
        elif job.state is JobState.PENDING:
            self._noticed_of_pending(event, job)
        else:
            self._noticed_of_active(event, job)

    def _noticed_of_leaving(self, event: Noticed, job: Job) -> None:
        if event.state.ended:
            self._transitions.cleaned(job)
        else:
            self._echoes.no_news(event, "the job is leaving", job.id)

    def _noticed_of_pending(self, event: Noticed, job: Job) -> None:
        if event.state.ended:
            self._write(event, job)
            self._transitions.cancel_pending(job, event.state)
        else:
            self._echoes.no_news(event, "the job is PENDING", job.id)

    def _noticed_of_active(self, event: Noticed, job: Job) -> None:
        self._write(event, job)
        transitions, state = self._transitions, event.state
        if state is JobState.SUSPENDED:
            self._corrections.stopped_by_others(job)
        elif state is JobState.RUNNING:
            self._continued(job)
        elif state is JobState.PENDING:
            self._corrections.requeued_by_others(job)
        elif state is JobState.COMPLETING:
            transitions.finish(job, JobState.CANCELLED)
        else:
            transitions.finish(job, state, cleaned=True)

    def _continued(self, job: Job) -> None:
        """A stopped job runs on: let it, or stop it again while others run on its cores."""
        others = [each for each in self._ledger.active if each is not job and each.state is JobState.RUNNING]
        in_use = any(share_cores(job, other) for other in others)
        if in_use and self._table.restop_noticed:
            self._recorder.note("restopped", job.id, self._ledger.now, rule="world.failures.restop_noticed")
            self._transitions.actions.append(Suspend(job))
        else:
            self._corrections.continued_by_others(job)

    def _write(self, event: Noticed, job: Job) -> None:
        self._recorder.note(
            "noticed", job.id, self._ledger.now, was=job.state.value, state=event.state.value, by=event.by
        )

    def reused(self, event: Reused) -> None:
        """Another job has a job's id: that job is gone, and what is said of the id from now on is news."""
        job = self._ledger.jobs.get(event.job_id)
        if job is not None:
            self.noticed(Noticed(job.id, JobState.CANCELLED, 0, event.by))
        elif not self._echoes.has_ended(event.job_id):
            self._echoes.no_news(event, "no such job", event.job_id)
        if self._ledger.gone:
            self._ended(self._ledger.gone)
        self._echoes.forget(event.job_id)

    def checkpointed(self, event: Checkpointed) -> None:
        """A job has saved its state."""
        job = self._echoes.job_of(event)
        if job is None:
            return
        ran = job.ran_until(self._ledger.now)
        saved = min(event.saved, ran) if event.saved == event.saved else 0.0
        if saved <= job.checkpointed or job.state is JobState.PENDING:
            self._echoes.no_news(event, "nothing new is saved", job.id)
            return
        if self._transitions.is_leaving(job):
            self._echoes.no_news(event, "the job is leaving", job.id)
            return
        put(job, checkpointed=saved, marked_saved=True)
        self._recorder.note("saved", job.id, self._ledger.now, saved=tidy(job.begun_with + saved))

    def begun_anew(self, event: BegunAnew) -> None:
        """What a job was to go on from could not be used."""
        job = self._echoes.job_of(event)
        if job is None:
            return
        lost = job.begun_with
        if not lost or not self._ledger.is_active(job) or self._transitions.is_leaving(job):
            self._echoes.no_news(event, "it had nothing to go on from", job.id)
            return
        put(job, begun_with=0.0, lost=job.lost + lost)
        self._recorder.work_kept(job, -lost)
        self._recorder.work_lost(job, lost)
        self._recorder.note("begun_anew", job.id, self._ledger.now, lost=tidy(lost), why=event.why)

    def obstructed(self, event: Obstructed) -> None:
        """A job cannot be checkpointed, or can be again."""
        job = self._echoes.job_of(event)
        if job is None:
            return
        if job.obstacle == event.obstacle or not self._ledger.is_active(job):
            self._echoes.no_news(event, "nothing new is said of checkpoints", job.id)
            return
        self._ledger.obstruct(job, event.obstacle)
        self._recorder.note("obstacle", job.id, self._ledger.now, why=event.obstacle)


def share_cores(one: Job, other: Job) -> bool:
    """Whether two active jobs hold a core in common."""
    mine, its = one.allocation, other.allocation
    return mine is not None and its is not None and overlap(mine, its)

"""Tell echoes from news: what a world repeats, says late, or says of an earlier incarnation changes nothing."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from makeway.model import Job
from makeway.record import Recorder
from makeway.worlds.events import BegunAnew, Checkpointed, Noticed, Obstructed, Started
from makeway_engine.ledger import Ledger

ENDS_KEPT = 100_000
"""Jobs that have ended which are remembered, so that a late echo of their submission is known as one."""


class Echoes:
    """What of a run's events was no news, and which jobs have ended."""

    def __init__(self, ledger: Ledger, recorder: Recorder, *, told: bool) -> None:
        """Begin with nothing heard.

        :param told: whether the record says of an event that it changed nothing.
        """
        self._ledger = ledger
        self._recorder = recorder
        self._told = told
        self.unheeded: Counter[str] = Counter()
        """What was no news, by why."""
        self._ended: OrderedDict[str, None] = OrderedDict()

    def no_news(self, event: object, why: str, job_id: str = "") -> None:
        """Count an event that changes nothing, and say so in the record."""
        name = type(event).__name__
        self.unheeded[f"{name}: {why}"] += 1
        if self._told:
            self._recorder.note("unheeded", job_id, self._ledger.now, event=name, why=why)

    def job_of(self, event: Started | Noticed | Checkpointed | Obstructed | BegunAnew) -> Job | None:
        """Return the job that an event is about; None: there is none, or it is in another incarnation."""
        return self.known(event, event.job_id, event.incarnation)

    def known(self, event: object, job_id: str, incarnation: int) -> Job | None:
        """Return a live job by id if `incarnation` is the one it is in (0: any); else count the event."""
        job = self._ledger.jobs.get(job_id)
        if job is None:
            self.no_news(event, "the job has ended" if job_id in self._ended else "no such job", job_id)
        elif incarnation and incarnation != job.starts:
            self.no_news(
                event, "an earlier incarnation" if incarnation < job.starts else "no such incarnation", job_id
            )
        else:
            return job
        return None

    def has_ended(self, job_id: str) -> bool:
        """Whether a job of that id has ended, as far as is remembered."""
        return job_id in self._ended

    def forget(self, job_id: str) -> None:
        """Let the id of a job that has ended be free for another one."""
        self._ended.pop(job_id, None)

    def note_ended(self, job_ids: Iterable[str]) -> None:
        """Remember jobs that have ended, the latest of them."""
        self._ended.update(dict.fromkeys(job_ids))
        while len(self._ended) > ENDS_KEPT:
            self._ended.popitem(last=False)

    @property
    def ended(self) -> list[str]:
        """The jobs that are remembered, the first to end first."""
        return list(self._ended)

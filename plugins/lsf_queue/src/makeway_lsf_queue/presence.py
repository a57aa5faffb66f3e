"""Know which active jobs came, left, stopped or went on, without looking at all of them (`makeway.model.Witness`).

What is known of active jobs is kept by `survey` and `sums`; each is brought up to date by the jobs that changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_lsf_queue.jobs import hosts_of

_PENDING, _RUNNING = JobState.PENDING, JobState.RUNNING
_Group = tuple[str, NodeBits, NodeBits]
"""A queue, the hosts that its jobs require, and those that they exclude."""
News = Mapping[str, Job | None]
"""Id -> an active job that is to be looked at anew; None: it is no longer active."""


class Presence:
    """The active jobs of one run, and which of them changed since they were last looked at."""

    def __init__(self, view: ClusterView) -> None:
        """Begin with no job: active jobs are told of one by one."""
        self.view = view
        """The cluster as it is."""
        self.active: dict[str, Job] = {}
        """By id, as they started."""
        self.survey: Any = None
        """The last one that was made; kept by `survey`."""
        self.sums: Any = None
        """What they take of limits; kept by `counting`."""
        self._waiting: dict[_Group | None, dict[str, Job]] = {}
        """Jobs that are not active, in order of submission, by queue and hosts; None: those of several queues."""
        self._group_of: dict[str, _Group | None] = {}
        """By id."""
        self._for_survey: dict[str, Job | None] = {}
        self.for_sums: dict[str, Job | None] = {}
        """Who changed since the sums were last brought up to date; see `news_for_sums`."""
        self.given_back = 0
        """Grows whenever anything happens to an active job but that it starts, and runs."""
        self.any_attributed = False
        """Whether any job has ever said more than its fields do."""
        self.any_heterogeneous = False
        """Whether any job has ever been a component of another one."""

    # ------------------------------------------------------------------------------- told
    def came(self, job: Job, view: ClusterView) -> None:
        """Note a job that was submitted."""
        del view
        if job.spec.attributes:
            self.any_attributed = True
        if job.spec.het_id is not None:
            self.any_heterogeneous = True
        group = None if len(job.partitions) > 1 else (job.partition.name, job.required, job.excluded)
        self._group_of[job.id] = group
        self._waiting.setdefault(group, {})[job.id] = job

    def gone(self, job: Job, view: ClusterView) -> None:
        """Note a job that is no longer there."""
        del view
        self._no_longer_waits(job)

    def _no_longer_waits(self, job: Job) -> None:
        if job.id in self._group_of:
            group = self._group_of.pop(job.id)
            del self._waiting[group][job.id]
            if not self._waiting[group]:
                del self._waiting[group]

    def started(self, job: Job, view: ClusterView) -> None:
        """Note a job that holds slots from now on."""
        self._no_longer_waits(job)
        if job.spec.attributes:
            self.any_attributed = True
        if job.spec.het_id is not None:
            self.any_heterogeneous = True
        if job.state is not _RUNNING:
            self.given_back += 1
        self.active[job.id] = job
        self._for_survey[job.id] = self.for_sums[job.id] = job

    def left(self, job: Job, view: ClusterView) -> None:
        """Note a job that gives its slots back; it may wait again."""
        self.came(job, view)
        self.given_back += 1
        self.active.pop(job.id, None)
        self._for_survey[job.id] = self.for_sums[job.id] = None

    def stopped(self, job: Job, view: ClusterView) -> None:
        """Note a job that was suspended."""
        self.altered(job, view)

    def resumed(self, job: Job, view: ClusterView) -> None:
        """Note a job that goes on."""
        self.altered(job, view)

    def altered(self, job: Job, view: ClusterView) -> None:
        """Note a job that holds other cores, is to leave, or waits in another queue."""
        if job.id in self._group_of:
            self._no_longer_waits(job)
            self.came(job, view)
        if self.active.get(job.id) is job:
            self.given_back += 1
            self._for_survey[job.id] = self.for_sums[job.id] = job

    # -------------------------------------------------------------------------------- read
    def pending_hosts(self, now: Seconds) -> Iterator[tuple[str, NodeBits]]:
        """Yield queues with hosts that pending jobs may go to which are free to start; all hosts of all of them."""
        for group, waiting in self._waiting.items():
            for job in waiting.values():
                if job.state is _PENDING and not job.held and job.eligible_at <= now:
                    yield job.partition.name, hosts_of(job)
                    if group is not None:
                        break

    def news_for_survey(self) -> News:
        """Return who changed since the last survey."""
        news, self._for_survey = self._for_survey, {}
        return news

    def news_for_sums(self) -> News:
        """Return which jobs changed since the sums were last brought up to date; empty: none."""
        news = self.for_sums
        if news:
            self.for_sums = {}
        return news


class _Memo:
    """The book that was asked for last."""

    __slots__ = ("presence", "view")

    def __init__(self) -> None:
        self.view: ClusterView | None = None
        self.presence: Presence | None = None


MEMO = _Memo()


def presence_of(view: ClusterView) -> Presence:
    """Return which jobs are active in the run that a view is of, whichever are taken to have made way."""
    if MEMO.view is view and (known := MEMO.presence) is not None:
        return known
    presence = view.book(Presence)
    if presence.view is view:
        MEMO.view, MEMO.presence = view, presence
    return presence

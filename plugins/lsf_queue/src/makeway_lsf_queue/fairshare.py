"""Dispatch by user shares: FAIRSHARE of queues, and the dynamic priority (lsf 9.3; IBM: Dynamic user priority).

In a queue with FAIRSHARE the next job is that of the share account of the highest dynamic priority, which falls as
soon as one of its jobs is dispatched::

    shares / (cpu_time * CPU_TIME_FACTOR + run_time * RUN_TIME_FACTOR + (1 + job_slots) * RUN_JOB_FACTOR)

CPU time is what jobs have run on each of their slots; an hour of it is worth a tenth after HIST_HOURS. Fairshare
orders the jobs that wait, and has no say in who makes way.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import attrs

from makeway.model import ClusterView, Job, Seconds
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.groups import Groups
from makeway_lsf_queue.site import Queue

HOUR = 3600.0


@attrs.define(eq=False)
class Account:
    """What one share account of a queue holds and has used."""

    running: dict[str, tuple[Job, int]] = attrs.field(factory=dict)
    """Its active jobs, each with its slots."""
    cpu_hours: float = 0.0
    """Of jobs that have ended, as it was worth at `since`."""
    since: Seconds = 0.0


class Fairness:
    """A book of what the accounts of fairshare queues hold and have used; it orders a pass as well."""

    def __init__(self, view: ClusterView) -> None:
        """Begin with no job."""
        self.site = site_of(view)
        self.groups = Groups.of(self.site)
        self.accounts: dict[tuple[str, str], Account] = {}
        self._left: list[deque[Job] | _Sharing] = []

    # ------------------------------------------------------------------------------ the book
    def started(self, job: Job, view: ClusterView) -> None:
        """Count its slots."""
        account = self._account(job)
        if account is not None:
            account.running[job.id] = job, job.spec.cpus

    def left(self, job: Job, view: ClusterView) -> None:
        """Count what it has used."""
        account = self._account(job)
        if account is None or account.running.pop(job.id, None) is None:
            return
        shares = self.site.queue_of(job).shares
        assert shares is not None
        kept = account.cpu_hours * _worth(view.now - account.since, shares.hist_hours)
        account.cpu_hours = kept + _used(job, job.spec.cpus, view.now, shares.hist_hours)
        account.since = view.now

    def _account(self, job: Job) -> Account | None:
        queue = self.site.queue_of(job)
        if queue.shares is None:
            return None
        name, _ = self.share_of(queue, job.user)
        return self.accounts.setdefault((queue.name, name), Account())

    def share_of(self, queue: Queue, user: str) -> tuple[str, float]:
        """Return the share account of a user, and its shares; users without any go last."""
        assert queue.shares is not None
        for name, count in queue.shares.assigned:
            bare = name.removesuffix("@")
            if bare == user:
                return user, count
            if user in self.groups.users(bare):
                return (user if name.endswith("@") else bare), count
        for name, count in queue.shares.assigned:
            if name in ("default", "others"):
                return (user if name == "default" else name), count
        return user, 0.0

    def priority(self, queue: Queue, user: str, now: Seconds) -> float:
        """Return the dynamic priority of a user's share account."""
        shares = queue.shares
        assert shares is not None
        name, count = self.share_of(queue, user)
        account = self.accounts.get((queue.name, name), _NOTHING)
        cpu = account.cpu_hours * _worth(now - account.since, shares.hist_hours)
        slots, hours = 0, 0.0
        for job, held in account.running.values():
            slots += held
            hours += job.ran_until(now) / HOUR * (held if shares.by_slot else 1)
            cpu += _used(job, held, now, shares.hist_hours)
        divisor = cpu * shares.cpu_factor + hours * shares.run_factor + (1 + slots) * shares.job_factor
        return count / divisor if divisor else count

    # -------------------------------------------------------------------------------- a pass
    def next(self, tried: Sequence[Job], view: ClusterView) -> Sequence[Job]:
        """Return who is tried next: one of a queue with shares, all of those without."""
        if not tried:
            self._left = self._queues(view)
        while self._left:
            first = self._left[0]
            if isinstance(first, _Sharing):
                job = first.next(self, view.now)
                if job is not None:
                    return (job,)
                del self._left[0]
            else:
                del self._left[0]
                return tuple(first)
        return ()

    def _queues(self, view: ClusterView) -> list[deque[Job] | _Sharing]:
        """Return who waits, by queues: the highest first; of one priority in the order of the file (2.4)."""
        waiting: dict[str, list[Job]] = {}
        for job in view.pending:
            if job.eligible_since is not None:
                waiting.setdefault(job.partition.name, []).append(job)
        found: list[deque[Job] | _Sharing] = []
        plain: dict[int, deque[Job]] = {}
        for queue in sorted(self.site.queues.values(), key=lambda each: (-each.priority, each.index)):
            jobs = sorted(waiting.get(queue.name, ()), key=_place)
            if not jobs:
                continue
            if queue.shares is not None:
                found.append(_Sharing(queue, jobs, self))
            elif queue.priority in plain:
                together = sorted([*plain[queue.priority], *jobs], key=_place)
                plain[queue.priority].clear()
                plain[queue.priority].extend(together)
            else:
                plain[queue.priority] = deque(jobs)
                found.append(plain[queue.priority])
        return found


class _Sharing:
    """The jobs that wait in a queue with shares, by account."""

    def __init__(self, queue: Queue, jobs: Sequence[Job], fairness: Fairness) -> None:
        self.queue = queue
        self.waiting: dict[str, deque[Job]] = {}
        for job in jobs:
            self.waiting.setdefault(fairness.share_of(queue, job.user)[0], deque()).append(job)

    def next(self, fairness: Fairness, now: Seconds) -> Job | None:
        """Return the first job of the account that has the highest priority now; of equals, who came first."""
        if not self.waiting:
            return None
        name = min(
            self.waiting,
            key=lambda each: (
                -fairness.priority(self.queue, self.waiting[each][0].user, now),
                _place(self.waiting[each][0]),
            ),
        )
        job = self.waiting[name].popleft()
        if not self.waiting[name]:
            del self.waiting[name]
        return job


_NOTHING = Account()


def _place(job: Job) -> tuple[int, Seconds, int]:
    return -job.priority, job.submit_at, job.index


def _worth(seconds: Seconds, hist_hours: float) -> float:
    """Return what an hour used that long ago is worth."""
    return 0.1 ** (seconds / HOUR / hist_hours) if hist_hours else 1.0


def _used(job: Job, slots: int, now: Seconds, hist_hours: float) -> float:
    """Return the CPU time of a run up to now, in hours, as it is worth now."""
    hours = job.ran_until(now) / HOUR
    if hist_hours:
        hours = hist_hours / math.log(10) * (1 - 0.1 ** (hours / hist_hours))
    return slots * hours

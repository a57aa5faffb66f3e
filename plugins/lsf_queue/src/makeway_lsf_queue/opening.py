"""Say when queues are open, and what happens to running jobs when they close (lsf 6.1, 9.3, 10).

DISPATCH_WINDOW keeps pending jobs from starting; RUN_WINDOW does so as well, and stops running jobs until it opens
again. What time it is the workload's wall clock says, as UTC, or `sunday_at`; without either the replay begins on a
Sunday at midnight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from makeway.model import Blocked, ClusterView, GangOrder, GangVerb, Job, PreemptMode, Seconds
from makeway_lsf_queue import jobs
from makeway_lsf_queue.site import Site
from makeway_lsf_queue.windows import DAY, WEEK, Clock, Window, is_open, next_change

CLOSED = "PEND_QUE_WINDOW"
SUSPENDED = "SUSP_QUEUE_WINDOW"
_THURSDAY = 4 * 60 * DAY
"""Unix time began on a Thursday; in seconds since Sunday."""
_LATE = 1e-3
"""So much later than it is the clock shows: no edge is missed by rounding."""


def _second(site: Site, job: Job, at: Seconds) -> Seconds:
    """Return the second of the week at an instant of the replay."""
    begin = site.settings.sunday_at
    wall = job.spec.wall_submit
    if begin is not None:
        since = at - begin
    elif wall is not None:
        since = wall - job.spec.submit_at + at + _THURSDAY
    else:
        since = at
    return (since + _LATE) % (60.0 * WEEK)


def _is_closed(windows: Sequence[Window], site: Site, job: Job, at: Seconds) -> bool:
    return bool(windows) and not is_open(windows, Clock(int(_second(site, job, at) // 60)))


def _changes_at(windows: Sequence[Window], site: Site, job: Job, at: Seconds) -> Seconds | None:
    wait = next_change(windows, _second(site, job, at))
    return None if wait is None else at + wait + _LATE


def may_not_run(site: Site, job: Job, at: Seconds) -> bool:
    """Whether the run window of a job's queue is closed."""
    return _is_closed(site.queue_of(job).run_window, site, job, at)


def blocked(site: Site, job: Job, now: Seconds) -> Blocked | None:
    """Return which window keeps a pending job from being dispatched."""
    queue = site.queue_of(job)
    for key, windows in (("RUN_WINDOW", queue.run_window), ("DISPATCH_WINDOW", queue.dispatch_window)):
        if _is_closed(windows, site, job, now):
            text = f"{key} of queue {queue.name} is closed"
            opens = _changes_at(windows, site, job, now)
            return Blocked(reason=CLOSED, resource="time", detail=text, ask_again_at=opens)
    return None


def by_window(site: Site, job: Job) -> bool:
    """Whether a suspended job was stopped because its run window closed: no job runs while it is closed."""
    return job.suspended_at is not None and may_not_run(site, job, job.suspended_at)


def marked_until(site: Site) -> Callable[[], Seconds] | None:
    """Return what says up to when no job gets other marks: for good, unless queues have run windows."""
    return None if site.has_run_windows else lambda: math.inf


def marks(site: Site, view: ClusterView) -> Mapping[str, frozenset[str]]:
    """Return the marks of jobs that their run window has stopped, and of those that bear one no longer."""
    if not site.has_run_windows:
        return {}
    none: frozenset[str] = frozenset()
    stopped = {job.id for job in view.active if jobs.is_suspended(job) and by_window(site, job)}
    marked = {job.id: none for job in view.active if job.marks}
    return marked | dict.fromkeys(stopped, frozenset({SUSPENDED}))


def next_edge(site: Site, listed: Iterable[Job], now: Seconds) -> Seconds | None:
    """Return when the run window of any of these jobs next opens or closes."""
    found = []
    seen = set()
    for job in listed:
        windows = site.queue_of(job).run_window
        key = (windows, round(_second(site, job, now), 3))
        if windows and key not in seen:
            seen.add(key)
            found.append(_changes_at(windows, site, job, now))
    return min((at for at in found if at is not None), default=None)


def tried_now(site: Site, view: ClusterView) -> bool:
    """Whether a pass is due because a window has opened for a pending job."""
    return any(job.reason == CLOSED and blocked(site, job, view.now) is None for job in view.pending)


def closing(site: Site, job: Job) -> Iterator[GangOrder]:
    """Stop, requeue or end a running job whose run window is closed (6.1)."""
    manner = site.queue_of(job).at_window
    why = f"{SUSPENDED}: the run window of queue {job.partition.name} is closed"
    if manner.mode is PreemptMode.CANCEL:
        yield GangOrder(verb=GangVerb.END, job=job, why=f"{why}; {manner.why}")
        return
    yield GangOrder(verb=GangVerb.SUSPEND, job=job, why=why)
    # brequeue does not work on interactive jobs
    if manner.mode is PreemptMode.REQUEUE and job.requeueable and job.spec.batch:
        saved = manner.migrates and jobs.checkpointable(job, site)
        mode = PreemptMode.CHECKPOINT if saved else PreemptMode.REQUEUE
        yield GangOrder(verb=GangVerb.MOVE_ON, job=job, mode=mode, why=f"{why}; {manner.why}")

"""Show the queue as ``showq`` does: active jobs, eligible ones, and those that something blocks (moab 12.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from makeway.model import ClusterView, Job, JobState, Listing, Seconds, StatusCommand
from makeway_moab_qos.credentials import flags, settings_of
from makeway_moab_qos.limits import any_limits, violates
from makeway_moab_qos.priority import processors, start_priority
from makeway_moab_qos.vocabulary import WORDS

_PLAIN = frozenset(("None", "Resources", "Priority"))
"""Pending reasons of jobs that would start if there were room."""
_WIDE = 36


def show(view: ClusterView, now: Seconds) -> list[Listing]:
    """Return the three tables; a job that does not run bears the reason in place of ``checkjob``."""
    pending = sorted(
        view.pending, key=lambda job: (-start_priority(job, view, now), job.submit_at, job.index)
    )
    eligible = [job for job in pending if job.reason in _PLAIN and not job.held]
    blocked = [job for job in pending if job.reason not in _PLAIN or job.held]
    idle = "IDLE" if settings_of(view).maui else "eligible"
    total = f"Total jobs:  {len(view.active) + len(pending)}"
    return [
        _active(view, now),
        _waiting(idle, eligible, view),
        _waiting("blocked", blocked, view, total),
    ]


def _active(view: ClusterView, now: Seconds) -> Listing:
    """Return the active jobs, those with the least time left first; suspended ones are among them."""
    jobs = sorted(view.active, key=lambda job: (_left(job, now), job.index))
    busy = sum(processors(job) for job in jobs if job.state is JobState.RUNNING)
    procs = sum(node.cpus for node in view.cluster.nodes)
    nodes = 0
    for job in jobs:
        nodes |= job.nodes if job.state is JobState.RUNNING else 0
    shown = f"{len(jobs)} active jobs    {busy} of {procs} processors in use ({_share(busy, procs)})"
    footer = f"{shown}, {nodes.bit_count()} of {len(view.cluster.nodes)} nodes active"
    rows = tuple(
        (
            *_first(job, view),
            _clock(_left(job, now)) if job.time_limit is not None else "-",
            _at(job.started_at),
        )
        for job in jobs
    )
    return _listing("active", ("REMAINING", "STARTTIME"), rows, footer)


def _waiting(name: str, jobs: Sequence[Job], view: ClusterView, more: str = "") -> Listing:
    rows = tuple(
        (*_first(job, view), "-" if job.time_limit is None else _clock(job.time_limit), _at(job.submit_at))
        for job in jobs
    )
    notes: dict[int, tuple[str, ...]] = {at: (WORDS.reason(job.reason),) for at, job in enumerate(jobs)}
    footer = f"{len(jobs)} {name.lower()} jobs" + (f"\n\n{more}" if more else "")
    return _listing(name, ("WCLIMIT", "QUEUETIME"), rows, footer, notes)


def _listing(
    name: str,
    last: tuple[str, str],
    rows: tuple[tuple[str, ...], ...],
    footer: str,
    notes: dict[int, tuple[str, ...]] | None = None,
) -> Listing:
    return Listing(
        title=f"{name} jobs".ljust(_WIDE, "-"),
        headings=("JOBID", "USERNAME", "STATE", "PROCS", *last),
        rows=rows,
        notes=notes or {},
        footer=f"\n{footer}",
        right=frozenset(("STATE", "PROCS", *last)),
    )


def _first(job: Job, view: ClusterView) -> tuple[str, str, str, str]:
    state = WORDS.state(job.state, job.suspended_by, held=job.held)
    if job.reason == "Deferred" and job.state is JobState.PENDING:
        state = "Deferred"
    return f"{job.id}{_mark(job, view)}", job.user, state, str(processors(job))


def _mark(job: Job, view: ClusterView) -> str:
    """Return showq's mark of an active job: limit violated, backfilled, preemptible."""
    if job.allocation is None:
        return ""
    if any_limits(view) and violates(job, view):
        return "_"
    preemptee = "PREEMPTEE" in flags(job, view)
    if "BACKFILL" in job.marks:
        return "*" if preemptee else "+"
    return "-" if preemptee else ""


def _left(job: Job, now: Seconds) -> Seconds:
    """Return the time until a job's limit; infinite without one."""
    return math.inf if job.time_limit is None else max(0.0, job.time_limit - job.ran_until(now))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "0%"


def _at(instant: Seconds | None) -> str:
    return "-" if instant is None else f"{instant:g} s"


def _clock(seconds: Seconds) -> str:
    """Return a length of time as showq has it: 0:10:00, 1:02:03:04."""
    days, rest = divmod(round(seconds), 86400)
    shown = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}:{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}" if days else shown


SHOWQ = StatusCommand(name="showq", show=show)

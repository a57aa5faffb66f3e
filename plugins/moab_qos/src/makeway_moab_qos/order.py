"""Order the queue, and remember what passes have done to jobs (spec moab 7.3, 7.5 and 8).

Marks on jobs: RANKED, it has been looked at since its start; BACKFILL, it was started while a job that
ranks higher waited; PREEMPTEE, it may be displaced because of that (BACKFILLPOLICY PREEMPT); SPVIOLATION,
Maui has seen it beyond a soft limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_moab_qos.credentials import qos_of, settings_of
from makeway_moab_qos.limits import any_limits, beyond_soft, violates
from makeway_moab_qos.priority import start_priority


def in_order(pending: Sequence[Job], view: ClusterView, now: Seconds) -> list[Job]:
    """Return the queue, highest start priority first; those beyond a soft limit are left to backfill."""
    settings = settings_of(view)
    limited = any_limits(view)
    # 1. beyond a soft limit last  2. priority  3. longest in the queue  4. job table
    ordered = sorted(
        pending,
        key=lambda job: (
            bool(limited and beyond_soft(job, view)),
            -start_priority(job, view, now),
            job.submit_at,
            job.index,
            job.partition.index,
        ),
    )
    settings.memo["order"] = (now, ordered)
    if settings.optimistic and settings.bf_priority_policy in ("DURATION", "HWDURATION"):
        head, rest = ordered[:1], ordered[1:]
        return head + sorted(rest, key=lambda job: job.time_limit or float("inf"))
    return ordered


def ahead_of(job: Job, view: ClusterView, now: Seconds) -> Iterator[Job]:
    """Yield the jobs that are tried before `job` in this pass and still wait, in order."""
    made, ordered = settings_of(view).memo.get("order", (None, ()))
    if made != now or not any(other.id == job.id for other in ordered):
        ahead = [other for other in view.pending if other.id != job.id and precedes(other, job, view, now)]
        ordered = sorted(ahead, key=lambda other: _rank(other, view, now))
    for each in ordered:
        if each.id == job.id:
            return
        other = view.job(each.id)
        if other is not None and other.state is JobState.PENDING:
            yield other


def precedes(one: Job, other: Job, view: ClusterView, now: Seconds) -> bool:
    """Whether `one` is tried before `other`."""
    return _rank(one, view, now) < _rank(other, view, now)


def _rank(job: Job, view: ClusterView, now: Seconds) -> tuple[int, Seconds, int]:
    return -start_priority(job, view, now), job.submit_at, job.index


# ------------------------------------------------------------------------------------------ marks
def marks(view: ClusterView, now: Seconds) -> dict[str, frozenset[str]]:
    """Return the jobs whose marks change; for the hook."""
    settings = settings_of(view)
    changed: dict[str, frozenset[str]] = {}
    highest: int | None = None
    for job in view.active:
        found = job.marks
        if "RANKED" not in found and job.started_at is not None:
            found |= _at_start(job, view, now)
        if settings.maui:
            found = _with_violation(job, found, view)
        if settings.optimistic and found >= {"BACKFILL", "PREEMPTEE"}:
            if highest is None:
                highest = max((start_priority(one, view, now) for one in view.pending), default=-1 << 62)
            if start_priority(job, view, now) >= highest:
                found -= {"PREEMPTEE"}
        if found != job.marks:
            changed[job.id] = found
    return changed


def _at_start(job: Job, view: ClusterView, now: Seconds) -> frozenset[str]:
    """Return the marks of a job that has started since the last pass."""
    started = job.started_at or 0.0
    waiting = (
        other
        for other in view.pending
        if other.submit_at <= started and other.eligible_at <= started and not other.held
    )
    if not any(precedes(other, job, view, now) for other in waiting):
        return frozenset({"RANKED"})
    if settings_of(view).optimistic:
        return frozenset({"RANKED", "BACKFILL", "PREEMPTEE"})
    return frozenset({"RANKED", "BACKFILL"})


def _with_violation(job: Job, found: frozenset[str], view: ClusterView) -> frozenset[str]:
    if "PREEMPTSPV" not in qos_of(job, view).flags or job.state is not JobState.RUNNING:
        return found
    if violates(job, view):
        return found | {"SPVIOLATION"}
    return found - {"SPVIOLATION"}

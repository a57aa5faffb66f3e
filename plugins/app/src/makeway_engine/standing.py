"""Make jobs of what a state says of them."""

from __future__ import annotations

from makeway.model import (
    JobDraft,
    JobState,
    Seconds,
    SuspendedBy,
)
from makeway.state import Standing

_RUNNING = JobState.RUNNING
_SUSPENDED = JobState.SUSPENDED

_AS_THEY_ARE = (
    *(
        "eligible_since",
        "started_at",
        "resumed_at",
        "end_at",
        "suspended_at",
        "suspended_by",
        "restarts",
        "preemptions",
    ),
    *(
        "preemptions_before",
        "preempted_at",
        "stopped",
        "resume_after",
        "preempt_at",
        "asked_at",
        "checkpointed",
    ),
    *("begun_with", "marked_saved", "lost", "kept", "state"),
)
"""Fields of a job that a state says as they are."""


def fill(draft: JobDraft, told: Standing, now: Seconds) -> None:
    """Set the fields of a job; what the state leaves out follows from the rest."""
    spec = told.spec
    for name in _AS_THEY_ARE:
        setattr(draft, name, getattr(told, name))
    draft.submit_at = or_else(told.submit_at, spec.submit_at)
    draft.eligible_at = or_else(
        told.eligible_at, max(draft.submit_at, or_else(spec.begin_at, draft.submit_at))
    )
    draft.marks = frozenset(told.marks)
    draft.priority = told.priority or 0
    draft.ran = told.ran or 0.0
    waits = told.state is JobState.PENDING
    draft.starts = told.starts if told.starts is not None else told.restarts + (not waits)
    if waits:
        draft.reason = told.reason
        return
    draft.reason = told.reason or "None"
    draft.started_at = or_else(told.started_at, now)
    if told.state is _SUSPENDED:
        draft.suspended_at = or_else(told.suspended_at, now)
        draft.suspended_by = told.suspended_by or SuspendedBy.POLICY
        if told.ran is None:
            draft.ran = max(0.0, draft.suspended_at - draft.started_at - draft.stopped)
    elif told.state is _RUNNING and told.resumed_at is None:
        since = draft.started_at + draft.stopped
        draft.resumed_at = since if told.ran is None else now
    if told.state is _RUNNING and told.end_at is None and draft.time_limit is not None:
        ran = draft.ran + now - or_else(draft.resumed_at, now)
        draft.end_at = now + max(0.0, draft.time_limit - ran)


def or_else(value: Seconds | None, otherwise: Seconds) -> Seconds:
    return otherwise if value is None else value

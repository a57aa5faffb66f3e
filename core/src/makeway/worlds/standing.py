"""Say how a job stands that an engine did not bring about itself: what adoption starts from."""

from __future__ import annotations

import attrs

from makeway.model import Allocation, JobSpec, JobState, Seconds, SuspendedBy


@attrs.frozen(kw_only=True, eq=False)
class Standing:
    """One job as it stands.

    Fields that nobody knows keep their defaults. Instants may lie before 0: before the run's clock began.
    """

    spec: JobSpec
    """What was submitted; its id is the job's."""
    state: JobState = JobState.PENDING
    """PENDING, RUNNING, SUSPENDED, or COMPLETING (it ended or was killed, its nodes are not free yet)."""
    incarnation: int = 0
    """How often it was started so far; at least 1 unless it is pending."""
    restarts: int = 0
    """How often it was requeued so far."""
    submit_at: Seconds | None = None
    """Its last submission; None: ``spec.submit_at``."""
    eligible_at: Seconds | None = None
    """Earliest start of a pending job; None: at once."""
    allocation: Allocation | None = None
    """What it holds; None: it is pending."""
    started_at: Seconds | None = None
    """Start of this incarnation."""
    ran: Seconds = 0.0
    """Running time of this incarnation, without suspensions."""
    suspended_at: Seconds | None = None
    suspended_by: SuspendedBy | None = None
    priority: int | None = None
    """In force; 0: held; None: as if it were submitted now."""
    reason: str = ""
    """Why it waits."""
    leaves_as: JobState | str | None = None
    """COMPLETING only: its final state, or ``requeue``."""

"""Count what is active per credential against soft and hard limits (spec moab 3.2 X2, 3.3 step 5, 8.1).

A job beyond a soft limit is not started in its turn, but by backfill, while hard limits allow it; while it
runs it is in SPVIOLATION. Of the jobs that share a limit those that started last are the ones beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from makeway.model import Blocked, ClusterView, Job, Seconds
from makeway_moab_qos.credentials import (
    DEFAULT,
    access,
    credential,
    names_of,
    qos_name,
    qos_of,
    settings_of,
)
from makeway_moab_qos.priority import processors, start_priority
from makeway_moab_qos.settings import Credential

KINDS = ("max_job", "max_proc", "max_node")
_REASON = "PolicyLimit"


@attrs.frozen
class Limit:
    """One limit that a job shares with others."""

    kind: str
    """Key of `Credential`."""
    whose: str
    group: tuple[str, str]
    """Kind and name of the credential."""
    soft: int
    hard: int


def limits_of(job: Job, view: ClusterView) -> Iterator[Limit]:
    """Yield the limits that a job falls under."""
    settings = settings_of(view)
    ignored = _ignored(job, view)
    for kind, name in names_of(job).items():
        if kind in ignored:
            continue
        own = credential(settings, kind, name)
        fallback = credential(settings, kind, DEFAULT)
        yield from _listed(kind, name or "", own, fallback)
    qos = qos_name(job, view)
    if qos is not None and "qos" not in ignored:
        yield from _listed("qos", qos, qos_of(job, view), settings.qos.get(DEFAULT, Credential()))


_IGNORES = {
    "IGNALL": ("user", "group", "account"),
    "IGNUSER": ("user",),
    "IGNGROUP": ("group",),
    "IGNACCOUNT": ("account",),
    "IGNCLASS": ("klass",),
    "IGNQOS": ("qos",),
}


def _ignored(job: Job, view: ClusterView) -> frozenset[str]:
    """Return the credentials whose limits the job's QoS lets it ignore (7.3 QoS, IGN flags)."""
    found = (_IGNORES.get(flag, ()) for flag in qos_of(job, view).flags)
    return frozenset(kind for kinds in found for kind in kinds)


def _listed(kind: str, name: str, own: Credential, fallback: Credential) -> Iterator[Limit]:
    for key in KINDS:
        numbers: tuple[int, ...] = getattr(own, key) or getattr(fallback, key)
        if numbers:
            yield Limit(
                key, f"{key.upper().replace('_', '')} of {kind} {name}", (kind, name), numbers[0], numbers[-1]
            )


def any_limits(view: ClusterView) -> bool:
    """Whether any limit is configured at all."""
    settings = settings_of(view)
    known: dict[str, bool] = settings.memo.setdefault("any_limits", {})
    if "any" not in known:
        tables = (settings.qos, settings.user, settings.group, settings.account, settings.klass)
        known["any"] = any(getattr(each, key) for table in tables for each in table.values() for key in KINDS)
    return known["any"]


def _amount(job: Job, kind: str) -> int:
    if kind == "max_job":
        return 1
    if kind == "max_proc":
        return processors(job)
    return len(job.allocation.node_indices) if job.allocation is not None else job.size


def _in_group(job: Job, limit: Limit, view: ClusterView) -> bool:
    kind, name = limit.group
    return (qos_name(job, view) if kind == "qos" else names_of(job)[kind]) == name


def used(limit: Limit, jobs: Sequence[Job], view: ClusterView) -> int:
    """Return what `jobs` use of a limit."""
    return sum(_amount(job, limit.kind) for job in jobs if _in_group(job, limit, view))


def beyond_soft(job: Job, view: ClusterView) -> str:
    """Say which soft limit a waiting job would be beyond; empty: none."""
    return _beyond(job, view.active, view, hard=False)


def _beyond(job: Job, jobs: Sequence[Job], view: ClusterView, *, hard: bool) -> str:
    for limit in limits_of(job, view):
        most = limit.hard if hard else limit.soft
        taken = used(limit, jobs, view)
        if taken + _amount(job, limit.kind) > most:
            return f"{limit.whose}: {taken} of {most} in use"
    return ""


def violates(job: Job, view: ClusterView) -> str:
    """Say which soft limit an active job is beyond; empty: none."""
    if not any_limits(view):
        return ""
    earlier = [
        other
        for other in view.active
        if other is not job and (other.started_at, other.index) < (job.started_at, job.index)
    ]
    return _beyond(job, earlier, view, hard=False)


# ------------------------------------------------------------------------------------------ admit
def admit(jobs: Sequence[Job], view: ClusterView, now: Seconds) -> dict[str, Blocked]:
    """Return which jobs are kept out, and by what; for the hook."""
    blocked = {}
    for job in jobs:
        found = _kept_out(job, view, now)
        if found is not None:
            blocked[job.id] = found
    return blocked


def _kept_out(job: Job, view: ClusterView, now: Seconds) -> Blocked | None:
    settings = settings_of(view)
    if settings.reject_negative_priority and start_priority(job, view, now) < 0:
        detail = "its priority is negative (REJECTNEGPRIOJOBS)"
        return Blocked(reason="NegativePriority", resource="priority", detail=detail)
    deferred = deferred_until(job, view)
    if deferred is not None and now < deferred:
        detail = f"QoS {job.spec.qos} is not accessible; deferred for {deferred - now:g} s more"
        return Blocked(reason="Deferred", resource="qos", detail=detail, ask_again_at=deferred)
    if not any_limits(view):
        return None
    detail = _beyond(job, view.active, view, hard=True)
    if not detail and not settings.backfills:
        detail = beyond_soft(job, view)
    return Blocked(reason=_REASON, resource="policy", detail=detail) if detail else None


def deferred_until(job: Job, view: ClusterView) -> Seconds | None:
    """Return the end of the deferral of a job that asked for a QoS it may not use; None: it is not deferred."""
    settings = settings_of(view)
    defers = bool(settings.defer_time) and settings.choices.defer_refused_qos
    if not defers or job.spec.qos is None or not access(job, view).refused:
        return None
    return job.spec.submit_at + settings.defer_time

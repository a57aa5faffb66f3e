"""Order the queue, and remember what passes have done to jobs (moab 7.3, 7.5 and 8).

Marks on jobs: RANKED, it has been looked at since its start; BACKFILL, it was started while a job that
ranks higher waited; PREEMPTEE, it may be displaced because of that (BACKFILLPOLICY PREEMPT); SPVIOLATION,
Maui has seen it beyond a soft limit; FSVIOLATION, its usage was beyond a fairshare target when it started.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence

from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_moab_qos.credentials import qos_name, qos_of, settings_of
from makeway_moab_qos.fairshare import book, is_on, violation
from makeway_moab_qos.forgetting import forget_ended
from makeway_moab_qos.limits import InUse, any_limits, are_beyond_soft, violates
from makeway_moab_qos.priority import processors, start_priorities, start_priority
from makeway_moab_qos.settings import Settings
from makeway_moab_qos.turns import Turns


def in_order(pending: Sequence[Job], view: ClusterView, now: Seconds) -> list[Job]:
    """Return the queue, highest start priority first; those beyond a soft limit are left to backfill."""
    settings = settings_of(view)
    limited = any_limits(view)
    # 1. beyond a soft limit last  2. priority  3. longest in the queue  4. job table
    beyond = are_beyond_soft(pending, view) if limited else itertools.repeat(False)
    ranks = [
        (late, -priority, job.submit_at, job.index, job.partition.index, job)
        for late, priority, job in zip(beyond, start_priorities(pending, view, now), pending, strict=False)
    ]
    ranks.sort(key=operator.itemgetter(0, 1, 2, 3, 4))
    ordered = [rank[5] for rank in ranks]
    settings.memo["order"] = (now, [job.id for job in ordered])
    at = _left_to_backfill(ordered, view)
    if settings.optimistic and settings.bf_priority_policy in ("DURATION", "HWDURATION"):
        return ordered[:at] + sorted(ordered[at:], key=lambda job: job.time_limit or float("inf"))
    if settings.backfill_policy in ("BESTFIT", "GREEDY") and not limited:
        return ordered[:at] + sorted(ordered[at:], key=lambda job: -job.spec.cpus)
    return ordered


def _left_to_backfill(ordered: Sequence[Job], view: ClusterView) -> int:
    """Return the place after the first job that will have to wait, as far as idle processors tell."""
    nodes = view.cluster.nodes
    idle = sum(node.cpus for node in nodes if view.up >> node.index & 1)
    idle -= sum(processors(job) for job in view.active if job.state is JobState.RUNNING)
    for at, job in enumerate(ordered, start=1):
        idle -= job.spec.cpus
        if idle < 0:
            return at
    return len(ordered)


def place_in_backfill(job: Job, first: Job, view: ClusterView) -> int:
    """Return how many jobs after `first`, which waits, are looked at until it is `job`'s turn; 0: not after it."""
    _, ordered = settings_of(view).memo.get("order", (None, ()))
    places = {job_id: at for at, job_id in enumerate(ordered)}
    return max(0, places.get(job.id, 0) - places.get(first.id, 0))


def ahead_of(job: Job, view: ClusterView, now: Seconds) -> Iterator[Job]:
    """Yield the jobs that are tried before `job` in this pass and still wait, in order."""
    memo = settings_of(view).memo
    named: Turns | None = memo.get("turns")
    if named is not None and (tried := named.ahead_of(job)) is not None:
        yield from tried
        return
    made, ordered = memo.get("order", (None, ()))
    if made is None and named is not None:
        made, ordered = now, named.ordered(now) or ()
    if made != now or job.id not in ordered:
        ahead = [other for other in view.pending if other.id != job.id and precedes(other, job, view, now)]
        ordered = [other.id for other in sorted(ahead, key=lambda other: _rank(other, view, now))]
    for job_id in ordered:
        if job_id == job.id:
            return
        other = view.job(job_id)
        if other is not None and other.state is JobState.PENDING:
            yield other


def precedes(one: Job, other: Job, view: ClusterView, now: Seconds) -> bool:
    """Whether `one` is tried before `other`."""
    return _rank(one, view, now) < _rank(other, view, now)


def _rank(job: Job, view: ClusterView, now: Seconds) -> tuple[int, Seconds, int]:
    return -start_priority(job, view, now), job.submit_at, job.index


# ----------------------------------------------------------------------------------- reservations
_WAITS_FOR_OTHERS = frozenset(
    ("Dependency", "BeginTime", "JobHeldUser", "JobHeldAdmin", "PolicyLimit", "Deferred", "NegativePriority")
)


def reservation_holders(jobs: Iterable[Job], view: ClusterView, now: Seconds) -> list[Job]:
    """Return those of `jobs`, which wait in this order, that hold a reservation: so many of each bucket."""
    settings = settings_of(view)
    left = dict(settings.depths)
    always = any("RESERVEALWAYS" in each.flags for each in settings.qos.values())
    holders: list[Job] = []
    for job in jobs:
        if job.held or job.eligible_at > now or job.reason in _WAITS_FOR_OTHERS:
            continue
        flags = qos_of(job, view).flags
        if "RESERVEALWAYS" in flags:
            holders.append(job)
        elif "NORESERVATION" not in flags:
            bucket = _bucket(qos_name(job, view), left, settings)
            if bucket is not None:
                left[bucket] -= 1
                holders.append(job)
        if not always and not any(left.values()):
            break
    return holders


def _bucket(qos: str | None, left: Mapping[str, int], settings: Settings) -> str | None:
    """Return the first bucket that has a reservation left for a job of this QoS."""
    for bucket, count in left.items():
        listed = settings.reservation_qos.get(bucket, ("ALL",))
        if count > 0 and ("ALL" in listed or "[ALL]" in listed or qos in listed):
            return bucket
    return None


def kept_reservations(view: ClusterView) -> list[Job]:
    """Return the jobs that have held a reservation and wait still (RESERVATIONPOLICY HIGHEST)."""
    kept: dict[str, None] = settings_of(view).memo.setdefault("reserved", {})
    found = [view.job(job_id) for job_id in kept]
    return [job for job in found if job is not None and job.state is JobState.PENDING]


def _keep_reservations(view: ClusterView, now: Seconds) -> None:
    """Take note of who holds a reservation after a pass, and forget who needs none any more."""
    memo = settings_of(view).memo
    waiting = sorted(view.pending, key=lambda job: _rank(job, view, now))
    kept = dict.fromkeys(job.id for job in kept_reservations(view))
    kept.update(dict.fromkeys(job.id for job in reservation_holders(waiting, view, now)))
    memo["reserved"] = kept


# ------------------------------------------------------------------------------------------ marks
def marks(view: ClusterView, now: Seconds) -> dict[str, frozenset[str]]:
    """Return the jobs whose marks change; for the hook."""
    settings, use = settings_of(view), view.book(InUse)
    forget_ended(view)
    book(view, now)
    if settings.reservation_policy == "HIGHEST":
        _keep_reservations(view, now)
    changed: dict[str, frozenset[str]] = {}
    highest: int | None = None
    started = use.unmarked = [job for job in use.unmarked if "RANKED" not in job.marks]
    for job in view.active if settings.maui or settings.optimistic else _still_active(started):
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
    named: Turns | None = settings.memo.get("turns")
    if named is not None:
        named.current = False
    return changed


def _still_active(started: Sequence[Job]) -> Sequence[Job]:
    """Return those of them that are active still, in job-table order."""
    there = {job.index: job for job in started if job.state in (JobState.RUNNING, JobState.SUSPENDED)}
    return [there[index] for index in sorted(there)]


def _at_start(job: Job, view: ClusterView, now: Seconds) -> frozenset[str]:
    """Return the marks of a job that has started since the last pass."""
    if is_on(settings_of(view)):
        start_priority(job, view, now)  # it is kept as it is at the start; later usage does not count
    violated = frozenset({"FSVIOLATION"}) if violation(job, view) else frozenset[str]()
    return violated | _ranked(job, view, now)


def _ranked(job: Job, view: ClusterView, now: Seconds) -> frozenset[str]:
    settings = settings_of(view)
    named: Turns | None = settings.memo.get("turns")
    if named is not None and (known := named.preceded(job, lambda: _rank(job, view, now))) is not None:
        return _marked(known, settings)
    started = job.started_at or 0.0
    waiting = (
        other
        for other in view.pending
        if other.submit_at <= started and other.eligible_at <= started and not other.held
    )
    ahead = (other for other in waiting if precedes(other, job, view, now))
    passed = list(ahead if settings.weights.bypass else itertools.islice(ahead, 1))
    if settings.weights.bypass:
        counts: dict[str, int] = settings.memo.setdefault("bypassed", {})
        for other in passed:
            counts[other.id] = counts.get(other.id, 0) + 1
    return _marked(bool(passed), settings)


def _marked(passed: bool, settings: Settings) -> frozenset[str]:
    """Return the marks of a job that was started while others waited that rank higher, or not."""
    if not passed:
        return frozenset({"RANKED"})
    if settings.optimistic:
        return frozenset({"RANKED", "BACKFILL", "PREEMPTEE"})
    return frozenset({"RANKED", "BACKFILL"})


def _with_violation(job: Job, found: frozenset[str], view: ClusterView) -> frozenset[str]:
    if "PREEMPTSPV" not in qos_of(job, view).flags or job.state is not JobState.RUNNING:
        return found
    if violates(job, view):
        return found | {"SPVIOLATION"}
    return found - {"SPVIOLATION"}

"""Compute priorities: of a waiting job, of a running one, and of a victim (moab 4.2 and 8).

No document says how the TARGET terms grow; here they are the part of the target that has passed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import attrs

from makeway.clockwork import Clockwork
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway_moab_qos.credentials import DEFAULT, credential, flags, names_of, qos_name, qos_of, settings_of
from makeway_moab_qos.fairshare import distances, is_on
from makeway_moab_qos.settings import Settings, Weights

CAP = 1_000_000_000
_MOST = float(CAP)
_HANDED_OUT = 4_000_000_000
"""The engine hands out priorities above this to jobs that are not given one."""
_NEVER = 1e9
"""As far as it is looked ahead for a job to outrank another."""


@attrs.frozen
class Term:
    """One subcomponent of a priority."""

    component: str
    name: str
    """Key of `Weights`."""
    value: float
    weight: float


def processors(job: Job) -> int:
    """Return how many processors a job asks for, or holds."""
    held = job.allocation
    if held is not None and held.cpus is not None:
        return sum(held.cpus)
    return job.spec.cpus


# ------------------------------------------------------------------------------------ queue time
def queued(job: Job, view: ClusterView, now: Seconds) -> Seconds:
    """Return the queue time that counts: up to now, or up to the start (section 8.3)."""
    settings = settings_of(view)
    start = job.started_at if job.state is not JobState.PENDING else None
    if settings.maui:
        return _queued_in_maui(job, view, start, now)
    begun = job.submit_at
    if not _begins_with_submission(settings):
        begun = max(begun, job.spec.begin_at or 0.0)
    return max(0.0, (now if start is None else start) - begun)


def _begins_with_submission(settings: Settings) -> bool:
    """Whether queue time counts from the submission, not from the begin time."""
    if settings.priority_accrual == "ACCRUE":
        return "ALL" in settings.priority_exceptions
    return (settings.priority_accrual or ("ALWAYS" if settings.use_system_queue_time else "")) == "ALWAYS"


def _queued_in_maui(job: Job, view: ClusterView, start: Seconds | None, now: Seconds) -> Seconds:
    """Return the same as Maui compares it: what the pass before this one saw (section 17, C3 and Q9)."""
    seen = start if start is not None else now - view.settings(Clockwork).sched_interval
    counted = seen - job.submit_at
    return counted if counted > 0 else max(0.0, now - job.submit_at)


# -------------------------------------------------------------------------------------- formula
def terms(job: Job, view: ClusterView, now: Seconds) -> Iterator[Term]:
    """Yield the subcomponents of a start priority (section 8.1)."""
    settings = settings_of(view)
    weights = settings.weights
    qos = qos_of(job, view)
    waited = queued(job, view, now)
    limit = job.time_limit
    yield Term("serv", "queue_time", waited / 60.0, weights.queue_time + qos.qt_weight)
    factor = weights.xfactor + qos.xf_weight
    expansion = (waited + limit) / max(weights.xf_min_limit, limit, 1.0) if limit else 1.0
    if factor or weights.target_xfactor:
        yield Term("serv", "xfactor", expansion, factor)
    if weights.sp_violation:
        yield Term("serv", "sp_violation", float("SPVIOLATION" in flags(job, view)), weights.sp_violation)
    if weights.bypass:
        yield Term("serv", "bypass", float(bypassed(job, view)), weights.bypass)
    for kind, name in names_of(job).items():
        weight: float = getattr(weights, kind)
        if weight:
            own: float = credential(settings, kind, name).priority
            yield Term("cred", kind, own or credential(settings, kind, DEFAULT).priority, weight)
    if weights.qos:
        yield Term("cred", "qos", qos.priority, weights.qos)
    yield from _fairshare(job, view, weights)
    yield from _resources(job, weights)
    if weights.target_queue_time and qos.qt_target:
        yield Term("target", "target_queue_time", min(1.0, waited / qos.qt_target), weights.target_queue_time)
    if weights.target_xfactor and qos.xf_target:
        yield Term("target", "target_xfactor", min(1.0, expansion / qos.xf_target), weights.target_xfactor)


def bypassed(job: Job, view: ClusterView) -> int:
    """Return how often others were started by backfill while `job`, which ranks higher, waited."""
    counts: dict[str, int] = settings_of(view).memo.get("bypassed", {})
    return counts.get(job.id, 0)


def _fairshare(job: Job, view: ClusterView, weights: Weights) -> Iterator[Term]:
    """Yield target less usage, in percent, of each credential that has a target and a weight."""
    if not _by_fairshare(view):
        return
    for kind, distance in distances(job, view):
        weight: float = getattr(weights, f"fs_{kind}")
        if weight:
            yield Term("fs", f"fs_{kind}", distance, weight)


def _by_fairshare(view: ClusterView) -> bool:
    """Whether usage bears on priorities."""
    settings = settings_of(view)
    weights = settings.weights
    inner = (weights.fs_user, weights.fs_group, weights.fs_account, weights.fs_qos, weights.fs_klass)
    return is_on(settings) and bool(weights.fs) and any(inner)


def _resources(job: Job, weights: Weights) -> Iterator[Term]:
    procs = job.spec.cpus
    spec = job.spec
    memory = (spec.memory_mb_per_cpu or 0) * procs or (spec.memory_mb_per_node or 0) * job.size
    seconds = job.time_limit or 0.0
    amounts = {
        "node": job.size,
        "proc": procs,
        "mem": memory,
        "swap": spec.attributes.get("swap_mb", 0),
        "disk": spec.attributes.get("disk_mb", 0),
        "ps": procs * seconds,
        "pe": procs,
        "walltime": seconds,
    }
    for name, amount in amounts.items():
        weight: float = getattr(weights, name)
        if weight:
            yield Term("res", name, float(amount), weight)


def total(found: Iterator[Term], weights: Weights) -> float:
    """Add up terms: each capped before it is weighted, then each component likewise."""
    caps = weights.caps
    sums: dict[str, float] = {}
    for term in found:
        sums[term.component] = sums.get(term.component, 0.0) + term.weight * _capped(
            term.value, caps.get(term.name)
        )
    answer = 0.0
    for name, value in sums.items():
        weight: float = getattr(weights, name)
        answer += weight * _capped(value, caps.get(name))
    return answer


def _capped(value: float, cap: float | None) -> float:
    return min(value, cap) if cap else value


def _bounded(value: float, job: Job, view: ClusterView, settings: Settings) -> float:
    if not (settings.enable_negative_priority or settings.reject_negative_priority):
        value = max(value, 1.0)
    value = min(value, float(CAP))
    given = job.spec.attributes
    if "system_priority" in given:
        return float(CAP + int(given["system_priority"]))
    if not settings.maui and settings.choices.runnow_priority and "RUNNOW" in qos_of(job, view).flags:
        return float(CAP + settings.choices.runnow_priority)
    if job.spec.priority is None and 0 < job.priority < _HANDED_OUT:
        return float(CAP + job.priority)  # a person has set it, as with `setspri`
    return value + float(given.get("relative_priority", 0))


def start_priority(job: Job, view: ClusterView, now: Seconds) -> int:
    """Return the start priority, truncated as it is compared."""
    settings = settings_of(view)
    if job.state is JobState.PENDING or (settings.maui and not _by_fairshare(view)):
        return _as_of(job, view, settings, now)
    # A running job's priority is frozen: one computation per incarnation is enough.
    known: dict[str, tuple[tuple[object, ...], int]] = settings.memo.setdefault("frozen", {})
    state = frozen_as(job)
    found = known.get(job.id)
    if found is None or found[0] != state:
        known[job.id] = found = (state, _priority(job, view, settings, now))
    return found[1]


def start_priorities(jobs: Sequence[Job], view: ClusterView, now: Seconds) -> Iterator[int]:
    """Yield the start priority of each of several jobs that wait; what does not change with time is found out once."""
    settings = settings_of(view)
    known: dict[tuple[str, str], _Parts] = settings.memo.setdefault("parts", {})
    plain = not (settings.maui or now != view.now or _varies(view, settings))
    weight, begins = settings.weights.serv, _begins_with_submission(settings)
    for job in jobs:
        parts = known.get((job.id, job.partition.name)) if plain and job.state is JobState.PENDING else None
        if parts is None:
            yield start_priority(job, view, now)
            continue
        fixed, minutes, factor, base = parts
        begun = job.submit_at if begins else max(job.submit_at, job.spec.begin_at or 0.0)
        waited = max(0.0, now - begun)
        serv = minutes * waited / 60.0
        if factor:
            serv += factor * ((waited + base[0]) / base[1] if base is not _NO_LIMIT else 1.0)
        yield int(_bounded(fixed + weight * serv, job, view, settings))


def frozen_as(job: Job) -> tuple[Seconds | None, bool, int]:
    """Return what a frozen priority belongs to; with another of these it is computed again."""
    return job.started_at, "SPVIOLATION" in job.marks, job.priority


def _as_of(job: Job, view: ClusterView, settings: Settings, now: Seconds) -> int:
    """Return a priority that may grow, computed once per instant."""
    if now != view.now:
        return _priority(job, view, settings, now)
    memo: dict[str, Any] = settings.memo
    known: dict[tuple[object, ...], int] = memo.setdefault("as_of", {})
    if memo.get("as_of_now") != now:
        memo["as_of_now"] = now
        known.clear()
    key = (job.id, job.partition.name, job.submit_at, job.started_at, job.priority, job.marks)
    found = known.get(key)
    if found is None:
        found = known[key] = _priority(job, view, settings, now)
    return found


def _priority(job: Job, view: ClusterView, settings: Settings, now: Seconds) -> int:
    weights = settings.weights
    if _varies(view, settings):
        return int(_bounded(total(terms(job, view, now), weights), job, view, settings))
    fixed, minutes, factor, base = _parts(job, view, settings)
    waited = queued(job, view, now)
    serv = minutes * waited / 60.0
    if factor:
        serv += factor * ((waited + base[0]) / base[1] if base is not _NO_LIMIT else 1.0)
    return int(_bounded(fixed + weights.serv * serv, job, view, settings))


def _varies(view: ClusterView, settings: Settings) -> bool:
    """Whether more than the service component of a priority may change while a job waits, or is not added up."""
    weights = settings.weights
    varies = weights.target_queue_time or weights.target_xfactor or weights.sp_violation or weights.bypass
    return bool(weights.caps or varies or _by_fairshare(view))


def grows_with_time(settings: Settings) -> bool:
    """Whether priorities of waiting jobs change by time and usage alone, and grow while their slopes are positive."""
    weights = settings.weights
    return not (weights.bypass or weights.sp_violation) and weights.serv >= 0 and weights.target >= 0


@attrs.frozen(eq=False)
class Slope:
    """How the priorities of some waiting jobs grow: whichever was submitted first never has less than the others."""

    key: Hashable
    """The same for all of these jobs."""
    line: tuple[_Parts, float] | None
    """What a priority is made of, with the weight of the service component; None: it is computed in full."""
    floor: bool
    """Whether it is at least 1."""

    def at(self, job: Job, view: ClusterView, now: Seconds) -> int:
        """Return the start priority of one of the jobs now, as `start_priority` does."""
        if self.line is None:
            return start_priority(job, view, now)
        (fixed, minutes, factor, base), weight = self.line
        waited = max(0.0, now - job.submit_at)
        serv = minutes * waited / 60.0
        if factor:
            serv += factor * ((waited + base[0]) / base[1] if base is not _NO_LIMIT else 1.0)
        value = fixed + weight * serv
        if self.floor and value < 1.0:
            value = 1.0
        return int(value if value < _MOST else _MOST)


def slope_of(job: Job, view: ClusterView, settings: Settings) -> Slope:
    """Return how the priority of a waiting job grows, where `grows_with_time` holds."""
    weights, qos, given = settings.weights, qos_of(job, view), job.spec.attributes
    begins = settings.maui or _begins_with_submission(settings) or not job.spec.begin_at
    slopes = (weights.queue_time + qos.qt_weight, weights.xfactor + qos.xf_weight)
    targets = (weights.target_queue_time, weights.target_xfactor, qos.qt_target, qos.xf_target)
    floor = not (settings.enable_negative_priority or settings.reject_negative_priority)
    if not begins or min(*slopes, *targets) < 0:
        return Slope((job.index,), None, floor)  # it grows in a way of its own
    by_hand = job.priority if job.spec.priority is None and 0 < job.priority < _HANDED_OUT else None
    added = given.get("system_priority"), given.get("relative_priority"), by_hand, "RUNNOW" in qos.flags
    if not _varies(view, settings):
        parts = _parts(job, view, settings)
        plain = not settings.maui and added == (None, None, None, False)
        told_apart = parts if parts[2] else parts[:2]  # limits count where there is an expansion factor
        return Slope((told_apart, added), (parts, weights.serv) if plain else None, floor)
    spec = job.spec
    asked = spec.cpus, job.size, spec.memory_mb_per_cpu, spec.memory_mb_per_node, job.time_limit
    asked_beside = given.get("swap_mb"), given.get("disk_mb")
    return Slope((*names_of(job).values(), qos_name(job, view), asked, asked_beside, added), None, floor)


_NO_LIMIT = (0.0, 1.0)
_Parts = tuple[float, float, float, tuple[float, float]]
"""What does not change with time; weight of a queued minute; of the expansion factor; what that is made of."""


def _parts(job: Job, view: ClusterView, settings: Settings) -> _Parts:
    """Return the parts of the formula that stay the same while a job waits in one partition."""
    known: dict[tuple[str, str], _Parts] = settings.memo.setdefault("parts", {})
    key = (job.id, job.partition.name)
    found = known.get(key)
    if found is None:
        weights, qos, limit = settings.weights, qos_of(job, view), job.time_limit
        others = (term for term in terms(job, view, 0.0) if term.component != "serv")
        found = known[key] = (
            total(others, weights),
            weights.queue_time + qos.qt_weight,
            weights.xfactor + qos.xf_weight,
            (limit, max(weights.xf_min_limit, limit, 1.0)) if limit else _NO_LIMIT,
        )
    return found


def run_priority(job: Job, view: ClusterView, now: Seconds) -> float:
    """Return the priority that orders victims (section 4.2; for Maui as section 17 corrects it)."""
    settings = settings_of(view)
    weights = settings.weights
    start = start_priority(job, view, now)
    since = now - (job.started_at or now)
    if settings.maui:
        return start + weights.usage * weights.usage_execution_time * since
    active = job.ran_until(now)
    procs = processors(job)
    left = max(0.0, (job.time_limit or active) - active)
    percent = math.floor(100 * active / max(1.0, left))
    usage = (
        weights.usage_consumed * procs * active
        + weights.usage_remaining * procs * left
        + weights.usage_percent * percent
        + weights.usage_execution_time * since
    )
    return start + weights.usage * usage


def outranks_at(job: Job, over: int, view: ClusterView, now: Seconds) -> Seconds | None:
    """Return when a waiting job will have a priority above `over`, if it only waits; None: never."""
    if start_priority(job, view, now + _NEVER) <= over:
        return None
    low, high = now, now + _NEVER
    while high - low > 1e-4:
        middle = (low + high) / 2
        if start_priority(job, view, middle) > over:
            high = middle
        else:
            low = middle
    exact = round(high, 3)
    return exact if start_priority(job, view, exact) > over else high

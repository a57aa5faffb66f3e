"""Count what is active per credential against soft and hard limits (moab 3.2 X2, 3.3 step 5, 8.1).

A job beyond a soft limit is not started in its turn, but by backfill, while hard limits allow it; while it
runs it is in SPVIOLATION. Of the jobs that share a limit those that started last are the ones beyond it.
"""

from __future__ import annotations

import functools
import operator
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
from makeway_moab_qos.settings import Credential, Settings

_PER_USER = "_per_user"
_TOTALS = ("max_job", "max_proc", "max_node")
KINDS = (*_TOTALS, *(f"{kind}{_PER_USER}" for kind in _TOTALS))
REASON = "PolicyLimit"
_MOST_KNOWN = 100_000


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
    user: str = ""
    """Whose jobs alone count; empty: all of the group."""


def limits_of(job: Job, view: ClusterView) -> Sequence[Limit]:
    """Return the limits that a job falls under."""
    known: dict[object, tuple[Limit, ...]] = settings_of(view).memo.setdefault("limits_of", {})
    key = (*names_of(job).values(), qos_name(job, view))
    found = known.get(key)
    if found is None:
        found = known[key] = tuple(_limits_of(job, view))
    return found


def _limits_of(job: Job, view: ClusterView) -> Iterator[Limit]:
    settings = settings_of(view)
    ignored = _ignored(job, view)
    for kind, name in names_of(job).items():
        if kind in ignored:
            continue
        own = credential(settings, kind, name)
        fallback = credential(settings, kind, DEFAULT)
        yield from _listed(kind, name or "", own, fallback, job.user)
    qos = qos_name(job, view)
    if qos is not None and "qos" not in ignored:
        yield from _listed("qos", qos, qos_of(job, view), settings.qos.get(DEFAULT, Credential()), job.user)


_IGNORES = {
    "IGNALL": ("user", "group", "account"),
    "IGNUSER": ("user",),
    "IGNGROUP": ("group",),
    "IGNACCOUNT": ("account",),
    "IGNCLASS": ("klass",),
    "IGNQOS": ("qos",),
}


def _ignored(job: Job, view: ClusterView) -> frozenset[str]:
    """Return the credentials whose limits the job's QoS lets it ignore (IGN flags)."""
    found = (_IGNORES.get(flag, ()) for flag in qos_of(job, view).flags)
    return frozenset(kind for kinds in found for kind in kinds)


def _listed(kind: str, name: str, own: Credential, fallback: Credential, user: str) -> Iterator[Limit]:
    shown = "class" if kind == "klass" else kind
    for key in KINDS:
        numbers: tuple[int, ...] = getattr(own, key) or getattr(fallback, key)
        if not numbers:
            continue
        total = key.removesuffix(_PER_USER)
        each = user if total != key else ""
        whose = f"{total.upper().replace('_', '')} of {shown} {name}" + (f" for user {each}" if each else "")
        yield Limit(key, whose, (kind, name), numbers[0], numbers[-1], each)


def any_limits(view: ClusterView) -> bool:
    """Whether any limit is configured at all."""
    return _is_limited(settings_of(view))


def _is_limited(settings: Settings) -> bool:
    known: bool | None = settings.memo.get("any_limits")
    if known is None:
        tables = (settings.qos, settings.user, settings.group, settings.account, settings.klass)
        known = any(getattr(each, key) for table in tables for each in table.values() for key in KINDS)
        settings.memo["any_limits"] = known
    return known


def amount_of(job: Job, kind: str) -> int:
    total = kind.removesuffix(_PER_USER)
    if total == "max_job":
        return 1
    if total == "max_proc":
        return processors(job)
    return len(job.allocation.node_indices) if job.allocation is not None else job.size


def _in_group(job: Job, limit: Limit, view: ClusterView) -> bool:
    kind, name = limit.group
    if limit.user and job.user != limit.user:
        return False
    return (qos_name(job, view) if kind == "qos" else names_of(job)[kind]) == name


def used(limit: Limit, jobs: Sequence[Job], view: ClusterView) -> int:
    """Return what `jobs` use of a limit."""
    if jobs is view.active and not view.made_way:
        return view.book(InUse).cell(limit.kind, *limit.group, limit.user).used
    return added_up(limit, jobs, view)


def added_up(limit: Limit, jobs: Sequence[Job], view: ClusterView) -> int:
    """Return the same, job by job."""
    return sum(amount_of(job, limit.kind) for job in jobs if _in_group(job, limit, view))


@attrs.define(eq=False)
class Cell:
    """What all active jobs use of one kind of limit of one credential."""

    used: int = 0


class InUse:
    """What all active jobs use of each limit, kept as they come and go. A book (`makeway.model.Book`)."""

    def __init__(self, view: ClusterView) -> None:
        self.said: dict[object, str] = {}
        """What was said of the active jobs to those who want the same; filled by `_said`."""
        self.gone = 0
        """How many active jobs have left."""
        self.unmarked: list[Job] = []
        """Jobs that have started since these were last looked at."""
        self.changed: dict[Cell, None] = {}
        """Cells that have changed since it was last emptied."""
        self.before: dict[Cell, int] = {}
        """What cells had before they were changed, since it was last emptied."""
        self._wants: dict[int, tuple[tuple[object, ...], tuple[int, ...]]] = {}
        """By place in the job table: what it depends on, and what `wants_of` said."""
        self._cells: dict[tuple[str, str, str | None, str], Cell] = {}
        self._parts: dict[str, list[tuple[Cell, int]]] = {}
        """What each active job adds, by its id."""
        settings = settings_of(view)
        tables = {name: getattr(settings, name) for name in ("user", "group", "account", "klass", "qos")}
        self._counted = {
            name: [kind for kind in KINDS if any(getattr(each, kind) for each in table.values())]
            for name, table in tables.items()
        }
        """Kind of credential -> the kinds of limits that any of them has."""

    def cell(self, kind: str, whose: str, name: str | None, user: str = "") -> Cell:
        """Return what is used of a kind of limit of one credential, by one user if it is for each."""
        key = kind, whose, name, user
        found = self._cells.get(key)
        if found is None:
            found = self._cells[key] = Cell()
        return found

    def started(self, job: Job, view: ClusterView) -> None:
        """Count a job that has been given its nodes."""
        self.unmarked.append(job)
        part = self._parts[job.id] = []
        before, changed = self.before, self.changed
        for whose, name in (*names_of(job).items(), ("qos", qos_name(job, view))):
            for kind in self._counted[whose]:
                each = job.user if kind.endswith(_PER_USER) else ""
                cell, amount = self.cell(kind, whose, name, each), amount_of(job, kind)
                before.setdefault(cell, cell.used)
                cell.used += amount
                changed[cell] = None
                part.append((cell, amount))
        self.said.clear()

    def left(self, job: Job, view: ClusterView) -> None:
        """Count it no longer."""
        del view
        before, changed = self.before, self.changed
        for cell, amount in self._parts.pop(job.id):
            before.setdefault(cell, cell.used)
            cell.used -= amount
            changed[cell] = None
        self.gone += 1
        self.said.clear()

    def wants_of(self, job: Job, view: ClusterView) -> tuple[int, ...]:
        """Return the same for jobs that fall under the same limits and want as much."""
        by = job, job.spec, job.partition, job.account, job.size, job.allocation
        known = self._wants.get(job.index)
        if known is not None and all(map(operator.is_, known[0], by)):
            return known[1]
        if len(self._wants) > _MOST_KNOWN:
            self._wants.clear()
        found = (id(limits_of(job, view)), *(amount_of(job, kind) for kind in KINDS))
        self._wants[job.index] = by, found
        return found


def beyond_soft(job: Job, view: ClusterView) -> str:
    """Say which soft limit a waiting job would be beyond; empty: none."""
    return _beyond(job, view.active, view, hard=False)


def are_beyond_soft(jobs: Sequence[Job], view: ClusterView) -> Iterator[bool]:
    """Yield of each waiting job whether it would be beyond a soft limit."""
    active = view.active
    if view.made_way:
        yield from (bool(_first_beyond(job, active, view, hard=False)) for job in jobs)
        return
    book = view.book(InUse)
    for job in jobs:
        yield bool(_said(job, book, active, view, hard=False))


def _beyond(job: Job, jobs: Sequence[Job], view: ClusterView, *, hard: bool) -> str:
    if jobs is not view.active or view.made_way:
        return _first_beyond(job, jobs, view, hard=hard)
    return _said(job, view.book(InUse), jobs, view, hard=hard)


def _said(job: Job, book: InUse, active: Sequence[Job], view: ClusterView, *, hard: bool) -> str:
    """Return the same for all that fall under the same limits and want as much, until a job comes or goes."""
    key = hard, book.wants_of(job, view)
    found = book.said.get(key)
    if found is None:
        found = book.said[key] = _first_beyond(job, active, view, hard=hard)
    return found


def _first_beyond(job: Job, jobs: Sequence[Job], view: ClusterView, *, hard: bool) -> str:
    for limit in limits_of(job, view):
        most = limit.hard if hard else limit.soft
        taken = used(limit, jobs, view)
        if taken + amount_of(job, limit.kind) > most:
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
def kept_out(job: Job, view: ClusterView, now: Seconds) -> Blocked | None:
    """Return what keeps a job out; None: nothing does."""
    settings = settings_of(view)
    if settings.reject_negative_priority and start_priority(job, view, now) < 0:
        detail = "its priority is negative (REJECTNEGPRIOJOBS)"
        return Blocked(reason="NegativePriority", resource="priority", detail=detail)
    deferred = deferred_until(job, view) if settings.defer_time else None
    if deferred is not None and now < deferred:
        detail = f"QoS {job.spec.qos} is not accessible; deferred for {deferred - now:g} s more"
        return Blocked(reason="Deferred", resource="qos", detail=detail, ask_again_at=deferred)
    if not _is_limited(settings):
        return None
    detail = _beyond(job, view.active, view, hard=True)
    if not detail and not settings.backfills:
        detail = beyond_soft(job, view)
    return _answer(detail) if detail else None


@functools.lru_cache(maxsize=1000)
def _answer(detail: str) -> Blocked:
    """Return what those hear who are beyond a limit: many hear the same."""
    return Blocked(reason=REASON, resource="policy", detail=detail)


def deferred_until(job: Job, view: ClusterView) -> Seconds | None:
    """Return the end of the deferral of a job that asked for a QoS it may not use; None: it is not deferred."""
    settings = settings_of(view)
    defers = bool(settings.defer_time) and settings.choices.defer_refused_qos
    if not defers or job.spec.qos is None or not access(job, view).refused:
        return None
    return job.spec.submit_at + settings.defer_time

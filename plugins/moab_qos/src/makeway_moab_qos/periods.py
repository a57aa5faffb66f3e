"""Say when a standing reservation is active (SRCFG PERIOD, STARTTIME, ENDTIME, DAYS).

Times of day and days of the week need a calendar: the workload's own (Unix times, so UTC), or `monday_at`, the
second of the replay at which a Monday begins; without either the replay begins on a Monday at midnight.
"""

from __future__ import annotations

from collections.abc import Iterator

from makeway.model import ClusterView, Seconds
from makeway_moab_qos.credentials import settings_of
from makeway_moab_qos.settings import Standing

DAY = 86400.0
WEEK = 7 * DAY
DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_THURSDAY = 3 * DAY
"""The day on which Unix time began."""


def is_active(standing: Standing, view: ClusterView, at: Seconds) -> bool:
    """Whether a reservation is active at an instant."""
    if standing.always:
        return True
    now = _in_week(view, at)
    return any(begin <= now < end for begin, end in _windows(standing))


def next_change(standing: Standing, view: ClusterView, at: Seconds) -> Seconds | None:
    """Return when a reservation next begins or ends; None: never."""
    if standing.always:
        return None
    now = _in_week(view, at)
    later = [edge - now for window in _windows(standing) for edge in window if edge > now]
    return at + min(later) if later else None


def concerns(standing: Standing, view: ClusterView, begin: Seconds, length: Seconds | None) -> bool:
    """Whether a reservation is active at any time from `begin` on for `length` (None: for ever)."""
    if is_active(standing, view, begin):
        return True
    start = next_change(standing, view, begin)
    return start is not None and (length is None or start < begin + length)


def _in_week(view: ClusterView, at: Seconds) -> Seconds:
    return (at - _monday(view)) % WEEK


def _monday(view: ClusterView) -> Seconds:
    """Return the second of the replay at which some Monday begins."""
    settings = settings_of(view)
    if settings.monday_at is not None:
        return settings.monday_at
    known: dict[str, Seconds] = settings.memo.setdefault("calendar", {})
    if "monday" not in known:
        dated = next((job.spec for job in view.pending if job.spec.wall_submit is not None), None)
        if dated is None:
            dated = next((job.spec for job in view.active if job.spec.wall_submit is not None), None)
        if dated is None or dated.wall_submit is None:
            return 0.0
        began = dated.wall_submit - dated.submit_at  # Unix time of the start of the replay
        known["monday"] = -((began + _THURSDAY) % WEEK)
    return known["monday"]


def _windows(standing: Standing) -> Iterator[tuple[Seconds, Seconds]]:
    """Yield when it is active, in seconds since Monday, for the week before, this one and the next."""
    if standing.period == "WEEK":
        # A week of Maui's begins on Sunday.
        spans = [(standing.starts - DAY, min(standing.ends, WEEK) - DAY)]
    else:
        listed = standing.days or DAYS
        ends = standing.ends if standing.ends > standing.starts else standing.ends + DAY
        ends = min(ends, standing.starts + DAY)
        spans = [(DAYS.index(day) * DAY + standing.starts, DAYS.index(day) * DAY + ends) for day in listed]
    for shift in (-WEEK, 0.0, WEEK):
        for begin, end in spans:
            yield begin + shift, end + shift

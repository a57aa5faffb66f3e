"""Protect jobs by the clock (``protect/calendar``): some jobs in some hours, and all that end soon.

A rule names accounts, users or jobs, and the hours of the week in which no job may displace them. Besides,
a job within so many minutes of its time limit may be protected, whatever the hour. Hours are those of the
site; where the workload has no wall-clock times, ``start`` says when the replay begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway.errors import ConfigError, Finding, Problem
from makeway.hookspecs import hookimpl
from makeway.model import ClusterView, Job, Protection, Seconds
from makeway_protect_calendar.hours import open_until
from makeway_protect_calendar.settings import Rule, Settings, WithoutClock, local_time

NAME = "protect/calendar"
PATH = f'policy.settings."{NAME}"'


@hookimpl
def makeway_settings() -> type[Settings]:
    """Name the settings class."""
    return Settings


@hookimpl
def makeway_check(settings: Mapping[type[Any], Any]) -> list[Finding]:
    """Say what may not mean what it seems to."""
    own: Settings = settings[Settings]
    found = []
    timed = [at for at, rule in enumerate(own.rule) if rule.hours]
    if timed and own.start is None and own.without_clock is WithoutClock.ERROR:
        text = "hours count for workloads with wall-clock times only; 'start' says when another replay begins"
        found.append(Finding(level="note", where=f"{PATH}.rule[{timed[0]}].hours", message=text))
    if not own.rule and not own.last_minutes:
        text = "it protects no job: there is neither a rule nor last_minutes"
        found.append(Finding(level="warning", where=PATH, message=text))
    return found


@hookimpl
def makeway_protect(
    preemptor: Job, candidates: Sequence[Job], view: ClusterView, now: Seconds
) -> dict[str, str | Protection]:
    """Protect jobs that a rule covers at this hour, and those whose time limit is near; the first reason counts."""
    settings = view.settings(Settings)
    clock = _Clock(settings, (preemptor, *candidates), now)
    safe: dict[str, str | Protection] = {}
    for job in candidates:
        reason = _by_rule(job, settings.rule, clock) or _by_end(job, settings, now)
        if reason is not None:
            safe[job.id] = reason
    return safe


def _by_rule(job: Job, rules: Sequence[Rule], clock: _Clock) -> Protection | None:
    for rule in rules:
        if not rule.is_about(job):
            continue
        if not rule.hours:
            return Protection(reason=f"calendar rule {rule.name!r}: at all hours")
        found = clock.open(rule)
        if found is not None:
            return found
    return None


def _by_end(job: Job, settings: Settings, now: Seconds) -> str | None:
    """Say that the time limit of `job` is near; time spent suspended does not count against the limit."""
    if not settings.last_minutes or job.time_limit is None:
        return None
    left = job.time_limit - job.ran_until(now)
    if left > 60.0 * settings.last_minutes:
        return None
    return f"calendar: {max(0.0, left) / 60:.4g} min to its time limit (last_minutes = {settings.last_minutes:g})"


class _Clock:
    """Tells which hours are open at one instant; asks for the time only if a rule needs it."""

    def __init__(self, settings: Settings, jobs: Sequence[Job], now: Seconds) -> None:
        self._settings = settings
        self._jobs = jobs
        self._now = now

    def open(self, rule: Rule) -> Protection | None:
        """Return the protection by a rule with hours; None: they are not open."""
        unix = self._unix()
        if unix is None:
            if self._settings.without_clock is WithoutClock.CLOSED:
                return None
            if self._settings.without_clock is WithoutClock.OPEN:
                return Protection(reason=f"calendar rule {rule.name!r}: no clock, so at all hours")
            raise ConfigError(PATH, [Problem(f"rule {rule.name!r}", _NO_CLOCK)])
        end = open_until(rule.hours, local_time(unix, self._settings.zone))
        if end is None:
            return None
        shown = f"{end:%a %Y-%m-%d %H:%M} {self._settings.time_zone}"
        until = self._now + end.timestamp() - unix
        return Protection(reason=f"calendar rule {rule.name!r}: until {shown}", until=until)

    def _unix(self) -> float | None:
        """Return the time as Unix time: by the workload, else by ``start``; None: nothing says."""
        for job in self._jobs:
            if job.spec.wall_submit is not None:
                return job.spec.wall_submit - job.spec.submit_at + self._now
        begin = self._settings.starts_at
        return None if begin is None else begin + self._now


_NO_CLOCK = (
    "its hours cannot be told, for the workload has no wall-clock times; "
    "say when the replay begins (start = 2026-03-02T00:00:00), "
    "or set without_clock to 'closed' (protect no job by hours) or 'open' (at all hours)"
)

"""Hold and check what the site says: ``[policy.settings."protect/calendar"]``."""

from __future__ import annotations

import enum
import zoneinfo
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from fnmatch import fnmatchcase
from typing import Any

import attrs

from makeway.errors import nearest
from makeway.model import Job
from makeway_protect_calendar.hours import window_of


class WithoutClock(enum.Enum):
    """What hours mean where nothing says what time it is."""

    ERROR = "error"
    """The run ends with an error that says what to do."""
    CLOSED = "closed"
    """No hours are ever open: rules with hours protect no job."""
    OPEN = "open"
    """All hours are open: rules with hours protect always."""


def _all_windows(instance: Any, attribute: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    del instance
    for at, text in enumerate(value):
        try:
            window_of(text)
        except ValueError as error:
            raise ValueError(f"{attribute.name}[{at}]: {error}") from None


def _zone(instance: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    del instance
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        close = nearest(value, zoneinfo.available_timezones())
        text = f"no time zone named {value!r}; allowed: names such as 'UTC', 'Europe/Berlin'{close}"
        raise ValueError(f"{attribute.name}: {text}") from None


def _moment(value: Any) -> datetime | None:
    """Read a date and time, as TOML has them or as text."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        text = f"start: got {value!r}; allowed: a date and time, as 2026-03-02T00:00:00"
        raise ValueError(text) from None


@attrs.frozen(kw_only=True)
class Rule:
    """``[[policy.settings."protect/calendar".rule]]``: which jobs are safe, and when."""

    name: str
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    """Ids or names of jobs. Shell patterns are understood in all three; a list that is empty asks for nothing."""
    hours: tuple[str, ...] = attrs.field(default=(), validator=_all_windows)
    """Empty: at all hours."""

    def __attrs_post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("name: it is shown to people; allowed: some text")
        if not (self.accounts or self.users or self.jobs):
            text = 'it names no job; add accounts, users or jobs (users = ["*"] is all of them)'
            raise ValueError(f"rule {self.name!r}: {text}")

    def is_about(self, job: Job) -> bool:
        """Whether `job` is of the accounts, users and jobs named."""
        return (
            _any(self.accounts, job.account or "")
            and _any(self.users, job.user)
            and (_any(self.jobs, job.id) or _any(self.jobs, job.spec.name))
        )


def _any(patterns: Iterable[str], name: str) -> bool:
    """Whether one of `patterns` fits; none at all fit everything."""
    listed = tuple(patterns)
    return not listed or any(fnmatchcase(name, pattern) for pattern in listed)


@attrs.frozen(kw_only=True)
class Settings:
    """``[policy.settings."protect/calendar"]``."""

    time_zone: str = attrs.field(default="UTC", validator=_zone)
    """Of the hours."""
    start: Any = attrs.field(default=None, converter=_moment)
    """When the replay begins, for workloads without wall-clock times."""
    without_clock: WithoutClock = WithoutClock.ERROR
    last_minutes: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    """A job that has no more than so many minutes left until its time limit is safe; 0: none is."""
    rule: tuple[Rule, ...] = ()

    @property
    def zone(self) -> tzinfo:
        """Time zone of the hours."""
        return zoneinfo.ZoneInfo(self.time_zone)

    @property
    def starts_at(self) -> float | None:
        """The beginning of the replay as Unix time; None: not said."""
        if self.start is None:
            return None
        moment: datetime = self.start
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=self.zone)).timestamp()


def local_time(unix: float, zone: tzinfo) -> datetime:
    """Return the time at the site."""
    return datetime.fromtimestamp(unix, UTC).astimezone(zone)

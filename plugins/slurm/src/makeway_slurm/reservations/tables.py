"""Read the tables of ``cluster.attributes.reservations``, in the words of ``scontrol show reservation``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.errors import ConfigError, Problem, nearest
from makeway.hostlist import expand_hostlist
from makeway.model import Cluster, Seconds
from makeway_slurm.readers.sacct_rows import unix_time
from makeway_slurm.readers.values import parse_time

ATTRIBUTE = "reservations"
"""Key of ``[cluster.attributes]`` that holds the tables."""
_WHERE = f"cluster.attributes.{ATTRIBUTE}"
_KEYS = (
    *("ReservationName", "StartTime", "EndTime", "Duration", "Nodes", "PartitionName", "Users", "Accounts"),
    *("Flags", "MaxStartDelay", "created", "deleted"),
)
_PURGE = "PURGE_COMP"
_PURGE_AFTER: Seconds = 300.0
"""Seconds without a job after which PURGE_COMP takes a reservation away, where it does not say so itself."""
DOCUMENTED = frozenset(("ANY_NODES", "DAILY", "HOURLY", "MAGNETIC", _PURGE, "TIME_FLOAT", "WEEKLY"))
"""Flags that are modelled as Slurm's manual describes them; they are not measured."""
UNMODELLED = ("WEEKDAY", "WEEKEND", "NO_HOLD_JOBS_AFTER_END", "REPLACE", "REPLACE_DOWN")
"""Flags that may decide something, and do not here."""
_NONE = ("", "(null)", "none", "n/a")
REPEATED: Mapping[str, float] = {"HOURLY": 3600.0, "DAILY": 86400.0, "WEEKLY": 7 * 86400.0}
"""Flag -> after how many seconds the window comes again."""


@attrs.frozen(kw_only=True)
class Instant:
    """A time as a table gives it."""

    at: float
    """Seconds of the replay, or Unix time."""
    dated: bool = False
    """Whether it is Unix time."""

    def seconds(self, epoch: float | None) -> Seconds:
        """Return it in seconds of the replay; before the epoch is known, dates lie beyond all time."""
        if not self.dated:
            return self.at
        return self.at - epoch if epoch is not None else math.inf


@attrs.frozen(kw_only=True)
class Reservation:
    """One table."""

    name: str
    start: Instant
    end: Instant
    nodes: NodeBits
    users: frozenset[str] = frozenset()
    """Empty together with `accounts`: not said, so that each job that asks for it is let in."""
    accounts: frozenset[str] = frozenset()
    not_users: frozenset[str] = frozenset()
    not_accounts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    purged_after: Seconds = math.inf
    """Seconds without a job after which it is taken away (PURGE_COMP)."""
    start_delay: str = ""
    """MaxStartDelay, which is not modelled; empty: not set."""
    created: Seconds = -math.inf
    """Since when it is known."""
    deleted: Seconds = math.inf

    @property
    def any_nodes(self) -> bool:
        """Whether its jobs may run on all nodes."""
        return bool(self.flags & {"FLEX", "ANY_NODES", "LICENSE_ONLY"})

    @property
    def floats(self) -> bool:
        """Whether it always begins so many seconds from now, and so never."""
        return "TIME_FLOAT" in self.flags

    @property
    def repeats(self) -> Seconds:
        """After how many seconds it comes again; 0: it does not."""
        return next((each for flag, each in REPEATED.items() if flag in self.flags), 0.0)

    def as_measured(self) -> Reservation:
        """Return it without the flags that are known from the manual only."""
        return attrs.evolve(self, flags=self.flags - DOCUMENTED, purged_after=math.inf)

    def admits(self, user: str, account: str | None) -> bool:
        """Whether a user may use it (no. 5)."""
        if user in self.not_users or (account or "").lower() in self.not_accounts:
            return False
        if not self.users and not self.accounts:
            return True
        return user in self.users or (account or "").lower() in self.accounts


def reservations_of(cluster: Cluster) -> tuple[Reservation, ...]:
    """Return the reservations of a cluster.

    :raises ConfigError: with all that is wrong with the tables.
    """
    tables = cluster.attributes.get(ATTRIBUTE, ())
    problems: list[Problem] = []
    found: list[Reservation] = []
    if not isinstance(tables, list | tuple):
        raise ConfigError("configuration", [Problem(_WHERE, "expected a list of tables")])
    for at, table in enumerate(tables):
        try:
            found.append(_read(table, cluster))
        except ValueError as error:
            problems.append(Problem(f"{_WHERE}[{at}]", str(error)))
    if problems:
        raise ConfigError("configuration", problems)
    return tuple(found)


def _read(table: Any, cluster: Cluster) -> Reservation:
    if not isinstance(table, Mapping):
        raise ValueError(f"got {table!r:.40}; expected a table")
    for key in table:
        if key not in _KEYS:
            raise ValueError(f"got {key!r}; allowed: {', '.join(_KEYS)}{nearest(str(key), _KEYS)}")
    name = str(table.get("ReservationName", "")).strip()
    if not name:
        raise ValueError("ReservationName is missing")
    words = [word.upper().partition("=") for word in _words(table.get("Flags"))]
    flags = frozenset(word for word, _, _ in words)
    start = _instant(table, "StartTime")
    end = _end(table, start)
    if end.dated == start.dated and end.at < start.at:
        raise ValueError(f"EndTime: got {table.get('EndTime')!r}, which is before StartTime")
    users, not_users = _who(table.get("Users"), fold=False)
    accounts, not_accounts = _who(table.get("Accounts"), fold=True)
    return Reservation(
        name=name,
        start=start,
        end=end,
        nodes=_nodes(table, flags, cluster),
        users=users,
        not_users=not_users,
        accounts=accounts,
        not_accounts=not_accounts,
        flags=flags,
        purged_after=_purged_after(next((value for word, _, value in words if word == _PURGE), None)),
        start_delay="".join(_words(table.get("MaxStartDelay"))),
        created=_seconds(table, "created", -math.inf),
        deleted=_seconds(table, "deleted", math.inf),
    )


def _purged_after(value: str | None) -> Seconds:
    """Read the time of ``PURGE_COMP=00:05:00``; None: the flag is not there."""
    if value is None:
        return math.inf
    try:
        seconds = parse_time(value) if value else _PURGE_AFTER
    except ValueError as error:
        raise ValueError(f"Flags: {_PURGE}: {error}") from None
    return math.inf if seconds is None else float(seconds)


def _words(value: object) -> list[str]:
    words = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    return [word for word in (str(each).strip() for each in words) if word.lower() not in _NONE]


def _who(value: object, *, fold: bool) -> tuple[frozenset[str], frozenset[str]]:
    """Return who may, and who may not (``-eve``)."""
    words = [word.lower() if fold else word for word in _words(value)]
    may = frozenset(word for word in words if not word.startswith("-"))
    return may, frozenset(word[1:] for word in words if word.startswith("-"))


def _instant(table: Mapping[str, Any], key: str) -> Instant:
    value = table.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Instant(at=float(value))
    at = unix_time(str(value)) if value is not None else None
    if at is None:
        raise ValueError(f"{key}: got {value!r:.40}; expected seconds, or a date like 2024-05-01T08:00:00")
    return Instant(at=at, dated=True)


def _end(table: Mapping[str, Any], start: Instant) -> Instant:
    if "EndTime" in table:
        return _instant(table, "EndTime")
    value = table.get("Duration")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Instant(at=start.at + value, dated=start.dated)
    try:
        seconds = parse_time(str(value)) if value is not None else 0
    except ValueError as error:
        raise ValueError(f"Duration: {error}") from None
    if value is None:
        raise ValueError("EndTime and Duration are missing; one of them is needed")
    return Instant(at=math.inf if seconds is None else start.at + seconds, dated=start.dated)


def _seconds(table: Mapping[str, Any], key: str, default: Seconds) -> Seconds:
    value = table.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{key}: got {value!r:.40}; expected seconds")
    return float(value)


def _nodes(table: Mapping[str, Any], flags: frozenset[str], cluster: Cluster) -> NodeBits:
    text = str(table.get("Nodes", "")).strip()
    if text.upper() == "ALL" or (not text and "ALL_NODES" in flags):
        partition = str(table.get("PartitionName", "")).strip()
        for each in cluster.partitions:
            if partition.lower() not in _NONE and each.name == partition:
                return each.nodes
        return bitmap.of(range(len(cluster.nodes)))
    if text.lower() in _NONE:
        return 0
    index = {node.name: node.index for node in cluster.nodes}
    named = expand_hostlist(text)
    missing = [name for name in named if name not in index]
    if len(missing) == len(named):
        raise ValueError(f"Nodes: got {missing[0]!r}, which is no node{nearest(missing[0], index)}")
    return bitmap.of([index[name] for name in named if name in index])

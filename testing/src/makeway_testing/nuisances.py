"""Change what no decision may depend on: the clock, the order of sets, the places of jobs in memory."""

from __future__ import annotations

import contextlib
import datetime
import sys
import time
from collections.abc import Iterator
from typing import Any

import attrs

from makeway.dependencies import dependency, of_job
from makeway.model import Job
from makeway_testing.strategies import Scenario

CLOCKS = (86_400.0, 1_000_000_001.25, 4_000_000_123.75)
"""Instants that differ in year, weekday, hour, second and fraction."""


# ---------------------------------------------------------------------------------------- the clock
class Clock:
    """The computer's clock, standing still: ``with Clock(0.0) as read`` has the names of what was read."""

    def __init__(self, instant: float, package: str = "") -> None:
        """Prepare it.

        :param package: its modules are searched for clocks that they imported by name.
        """
        self.instant = instant
        self._read: set[str] = set()
        fakes = {id(getattr(time, name)): fake for name, fake in _times(instant, self._read).items()}
        fakes[id(datetime.datetime)] = _datetime_at(instant, self._read)
        fakes[id(datetime.date)] = _date_at(instant, self._read)
        self._places = [
            (place, name, value, fakes[id(value)])
            for place in (time, datetime, *_modules_of(package))
            for name, value in vars(place).items()
            if id(value) in fakes
        ]

    def __enter__(self) -> set[str]:
        self._read.clear()
        for place, name, _, fake in self._places:
            setattr(place, name, fake)
        return self._read

    def __exit__(self, *error: object) -> None:
        for place, name, value, _ in self._places:
            setattr(place, name, value)


def _modules_of(package: str) -> list[Any]:
    return [
        module
        for name, module in list(sys.modules.items())
        if package and (name == package or name.startswith(f"{package}."))
    ]


def _times(instant: float, read: set[str]) -> dict[str, Any]:
    def seconds(name: str) -> Any:
        def fake() -> float:
            read.add(f"time.{name}")
            return instant

        return fake

    def nanoseconds(name: str) -> Any:
        def fake() -> int:
            read.add(f"time.{name}")
            return int(instant * 1e9)

        return fake

    def broken_down(name: str) -> Any:
        real = getattr(time, name)

        def fake(secs: float | None = None) -> Any:
            if secs is None:
                read.add(f"time.{name}")
            return real(instant if secs is None else secs)

        return fake

    plain = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    found = {name: seconds(name) for name in plain}
    found |= {f"{name}_ns": nanoseconds(f"{name}_ns") for name in plain}
    return found | {name: broken_down(name) for name in ("localtime", "gmtime", "ctime")}


class _LikeDatetime(type):
    """Lets `isinstance` with the fake accept what the real class made."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _datetime_at(instant: float, read: set[str]) -> Any:
    real = datetime.datetime

    class Datetime(datetime.datetime, metaclass=_LikeDatetime):
        """A datetime whose now never changes."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            read.add("datetime.now")
            return real.fromtimestamp(instant, tz)

        @classmethod
        def utcnow(cls) -> Any:
            read.add("datetime.utcnow")
            return real.fromtimestamp(instant, datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            read.add("datetime.today")
            return real.fromtimestamp(instant)

    return Datetime


def _date_at(instant: float, read: set[str]) -> Any:
    real = datetime.date

    class Date(datetime.date, metaclass=_LikeDatetime):
        """A date whose today never changes."""

        @classmethod
        def today(cls) -> Any:
            read.add("date.today")
            return real.fromtimestamp(instant)

    return Date


# --------------------------------------------------------------------------- the order of sets
PREFIXES = ("k~", "Qx~", "b1c2d3~")
"""Put before every job id, they keep the order of ids and change that of sets of ids."""


def renamed(scenario: Scenario, prefix: str) -> Scenario:
    """Return the same scenario with `prefix` before every job id."""
    known = {spec.id for spec in scenario.specs}
    specs = tuple(
        attrs.evolve(
            spec,
            id=prefix + spec.id,
            het_id=None if spec.het_id is None else prefix + spec.het_id,
            depends_on=tuple(
                of_job(one, prefix + dependency(one).job) if dependency(one).job in known else one
                for one in spec.depends_on
            ),
        )
        for spec in scenario.specs
    )
    lines = []
    for line in scenario.commands.splitlines():
        words = line.split()
        if len(words) > 2 and words[2] in known:
            words[2] = prefix + words[2]
        lines.append(" ".join(words))
    return attrs.evolve(scenario, specs=specs, commands="\n".join(lines))


@contextlib.contextmanager
def scattered(seed: int, size: int = 256) -> Iterator[None]:
    """Have new jobs lie in memory in another order, and so sets of jobs walked in another order."""
    dummies: list[Any] = [object.__new__(Job) for _ in range(size)]
    place = seed * 7919 + 1
    for _ in range(size // 2):
        place = (place * 1_103_515_245 + 12_345) % 2**31
        dummies[place % size] = None
    try:
        yield
    finally:
        dummies.clear()

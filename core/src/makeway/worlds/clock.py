"""Tell the time of a run: seconds since its start, on a clock that never jumps.

Limits and intervals are counted on the monotonic clock, which neither people nor time servers change and which stands
still while the machine sleeps, as jobs do. The wall clock is kept beside it for people, and compared with it, so that
sleeps and changes of the clock are noticed.
"""

from __future__ import annotations

import functools
import threading
import time
from typing import Protocol

import attrs

from makeway.model import Seconds


class Clock(Protocol):
    """The clock of a run."""

    def now(self) -> Seconds:
        """Return the seconds since the start of the run; never less than before."""

    def wall(self) -> float:
        """Return the instant as Unix time, for people."""

    def slept(self) -> Seconds:
        """Return how long the machine has slept so far, in which `now` stood still."""

    def wait(self, until: Seconds | None) -> None:
        """Wait until `until`, or until `wake`; None: until `wake`."""

    def wake(self) -> None:
        """End a `wait`, the next one if none is under way; called from any thread."""


@attrs.define(eq=False)
class LiveClock:
    """The computer's clock."""

    start: Seconds = 0.0
    """What `now` says at first: where the run stood when an earlier daemon ended."""
    _origin: float = attrs.field(factory=time.monotonic, init=False)
    _woken: threading.Event = attrs.field(factory=threading.Event, init=False)
    _behind: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._behind = _boot_time() - time.monotonic()

    def now(self) -> Seconds:
        """Return the seconds since the start of the run."""
        return self.start + time.monotonic() - self._origin

    def wall(self) -> float:
        """Return the instant as Unix time."""
        return time.time()

    def slept(self) -> Seconds:
        """Return how long the machine has slept since this clock was made."""
        return max(0.0, _boot_time() - time.monotonic() - self._behind)

    def wait(self, until: Seconds | None) -> None:
        """Wait until `until`, or until `wake`."""
        self._woken.wait(None if until is None else max(0.0, until - self.now()))
        self._woken.clear()

    def wake(self) -> None:
        """End a `wait`."""
        self._woken.set()


def uptime() -> tuple[str, float]:
    """Return which boot of the machine this is, and a clock that runs from it, which no one sets and a sleep stops.

    The boot is empty where it has no name.
    """
    return _boot(), time.monotonic()


@functools.cache
def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _boot_time() -> float:
    """Return the clock that goes on while the machine sleeps; where there is none, the one that does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class FakeClock:
    """A clock that a test moves; waiting moves it too."""

    def __init__(self, start: Seconds = 0.0, wall: float = 1_000_000_000.0) -> None:
        self._now = start
        self._wall = wall
        self._slept = 0.0

    def now(self) -> Seconds:
        """Return the seconds since the start of the run."""
        return self._now

    def wall(self) -> float:
        """Return the instant as Unix time."""
        return self._wall

    def slept(self) -> Seconds:
        """Return how long the machine has slept."""
        return self._slept

    def wait(self, until: Seconds | None) -> None:
        """Move on to `until` at once."""
        if until is not None and until > self._now:
            self.advance(until - self._now)

    def wake(self) -> None:
        """Do nothing: no wait ever lasts."""

    def advance(self, seconds: Seconds) -> None:
        """Let time pass."""
        self._now += seconds
        self._wall += seconds

    def sleep(self, seconds: Seconds) -> None:
        """Let the machine sleep: the wall clock goes on, `now` stands still."""
        self._wall += seconds
        self._slept += seconds

    def set_wall(self, seconds: Seconds) -> None:
        """Let a person or a time server change the wall clock by `seconds`."""
        self._wall += seconds

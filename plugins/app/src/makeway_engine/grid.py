"""Say when what happens at regular intervals is due: passes, sweeps.

A due point is one that has passed, not one that is hit: a real clock is always a little late. A point counts if the
engine asked to be woken for it, or if something happens at that very instant; points that nothing waited for, and
those that were missed beside the latest one, are not made up for.
"""

from __future__ import annotations

import attrs

from makeway.model import Seconds

_TINY = 1e-6


@attrs.frozen
class Grid:
    """Instants at a regular interval."""

    phase: Seconds
    """One of them."""
    interval: Seconds
    """Between two of them; 0: there is no grid."""

    def has(self, now: Seconds) -> bool:
        """Whether `now` is one of them."""
        offset = (now - self.phase) % self.interval
        return offset < _TINY or self.interval - offset < _TINY

    def after(self, now: Seconds) -> Seconds:
        """Return the first one after `now`."""
        return self.phase + (self._steps(now) + 1) * self.interval

    def latest(self, now: Seconds) -> Seconds:
        """Return the last one that is not after `now`."""
        return self.phase + self._steps(now) * self.interval

    def _steps(self, now: Seconds) -> float:
        return (now - self.phase + _TINY) // self.interval

    def first_from(self, at: Seconds, now: Seconds) -> Seconds:
        """Return the first one not before `at`, and after `now`."""
        later = max(at, now)
        return later if later > now and self.has(later) else self.after(later)

    def reached(self, asked: Seconds | None, now: Seconds) -> Seconds | None:
        """Return the point that counts as reached at `now`; None: there is none.

        :param asked: the point that the engine wanted to be woken for; None: it did not care.
        """
        if self.has(now):
            return now
        if asked is not None and asked <= now:
            return self.latest(now)
        return None

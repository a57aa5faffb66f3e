"""Find the clocks of the two schedulers in what the controller's log shows.

Each wakes once a second by its own clock. A pass takes time, so that a clock falls behind by 0.5 ms a second on an
idle machine, and by up to 7 ms on a busy one: after two minutes a job that has just ended is seen a look earlier.
Newer releases look at the full second. Older recordings do not have the looks; what was started shows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.model import Seconds
from makeway_slurm.recordings.priority.recording import Recording

_LEAD: Seconds = 0.36
"""By how much backfill, or the estimator of sched/builtin, wakes before the main scheduler: 0.27 to 0.39 s."""
_USUAL: Seconds = 0.36
"""Within the second, the usual look of the main scheduler where the log shows no start."""
_USUAL_LAG = 0.0006
"""What a clock falls behind in each second, where too few acts show it."""
_LAGS = (_USUAL_LAG, *(step * 0.0001 for step in range(81)))
_LONG: Seconds = 15.0
"""Acts so far apart show by how much a clock falls behind."""
_ROUNDED: Seconds = 0.005
"""By how much an instant of the log may lie before what it stands for."""
_WITHIN: Seconds = 0.1
"""What comes of one look comes within this time."""


@attrs.frozen
class Looks:
    """The clock of one scheduler: it looks at `phase`, and each `interval` from then on."""

    phase: Seconds
    interval: Seconds

    def later(self, by: Seconds) -> Looks:
        """Return a clock that is so much behind."""
        return Looks((self.phase + by) % self.interval, self.interval)

    def last(self, at: Seconds) -> Seconds:
        """Return the last look up to an instant of the log, which is right to 0.01 s."""
        at += _ROUNDED
        return at - (at - self.phase) % self.interval


def clocks_of(recording: Recording) -> tuple[Looks, Looks]:
    """Return the clock of the main scheduler and that of backfill, or of the estimator of sched/builtin."""
    found = {whose: _between(first, last) for whose, (first, last) in recording.looks.items()}
    if "main" not in found:
        return main_and_backfill(recording.events)
    return found["main"], found.get("backfill") or found["main"].later(-_LEAD)


def _between(first: Seconds, last: Seconds) -> Looks:
    """Return the clock of a scheduler that looked first and last at these instants."""
    interval = (last - first) / max(1, round(last - first)) or 1.0
    return Looks(first % interval, interval)


def main_and_backfill(events: Sequence[Mapping[str, Any]]) -> tuple[Looks, Looks]:
    """Return the clock of the main scheduler and that of backfill.

    Each is the one that explains most of what was started; for the main scheduler also of what was preempted. The
    rest came when victims had left.
    """
    main = _fitted(_of(events, "started", "preempted"))
    backfill = _fitted(_of(events, "started_by_backfill"))
    if main is None:
        main = Looks(_USUAL, 1.0 + _USUAL_LAG) if backfill is None else backfill.later(_LEAD)
    elif backfill is not None and not _is_long(acts := _of(events, "started", "preempted")):
        main = _passing(acts[0], backfill.later(_LEAD).phase)
    return main, main.later(-_LEAD) if backfill is None else backfill


def _is_long(acts: Sequence[Seconds]) -> bool:
    """Whether acts show by how much a clock falls behind."""
    return bool(acts) and acts[-1] - acts[0] >= _LONG


def _passing(act: Seconds, phase: Seconds) -> Looks:
    """Return the clock that began near a phase and came to an act."""
    clocks = [Looks(act % (1.0 + lag), 1.0 + lag) for lag in _LAGS]
    return min(clocks, key=lambda each: abs((each.phase - phase + 0.5) % 1.0 - 0.5))


def _of(events: Sequence[Mapping[str, Any]], *what: str) -> list[Seconds]:
    return sorted(float(event["t"]) for event in events if event.get("what") in what)


def _fitted(acts: Sequence[Seconds]) -> Looks | None:
    """Return the clock that explains most of some acts, at best soon after its looks; None: there are none."""
    best: tuple[int, Seconds] = (0, 0.0)
    found = None
    for lag in _LAGS if _is_long(acts) else (_USUAL_LAG,):
        interval = 1.0 + lag
        for first in acts:
            late = [each for act in acts if (each := (act - first) % interval) <= _WITHIN]
            fit = len(late), -sum(late)
            if fit > best:
                best, found = fit, Looks(first % interval, interval)
    return found

"""Find which running time of a job was thrown away.

The record says how much work a job lost as a whole. What ran before a restart is lost, and the last start too if
there is more; with checkpoints only the end of each start is, in the same proportion. Of a job that preemption ended
the last start is lost, and with it what it never came to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

_TOLERANCE = 1e-6


@attrs.define
class Start:
    """One start of a job, until it ended or had to wait again."""

    begin: float
    end: float
    run: float = 0.0
    """Seconds of running."""
    lost: float = 0.0
    """Seconds of that which were thrown away, at its end."""
    cores: int = 0
    never: float = 0.0
    """Core-seconds that it never came to, for preemption ended it."""


def starts(job: Mapping[str, Any], runs: Sequence[tuple[float, float, int, int]]) -> dict[int, Start]:
    """Return the starts of a job by the number of restarts before.

    :param runs: start, end, restarts and cores of each interval of running.
    """
    found: dict[int, Start] = {}
    for begin, end, restart, cores in runs:
        start = found.setdefault(restart, Start(begin, end))
        start.end = end
        start.run += end - begin
        start.cores = cores
    again = job.get("core_seconds_to_submit_again", 0.0)
    lost = job["core_seconds_lost"] - again
    if again and found:
        final = found[max(found)]
        final.lost = min(final.run, again / final.cores) if final.cores else final.run
        final.never = again - final.lost * final.cores
    if lost <= 0:
        return found
    earlier = [start for restart, start in found.items() if restart < job["restarts"]]
    last = [start for restart, start in found.items() if restart >= job["restarts"]]
    rest = _spread(earlier, lost)
    _spread(last, rest)
    return found


def _spread(over: Sequence[Start], lost: float) -> float:
    """Mark so many core-seconds as lost; return what is left of them."""
    work = sum(start.run * start.cores for start in over)
    if work <= 0 or lost <= _TOLERANCE * work:
        return lost
    share = min(1.0, lost / work)
    for start in over:
        start.lost = start.run * share
    return max(0.0, lost - work)

"""Find where the wall clock stood at second 0 of a recording."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from makeway.model import Seconds
from makeway_slurm.recordings.priority.recording import Recording

_MINUTE: Seconds = 60.0


def minute_phase(recording: Recording) -> Seconds:
    """Return how many seconds past a full minute it was; 0 where nothing in the recording tells.

    Older recordings do not say so. There squeue may have printed by the wall clock when a job started whose start is
    known in seconds from second 0, too.
    """
    if recording.minute_phase is not None:
        return recording.minute_phase
    return next(_of_starts(recording), 0.0)


def _of_starts(recording: Recording) -> Iterator[Seconds]:
    """Yield what each running job in a table of squeue comes to."""
    for table in recording.tables:
        if table.what != "squeue":
            continue
        for row in table.rows:
            seen = recording.jobs.get(row.get("NAME", ""))
            started = seen.last.get("StartTime") if seen is not None else None
            if row.get("ST") != "R" or not isinstance(started, int) or started > table.taken:
                continue
            try:
                printed = datetime.datetime.fromisoformat(row.get("START_TIME", ""))
            except ValueError:
                continue
            yield (printed.minute * _MINUTE + printed.second - started) % _MINUTE

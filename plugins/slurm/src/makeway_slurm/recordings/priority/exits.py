"""Find how long jobs and their nodes took beyond what they sleep.

What a job used is charged in the instant of its end. Once the nodes of a victim are clean, somebody starts there.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from makeway.model import Seconds
from makeway_slurm.recordings.priority.recording import Recording

_USUAL: Seconds = 0.06
"""Where the log charges nothing."""
_MOST: Seconds = 0.3
_EARLY: Seconds = 0.01
_LONGEST_CLEANING: Seconds = 0.5
_PASS: Seconds = 0.01
"""From when nodes are clean to a start on them."""


def exit_times(recording: Recording) -> tuple[Mapping[str, Seconds], Seconds]:
    """Return by how much the jobs whose end the log shows ran longer than they sleep, and what is usual."""
    jobs = {str(entry["name"]): entry for entry in recording.scenario.get("job", ())}
    started: dict[str, Seconds] = {}
    charged: list[tuple[Seconds, str]] = []
    for event in recording.events:
        what = event.get("what")
        if what in ("started", "started_by_backfill"):
            started[str(event["job"])] = float(event["t"])
        elif what == "usage":
            charged.append((float(event["t"]), str(event.get("who", ""))))
    found: dict[str, Seconds] = {}
    for name, at in started.items():
        entry = jobs.get(name)
        if entry is None:  # a task: the log names its array
            continue
        end = at + float(entry.get("runtime", 10.0))
        whose = f"/{entry.get('user', '')}/"
        late = [when - end for when, who in charged if whose in who and -_EARLY <= when - end <= _MOST]
        if late:
            found[name] = max(0.0, late[0])
    return found, statistics.median(found.values()) if found else _USUAL


def cleaning_times(recording: Recording) -> Mapping[str, tuple[Seconds | None, ...]]:
    """Return how long each victim took to leave its nodes, each time that it had to; None: nobody started then."""
    starts = [float(event["t"]) for event in recording.events if event.get("what") == "started"]
    found: dict[str, list[Seconds | None]] = {}
    for event in recording.events:
        if event.get("what") == "preempted":
            killed = float(event["t"])
            soon = [at - killed for at in starts if 0.0 < at - killed <= _LONGEST_CLEANING]
            found.setdefault(str(event["job"]), []).append(max(0.0, soon[0] - _PASS) if soon else None)
    return {name: tuple(times) for name, times in found.items()}


__all__ = ["cleaning_times", "exit_times"]

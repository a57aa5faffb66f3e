"""Find how long jobs and their nodes took beyond what they sleep.

What a job used is charged in the instant of its end. Once the nodes of a victim are clean, another job starts there.
Instants of the log are right to 0.01 s or so: if another starts on a job's nodes at the next look, the job had left
them before.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from makeway.hostlist import expand_hostlist
from makeway.model import Seconds
from makeway_slurm.recordings.priority.looks import Looks, main_and_backfill
from makeway_slurm.recordings.priority.recording import Recording

COMPLETING: Seconds = 0.02
"""From the end of a job until its nodes are clean: what waits is looked at in the next look after that."""

_BEGINS = frozenset(("begun", "started", "started_by_backfill"))
"""What the log says of a start: of the first one of a job surely, of others where the release does."""
_LATEST: Seconds = 5.0
"""What ends later than that had another start, of which the log does not say."""
_USUAL: Seconds = 0.06
"""Where the log charges nothing."""
_MOST: Seconds = 0.3
_EARLY: Seconds = 0.01
_CHARGING: Seconds = 0.002
"""From the end of a job to the line of the log that charges it."""
_LONGEST_CLEANING: Seconds = 0.5
_PASS: Seconds = 0.01
"""From when nodes are clean to a start on them."""
_SOON: Seconds = 0.04
"""By how much a job may have left its nodes before it seems to have ended."""
_PASSING: Seconds = 0.025
"""From a look to the start of a job that is found then."""
_BEFORE: Seconds = 0.001
"""By how much nodes are clean before the look at which a job starts there."""


@attrs.frozen
class _Start:
    """A job that started, or a task: the log names its array."""

    at: Seconds
    look: Seconds
    """The look at which it did."""
    name: str
    nodes: frozenset[str]


def exit_times(recording: Recording) -> tuple[Mapping[str, Seconds], Seconds]:
    """Return by how much the jobs whose end the log shows ran longer than they sleep, and what is usual.

    Of a job that started again the last run counts. Tasks are found by the order in which those of an array started,
    where the log does not tell of starts and ends themselves.
    """
    if recording.looks:
        return _told(recording)
    jobs = {str(entry["name"]): entry for entry in recording.scenario.get("job", ())}
    starts = [start for start in _starts(recording) if start.name in jobs]
    charges = [_charged(recording, start, jobs[start.name]) for start in starts]
    usual = statistics.median([late for late in charges if late is not None] or [_USUAL])
    killed = _killed(recording)
    found: dict[str, list[Seconds | None]] = defaultdict(list)
    for start, late in zip(starts, charges, strict=True):
        end = start.look + float(jobs[start.name].get("runtime", 10.0))
        if any(start.at < at <= end + _MOST for at in killed[start.name]):
            found[start.name].append(None)
            continue
        known = end if late is None else end + late
        clean = _clean(known, end + (usual if late is None else late), start.nodes, starts)
        found[start.name].append(late if clean is None else clean - end)
    return _by_label(recording, found), usual


def _told(recording: Recording) -> tuple[Mapping[str, Seconds], Seconds]:
    """Return the same from what the log says of starts and ends."""
    lasting = {
        str(entry["name"]): float(entry.get("runtime", 10.0)) for entry in recording.scenario.get("job", ())
    }
    began: dict[str, Seconds] = {}
    found: dict[str, Seconds] = {}
    for event in recording.events:
        name, what, at = str(event.get("job", "")), event.get("what"), float(event["t"])
        if what in _BEGINS:
            began[name] = at
        elif what == "preempted":
            began.pop(name, None)
        elif what == "ended" and name in began:
            late = at - began.pop(name) - lasting.get(name.partition("[")[0], math.inf)
            if abs(late) <= _LATEST:
                found[name] = max(0.0, late)
    return found, statistics.median(found.values()) if found else _USUAL


def _killed(recording: Recording) -> Mapping[str, Sequence[Seconds]]:
    """Return when jobs, or tasks of arrays, had to make way."""
    found: dict[str, list[Seconds]] = defaultdict(list)
    for event in recording.events:
        if event.get("what") == "preempted":
            found[str(event["job"]).partition("[")[0]].append(float(event["t"]))
    return found


def _charged(recording: Recording, start: _Start, job: Mapping[str, Any]) -> Seconds | None:
    """Return by how much a job was charged later than it should have ended; None: it was not."""
    end, whose = start.look + float(job.get("runtime", 10.0)), f"/{job.get('user', '')}/"
    for event in recording.events:
        if event.get("what") == "usage" and whose in str(event.get("who", "")):
            late = float(event["t"]) - end - _CHARGING
            if -_EARLY <= late <= _MOST:
                return max(0.0, late)
    return None


def _clean(since: Seconds, left: Seconds, nodes: frozenset[str], starts: Sequence[_Start]) -> Seconds | None:
    """Return when a job left its nodes that seems to have done so too late for those that started on them; None: no.

    :param since: the job had ended by then.
    :param left: when it would have ended.
    """
    for start in starts:
        clean_by = start.look - COMPLETING - _BEFORE
        if start.nodes & nodes and start.at >= since and since - _SOON <= clean_by < left:
            return clean_by
    return None


def _starts(recording: Recording) -> Sequence[_Start]:
    main, backfill = main_and_backfill(recording.events)
    clocks = {"started": main, "started_by_backfill": backfill}
    return [
        _start(event, clock) for event in recording.events if (clock := clocks.get(str(event.get("what"))))
    ]


def _start(event: Mapping[str, Any], clock: Looks) -> _Start:
    at = float(event["t"])
    nodes = frozenset(expand_hostlist(str(event.get("nodes", ""))))
    look = clock.last(at)
    return _Start(at, look if at - look <= _PASSING else at, str(event["job"]).partition("[")[0], nodes)


def _by_label(recording: Recording, found: Mapping[str, Sequence[Seconds | None]]) -> Mapping[str, Seconds]:
    """Return times by the names that jobs and tasks have."""
    labels: dict[str, list[tuple[Seconds, str]]] = defaultdict(list)
    for label, seen in recording.jobs.items():
        name, _, task = label.partition("[")
        at = seen.last.get("StartTime")
        if task and isinstance(at, int):
            labels[name].append((at, label))
    known = {}
    for name, times in found.items():
        if name not in labels:
            if times[-1] is not None:
                known[name] = times[-1]
        elif len(times) == len(labels[name]):
            known.update(
                {
                    label: time
                    for (_, label), time in zip(sorted(labels[name]), times, strict=True)
                    if time is not None
                }
            )
    return known


def cleaning_times(recording: Recording) -> Mapping[str, tuple[Seconds | None, ...]]:
    """Return how long each victim took to leave its nodes, each time that it had to; None: no job started then."""
    starts = [float(event["t"]) for event in recording.events if event.get("what") == "started"]
    found: dict[str, list[Seconds | None]] = {}
    for event in recording.events:
        if event.get("what") == "preempted":
            killed = float(event["t"])
            soon = [at - killed for at in starts if 0.0 < at - killed <= _LONGEST_CLEANING]
            found.setdefault(str(event["job"]), []).append(max(0.0, soon[0] - _PASS) if soon else None)
    return {name: tuple(times) for name, times in found.items()}

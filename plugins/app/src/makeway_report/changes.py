"""Compare two runs job by job: whose waiting changed most, and the first decision that differs.

Waiting is all time pending, after requeues too. Records are read side by side, so that of a million jobs only the
few that changed most are kept.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from makeway_app.judged import Judged, Tally
from makeway_app.report import clock, instant
from makeway_report.record_file import RecordFile
from makeway_report.sentences import told

MOST = 10
"""Jobs that are named."""
Job = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Change:
    """One job whose waiting changed."""

    job: str
    user: str
    before: float
    """Seconds of waiting in the first run."""
    after: float
    """Seconds of waiting in the second run."""
    at: float
    """Instant from which the two runs differ for this job."""
    first: str
    """What happened to it then in the first run."""
    second: str
    """What happened in the second."""


@attrs.frozen(kw_only=True)
class Changes:
    """Two runs, compared."""

    first: str
    """What the first run is called."""
    second: str
    longer: int
    """Jobs that waited longer in the second run."""
    shorter: int
    same: int
    alone: int
    """Jobs of one run only."""
    most: tuple[Change, ...]
    """The largest changes, the largest first."""
    judged: Mapping[str, Judged]
    """Key of a metric -> how it differs, and whether by more than chance."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return attrs.asdict(self)


def compare(
    first: RecordFile,
    second: RecordFile,
    labels: tuple[str, str] | None = None,
    most: int = MOST,
    seed: int = 0,
) -> Changes:
    """Return whose waiting changed most from one run to the other.

    :param labels: what they are called; None: as they say themselves.
    :param most: how many jobs are named.
    :param seed: of the days that are drawn to judge differences.
    """
    counts = dict.fromkeys(("longer", "shorter", "same"), 0)
    largest: list[tuple[float, int, str, Job, Job]] = []
    pairs = _Pairs()
    judging = _Judging(first, second)
    for met, (job_id, before, after) in enumerate(pairs.of(first, second)):
        change = round(waited(after) - waited(before), 6)
        judging.add(job_id, before, after)
        counts["longer" if change > 0 else "shorter" if change < 0 else "same"] += 1
        if change:
            # Of equal changes the job that was met first counts.
            entry = (abs(change), -met, job_id, before, after)
            (heapq.heappush if len(largest) < most else heapq.heappushpop)(largest, entry)
    names = labels or (first.heading["label"], second.heading["label"])
    found = tuple(_change(*entry[2:]) for entry in sorted(largest, key=lambda each: (-each[0], -each[1])))
    return Changes(
        first=names[0],
        second=names[1],
        **counts,
        alone=pairs.alone,
        most=found,
        judged=dict(judging.judged(seed)),
    )


def waited(job: Job) -> float:
    """Return the seconds that a job was pending, requeues included."""
    return float(sum(each["end"] - each["start"] for each in job["intervals"] if each["state"] == "PENDING"))


class _Judging:
    """Sums up by how much jobs that started differ, as the tables of ``makeway replay`` do."""

    def __init__(self, *runs: RecordFile) -> None:
        self._hits = [Counter(each["victim"] for each in run.preemptions()) for run in runs]
        self._tallies = {key: Tally() for key in ("mean_wait", "core_seconds_lost", "preemptions")}

    def add(self, job_id: str, before: Job, after: Job) -> None:
        """Take a job."""
        starts = [_start(each) for each in (before, after)]
        known = [each for each in starts if each is not None]
        if not known:
            return
        changes = {
            "core_seconds_lost": after["core_seconds_lost"] - before["core_seconds_lost"],
            "preemptions": float(self._hits[1][job_id] - self._hits[0][job_id]),
        }
        if len(known) == len(starts):
            changes["mean_wait"] = known[1] - known[0]
        for key, change in changes.items():
            self._tallies[key].add(change, before["submit"])

    def judged(self, seed: int) -> Iterator[tuple[str, Judged]]:
        """Yield the key of each metric that can be judged, with how it differs."""
        for key, tally in self._tallies.items():
            found = tally.judged(seed, summed=key != "mean_wait")
            if found is not None and found.unit:
                yield key, found


def _start(job: Job) -> float | None:
    return next((float(each["start"]) for each in job["intervals"] if each["state"] == "RUNNING"), None)


class _Pairs:
    """Finds the same job in two records; both are mostly in one order, so that few are held."""

    def __init__(self) -> None:
        self.alone = 0

    def of(self, first: RecordFile, second: RecordFile) -> Iterator[tuple[str, Job, Job]]:
        """Yield id, and the job in either run."""
        left: dict[str, Job] = {}
        right: dict[str, Job] = {}
        for one, other in itertools.zip_longest(first.jobs(), second.jobs()):
            if one is not None:
                left[one[0]] = one[1]
            if other is not None:
                right[other[0]] = other[1]
            for job_id in dict.fromkeys(pair[0] for pair in (one, other) if pair is not None):
                if job_id in left and job_id in right:
                    yield job_id, left.pop(job_id), right.pop(job_id)
        self.alone = len(left) + len(right)


# ------------------------------------------------------------------------------------------ why
def _change(job_id: str, before: Job, after: Job) -> Change:
    at, one, other = difference(before, after)
    return Change(
        job=job_id,
        user=before["user"],
        before=waited(before),
        after=waited(after),
        at=at,
        first=one,
        second=other,
    )


def difference(before: Job, after: Job) -> tuple[float, str, str]:
    """Return from when two histories of a job differ, and what was decided about it then in either run.

    Decisions tell most; where they are alike, reasons for waiting and then states are compared.
    """
    for one, other in itertools.zip_longest(before["decisions"], after["decisions"]):
        if _decided(one) != _decided(other):
            return _instant(one, other, "at"), _decided(one), _decided(other)
    for one, other in itertools.zip_longest(before["waits"], after["waits"]):
        if one != other:
            return _instant(one, other, "start"), _reason(one), _reason(other)
    for one, other in itertools.zip_longest(before["intervals"], after["intervals"]):
        if one != other:
            return _instant(one, other, "start"), _state(one), _state(other)
    return before["submit"], "the same", "the same"


def _instant(one: Job | None, other: Job | None, key: str) -> float:
    return min(float(each[key]) for each in (one, other) if each is not None)


def _decided(decision: Job | None) -> str:
    if decision is None:
        return "nothing more was decided about it"
    why = "; ".join(told(decision).split("\n"))
    return f"{instant(decision['at'])}: {decision['outcome']}{f': {why}' if why else ''}"


def _reason(wait: Job | None) -> str:
    if wait is None:
        return "it waits no more"
    return f"{instant(wait['start'])}: waits {clock(wait['end'] - wait['start'])}: {wait['reason']}"


def _state(interval: Job | None) -> str:
    return "it is over" if interval is None else f"{instant(interval['start'])}: {interval['state'].lower()}"

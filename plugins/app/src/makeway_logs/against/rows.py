"""Collect what a log and its replay say of each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from makeway.history import History, Interval, Preemption
from makeway.model import JobState, Seconds
from makeway.record import Recorder
from makeway_app.report import Column
from makeway_logs.against import figures, telling
from makeway_logs.against.row import Count, Row

BY_HAND = frozenset(("jobhelduser", "jobheldadmin", "dependency", "begintime"))
"""Reasons that a log mostly does not explain: people held the job, or it waited for another one."""
_PREEMPTED = "PREEMPTED"
_NO_REASON = ("", "none", "unknown")


class AgainstLog:
    """Looks at each job of one run when it has ended."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.counts: list[Count] = []
        self.missing: Counter[str] = Counter()
        """What could not be compared, or explains a difference -> jobs."""

    # ----------------------------------------------------------------------- as an archive
    def ended(self, history: History, recorder: Recorder) -> None:
        """Take a job that has ended."""
        if not history.revived:  # else its first end was compared
            self.look_at(history)

    def preempted(self, entry: Preemption) -> None:
        """Take a preemption: counts of the jobs have it already."""

    def look_at(self, history: History) -> None:
        """Compare one job."""
        spec, said = history.job.spec, history.job.spec.attributes
        wait = said.get("wait")
        partition = spec.partitions[0] if spec.partitions else history.job.partition.name
        if spec.submit_at >= 0 and ("state" in said or "restarts" in said):
            self.counts.append(_count(history, partition))
        if spec.submit_at < 0:
            self.missing["it ran or waited when the replay began"] += 1
            return
        if spec.withdrawn_at is not None:
            self.missing["it was withdrawn before it started"] += 1
            return
        if not isinstance(wait, int | float):
            self.missing["the log does not say when it started"] += 1
            return
        if history.first_start is None:
            self.missing["it never started in the replay"] += 1
            return
        self._note_causes(history, said)
        starts = _starts(history)
        once = not _restarts(said) or said.get("runs")
        replayed = (history.first_start if once or not starts else starts[-1][1]) - spec.submit_at
        self.rows.append(
            Row(
                partition=partition,
                qos=history.job.qos.name if history.job.qos is not None else "",
                account=history.job.account or "",
                submit=spec.submit_at,
                recorded=float(wait),
                replayed=replayed,
                priorities=_priorities(history, said),
                reasons=_reasons(history, said),
                user=history.job.user,
                later=_later(history, said),
            )
        )

    def _note_causes(self, history: History, said: Mapping[str, Any]) -> None:
        if _restarts(said) and not said.get("runs"):
            self.missing[telling.REQUEUED] += 1
        if str(said.get("reason", "")).replace("_", "").lower() in BY_HAND:
            self.missing[telling.BY_HAND] += 1

    # --------------------------------------------------------------------------- results
    def finish(self, recorder: Recorder) -> None:
        """Look at the jobs that had not ended when the run was over."""
        for history in recorder.histories.values():
            if history.final_state is None and history.first_start is not None and not history.revived:
                self.look_at(history)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison in values that JSON has."""
        return {
            **figures.as_dict(self.rows, self.counts),
            "left_out": dict(sorted(self.missing.items())),
        }

    def tables(self, column: Column, matters: Sequence[str]) -> Iterator[RenderableType]:
        """Yield what people are shown.

        :param matters: what decides at the site and not in a replay, a sentence each.
        """
        yield from telling.tables(self.rows, self.counts, self.missing, column, matters)


# ------------------------------------------------------------------------------- runs of a job
def _starts(history: History) -> list[tuple[Seconds, Seconds]]:
    """Return since when a job waited for each of its runs in the replay, and when that began."""
    found: dict[int, tuple[Seconds, Seconds]] = {}
    since = history.job.spec.submit_at
    for state, start, end, _, restart in _intervals(history):
        if state is JobState.RUNNING and restart not in found:
            found[restart] = since, start
        if state is not JobState.PENDING:
            since = end
    return list(found.values())


def _intervals(history: History) -> list[Interval]:
    """Return the intervals of a job, the one that is not over among them."""
    if history.final_state is not None:
        return history.intervals
    return [*history.intervals, (history.state, history.since, history.since, None, history.job.restarts)]


def _restarts(said: Mapping[str, Any]) -> int | None:
    """Return how often the log says a job was requeued; None: it does not say."""
    text = str(said.get("restarts", ""))
    told = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
    runs = said.get("runs")
    return max(told or 0, len(runs) - 1) if runs else told


def _later(history: History, said: Mapping[str, Any]) -> tuple[tuple[Seconds, Seconds], ...]:
    recorded = [run["wait"] for run in said.get("runs", ())[1:]]
    replayed = [start - since for since, start in _starts(history)[1:]]
    return tuple(zip(recorded, replayed, strict=False))


def _count(history: History, partition: str) -> Count:
    said = history.job.spec.attributes
    runs: Sequence[Mapping[str, Any]] = said.get("runs", ())
    restarts = _restarts(said)
    ended = said.get("state") == _PREEMPTED
    preempted: int | None = None
    lost: float | None = None
    if runs:
        preempted = sum(run["state"] == _PREEMPTED for run in runs)
        over = runs if ended else runs[:-1]
        lost = sum(run["ran"] for run in over) * float(history.job.spec.cpus)
    elif restarts == 0:
        preempted = int(ended)
        lost = (history.job.spec.run_time or 0.0) * history.job.spec.cpus if ended else 0.0
    return Count(
        partition=partition,
        user=history.job.user,
        requeues=(restarts, history.job.restarts),
        preemptions=(preempted, history.preempted),
        lost=(lost, history.lost),
    )


def _priorities(history: History, said: Mapping[str, Any]) -> tuple[int, int] | None:
    text = str(said.get("priority", ""))
    if not (text.isascii() and text.isdigit()) or len(text) > 12 or int(text) == 0:
        return None
    return int(text), history.job.priority


def _reasons(history: History, said: Mapping[str, Any]) -> tuple[str, str] | None:
    recorded = str(said.get("reason", ""))
    if recorded.lower() in _NO_REASON:
        return None
    start = history.first_start
    waits = [reason for _, end, reason in history.waits if start is None or end <= start]
    replayed = next((reason for reason in reversed(waits) if reason.lower() not in _NO_REASON), "None")
    return recorded, replayed


__all__ = ["AgainstLog", "Row"]

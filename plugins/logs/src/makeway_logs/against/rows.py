"""Collect what a log and its replay say of each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from makeway.history import History, Preemption
from makeway.record import Recorder
from makeway_app.report import Column
from makeway_logs.against import figures, telling
from makeway_logs.against.row import Row

BY_HAND = frozenset(("jobhelduser", "jobheldadmin", "dependency", "begintime"))
"""Reasons that a log mostly does not explain: people held the job, or it waited for another one."""
_NO_REASON = ("", "none", "unknown")


class AgainstLog:
    """Looks at each job of one run when it has ended; hands it on to the archive that the run has besides."""

    def __init__(self) -> None:
        self.inner: Any = None
        """The archive that is told as well; None: there is none."""
        self.rows: list[Row] = []
        self.missing: Counter[str] = Counter()
        """What could not be compared, or explains a difference -> jobs."""

    # ----------------------------------------------------------------------- as an archive
    def ended(self, history: History, recorder: Recorder) -> None:
        """Take a job that has ended."""
        self.look_at(history)
        if self.inner is not None:
            self.inner.ended(history, recorder)

    def preempted(self, entry: Preemption) -> None:
        """Take a preemption."""
        if self.inner is not None:
            self.inner.preempted(entry)

    def look_at(self, history: History) -> None:
        """Compare one job."""
        spec, said = history.job.spec, history.job.spec.attributes
        wait = said.get("wait")
        if spec.submit_at < 0:
            self.missing["it ran or waited when the replay began"] += 1
            return
        if not isinstance(wait, int | float):
            self.missing["the log does not say when it started"] += 1
            return
        if history.first_start is None:
            self.missing["it never started in the replay"] += 1
            return
        self._note_causes(history, said)
        replayed = history.first_start - spec.submit_at
        self.rows.append(
            Row(
                partition=spec.partitions[0] if spec.partitions else history.job.partition.name,
                qos=history.job.qos.name if history.job.qos is not None else "",
                account=history.job.account or "",
                submit=spec.submit_at,
                recorded=float(wait),
                replayed=replayed,
                priorities=_priorities(history, said),
                reasons=_reasons(history, said),
            )
        )

    def _note_causes(self, history: History, said: Mapping[str, Any]) -> None:
        restarts = str(said.get("restarts", ""))
        if restarts.isdigit() and int(restarts):
            self.missing[telling.REQUEUED] += 1
        if str(said.get("reason", "")).replace("_", "").lower() in BY_HAND:
            self.missing[telling.BY_HAND] += 1

    # --------------------------------------------------------------------------- results
    def finish(self, recorder: Recorder) -> None:
        """Look at the jobs that had not ended when the run was over."""
        for history in recorder.histories.values():
            if history.final_state is None and history.first_start is not None:
                self.look_at(history)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison in values that JSON has."""
        return {
            **figures.as_dict(self.rows),
            "left_out": dict(sorted(self.missing.items())),
        }

    def tables(self, column: Column, matters: Sequence[str]) -> Iterator[RenderableType]:
        """Yield what people are shown.

        :param matters: what decides at the site and not in a replay, a sentence each.
        """
        yield from telling.tables(self.rows, self.missing, column, matters)


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

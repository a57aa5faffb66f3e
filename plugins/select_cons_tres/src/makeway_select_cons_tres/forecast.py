"""Say when a job could start (spec slurm-gang-and-select 4.3.11, slurm-preemption 5.2.6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from makeway.model import Forecast, Job, PreemptMode, Seconds
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.steps import Extra

if TYPE_CHECKING:
    from makeway_select_cons_tres.selector import ConsAttempt

_FIRST_WINDOW: Seconds = 30.0
_MOST_IN_BATCH = 200


def forecast(
    attempt: ConsAttempt, removable: Sequence[tuple[Job, PreemptMode]]
) -> Forecast | None:
    """Return when the job of `attempt` could start: now, with all of `removable` gone, or as jobs end."""
    now = attempt.view.now
    choice = attempt.kind.choices[-1]
    found = _anywhere(attempt)
    if found is not None:
        return _at(now, found)
    extra = None
    if removable:
        for job, mode in removable:
            attempt.remove(job, mode)
            if mode is PreemptMode.SUSPEND and attempt.selector.mode.qos:
                extra = Extra()
        found = attempt.try_on(choice, extra=extra)
        if found is not None:
            return _at(now, found, preempts=True)
    gone = {id(job) for job, _ in removable}
    for batch in _batches(attempt, gone):
        for _, job in batch:
            attempt.remove(job, PreemptMode.CANCEL)
        found = attempt.try_on(choice, extra=extra)
        if found is not None:
            return _at(_end_of(batch, found, attempt), found)
    return None


def _anywhere(attempt: ConsAttempt) -> Found | None:
    for choice in attempt.kind.choices:
        found = attempt.try_on(choice)
        if found is not None:
            return found
    return None


def _batches(attempt: ConsAttempt, gone: set[int]) -> Iterator[list[tuple[Seconds, Job]]]:
    """Yield running jobs by their end, those that end within a window together; each window is twice as long."""
    window = _FIRST_WINDOW
    batch: list[tuple[Seconds, Job]] = []
    until = attempt.view.now
    for end, _, job in attempt.view.releases():
        if id(job) in gone:
            continue
        if batch and (end > until or len(batch) >= _MOST_IN_BATCH):
            yield batch
            batch = []
        if not batch:
            until = max(end, attempt.view.now) + window
            window *= 2
        batch.append((end, job))
    if batch:
        yield batch


def _end_of(batch: list[tuple[Seconds, Job]], found: Found, attempt: ConsAttempt) -> Seconds:
    """Return the end of the last job of the batch that is on the chosen nodes; before 25.11, of the last one."""
    at = batch[-1][0]
    if attempt.view.rule("forecast_ends_at_relevant_job"):
        at = next((end for end, job in reversed(batch) if job.nodes & found.nodes), at)
    return max(at, attempt.view.now)


def _at(at: Seconds, found: Found, *, preempts: bool = False) -> Forecast:
    return Forecast(at=at, nodes=found.nodes, preempts=preempts)

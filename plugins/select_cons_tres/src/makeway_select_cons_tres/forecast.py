"""Say when a job could start (spec slurm-gang-and-select 4.3.11, slurm-preemption 5.2.6).

Slurm lets jobs end in batches, and tests once after each (rule ``forecast_in_batches``). Without that rule
the answer is the first instant at which the job fits, which is what EASY backfilling promises.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.clockwork import Clockwork
from makeway.model import ClusterView, Forecast, Job, PreemptMode, Seconds
from makeway_select_cons_tres.assign import Found
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.steps import Extra
from makeway_select_cons_tres.watch import Watch, watch_for

_FIRST_WINDOW: Seconds = 30.0
_HALF_MINUTE: Seconds = 30.0
_TINY = 1e-6

_Release = tuple[Seconds, int, Job]


def forecast(attempt: ConsAttempt, removable: Sequence[tuple[Job, PreemptMode]]) -> Forecast | None:
    """Return when the job of `attempt` could start: now, with all of `removable` gone, or as jobs end.

    Slurm's backfill first asks as if a job that offers to share did not, unless it wants features (recorded:
    backfill_sharer_as_if_alone and backfill_sharer_of_features).
    """
    first_alone = attempt.offers_to_share and not attempt.job.spec.features
    if first_alone and attempt.view.rule("forecast_alone_first"):
        alone = _estimate(attempt.alone(), removable)
        if alone is not None and alone.at <= attempt.view.now:
            return alone
        shared = _estimate(attempt, removable)
        return alone if shared is None or (alone is not None and alone.at < shared.at) else shared
    return _estimate(attempt, removable)


def _estimate(attempt: ConsAttempt, removable: Sequence[tuple[Job, PreemptMode]]) -> Forecast | None:
    now = attempt.view.now
    for choice in attempt.kind.choices:
        found = attempt.try_on(choice)
        if found is not None:
            return Forecast(at=now, nodes=found.nodes)
    extra = None
    if removable:
        for job, mode in removable:
            attempt.remove(job, mode)
            if mode is PreemptMode.SUSPEND and attempt.known.mode.qos:
                extra = Extra()
        found = attempt.try_on(attempt.kind.choices[-1], extra=extra)
        if found is not None:
            return Forecast(at=now, nodes=found.nodes, preempts=True)
    batches = attempt.view.rule("forecast_in_batches")
    releases = attempt.view.releases()
    if batches:
        releases = [*releases, *_endless(attempt.view)]
    if removable:
        gone = {id(part) for job, _ in removable for part in attempt.view.components(job)}
        releases = [release for release in releases if id(release[2]) not in gone]
    if batches:
        return _in_batches(attempt, releases, extra)
    choice = attempt.kind.choices[-1]
    watch = watch_for(attempt, choice)
    if watch is not None and watch.about_one_node:
        return _on_one_node(attempt, watch, releases)
    return _one_by_one(attempt, watch, releases, extra)


# ----------------------------------------------------------------------------------- in batches
def _in_batches(attempt: ConsAttempt, releases: Sequence[_Release], extra: Extra | None) -> Forecast | None:
    """Test after each batch of jobs that end within a window; each window is twice as long as the last."""
    choice = attempt.kind.choices[-1]
    clockwork = attempt.view.settings(Clockwork)
    for batch in _batches(releases, choice.among(attempt.nodes & attempt.kind.able), clockwork):
        attempt.remove_these([job for _, _, job in batch])
        found = attempt.try_on(choice, extra=extra)
        if found is not None:
            at = _end_of(batch, found, attempt)
            return None if math.isinf(at) else Forecast(at=at, nodes=found.nodes)
    return None


def _endless(view: ClusterView) -> Sequence[_Release]:
    """Return the running jobs without a limit: they end last, and beyond any plan."""
    jobs = [job for job in view.active if job.end_at is None and job.allocation is not None]
    jobs.sort(key=lambda job: (job.started_at or 0.0, job.index))
    return [(math.inf, job.index, job) for job in jobs]


def _batches(
    releases: Sequence[_Release], nodes: NodeBits, clockwork: Clockwork
) -> Iterator[Sequence[_Release]]:
    """Yield the jobs on `nodes` that are taken away together.

    All windows begin at the first full half minute of the wall clock after the first of these jobs ends; those that
    end before take part in the first window (recorded: backfill_estimate_half_minutes and
    backfill_estimate_half_minutes_apart). A batch is over when the very next job of all ends after its window. A job
    elsewhere closes no batch: the one behind it comes along, however late it ends (recorded:
    backfill_estimate_jobs_elsewhere).
    """
    begin: Seconds | None = None
    window = _FIRST_WINDOW
    batch: list[_Release] = []
    for release, following in itertools.zip_longest(releases, releases[1:]):
        if not release[2].nodes & nodes:
            continue
        if begin is None:
            begin = _half_minute_after(release[0], clockwork)
        batch.append(release)
        if following is None:
            break
        over = clockwork.whole_second(following[0]) if following[0] < math.inf else math.inf
        if over > begin + window + _TINY:
            yield batch
            batch = []
            window *= 2
            while over > begin + window + _TINY:
                window = math.inf if math.isinf(over) else 2 * window
    if batch:
        yield batch


def _half_minute_after(at: Seconds, clockwork: Clockwork) -> Seconds:
    """Return the first full half minute of the wall clock after the controller's second of `at`."""
    if math.isinf(at):
        return at
    phase = clockwork.minute_phase
    begun = math.floor((clockwork.whole_second(at) + phase) / _HALF_MINUTE + _TINY)
    return (begun + 1) * _HALF_MINUTE - phase


def _end_of(batch: Sequence[_Release], found: Found, attempt: ConsAttempt) -> Seconds:
    """Return the end of the last job of the batch on the chosen nodes; before 25.11, of the last of all."""
    at = batch[-1][0]
    if attempt.view.rule("forecast_ends_at_relevant_job"):
        at = next((end for end, _, job in reversed(batch) if job.nodes & found.nodes), at)
    return max(at, attempt.view.now)


# ------------------------------------------------------------------------------------- exactly
def _one_by_one(
    attempt: ConsAttempt, watch: Watch | None, releases: Sequence[_Release], extra: Extra | None
) -> Forecast | None:
    """Test whenever the job can have come to fit."""
    choice = attempt.kind.choices[-1]
    waiting: list[Job] = []
    short, gained = attempt.short.nodes, 0
    for end, _, job in releases:
        waiting.append(job)
        if watch is not None:
            if not watch.release(job):
                continue
        else:
            gained += job.nodes.bit_count()
            if gained < short:
                continue
        attempt.remove_these(waiting)
        waiting = []
        found = attempt.try_on(choice, extra=extra)
        if found is not None:
            return Forecast(at=max(end, attempt.view.now), nodes=found.nodes)
        short, gained = attempt.short.nodes, 0
    return None


def _on_one_node(attempt: ConsAttempt, watch: Watch, releases: Sequence[_Release]) -> Forecast | None:
    """Follow each node by itself until one of them serves."""
    at: Seconds | None = None
    serving: list[int] = []
    nodes = watch.nodes
    for end, _, job in releases:
        if at is not None and end > at:
            break
        held = job.allocation
        if held is None or not held.nodes & nodes:
            continue
        now_serving = watch.release(job)
        if now_serving:
            serving += now_serving
            at = end
    if at is None:
        return None
    first = min(serving, key=lambda index: (attempt.known.layout.weight[index], index))
    return Forecast(at=max(at, attempt.view.now), nodes=bitmap.single(first))

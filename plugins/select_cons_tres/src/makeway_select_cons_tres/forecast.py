"""Say when a job could start (slurm-gang-and-select 4.3.11, slurm-preemption 5.2.6).

Slurm lets jobs end in batches, and tests once after each (rule ``forecast_in_batches``). Without that rule
the answer is the first instant at which the job fits, which is what EASY backfilling promises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from makeway import bitmap
from makeway.model import Forecast, Job, PreemptMode, Seconds
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.known import gone_with
from makeway_select_cons_tres.steps import Extra, looks_beyond_idle
from makeway_select_cons_tres.watch import Watch, watch_for
from makeway_slurm_rules.over_time import leaves_at

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
    if attempt.view.rule("forecast_in_batches"):
        return _in_batches(attempt, removable)
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
    releases = attempt.view.releases()
    if removable:
        gone = {id(job) for job, _ in gone_with(removable, attempt.view)}
        releases = [release for release in releases if id(release[2]) not in gone]
    choice = attempt.kind.choices[-1]
    watch = watch_for(attempt, choice)
    if watch is not None and watch.about_one_node:
        return _on_one_node(attempt, watch, releases)
    return _one_by_one(attempt, watch, releases, extra)


# ----------------------------------------------------------------------------------- in batches
def _in_batches(attempt: ConsAttempt, removable: Sequence[tuple[Job, PreemptMode]]) -> Forecast | None:
    """Test now, then after each batch of jobs that end within a window; each window is twice as long as the last."""
    known, kind, view = attempt.known, attempt.kind, attempt.view
    now, mode = view.now, known.mode
    idle_only = not (looks_beyond_idle(kind.request, mode) or attempt.wants_idle)
    enough = known.enough(kind, view, ())
    for choice in kind.choices:
        if enough.after(choice.among(attempt.nodes), 0):
            found = attempt.try_on(choice)
            if found is not None:
                return Forecast(at=now, nodes=found.nodes)
    choice = kind.choices[-1]
    nodes = choice.among(attempt.nodes & kind.able)
    extra = None
    timeline, enough = known.timeline(view, removable), known.enough(kind, view, removable)
    if removable:
        if mode.qos and any(how is PreemptMode.SUSPEND for _, how in removable):
            extra = Extra()
        if enough.after(nodes, 0):
            attempt.stand_on(timeline.books)
            found = attempt.try_on(choice, extra=extra)
            if found is not None:
                return Forecast(at=now, nodes=found.nodes, preempts=True)
    for batch in timeline.batches(nodes):
        if not enough.after(nodes, batch.end):
            continue
        places = timeline.moment(batch.end).places if idle_only else {}
        if (kind, nodes) not in places:
            # Where idle cores are all that counts, what else has left elsewhere makes no difference.
            attempt.stand_on(timeline.books_after(batch.end, -1 if idle_only else nodes))
            found = attempt.try_on(choice, extra=extra)
            places[kind, nodes] = None if found is None else found.nodes
        place = places[kind, nodes]
        if place is not None:
            at = timeline.end_of(batch, nodes)
            if view.rule("forecast_ends_at_relevant_job"):  # since 25.11
                relevant = timeline.end_of(batch, place)
                at = at if relevant is None else relevant
            assert at is not None
            at = leaves_at(at, now, in_a_second=view.rule("forecast_over_time_in_a_second"))
            return None if math.isinf(at) else Forecast(at=at, nodes=place)
    return None


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

"""Say when a job could start (slurm-gang-and-select 4.2.9)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Exclusive, Forecast, Job, Placement, PreemptMode, Seconds
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.best_fit import best_fit, like_nodes
from makeway_select_linear.ends_ahead import leaves
from makeway_select_linear.nodes import LinearNodes
from makeway_select_linear.request import Request


def forecast(
    selector: LinearNodes,
    job: Job,
    nodes: NodeBits,
    view: ClusterView,
    removable: Sequence[tuple[Job, PreemptMode]],
) -> Forecast | None:
    """Say when `job` could start (4.2.9); ends beyond the limits count as "now".

    Slurm's backfill first asks as if a job that offers to share did not, unless it wants features (recorded:
    backfill_het_less_shared and backfill_sharer_of_features).
    """
    request = selector.request(job)
    if not request.shares or job.spec.features or not view.rule("forecast_alone_first"):
        return _estimate(selector, job, nodes, view, removable, request)
    by_itself = attrs.evolve(request, shares=False, limit=1)
    alone = _estimate(selector, job, nodes, view, removable, by_itself)
    only_alone = job.spec.exclusive is Exclusive.NODE and view.rule("forecast_exclusive_alone")
    if only_alone or (alone is not None and alone.at <= view.now):
        return alone
    shared = _estimate(selector, job, nodes, view, removable, request)
    return alone if shared is None or (alone is not None and alone.at < shared.at) else shared


def _estimate(
    selector: LinearNodes,
    job: Job,
    nodes: NodeBits,
    view: ClusterView,
    removable: Sequence[tuple[Job, PreemptMode]],
    request: Request,
) -> Forecast | None:
    usable = selector._static(job, nodes, request)
    if job.spec.features:
        usable = selector.alternatives(job)[-1].among(usable)
    tolerates = view.rule("linear_forecast_tolerates_one")
    if _plain(request, job, selector, tolerates=tolerates):
        if tolerates:
            return _plain_estimate(selector, request, usable, view, removable)
        return _plain_forecast(selector, job, request, usable, view, removable)
    attempt = LinearAttempt(selector, job, nodes, view, planning=True, request=request)
    if attempt.only_counts():
        return _counting_forecast(attempt, usable, view, removable)
    now = view.now
    found = attempt.probe()
    if isinstance(found, Placement):
        return _at(now, found.allocation.nodes, usable)
    if removable:
        for other, mode in removable:
            attempt.remove(other, mode)
        found = attempt.probe()
        if isinstance(found, Placement):
            return _at(now, found.allocation.nodes, usable, preempts=True)
    gone = {id(other) for other, _ in removable}
    for end, _, other in view.releases():
        if id(other) in gone:
            continue
        attempt.remove(other, PreemptMode.CANCEL)
        if attempt.usable_without().bit_count() < request.min_nodes:
            continue
        found = attempt.probe()
        if isinstance(found, Placement):
            return _at(leaves(end, view), found.allocation.nodes, usable)
    return None


def forecast_key(selector: LinearNodes, job: Job, view: ClusterView) -> Hashable | None:
    """Return the nodes that could serve `job`, and how many it takes; None: it matters which ones it gets."""
    request = selector.request(job)
    if selector.spares_off or not _plain(
        request, job, selector, tolerates=view.rule("linear_forecast_tolerates_one")
    ):
        return None
    usable = selector._static(job, job.partition.nodes, request)
    if job.spec.features:
        usable = selector.alternatives(job)[-1].among(usable)
    return usable, request.min_nodes, request.max_nodes, request.shares, _wanted(selector, request)


def forecast_around(
    selector: LinearNodes,
    job: Job,
    nodes: NodeBits,
    view: ClusterView,
    removable: Sequence[tuple[Job, PreemptMode]],
    spared: Sequence[Job],
) -> Forecast | None:
    """The same where `job` keeps off the nodes of some jobs until they have ended."""
    left = {other.id: other for other in spared}
    ends = [(end, other) for end, _, other in view.releases() if other.id in left]
    best = forecast(selector, job, nodes & ~nodes_of(left.values()), view, removable)
    for end, other in ends:
        if best is not None and best.at <= end:
            break
        left.pop(other.id, None)
        found = forecast(selector, job, nodes & ~nodes_of(left.values()), view, removable)
        if found is not None and (best is None or max(found.at, end) < best.at):
            best = attrs.evolve(found, at=max(found.at, end))
    return best


def nodes_of(jobs: Iterable[Job]) -> NodeBits:
    """Return the nodes that any of `jobs` holds."""
    held: NodeBits = 0
    for job in jobs:
        held |= job.nodes
    return held


def _counting_forecast(
    attempt: LinearAttempt,
    eligible: NodeBits,
    view: ClusterView,
    removable: Sequence[tuple[Job, PreemptMode]],
) -> Forecast | None:
    """The same where only the number of jobs per node counts."""
    now, request, counting = view.now, attempt.request, attempt.counting()

    def placed() -> NodeBits | None:
        if counting.usable < request.min_nodes:
            return None
        return best_fit(counting.nodes(), request, attempt.selector.cpus, attempt.selector.uniform)

    found = attempt.probe()
    if isinstance(found, Placement):
        return _at(now, found.allocation.nodes, eligible)
    for other, _ in removable:
        counting.remove(other)
    if removable and (nodes := placed()) is not None:
        return _at(now, nodes, eligible, preempts=True)
    gone = {id(other) for other, _ in removable}
    for end, _, other in view.releases():
        if id(other) in gone:
            continue
        _, new = counting.remove(other)
        if new and (nodes := placed()) is not None:
            return _at(leaves(end, view), nodes, eligible)
    return None


def _plain_forecast(
    selector: LinearNodes,
    job: Job,
    request: Request,
    usable: NodeBits,
    view: ClusterView,
    removable: Sequence[tuple[Job, PreemptMode]],
) -> Forecast | None:
    """The same for a job that only wants so many free nodes, of whatever kind."""
    del job
    now = view.now
    busy = selector.books.running.over[0] & usable
    wanted = _wanted(selector, request)
    free = usable & ~busy
    have = free.bit_count()
    if have >= wanted:
        return _nodes_at(now, free, 0, wanted, usable, have)
    if removable:
        for other, mode in removable:
            if mode is not PreemptMode.OFF:
                free |= other.nodes & usable
        have = free.bit_count()
        if have >= wanted:
            return _nodes_at(now, free, 0, wanted, usable, have, preempts=True)
    released = 0
    shadow: Seconds | None = None
    for end, _, other in view.releases():
        if shadow is not None and end > shadow:
            break
        held = other.allocation
        gain = held.nodes & usable & ~free if held is not None else 0
        if gain:
            free |= gain
            released |= gain
            have += gain.bit_count()
            if shadow is None and have >= wanted:
                shadow = leaves(end, view)
    if shadow is None:
        return None
    return _nodes_at(shadow, free, released, wanted, usable, have)


def _plain_estimate(
    selector: LinearNodes,
    request: Request,
    usable: NodeBits,
    view: ClusterView,
    removable: Sequence[tuple[Job, PreemptMode]],
) -> Forecast | None:
    """The same as Slurm's backfill has it: the nodes that it would take, idle ones among them, are kept."""
    wanted = _wanted(selector, request)
    now = view.now
    if not removable:
        ahead = selector.ends_ahead.of(selector.books, view)
        ended = ahead.jobs_to_end(usable, wanted)
        nodes = None if ended is None else like_nodes(ahead.idle[ended] & usable, wanted, request.max_nodes)
        return None if ended is None or nodes is None else _at(ahead.when(ended, view), nodes, usable)
    books = selector.books
    left = books.running.copy()

    def placed() -> NodeBits | None:
        return like_nodes(usable & ~left.over[0], wanted, request.max_nodes)

    if (nodes := placed()) is not None:
        return _at(now, nodes, usable)
    gone = set()
    for other, mode in removable:
        if mode is not PreemptMode.OFF and books.counts_job(other):
            left.remove(other.nodes)
            gone.add(id(other))
    if (nodes := placed()) is not None:
        return _at(now, nodes, usable, preempts=True)
    for end, _, other in view.releases():
        if id(other) in gone or not books.counts_job(other):
            continue
        busy = left.over[0]
        left.remove(other.nodes)
        if busy & ~left.over[0] & usable and (nodes := placed()) is not None:
            return _at(leaves(end, view), nodes, usable)
    return None


def _wanted(selector: LinearNodes, request: Request) -> int:
    """Return how many nodes a plain request takes."""
    return max(request.target, -(-request.min_cpus // (selector.uniform or 1)))


def _plain(request: Request, job: Job, selector: LinearNodes, *, tolerates: bool) -> bool:
    """Whether the job only wants so many free nodes, of whatever kind.

    :param tolerates: nodes on which a single job runs that shares count as usable.
    """
    books = selector.books
    return (
        selector.uniform is not None
        and not request.shares
        and not request.required
        and not request.contiguous
        and not books.track_memory
        and not books.forgotten
        and not job.spec.gres
        and not (job.spec.features and selector.alternatives(job)[-1].counts)
        and request.target == request.min_nodes
        and (not books.running.above(1) or (tolerates and books.running.over == books.exclusive.over))
        and not (tolerates and books.running.over[0] & ~books.exclusive.over[0])
    )


def _nodes_at(
    at: Seconds,
    free: NodeBits,
    released: NodeBits,
    wanted: int,
    eligible: NodeBits,
    have: int,
    *,
    preempts: bool = False,
) -> Forecast:
    """Keep nodes that are still busy rather than idle ones, so that idle ones stay usable meanwhile."""
    kept = bitmap.first_n(released, wanted)
    rest = wanted - kept.bit_count()
    if rest > 0:
        kept |= bitmap.first_n(free & ~released, rest)
    return Forecast(at=at, nodes=kept, preempts=preempts, eligible=eligible, spare=have - wanted)


def _at(at: Seconds, nodes: NodeBits, eligible: NodeBits, *, preempts: bool = False) -> Forecast:
    return Forecast(at=at, nodes=nodes, preempts=preempts, eligible=eligible)

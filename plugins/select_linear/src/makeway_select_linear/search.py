"""Choose victims in two passes over the candidates (slurm-preemption 5.1.3).

First pass: remove candidates in order until the job fits; the one that made it fit comes first in the second
pass, the others by how many of their nodes were usable then. The first success of the second pass counts.

Removing one job at a time and looking at the whole cluster after each would cost as much as candidates times
nodes. Where only the number of jobs per node counts (no memory, no counted resources, no features), a pass
keeps count of the jobs left on the nodes it touches. It looks for a place only once enough nodes are usable;
`plugins/app/tests/engine` and `plugins/select_linear/tests` hold both ways against a plain transcription.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from makeway import licences
from makeway.model import Candidates, Choice, Job, Placement
from makeway_select_linear.attempt import LinearAttempt
from makeway_select_linear.best_fit import best_fit

_DECISIVE = 1 << 30

_Found = tuple[Placement, int, list[int]]
"""The placement, what made it fit, and per candidate how many of its nodes were usable once it was removed."""


def two_passes(attempt: LinearAttempt, candidates: Candidates) -> Choice | None:
    """Return the victims that select/linear takes; None if removing all of them does not help."""
    if licences.wants(attempt.job) and licences.lacking(attempt.job, attempt.view) is not None:
        return None  # under select/linear a licence that is short ends the attempt (slurm-preemption 1.11)
    one_pass = _counting_pass if attempt.only_counts() else _stepwise_pass
    order: Sequence[int] = range(len(candidates.jobs))
    first = one_pass(attempt, candidates, order)
    if first is None:
        return None
    placement, stopped, gains = first
    if len(order) > 1:
        order = second_order(gains, stopped)
        second = one_pass(attempt, candidates, order)
        if second is None:
            return None
        placement, stopped, gains = second
    return Choice(
        placement=placement,
        victims=_victims(order, gains, candidates.jobs, placement),
        method="two passes of select/linear",
        considered=len(order),
    )


def second_order(gains: list[int], stopped: int) -> list[int]:
    """Order the second pass: the decisive candidate, then by usable nodes, ties as before (no. 4)."""
    gains[stopped] = _DECISIVE
    if max(gains[:stopped], default=0) == min(gains[:stopped], default=0) > 0:
        return [stopped, *range(stopped), *range(stopped + 1, len(gains))]
    return sorted(range(len(gains)), key=lambda at: -gains[at])


def _victims(
    order: Sequence[int], gains: list[int], jobs: Sequence[Job], placement: Placement
) -> tuple[int, ...]:
    """Return the removed candidates that touch the chosen nodes and had usable ones."""
    chosen = set(placement.allocation.node_indices)
    return tuple(
        at
        for at in order
        if gains[at]
        and (allocation := jobs[at].allocation) is not None
        and not chosen.isdisjoint(allocation.node_indices)
    )


def _counting_pass(attempt: LinearAttempt, candidates: Candidates, order: Sequence[int]) -> _Found | None:
    """Remove in `order`, keeping count per node; place once enough nodes are usable."""
    selector, request = attempt.selector, attempt.request
    counting = attempt.counting()
    wanted = request.min_nodes
    gains = [0] * len(candidates.jobs)
    tried = False
    jobs = candidates.jobs
    for at in islice(order, counting.remove_below(jobs, order, gains, wanted), None):
        gains[at], new = counting.remove(jobs[at])
        if counting.usable < wanted or (tried and not new):
            continue
        tried = True
        found = best_fit(counting.nodes(), request, selector.cpus, selector.uniform)
        if found is not None:
            return attempt.placed_at(found, "nodes of candidates"), at, gains
    return None


def _stepwise_pass(attempt: LinearAttempt, candidates: Candidates, order: Sequence[int]) -> _Found | None:
    """Remove in `order`, looking at the whole cluster after each."""
    trial = attempt.fresh()
    gains = [0] * len(candidates.jobs)
    wanted = attempt.request.min_nodes
    for at in order:
        job = candidates.jobs[at]
        trial.remove(job, candidates.modes[at])
        usable = trial.usable_without()
        held = job.allocation.nodes if job.allocation is not None else 0
        gains[at] = (usable & held).bit_count()
        if usable.bit_count() < wanted:
            continue
        found = trial.probe()
        if isinstance(found, Placement):
            return found, at, gains
    return None

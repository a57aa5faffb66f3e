"""Choose victims in two passes over the candidates (spec slurm-preemption 5.1.3).

First pass: remove candidates in order until the job fits; the one that made it fit comes first in the second
pass, the others by how many of their nodes were usable then. The first success of the second pass counts.
"""

from __future__ import annotations

from makeway.model import Candidates, Choice, Job, Placement, PreemptMode
from makeway_select_linear.selector import LinearAttempt

_DECISIVE = 1 << 30


def two_passes(attempt: LinearAttempt, candidates: Candidates) -> Choice | None:
    """Return the victims that select/linear takes; None if removing all of them does not help."""
    order = list(range(len(candidates.jobs)))
    first = _one_pass(attempt, candidates, order)
    if first is None:
        return None
    placement, stopped, gains = first
    if len(order) > 1:
        gains[stopped] = _DECISIVE
        order.sort(key=lambda at: -gains[at])
        second = _one_pass(attempt, candidates, order)
        if second is None:
            return None
        placement, stopped, gains = second
    nodes = placement.allocation.nodes
    victims = tuple(at for at in order if gains[at] and _nodes(candidates.jobs[at]) & nodes)
    return Choice(
        placement=placement,
        victims=victims,
        method="two passes of select/linear",
        considered=len(order),
    )


def _nodes(job: Job) -> int:
    return job.allocation.nodes if job.allocation is not None else 0


def _one_pass(
    attempt: LinearAttempt, candidates: Candidates, order: list[int]
) -> tuple[Placement, int, list[int]] | None:
    """Remove in `order` until it fits.

    :returns: the placement, who made it fit, and per candidate how many of its nodes were usable once it was
        removed (0 for those never removed).
    """
    trial = attempt.fresh()
    gains = [0] * len(candidates.jobs)
    wanted = attempt.request.min_nodes
    for at in order:
        job, mode = candidates.jobs[at], candidates.modes[at]
        trial.remove(job, mode)
        assert trial._thought is not None
        usable = trial._thought.usable()
        gains[at] = (usable & _nodes(job)).bit_count()
        if usable.bit_count() < wanted:
            continue
        found = trial.probe()
        if isinstance(found, Placement):
            return found, at, gains
    return None


__all__ = ["PreemptMode", "two_passes"]

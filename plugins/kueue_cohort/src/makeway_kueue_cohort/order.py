"""Say who may be a candidate, and who is lost first (kueue 2.5, 3, 4)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from makeway.model import Seconds
from makeway_kueue_cohort.site import Amounts, Pair, Within
from makeway_kueue_cohort.tree import Node

_FOREVER = float("inf")


@attrs.frozen(kw_only=True, eq=False)
class Workload:
    """A workload that holds quota, or asks for some."""

    name: str
    queue: Node
    uses: Amounts
    priority: int = 0
    """Effective priority (2.7)."""
    created: Seconds = 0.0
    """Queue time (2.6)."""
    admitted: Seconds | None = None
    """When quota was reserved; None counts as now (4.5)."""
    uid: str = ""
    evicted: bool = False
    """Whether it is leaving already (3.5)."""
    local_queue: str = ""
    local_usage: float = 0.0
    """Recent usage of its local queue (4.3)."""
    rank: tuple[int, float, str] = attrs.field(init=False)
    """Order among workloads of one queue: 4.4 to 4.6."""
    amounts: tuple[tuple[Pair, int], ...] = attrs.field(init=False)
    """What it uses, so that it can be looked up."""

    @rank.default
    def _rank(self) -> tuple[int, float, str]:
        at = _FOREVER if self.admitted is None else self.admitted
        return self.priority, -at, self.uid

    @amounts.default
    def _amounts(self) -> tuple[tuple[Pair, int], ...]:
        return tuple(self.uses.items())


def allows(policy: Within, preemptor: Workload, candidate: Workload) -> bool:
    """Whether `policy` lets one workload preempt the other (2.5)."""
    if policy is Within.ANY:
        return True
    if policy is Within.NEVER:
        return False
    if candidate.priority < preemptor.priority:
        return True
    newer = candidate.priority == preemptor.priority and candidate.created > preemptor.created
    return policy is Within.LOWER_OR_NEWER and newer


def uses_any(workload: Workload, pairs: Iterable[Pair]) -> bool:
    """Whether a workload uses some of what is short (3.1)."""
    return any(workload.uses.get(pair, 0) > 0 for pair in pairs)


def ordering(queue: Node, *, by_local_queue: bool = False) -> Callable[[Workload], Any]:
    """Return the sort key of candidates for a preemptor of `queue`: first to lose first (section 4)."""

    def key(workload: Workload) -> tuple[bool, bool, tuple[int, float, str]]:
        return not workload.evicted, workload.queue is queue, workload.rank

    if not by_local_queue:
        return key

    def compare(one: Workload, other: Workload) -> int:
        mine, theirs = key(one), key(other)
        if mine[:2] == theirs[:2] and one.queue is other.queue and one.local_queue != other.local_queue:
            difference = other.local_usage - one.local_usage
            if difference:
                return 1 if difference > 0 else -1
        return (mine > theirs) - (mine < theirs)

    return functools.cmp_to_key(compare)


def own(preemptor: Workload, workloads: Iterable[Workload], short: Sequence[Pair]) -> list[Workload]:
    """Return the candidates of the preemptor's own queue, in no order (3.2)."""
    queue = preemptor.queue.queue
    assert queue is not None
    policy = queue.preemption.within_queue
    if policy is Within.NEVER:
        return []
    return _chosen(policy, preemptor, workloads, short)


def foreign(preemptor: Workload, workloads: Iterable[Workload], short: Sequence[Pair]) -> list[Workload]:
    """Return the candidates among the workloads of another queue, which borrows, in no order (3.3)."""
    queue = preemptor.queue.queue
    assert queue is not None
    policy = queue.preemption.reclaim
    return _chosen(policy, preemptor, workloads, short)


def _chosen(
    policy: Within, preemptor: Workload, workloads: Iterable[Workload], short: Sequence[Pair]
) -> list[Workload]:
    """Return those that a policy allows to be taken, and that use some of what is short (2.5, 3.1)."""
    return [each for each in workloads if allows(policy, preemptor, each) and uses_any(each, short)]

"""Choose victims in the classic way: greedy, then give back (kueue 5)."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from makeway_kueue_cohort.books import Books, Node, common_ancestor, fits
from makeway_kueue_cohort.order import Workload, foreign, ordering, own
from makeway_kueue_cohort.reasons import Reason, Victim
from makeway_kueue_cohort.site import Amounts, Pair, Within

ByQueue = Mapping[str, Collection[Workload]]
"""Queue -> the workloads that hold quota there."""


@attrs.frozen
class _Candidate:
    workload: Workload
    reason: Reason
    only_without_borrowing: bool = False
    ancestor: Node | None = None
    """The lowest cohort above candidate and preemptor; None: they are of one queue."""


@attrs.frozen
class _Lists:
    hierarchical: list[_Candidate]
    by_priority: list[_Candidate]
    own: list[_Candidate]


def choose(preemptor: Workload, short: Sequence[Pair], admitted: ByQueue, books: Books) -> tuple[Victim, ...]:
    """Return the victims, first taken first; empty: none can make room (5.6)."""
    lists = _collected(preemptor, short, admitted)
    for borrowing in _attempts(preemptor.queue, short, lists):
        if not borrowing and not _own_quota_suffices(preemptor, lists.own):
            continue
        found = _attempt(preemptor, short, _merged(lists, preemptor, books), books, borrowing=borrowing)
        if found:
            return found
    return ()


def _attempts(queue: Node, short: Sequence[Pair], lists: _Lists) -> tuple[bool, ...]:
    assert queue.queue is not None
    borrows = queue.queue.preemption.borrow
    if not (lists.hierarchical or lists.by_priority) or (not borrows and not _is_under(queue, short)):
        return (True,)
    if not borrows and not lists.hierarchical:
        return (False, True)
    return (True, False)


def _is_under(queue: Node, short: Sequence[Pair]) -> bool:
    """Whether a queue has some of its own quota left in all that is short."""
    return all(queue.used(pair) < queue.quota(pair) for pair in short)


def _own_quota_suffices(preemptor: Workload, own_candidates: Sequence[_Candidate]) -> bool:
    """Whether the request fits without borrowing once all candidates of its own queue have gone (5.4).

    Only they lower what the queue uses; if it does not fit then, the search without borrowing finds none.
    """
    queue = preemptor.queue
    for pair, amount in preemptor.uses.items():
        over = queue.used(pair) + amount - queue.nominal(pair)
        if over > 0 and over > sum(each.workload.uses.get(pair, 0) for each in own_candidates):
            return False
    return True


# --------------------------------------------------------------------------------- candidates
def _collected(preemptor: Workload, short: Sequence[Pair], admitted: ByQueue) -> _Lists:
    lists = _Lists([], [], [])
    node = preemptor.queue
    assert node.queue is not None
    for each in own(preemptor, admitted.get(node.name, ()), short):
        lists.own.append(_Candidate(each, Reason.IN_QUEUE))
    if node.queue.preemption.reclaim is not Within.NEVER:
        _collect_above(preemptor, short, admitted, lists)
    return lists


def _collect_above(preemptor: Workload, short: Sequence[Pair], admitted: ByQueue, lists: _Lists) -> None:
    """Walk up to the root; above a node that has room by right, candidates are hierarchical (5.2)."""
    node, asked = preemptor.queue, dict(preemptor.uses)
    by_right = _only_by_right(preemptor, short, lists.own)
    advantage = False
    for ancestor in preemptor.queue.above():
        advantage = advantage or all(not node.borrows(pair, amount) for pair, amount in asked.items())
        for pair, amount in asked.items():
            asked[pair] = max(0, amount - node.free_here(pair))
        if advantage or not by_right:
            into = lists.hierarchical if advantage else lists.by_priority
            for queue in _borrowing_below(ancestor, node, short):
                for each in foreign(preemptor, admitted.get(queue.name, ()), short):
                    into.append(_reclaimed(preemptor, each, ancestor, advantage=advantage))
        node = ancestor


def _only_by_right(preemptor: Workload, short: Sequence[Pair], own_candidates: Sequence[_Candidate]) -> bool:
    """Whether candidates by priority can be left out, because no search could take any of them.

    Without borrowWithinCohort they are for the search without borrowing alone, and that is not made, or in vain.
    """
    queue = preemptor.queue
    assert queue.queue is not None
    if queue.queue.preemption.borrow:
        return False
    return not _is_under(queue, short) or not _own_quota_suffices(preemptor, own_candidates)


def _borrowing_below(cohort: Node, but: Node, short: Sequence[Pair]) -> Iterator[Node]:
    """Yield the queues that borrow, in child cohorts that borrow (3.3, 3.4)."""
    for child in cohort.cohorts:
        if child is not but and not child.within_nominal(short):
            yield from _borrowing_below(child, but, short)
    for queue in cohort.queues:
        if queue is not but and not queue.within_nominal(short):
            yield queue


def _reclaimed(preemptor: Workload, candidate: Workload, ancestor: Node, *, advantage: bool) -> _Candidate:
    """Return a candidate of another queue with its reason (5.3)."""
    if advantage:
        return _Candidate(candidate, Reason.RECLAMATION, ancestor=ancestor)
    queue = preemptor.queue.queue
    assert queue is not None
    policy = queue.preemption
    over = policy.max_priority is not None and candidate.priority > policy.max_priority
    if not policy.borrow or candidate.priority >= preemptor.priority or over:
        return _Candidate(candidate, Reason.RECLAMATION, only_without_borrowing=True, ancestor=ancestor)
    return _Candidate(candidate, Reason.WHILE_BORROWING, ancestor=ancestor)


def _merged(lists: _Lists, preemptor: Workload, books: Books) -> Iterator[_Candidate]:
    """Yield the evicted of the three lists, then the others of the three (section 4)."""
    rank = ordering(preemptor.queue, by_local_queue=books.site.by_local_queue)
    for evicted in (True, False):
        for each in (lists.hierarchical, lists.by_priority, lists.own):
            heap = [
                (rank(candidate.workload), at, candidate)
                for at, candidate in enumerate(each)
                if candidate.workload.evicted is evicted
            ]
            heapq.heapify(heap)
            while heap:
                yield heapq.heappop(heap)[2]


# --------------------------------------------------------------------------------- the search
def _attempt(
    preemptor: Workload,
    short: Sequence[Pair],
    candidates: Iterator[_Candidate],
    books: Books,
    *,
    borrowing: bool,
) -> tuple[Victim, ...]:
    """Take until it fits, then give back; whatever comes of it, the books end as they were (5.1)."""
    queue, asked = preemptor.queue, preemptor.uses
    taken: list[_Candidate] = []
    fit = False
    for candidate in candidates:
        if not _valid(candidate, short, borrowing=borrowing):
            continue
        books.take(candidate.workload.queue, candidate.workload.uses)
        taken.append(candidate)
        if fits(queue, asked, borrowing=borrowing):
            fit = True
            break
    kept = (
        give_back([each.workload for each in taken], queue, asked, books, borrowing=borrowing) if fit else []
    )
    for each in taken if not fit else [each for each in taken if each.workload in kept]:
        books.add(each.workload.queue, each.workload.uses)
    return tuple(Victim(each.workload, each.reason) for each in taken if each.workload in kept)


def give_back(
    taken: Sequence[Workload], queue: Node, asked: Amounts, books: Books, *, borrowing: bool
) -> list[Workload]:
    """Put back, last but one first, whose leaving is not needed; return the others, still taken (5.1)."""
    kept = list(taken)
    for each in reversed(taken[:-1]):
        books.add(each.queue, each.uses)
        if fits(queue, asked, borrowing=borrowing):
            kept.remove(each)
        else:
            books.take(each.queue, each.uses)
    return kept


def _valid(candidate: _Candidate, short: Sequence[Pair], *, borrowing: bool) -> bool:
    """Whether a candidate may still be taken (5.5)."""
    if candidate.ancestor is None:
        return True
    if borrowing and candidate.only_without_borrowing:
        return False
    queue = candidate.workload.queue
    if queue.within_nominal(short):
        return False
    for cohort in queue.above():
        if cohort is candidate.ancestor:
            return True
        if cohort.within_nominal(short):
            return False
    return True


def almost_ancestors(one: Node, other: Node) -> tuple[Node, Node]:
    """Return the children of the lowest common cohort above which two queues lie (6.8)."""
    top = common_ancestor(one, other)
    return _below(one, top), _below(other, top)


def _below(node: Node, top: Node) -> Node:
    while node.parent is not top:
        assert node.parent is not None
        node = node.parent
    return node

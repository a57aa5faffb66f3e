"""Tell at a glance who can neither be admitted nor find anybody to preempt (spec kueue 5, 6).

A queue's head is tried again whenever quota is given back in its tree, mostly in vain. What is asked here takes a few
comparisons for each level of the tree, and looks at no workload. A yes is final until books change; a no means that the
search has to be made.
"""

from __future__ import annotations

from collections.abc import Mapping

from makeway_kueue_cohort.books import Books, Node
from makeway_kueue_cohort.flavors import PodSet
from makeway_kueue_cohort.site import Pair, Preemption, Sharing, Within

Single = tuple[Pair, int]
"""The one pair that a workload can use, and how much of it it asks for, in thousandths."""


def single(node: Node, pod_set: PodSet) -> Single | None:
    """Return the pair that a workload uses if it asks for one resource, of which there is one flavor; None: more."""
    assert node.queue is not None
    groups = [group for group in node.queue.groups if set(group.resources) & set(pod_set.each)]
    if len(pod_set.each) != 1 or len(groups) != 1 or len(groups[0].flavors) != 1:
        return None
    ((resource, each),) = pod_set.each.items()
    pair, amount = (groups[0].flavors[0], resource), each * pod_set.count
    known = pair in node.queue.quotas and not any("pods" in group.resources for group in node.queue.groups)
    return (pair, amount) if known and 0 < amount <= node.potential(pair) else None


def hopeless(
    node: Node, pair: Pair, amount: int, priority: int, admitted: Mapping[int, int], books: Books
) -> bool:
    """Whether a workload of a queue can neither be admitted nor find victims; all who ask for more cannot, either.

    :param admitted: priority -> how many hold quota in the queue.
    """
    if amount <= max(0, node.available(pair)):
        return False
    assert node.queue is not None
    policy = node.queue.preemption
    if _may_find_own(policy, priority, admitted):
        return False
    if node.parent is None or policy.reclaim is Within.NEVER:
        return True
    if books.site.sharing is Sharing.FAIR:
        return _no_share_is_higher(node, pair, amount, entitlement=books.site.entitlement)
    return not policy.borrow and _nobody_by_right(node, pair, amount)


def _may_find_own(policy: Preemption, priority: int, admitted: Mapping[int, int]) -> bool:
    if policy.within_queue is Within.NEVER or not admitted:
        return False
    if policy.within_queue is Within.LOWER:
        return min(admitted) < priority
    return policy.within_queue is Within.ANY or min(admitted) <= priority


def _nobody_by_right(node: Node, pair: Pair, amount: int) -> bool:
    """Whether no subtree that the queue is in has room by right (5.2), and the queue itself has none (5.4)."""
    if node.used(pair) < node.quota(pair) and node.used(pair) + amount <= node.nominal(pair):
        return False
    below = node
    for ancestor in node.above():
        if not below.borrows(pair, amount):
            return False
        amount = max(0, amount - below.free_here(pair))
        below = ancestor
    return True


def _no_share_is_higher(node: Node, pair: Pair, amount: int, *, entitlement: bool) -> bool:
    """Whether all other queues of a cohort without cohorts have lower shares than this one would have (6.1)."""
    cohort = node.parent
    assert cohort is not None
    if cohort.parent is not None or cohort.cohorts:
        return False
    if entitlement and not node.borrows(pair, amount):
        return False
    asked = node.share_with(pair, amount)
    rivals = [other for other in cohort.queues if other is not node and other.borrows(pair)]
    return not rivals or asked > max(other.share() for other in rivals)

"""Tell at a glance who can neither be admitted nor find anybody to preempt (kueue 5, 6).

A queue's head is tried again whenever quota is given back in its tree, mostly in vain. What is asked here takes a few
comparisons for each level of the tree, and looks at no workload. A yes is final until books change; a no means that the
search has to be made.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from makeway_kueue_cohort.books import Books, Node
from makeway_kueue_cohort.flat import Flat
from makeway_kueue_cohort.flavors import PodSet
from makeway_kueue_cohort.site import Pair, Preemption, Sharing, Within

Single = tuple[Pair, int]
"""The one pair that a workload can use, and how much of it it asks for, in thousandths."""
UNBOUNDED = sys.maxsize


def single(node: Node, pod_set: PodSet) -> Single | None:
    """Return the pair that a workload uses if it asks for one resource, of which there is one flavor; None: more."""
    assert node.queue is not None
    groups = [group for group in node.queue.groups if set(group.resources) & set(pod_set.each)]
    if len(pod_set.each) != 1 or len(groups) != 1 or len(groups[0].flavors) != 1:
        return None
    if groups[0].flavors[0] in pod_set.closed:
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
    if books.site.sharing is not Sharing.FAIR:
        return amount > reach(node, pair, priority, admitted)
    flat = books.flats.get(node.parent.name) if node.parent is not None else None
    if flat is not None:
        return amount > fair_reach(node, flat, priority, admitted, entitlement=books.site.entitlement)
    if amount <= max(0, node.available(pair)):
        return False
    assert node.queue is not None
    policy = node.queue.preemption
    if _may_find_own(policy, priority, admitted):
        return False
    if node.parent is None or policy.reclaim is Within.NEVER:
        return True
    return _no_share_is_higher(node, pair, amount, entitlement=books.site.entitlement)


def reach(node: Node, pair: Pair, priority: int, admitted: Mapping[int, int]) -> int:
    """Return the most that a workload may ask for without being hopeless, in the classic way; 0: nothing.

    What others admit or are held does not make it more; only what is given back does, or the queue's own jobs
    of lower priority.
    """
    assert node.queue is not None
    policy = node.queue.preemption
    if _may_find_own(policy, priority, admitted):
        return UNBOUNDED
    free = max(0, node.available(pair))
    if node.parent is None or policy.reclaim is Within.NEVER:
        return free
    return UNBOUNDED if policy.borrow else max(free, _by_right(node, pair))


def fair_reach(
    node: Node,
    flat: Flat,
    priority: int,
    admitted: Mapping[int, int],
    *,
    entitlement: bool,
    stamp: int = -1,
) -> int:
    """Return the same by fair shares, in a cohort without cohorts whose queues have quota of one pair.

    It may grow when others are admitted: their shares do (6.1).

    :param stamp: state of the books; -1: it is not known.
    """
    assert node.queue is not None
    policy, pair = node.queue.preemption, flat.pair
    if _may_find_own(policy, priority, admitted):
        return UNBOUNDED
    free = max(0, node.available(pair))
    if policy.reclaim is Within.NEVER:
        return free
    me, used = flat.members[node.name], node.usage.get(pair, 0)
    highest = flat.highest(me, stamp)
    if highest:
        return max(free, flat.most_with(me, highest) - used)
    return max(free, me.quota - used) if entitlement else free


def _may_find_own(policy: Preemption, priority: int, admitted: Mapping[int, int]) -> bool:
    if policy.within_queue is Within.NEVER or not admitted:
        return False
    if policy.within_queue is Within.LOWER:
        return min(admitted) < priority
    return policy.within_queue is Within.ANY or min(admitted) <= priority


def _by_right(node: Node, pair: Pair) -> int:
    """Return the most for which a subtree that the queue is in has room by right (5.2), or the queue itself (5.4)."""
    used = node.usage.get(pair, 0)
    most = node.nominal(pair) - used if used < node.quota(pair) else 0
    below, passed = node, 0
    """What of a request stays below."""
    while below.parent is not None:
        used = below.usage.get(pair, 0)
        room = below.subtree.get(pair, 0) - used
        if room >= 0:
            most = max(most, passed + room)
        passed += max(0, below.local.get(pair, 0) - used)
        below = below.parent
    return most


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

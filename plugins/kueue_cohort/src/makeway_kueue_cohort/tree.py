"""Answer questions of quota about one queue or cohort of a tree (kueue 1.7 to 1.12, 6.2, 6.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from makeway_kueue_cohort.site import Amounts, Cohort, Pair, Queue, Quota

_NONE = Quota()
_MOST_SHARES = 1000
"""How many shares a node keeps."""
Share = tuple[int, float, Fraction]
"""(1 if it is infinite, the ratio by which to compare, the same exactly); 6.2, 6.3.

Rounding keeps the order, so that the exact ratio is looked at only where the rounded ones are equal.
"""
NO_SHARE: Share = (0, 0.0, Fraction(0))


class Node:
    """A queue or cohort with its quotas, and what is used of them."""

    __slots__ = (
        "_potential",
        "_share",
        "_shares_of",
        "cohorts",
        "height",
        "limits",
        "local",
        "name",
        "parent",
        "queue",
        "queues",
        "quotas",
        "subtree",
        "usage",
        "weight",
    )

    def __init__(self, of: Queue | Cohort) -> None:
        """Make a node that stands alone."""
        self.name = of.name
        self.queue = of if isinstance(of, Queue) else None
        self.quotas = of.quotas
        self.weight = of.weight
        self.parent: Node | None = None
        self.cohorts: list[Node] = []
        self.queues: list[Node] = []
        self.height = 0
        self.subtree: dict[Pair, int] = {}
        self.local: dict[Pair, int] = {}
        self.limits = {pair: q.borrowing_limit for pair, q in of.quotas.items()}
        self.usage: dict[Pair, int] = {}
        self._potential: dict[Pair, int] = {}
        self._share: Share | None = None
        self._shares_of: dict[tuple[str, int], Share] = {}

    # ------------------------------------------------------------------------------ the tree
    def children(self) -> Iterator[Node]:
        """Yield cohorts, then queues."""
        yield from self.cohorts
        yield from self.queues

    def above(self) -> Iterator[Node]:
        """Yield parent, grandparent, ..., root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def settle(self) -> None:
        """Work out what does not change, children first (1.7, 1.8)."""
        total = {pair: quota.nominal for pair, quota in self.quotas.items()}
        for child in self.children():
            child.settle()
            self.height = max(self.height, child.height + 1)
            for pair, amount in child.subtree.items():
                total[pair] = total.get(pair, 0) + amount - child.local[pair]
        self.subtree = total
        for pair, amount in total.items():
            limit = self.quotas.get(pair, _NONE).lending_limit
            self.local[pair] = 0 if limit is None else max(0, amount - limit)

    # ------------------------------------------------------------------------------ quota
    def quota(self, pair: Pair) -> int:
        """Return the subtree quota (1.7)."""
        return self.subtree.get(pair, 0)

    def nominal(self, pair: Pair) -> int:
        """Return the nominal quota (1.2)."""
        return self.quotas.get(pair, _NONE).nominal

    def used(self, pair: Pair) -> int:
        """Return the usage (1.9)."""
        return self.usage.get(pair, 0)

    def free_here(self, pair: Pair) -> int:
        """Return what is left of the local quota."""
        return max(0, self.local.get(pair, 0) - self.used(pair))

    def available(self, pair: Pair) -> int:
        """Return what may still be used (1.10); of the root it may be negative."""
        used, subtree = self.usage.get(pair, 0), self.subtree.get(pair, 0)
        if self.parent is None:
            return subtree - used
        local = self.local.get(pair, 0)
        above = self.parent.available(pair)
        limit = self.limits.get(pair)
        if limit is not None:
            above = min(above, subtree - local - max(0, used - local) + limit)
        return max(0, local - used) + above

    def potential(self, pair: Pair) -> int:
        """Return what could be used if nothing were (1.12)."""
        found = self._potential.get(pair)
        if found is None:
            found = self.quota(pair)
            if self.parent is not None:
                found = self.local.get(pair, 0) + self.parent.potential(pair)
                limit = self.limits.get(pair)
                if limit is not None:
                    found = min(found, self.quota(pair) + limit)
            self._potential[pair] = found
        return found

    def borrows(self, pair: Pair, more: int = 0) -> bool:
        """Whether it uses more than its own, with `more` besides (1.11)."""
        return self.usage.get(pair, 0) + more > self.subtree.get(pair, 0)

    def within_nominal(self, pairs: Iterable[Pair]) -> bool:
        """Whether it borrows in none of `pairs`."""
        usage, subtree = self.usage, self.subtree
        return all(usage.get(pair, 0) <= subtree.get(pair, 0) for pair in pairs)

    # ------------------------------------------------------------------------------ usage
    def change(self, pair: Pair, by: int) -> None:
        """Add to the usage, here and as far up as it is passed (1.9)."""
        node: Node | None = self
        while node is not None and by:
            before = node.usage.get(pair, 0)
            node.usage[pair] = before + by
            node._share = None
            local = node.local.get(pair, 0)
            by = max(0, before + by - local) - max(0, before - local)
            node = node.parent

    # ------------------------------------------------------------------------------ shares
    def share(self) -> Share:
        """Return the share by which fair sharing compares (6.2, 6.3)."""
        if self._share is None:
            self._share = self._compared()
        return self._share

    def _compared(self) -> Share:
        borrowed = self._borrowed() if self.parent is not None else {}
        if not borrowed:
            return NO_SHARE
        if len(borrowed) > 1:
            return self._share_of(borrowed)
        key = next(iter(borrowed.items()))
        found = self._shares_of.get(key)
        if found is None:
            if len(self._shares_of) >= _MOST_SHARES:
                self._shares_of.clear()
            found = self._shares_of[key] = self._share_of(borrowed)
        return found

    def _share_of(self, borrowed: Mapping[str, int]) -> Share:
        ratio, _ = self._ratio(borrowed)
        if self.weight:
            ratio /= self.weight
        return 0 if self.weight else 1, float(ratio), ratio

    def dominant(self) -> tuple[Fraction, str, bool]:
        """Return the unweighted ratio, its resource, and whether anything is borrowed; the root borrows nothing."""
        borrowed = self._borrowed() if self.parent is not None else {}
        return *self._ratio(borrowed), bool(borrowed)

    def _borrowed(self) -> dict[str, int]:
        """Return resource -> what is borrowed of it, over all flavors."""
        borrowed: dict[str, int] = {}
        for pair, used in self.usage.items():
            over = used - self.subtree.get(pair, 0)
            if over > 0:
                borrowed[pair[1]] = borrowed.get(pair[1], 0) + over
        return borrowed

    def _ratio(self, borrowed: Mapping[str, int]) -> tuple[Fraction, str]:
        best, which = Fraction(0), ""
        if self.parent is None:
            return best, which
        for resource in sorted(borrowed):
            lendable = self.parent.lendable(resource)
            if lendable > 0:
                ratio = Fraction(1000 * borrowed[resource], lendable)
                if ratio > best:
                    best, which = ratio, resource
        return best, which

    def lendable(self, resource: str) -> int:
        """Return what could be used of a resource here, over all flavors."""
        return sum(self.potential(pair) for pair in self._pairs_of(resource))

    def _pairs_of(self, resource: str) -> list[Pair]:
        return [pair for pair in root_of(self).subtree if pair[1] == resource]


def fits(queue: Node, asked: Amounts, *, borrowing: bool = True) -> bool:
    """Whether `asked` may be used, with borrowing or only of the queue's own (5.4)."""
    for pair, amount in asked.items():
        if amount > max(0, queue.available(pair)):
            return False
        if not borrowing and queue.used(pair) + amount > queue.nominal(pair):
            return False
    return True


def root_of(node: Node) -> Node:
    """Return the root of the tree that `node` is in."""
    while node.parent is not None:
        node = node.parent
    return node


def common_ancestor(one: Node, other: Node) -> Node:
    """Return the lowest cohort above both, which are in one tree."""
    mine = set(map(id, one.above()))
    return next(node for node in other.above() if id(node) in mine)

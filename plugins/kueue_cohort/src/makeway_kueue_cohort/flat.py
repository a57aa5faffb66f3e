"""Know what does not change in a cohort without cohorts whose queues have quota of one pair.

There shares are compared as whole numbers: what can be borrowed is the same for all, so that only what a queue borrows
and its weight count.
"""

from __future__ import annotations

import math

import attrs

from makeway_kueue_cohort.site import Pair
from makeway_kueue_cohort.tree import Node


@attrs.define(eq=False)
class Member:
    """A queue of such a cohort."""

    node: Node
    at: int
    """Its number."""
    quota: int
    local: int
    limit: int | None
    """Most that it may borrow; None: all there is."""
    factor: int
    """What each thousandth that it borrows adds to its share; 0: its weight is 0."""


class Flat:
    """A cohort without cohorts, whose queues have quota of one pair."""

    def __init__(self, root: Node, pair: Pair) -> None:
        """Work out what does not change."""
        self.root = root
        self.pair = pair
        self.quota = root.quota(pair)
        weights = [node.weight for node in root.queues]
        common = math.lcm(*(weight.numerator for weight in weights if weight)) if any(weights) else 1
        self.members = {
            node.name: Member(
                node,
                at,
                node.quota(pair),
                node.local.get(pair, 0),
                node.limits.get(pair),
                common * node.weight.denominator // node.weight.numerator if node.weight else 0,
            )
            for at, node in enumerate(root.queues)
        }
        self._infinite = max((each.factor for each in self.members.values()), default=1) + 1 << 128
        """More than any share of a queue that has a weight."""
        self._members = list(self.members.values())
        self._stamp = -1
        self._first: Member | None = None
        self._most = self._second = 0

    @classmethod
    def of(cls, root: Node) -> Flat | None:
        """Return it; None: the tree has cohorts or several pairs, or nothing could be borrowed."""
        simple = root.queue is None and not root.cohorts and len(root.subtree) == 1
        pair = next(iter(root.subtree), None)
        return cls(root, pair) if simple and pair is not None and root.quota(pair) > 0 else None

    def share(self, member: Member, used: int) -> int:
        """Return a number that is larger for a higher share, and the same for equal ones (6.2, 6.3)."""
        over = used - member.quota
        if over <= 0:
            return 0
        return over * member.factor if member.factor else self._infinite + over

    def most_with(self, member: Member, share: int) -> int:
        """Return the most that a queue may use and have no higher share than this one."""
        if member.factor:
            return member.quota + share // member.factor
        return member.quota + max(0, share - self._infinite)

    def highest(self, but: Member, stamp: int = -1) -> int:
        """Return the highest share of the queues save one; 0: none of them borrows.

        :param stamp: state of the books; what was found at the same one is not looked for again. -1: it is not known.
        """
        if stamp < 0 or stamp != self._stamp:
            self._stamp = stamp
            self._look()
        return self._second if but is self._first else self._most

    def _look(self) -> None:
        """Find the queue with the highest share, and the highest of the others."""
        pair, first, most, second = self.pair, None, 0, 0
        for member in self._members:
            used = member.node.usage.get(pair, 0)
            if used > member.quota:
                share = self.share(member, used)
                if share > most:
                    first, most, second = member, share, most
                elif share > second:
                    second = share
        self._first, self._most, self._second = first, most, second

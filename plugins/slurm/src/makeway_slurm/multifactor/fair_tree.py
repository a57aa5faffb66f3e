"""Rank users by the tree of their accounts (slurm-priority-and-limits 3.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from makeway_slurm.accounts.tree import Association, Tree


@attrs.frozen
class Share:
    """What fair share makes of one association."""

    used: float
    """Its part of what its level has used (U, EffectvUsage)."""
    level_fs: float | None
    """Its share over its part; infinite: it has used nothing. None: it takes no part."""
    factor: float | None = None
    """Between 0 and 1; None for accounts."""
    norm_usage: float = 0.0
    """Its part of what the whole cluster has used."""


def place_in_list(tie_order: str) -> Callable[[Association], tuple[object, ...]]:
    """Return the key by which siblings stand in Slurm's list of associations (3.2 no. 4)."""
    if tie_order == "newest_first":
        return lambda node: (-node.index,)
    return lambda node: (node.account, node.user, node.partition)


class FairTree:
    """Ranks the users of one tree."""

    def __init__(self, tree: Tree, tie_order: str) -> None:
        self._tree = tree
        key = place_in_list(tie_order)
        self._children: dict[int, list[int]] = {
            node.index: [child.index for child in sorted(node.fs_children, key=key)]
            for node in tree.nodes
            if node.fs_children
        }
        self._users = [bool(node.user) for node in tree.nodes]
        self.places = [
            (
                node.fs_parent.index if node.fs_parent is not None else tree.root.index,
                node.norm_shares,
                bool(node.user) and node.by_parent,
            )
            for node in tree.nodes
        ]
        """Of each association: whose level it stands in, its share, and whether it is endlessly well off."""
        self._orders: dict[int, list[tuple[int, bool]]] = {}
        """By whose level it is: who stands in it, as ranks were last found, and whether he is tied with the one before.

        Empty: they have not been found yet.
        """
        self._factors: list[float] = []
        """What came of it."""

    def factors(self, usage: Sequence[float]) -> Sequence[float]:
        """Return the factor of each user, by index of the association; those of accounts mean nothing.

        :param usage: what each association has used, by index, in whatever unit.
        """
        level = self._level(usage)
        if not self._orders or not _stands(self.neighbours(), level):
            self._orders = self._in_order(self._children, level.__getitem__)
            self._factors = self._walk(self._orders)
        return self._factors

    def factors_after(self, turned: Collection[int], level_of: Callable[[int], float]) -> Sequence[float]:
        """Return what `factors` would, where only in some levels somebody stands elsewhere than when they were found.

        :param turned: whose levels these are.
        :param level_of: returns of an association its share over its part of what its level has used.
        """
        self._orders.update(self._in_order(turned, level_of))
        self._factors = self._walk(self._orders)
        return self._factors

    def neighbours(self, above: Iterable[int] | None = None) -> Iterator[tuple[int, int, bool]]:
        """Yield who stood next to whom when ranks were last found, and whether they were tied.

        :param above: whose levels are meant; None: all are.
        """
        for each in self._orders if above is None else above:
            for (one, _), (other, tied) in itertools.pairwise(self._orders[each]):
                yield one, other, tied

    def in_level(self, above: int) -> Sequence[int]:
        """Return who stands in the level of an association."""
        return self._children[above]

    def rank(self, usage: Sequence[float]) -> Mapping[int, Share]:
        """Return the share of each association, by index."""
        total = usage[self._tree.root.index]
        used, level = self._levels(usage)
        factors = self._walk(self._in_order(self._children, level.__getitem__))
        return {
            node.index: Share(
                used=used[node.index] if node.parent is not None else 1.0,
                level_fs=None if node.parent is None or node.by_parent else level[node.index],
                factor=factors[node.index] if node.user else None,
                norm_usage=usage[node.index] / total if total else 0.0,
            )
            for node in self._tree.nodes
        }

    def _levels(self, usage: Sequence[float]) -> tuple[list[float], list[float]]:
        """Return of each association its part of what its level has used, and its share over that."""
        used = [
            mine / usage[above] if usage[above] else 0.0
            for mine, (above, _, _) in zip(usage, self.places, strict=True)
        ]
        return used, self._level(usage)

    def _level(self, usage: Sequence[float]) -> list[float]:
        """Return of each association its share over its part of what its level has used."""
        level: list[float] = []
        add, inf = level.append, math.inf
        for mine, (above, share, endless) in zip(usage, self.places, strict=True):
            if endless:
                add(inf)
            elif not share:
                add(0.0)
            else:
                total = usage[above]
                part = mine / total if total else 0.0
                add(share / part if part else inf)
        return level

    def _in_order(
        self, above: Iterable[int], level_of: Callable[[int], float]
    ) -> dict[int, list[tuple[int, bool]]]:
        """Return the order of some levels, the best off first, and who is tied with the one before."""
        users, orders = self._users, {}
        for each in above:
            # 1. the larger share over usage first, 2. users before accounts, 3. the order of ties
            keyed = sorted(
                [(-level_of(one), not users[one], at, one) for at, one in enumerate(self._children[each])]
            )
            order = orders[each] = [(keyed[0][3], False)]
            for (before, _, _, _), (minus, _, _, one) in itertools.pairwise(keyed):
                order.append((one, minus == before))
        return orders

    def _walk(self, orders: Mapping[int, Sequence[tuple[int, bool]]]) -> list[float]:
        """Go down the tree, the best off first; equals share a rank."""
        count = len(self._tree.users)
        rank = left = count
        found = [0.0] * len(self._users)
        users = self._users
        stack: list[tuple[int, bool]] = [(self._tree.root.index, False)]
        while stack:
            index, tied = stack.pop()
            if users[index]:
                if not tied:
                    rank = left
                found[index] = rank / count
                left -= 1
                continue
            order = orders.get(index)
            if order:
                stack += order[:0:-1]
                stack.append((order[0][0], tied))
        return found


def _stands(pairs: Iterable[tuple[int, int, bool]], level: Sequence[float]) -> bool:
    """Whether all neighbours stand as they did, tied ones tied: then all ranks are the same."""
    for one, other, tied in pairs:
        if tied:
            if level[one] != level[other]:
                return False
        elif level[one] <= level[other]:
            return False
    return True


__all__ = ["FairTree", "Share"]

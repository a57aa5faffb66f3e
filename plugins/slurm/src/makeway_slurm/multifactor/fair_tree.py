"""Rank users by the tree of their accounts (slurm-priority-and-limits 3.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

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
        users = [bool(node.user) for node in tree.nodes]
        self._children = {
            node.index: [
                (not users[child.index], at, child.index)
                for at, child in enumerate(sorted(node.fs_children, key=key))
            ]
            for node in tree.nodes
            if node.fs_children
        }
        """Of each level: users before accounts, then in the order of ties, then who it is."""
        self._users = users
        self._places = [
            (
                node.fs_parent.index if node.fs_parent is not None else tree.root.index,
                node.norm_shares,
                bool(node.user) and node.by_parent,
            )
            for node in tree.nodes
        ]
        """Of each association: whose level it stands in, its share, and whether it is endlessly well off."""

    def factors(self, usage: Sequence[float]) -> Sequence[float]:
        """Return the factor of each user, by index of the association; those of accounts mean nothing.

        :param usage: what each association has used, by index, in whatever unit.
        """
        return self._walk(self._level(usage))

    def rank(self, usage: Sequence[float]) -> Mapping[int, Share]:
        """Return the share of each association, by index."""
        total = usage[self._tree.root.index]
        used, level = self._levels(usage)
        factors = self._walk(level)
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
            for mine, (above, _, _) in zip(usage, self._places, strict=True)
        ]
        return used, self._level(usage)

    def _level(self, usage: Sequence[float]) -> list[float]:
        """Return of each association its share over its part of what its level has used."""
        level: list[float] = []
        add, inf = level.append, math.inf
        for mine, (above, share, endless) in zip(usage, self._places, strict=True):
            if endless:
                add(inf)
            elif not share:
                add(0.0)
            else:
                total = usage[above]
                part = mine / total if total else 0.0
                add(share / part if part else inf)
        return level

    def _walk(self, level: Sequence[float]) -> list[float]:
        """Go down the tree, the best off first; equals share a rank.

        :param level: share over usage of each association, by index.
        """
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
            children = self._children.get(index)
            if children:
                # 1. the larger share over usage first, 2. users before accounts, 3. the order of ties
                keyed = sorted([(-level[child[2]], child) for child in children], reverse=True)
                order = [(one[1][2], one[0] == before[0]) for one, before in itertools.pairwise(keyed)]
                stack += order
                stack.append((keyed[-1][1][2], tied))
        return found

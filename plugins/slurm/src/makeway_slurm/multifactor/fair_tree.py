"""Rank users by the tree of their accounts (slurm-priority-and-limits 3.2)."""

from __future__ import annotations

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


class FairTree:
    """Ranks the users of one tree."""

    def __init__(self, tree: Tree, tie_order: str) -> None:
        self._tree = tree
        newest = tie_order == "newest_first"
        key: Callable[[Association], tuple[object, ...]]
        key = (
            (lambda node: (-node.index,))
            if newest
            else (lambda node: (node.account, node.user, node.partition))
        )
        self._children: dict[int, list[Association]] = {
            node.index: sorted(node.fs_children, key=key) for node in tree.nodes if node.fs_children
        }

    def rank(self, usage: Sequence[float]) -> Mapping[int, Share]:
        """Return the share of each association, by index.

        :param usage: what each has used, by index.
        """
        tree = self._tree
        total = usage[tree.root.index]
        used: list[float] = []
        level: list[float] = []
        for node in tree.nodes:
            above = usage[node.fs_parent.index] if node.fs_parent is not None else total
            part = usage[node.index] / above if above else 0.0
            used.append(part)
            level.append(_level_fs(node, part))
        factors = self._walk(used, level)
        return {
            node.index: Share(
                used=used[node.index] if node.parent is not None else 1.0,
                level_fs=None if node.parent is None or node.by_parent else level[node.index],
                factor=factors.get(node.index),
                norm_usage=usage[node.index] / total if total else 0.0,
            )
            for node in tree.nodes
        }

    def _walk(self, used: Sequence[float], level: Sequence[float]) -> dict[int, float]:
        """Go down the tree, the best off first; equals share a rank."""
        count = len(self._tree.users)
        rank = left = count
        found: dict[int, float] = {}
        stack: list[tuple[Association, bool]] = []

        def push(account: Association, tied: bool) -> None:
            children = self._children.get(account.index, [])
            ordered = sorted(children, key=lambda node: (-level[node.index], not node.user))
            ties = [
                tied if at == 0 else level[node.index] == level[ordered[at - 1].index]
                for at, node in enumerate(ordered)
            ]
            stack.extend(reversed(list(zip(ordered, ties, strict=True))))

        push(self._tree.root, False)
        while stack:
            node, tied = stack.pop()
            if not node.user:
                push(node, tied)
                continue
            if not tied:
                rank = left
            found[node.index] = rank / count
            left -= 1
        return found


def _level_fs(node: Association, part: float) -> float:
    if node.user and node.by_parent:
        return math.inf
    if not node.norm_shares:
        return 0.0
    return node.norm_shares / part if part else math.inf


__all__ = ["FairTree", "Share"]

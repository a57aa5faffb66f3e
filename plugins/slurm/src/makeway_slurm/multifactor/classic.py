"""Fair share as it was before the fair tree: NO_FAIR_TREE, and DEPTH_OBLIVIOUS (slurm-priority-and-limits 4).

Slurm works out the effective usage of accounts when a recalculation begins, before decay and new usage. That of users
follows when it is asked for: when the first of their pending jobs is reached in the job table, or submitted later
on. So what is in force mixes this period with the last one; that is modelled, as measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from makeway_slurm.accounts.tree import Association, Tree
from makeway_slurm.multifactor.fair_tree import Share, place_in_list

Used = Callable[[Association], float]
HUGE = 4294967294.0
"""Norm usage of a user for whom it is not worked out, as Slurm adds it up (recorded: fair_depth_oblivious_new)."""


class Classic:
    """The effective usage of one tree, as it was last worked out."""

    def __init__(
        self, tree: Tree, dampening: int, *, oblivious: bool, tie_order: str, unknown: float
    ) -> None:
        """Be there for one tree.

        :param unknown: the norm usage of users for whom it is not worked out.
        """
        self._tree = tree
        self._unknown_norm = unknown
        self._accounts = _accounts(tree.root, place_in_list(tie_order))
        self._dampening = dampening
        self._oblivious = oblivious
        self._norm: dict[int, float] = {}
        """Norm usage (Un), as last worked out."""
        self._effective: dict[int, float] = {}
        self._shares = {node.index: _whole_share(node) for node in tree.nodes}
        self._users = [node.index for node in tree.nodes if node.user]
        self._unknown: set[int] = set()
        """Users that were not asked for since the last recalculation began."""

    def accounts(self, used: Used) -> None:
        """Work out the accounts, from the top: at the beginning of a recalculation.

        They follow in the order of Slurm's list, which matters where accounts of one level look at one another's last
        figures (recorded: fair_depth_oblivious_deep).
        """
        for node in self._accounts:
            self._set(node, used)
        self._unknown.update(self._users)

    def ask_for(self, node: Association, used: Used) -> None:
        """Work a user out, unless that was done since the last recalculation began.

        Of one with ``parent`` its account is asked for instead.
        """
        if not (node.by_parent and self._above(node).parent is not None):
            self._work_out(node, used)

    def look(self, used: Used) -> None:
        """Work out all users that are not known, as ``sshare`` does."""
        for node in self._tree.nodes:
            self._work_out(node, used)

    def _work_out(self, node: Association, used: Used) -> None:
        if node.index in self._unknown:
            self._unknown.discard(node.index)
            self._set(node, used)

    @staticmethod
    def _above(node: Association) -> Association:
        above = node.fs_parent if node.fs_parent is not None else node.parent
        return above if above is not None else node

    def _set(self, node: Association, used: Used) -> None:
        index = node.index
        if node.parent is None:
            self._norm[index] = self._effective[index] = 1.0
            return
        total = used(self._tree.root)
        norm = self._norm[index] = used(node) / total if total else 0.0
        above = self._above(node)
        if above.parent is None:  # even if its share is "parent" (recorded: fair_classic_parent)
            self._effective[index] = norm
        elif node.by_parent:
            self._effective[index] = self._effective.get(above.index, 0.0)
        elif self._oblivious:
            self._effective[index] = self._depth_oblivious(node, above, norm)
        else:
            used_above = self._effective.get(above.index, 0.0)
            part = node.shares / node.level_shares if node.level_shares else 0.0
            self._effective[index] = norm + (used_above - norm) * part

    def _depth_oblivious(self, node: Association, above: Association, norm: float) -> float:
        """Return Ue = S Rp Rl^k, or Un where one of them is 0."""
        share, share_above = self._shares[node.index], self._shares[above.index]
        used_above = self._effective.get(above.index, 0.0)
        if not (share and share_above and used_above and norm):
            return norm
        siblings = sum(
            self._norm.get(each.index, self._unknown_norm if each.user else 0.0)
            for each in above.fs_children
            if not (each.user and each.by_parent)
        )
        ratio_above = used_above / share_above
        ratio = (norm / share) / (siblings / share_above)
        one, other = math.log(ratio_above), math.log(ratio)
        power = 1.0 if one * other >= 0 else 1.0 / (1.0 + (5.0 * one) ** 2)
        return share * ratio_above * math.pow(ratio, power)

    def factor(self, node: Association, used: Used) -> float:
        """Return the fair-share factor of an association, 0 to 1."""
        self.ask_for(node, used)
        share = self._shares[node.index]
        if not share:
            return 0.0
        above = self._above(node)
        counts = above if node.by_parent and above.parent is not None else node
        return math.pow(2.0, -(self._effective.get(counts.index, 0.0) / share) / self._dampening)

    def shares(self, used: Used) -> Mapping[int, Share]:
        """Return what stands now, by index; what is only worked out to be looked at is not kept.

        Slurm does keep it, so that looking can change a priority (`look`).
        """
        norm, effective, unknown = dict(self._norm), dict(self._effective), set(self._unknown)
        self.look(used)
        found = {
            node.index: Share(
                used=self._effective.get(node.index, 1.0 if node.parent is None else 0.0),
                level_fs=None,
                factor=self.factor(node, used),
                norm_usage=self._norm.get(node.index, 0.0),
            )
            for node in self._tree.nodes
        }
        self._norm, self._effective, self._unknown = norm, effective, unknown
        return found

    def whole_share(self, node: Association) -> float:
        """Return the share of the whole cluster that an association has."""
        return self._shares[node.index]

    def save(self) -> dict[str, Any]:
        """Return what was worked out last, and for which users it is not known now."""
        return {
            "norm": {str(key): value for key, value in self._norm.items()},
            "effective": {str(key): value for key, value in self._effective.items()},
            "unknown": sorted(self._unknown),
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on with that."""
        self._norm = {int(key): value for key, value in memory["norm"].items()}
        self._effective = {int(key): value for key, value in memory["effective"].items()}
        self._unknown = set(memory.get("unknown", ()))


def _accounts(node: Association, key: Callable[[Association], tuple[object, ...]]) -> list[Association]:
    """Return an account and all below it, in the order of Slurm's list."""
    found = [node]
    for child in sorted(node.children, key=key):
        if not child.user:
            found += _accounts(child, key)
    return found


def _whole_share(node: Association) -> float:
    if node.parent is None:
        return 1.0
    if node.by_parent:
        return _whole_share(node.parent)
    return (node.shares / node.level_shares if node.level_shares else 0.0) * _whole_share(node.parent)

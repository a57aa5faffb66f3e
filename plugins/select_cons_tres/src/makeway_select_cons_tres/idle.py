"""Keep how many cores of each node are idle, and find the first node that has enough cores and memory for a job.

Many jobs want so many cores and so much memory of one node, and nothing else of it. For these a look at a few nodes
is enough where one fits. Where none does, that is remembered until a node gets more: what wants as much or more is
then answered without a look at any node. `makeway_select_cons_tres.fitting` says the same kind by kind, and
`tests/test_plain_jobs.py` holds one to the other.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.fitting import Fitting
from makeway_select_cons_tres.kinds import Wish

_MOST_LEVELS = 64
_MOST_BOUNDS = 8
_FEW = 8
_MOST_LOOKS = 24
"""So many nodes are looked at for their memory before all that fit are worked out."""
_UNBOUND = 1 << 60


class IdleCores:
    """The idle cores of some books' nodes, as the books are."""

    def __init__(self, books: Books, fitting: Fitting) -> None:
        self._books = books
        self._fitting = fitting
        self._era = -1
        self._seen = 0
        """How much of the books' history it has followed."""
        self._free: list[int] = []
        """Per node, how many cores are idle."""
        self._left: list[int] = []
        """Per node, how much memory."""
        self._levels: dict[int, NodeBits] = {}
        """Nodes by the least number of their idle cores, for numbers that were asked for."""
        self._steps: list[int] = []
        """These numbers, ascending."""
        self._below: list[int] = []
        """For each number of cores, how many of these are no higher."""
        self._most = 0
        """Cores of the largest node."""
        self._bounds: dict[NodeBits, dict[int, list[int]]] = {}
        """By nodes and partition: for each number of cores, at most how much memory a node has left that has them.

        Amounts are below zero, so that they ascend: what changes of them lies side by side.
        """
        self._raised: dict[NodeBits, int] = {}
        """Up to where in the books' history those about these nodes were raised: the others are once they are asked."""

    def first(self, wish: Wish, nodes: NodeBits, apart: NodeBits = 0) -> int:
        """Return the first of `nodes`, by weight and index, that has what is wished; -1: none has. `sync` before.

        :param apart: nodes that are out of the question for other reasons.
        """
        books, cores = self._books, wish.cores
        if self._seen != len(books.history) or self._era != books.era:
            self._follow()
        bounds = None
        if wish.spans and (reach := self._bounds.get(nodes)) is not None:
            if self._raised[nodes] != self._seen:
                self._raise(nodes, reach)
            bounds = reach.get(wish.partition)
            if bounds is not None and wish.memory + bounds[cores] > 0:
                return -1
        level = self._levels.get(cores)
        if level is None:
            level = self._level(cores)
        some = level & nodes & wish.able & ~apart
        most = -1
        if some:
            found, most = self._with_memory(wish, some)
            if found >= 0:
                return found
        if wish.spans and not apart:
            self._lower(wish, nodes, bounds, most if most > wish.too_small else wish.too_small)
        return -1

    def any(self, wish: Wish, nodes: NodeBits) -> bool:
        """Whether one of `nodes` has what is wished, the one that had it the last time first. `reach` before."""
        node, books = wish.seen_on, self._books
        if (
            node < 0
            or not nodes >> node & 1
            or self._free[node] < wish.cores
            or books.layout.memory[node] - books.memory[node] < wish.memory
        ):
            wish.seen_on = node = self.first(wish, nodes)
        return node >= 0

    def _with_memory(self, wish: Wish, some: NodeBits) -> tuple[int, int]:
        """Return the first of `some`, all of which have the cores, that has the memory; -1: none has.

        :returns: with the most memory that any of them has left, or may have, if none has enough.
        """
        books, lefts, memory = self._books, self._left, wish.memory
        looks, most = _MOST_LOOKS, 0
        for group in books.layout.by_weight:
            left = some & group
            while left:
                lowest = left & -left
                index = lowest.bit_length() - 1
                has = lefts[index]
                if not memory or has >= memory:
                    return index, has
                if has > most:
                    most = has
                looks -= 1
                if not looks:
                    return self._among_all(wish, some), memory - 1
                left ^= lowest
        return -1, most

    def _among_all(self, wish: Wish, some: NodeBits) -> int:
        fit = some & self._fitting.nodes(wish.kind)
        for group in self._books.layout.by_weight:
            left = fit & group
            if left:
                return (left & -left).bit_length() - 1
        return -1

    def _level(self, cores: int) -> NodeBits:
        """Return the nodes with so many idle cores, and keep them from now on."""
        if len(self._levels) >= _MOST_LEVELS:
            self._levels.clear()
        nodes = bitmap.of([node for node, free in enumerate(self._free) if free >= cores])
        self._levels[cores] = nodes
        self._count_steps()
        return nodes

    # ----------------------------------------------------------------------------- what is out of reach
    def _lower(self, wish: Wish, nodes: NodeBits, bounds: list[int] | None, left: int) -> None:
        """Remember that no node has what is wished.

        :param left: at most so much memory has any that has the cores.
        """
        if bounds is None:
            reach = self.reach(nodes)
            bounds = reach[wish.partition] = [-_UNBOUND] * (self._most + 2)
        first = wish.cores
        end = bisect.bisect_left(bounds, -left, first)
        bounds[first:end] = [-left] * (end - first)

    def reach(self, nodes: NodeBits) -> dict[int, list[int]]:
        """Return by partition and number of cores at most how much memory any of `nodes` has left that has them.

        The amounts are below zero. `sync` before; where nothing is said of a partition, there may be any amount.
        """
        books = self._books
        if self._seen != len(books.history) or self._era != books.era:
            self._follow()
        found = self._bounds.get(nodes)
        if found is None:
            if len(self._bounds) >= _MOST_BOUNDS:  # those about most nodes are asked for again and again
                least = min(self._bounds, key=int.bit_count)
                del self._bounds[least], self._raised[least]
            found = self._bounds[nodes] = {}
            self._raised[nodes] = self._seen
        elif self._raised[nodes] != self._seen:
            self._raise(nodes, found)
        return found

    def _raise(self, nodes: NodeBits, reach: dict[int, list[int]]) -> None:
        """Raise bounds to what the nodes have that were touched since they were asked about."""
        free, lefts, raised = self._free, self._left, self._raised[nodes]
        self._raised[nodes] = self._seen
        if not reach:
            return
        touched: Collection[int] = self._books.history[raised:]
        if len(touched) >= _FEW:
            touched = set(touched)
        for bounds in reach.values():
            for node in touched:
                if nodes >> node & 1:
                    cores = free[node]
                    most = -lefts[node] if lefts[node] > 0 else 0
                    if bounds[cores] > most:
                        first = bisect.bisect_right(bounds, most, 0, cores)
                        bounds[first : cores + 1] = [most] * (cores + 1 - first)

    def _follow(self) -> None:
        """Look again at the nodes that were touched."""
        books = self._books
        if self._era != books.era:
            self._begin()
            return
        free, busy, sizes = self._free, books.busy, books.layout.core_count
        levels, steps, below = self._levels, self._steps, self._below
        room, used, lefts = books.layout.memory, books.memory, self._left
        history, seen = books.history, self._seen
        self._seen = len(history)
        for node in history[seen:]:
            before, now = free[node], sizes[node] - busy[node].bit_count()
            if now != before:
                free[node] = now
                bit = 1 << node
                if now < before:
                    for step in steps[below[now] : below[before]]:
                        levels[step] ^= bit
                else:
                    for step in steps[below[before] : below[now]]:
                        levels[step] ^= bit
            lefts[node] = room[node] - used[node]

    def _begin(self) -> None:
        books = self._books
        self._era, self._seen = books.era, len(books.history)
        sizes, busy = books.layout.core_count, books.busy
        self._most = max(sizes, default=0)
        self._free = [size - busy[node].bit_count() for node, size in enumerate(sizes)]
        self._left = [room - used for room, used in zip(books.layout.memory, books.memory, strict=True)]
        self._levels.clear()
        self._count_steps()
        self._bounds.clear()
        self._raised.clear()

    def _count_steps(self) -> None:
        """Note for each number of cores how many of the levels ask for no more."""
        self._steps = steps = sorted(self._levels)
        self._below = [bisect.bisect_right(steps, cores) for cores in range(self._most + 2)]


__all__ = ["IdleCores", "Wish"]

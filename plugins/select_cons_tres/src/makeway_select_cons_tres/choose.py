"""Choose among usable nodes, and how many CPUs to take of each (slurm-gang-and-select 4.3.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway_select_cons_tres.cpus import threads_for
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.parameters import Unit
from makeway_select_cons_tres.request import Request

Taken = dict[int, int]
"""CPUs taken, by node index."""


@attrs.define(eq=False)
class Pool:
    """What there is to choose from."""

    nodes: NodeBits
    cpus: Sequence[int]
    """Usable CPUs, by node index."""
    like: int | None
    """Their number if it is the same on all of `nodes`; None: not known, or it is not."""


def choose(
    request: Request,
    pool: Pool,
    layout: Layout,
    *,
    first_fit: bool,
    walk: Callable[[Request, Pool, Layout], Walk] | None = None,
) -> Taken | None:
    """Return what to take; None if it does not suffice.

    :param first_fit: whether a job limited to one node gets the first one that serves.
    :param walk: makes what takes nodes; None: by CPUs alone.
    """
    walk = walk or Walk
    required = request.required
    if required & ~pool.nodes:
        return None
    if first_fit and request.max_nodes == 1:
        return _first(request, pool, layout)
    taken = _by_method(request, walk(request, pool, layout), pool)
    if taken is None and not _hopeless(request, pool):
        return _without_small_nodes(request, pool, layout, walk)
    return taken


def _by_method(request: Request, walk: Walk, pool: Pool) -> Taken | None:
    for index in bitmap.indices(request.required):
        walk.take(index)
    rest = pool.nodes & ~request.required
    if request.spread:
        walk.spread(rest)
    elif request.least_loaded:
        walk.least_loaded(rest)
    else:
        walk.blocks(rest)
    return walk.taken if walk.is_enough() else None


def _first(request: Request, pool: Pool, layout: Layout) -> Taken | None:
    """Take the first node by weight and index (one-node shortcut)."""
    nodes = request.required or pool.nodes
    if request.required.bit_count() > 1:
        return None
    for group in layout.by_weight:
        some = nodes & group
        while some:
            index = bitmap.lowest(some)
            walk = Walk(request, pool, layout)
            if walk.size(index) >= request.min_cpus:
                walk.take(index)
                return walk.taken
            some &= some - 1
    return None


def _hopeless(request: Request, pool: Pool) -> bool:
    """Whether all usable nodes together, or as many as are allowed, do not have the CPUs."""
    indices = bitmap.indices(pool.nodes)
    if len(indices) < request.min_nodes:
        return True
    sizes = [pool.cpus[index] for index in indices]
    if request.max_nodes is not None and request.max_nodes < len(sizes):
        sizes = sorted(sizes, reverse=True)[: request.max_nodes]
    return sum(sizes) < request.min_cpus


def _without_small_nodes(
    request: Request, pool: Pool, layout: Layout, walk: Callable[[Request, Pool, Layout], Walk]
) -> Taken | None:
    """Try again without the nodes that have the fewest CPUs, as long as enough are left."""
    nodes = pool.nodes
    while True:
        indices = bitmap.indices(nodes & ~request.required)
        if not indices:
            return None
        least = min(pool.cpus[index] for index in indices)
        nodes &= ~bitmap.of([index for index in indices if pool.cpus[index] == least])
        if nodes.bit_count() < request.min_nodes:
            return None
        smaller = attrs.evolve(pool, nodes=nodes)
        if _hopeless(request, smaller):
            return None
        taken = _by_method(request, walk(request, smaller, layout), smaller)
        if taken is not None:
            return taken


class Walk:
    """What is taken, and what is still missing."""

    def __init__(self, request: Request, pool: Pool, layout: Layout) -> None:
        self.taken: Taken = {}
        self._request = request
        self._pool = pool
        self._layout = layout
        self._cpus = pool.cpus
        self._most = request.most_on_node
        self._slack = request.target - request.min_nodes
        self.rem_nodes = request.target
        self.rem_cpus = request.min_cpus

    # -------------------------------------------------------------------------------- taking
    def size(self, index: int) -> int:
        """Return the CPUs that the job could use of a node."""
        cpus = self._cpus[index]
        return cpus if self._most is None or cpus < self._most else self._most

    def take(self, index: int) -> None:
        """Take what is due of a node: pack, but leave a core for each node that still has to come."""
        request = self._request
        cpus = self.size(index)
        if not request.whole:
            more = self.rem_nodes - self._slack - 1
            reserve = more * self._unit(index) if more > 0 else 0
            cpus = min(cpus, max(self.rem_cpus - reserve, request.cpus_per_node, 1))
        self.taken[index] = cpus
        self.rem_nodes -= 1
        self.rem_cpus -= cpus

    def _unit(self, index: int) -> int:
        """Return the CPUs kept back for a node that has to come: a core's, with CR_CPU too, or a socket's."""
        shape = self._layout.shape(index)
        threads = threads_for(shape, self._request.need)
        return threads * (shape.cores_per_socket if self._request.need.unit is Unit.SOCKET else 1)

    def wants_more(self) -> bool:
        """Whether anything is missing, and another node is allowed."""
        most = self._request.max_nodes
        if most is not None and len(self.taken) >= most:
            return False
        return self.rem_nodes > 0 or self.rem_cpus > 0

    def is_enough(self) -> bool:
        """Whether the CPUs are there, and the nodes or at least their minimum."""
        return self.rem_cpus <= 0 and len(self.taken) >= self._request.min_nodes

    def sufficient(self, nodes: int, cpus: int) -> bool:
        """Whether so much would complete the job."""
        return cpus >= self.rem_cpus and nodes >= self.rem_nodes - self._slack

    def completes(self, block: Block) -> bool:
        """Whether a block would complete the job."""
        return self.sufficient(len(block.indices), block.cpus)

    def _completes_alone(self, index: int) -> bool:
        """Whether nothing but CPUs keeps a node from completing the job."""
        del index
        return True

    def _is_useless(self, index: int) -> bool:
        """Whether it is the last node allowed and does not have what is missing."""
        most = self._request.max_nodes
        return most is not None and len(self.taken) == most - 1 and self.size(index) < self.rem_cpus

    # ------------------------------------------------------------------ consecutive best fit
    def blocks(self, nodes: NodeBits) -> None:
        """Take from the tightest blocks of consecutive nodes."""
        required = self._request.required
        listed = self._blocks(nodes, required)
        if self._request.contiguous:
            self._from_one_block(listed, required)
            return
        if self._alike(listed):
            listed.sort(key=lambda block: -block.cpus)
            self._from_largest(listed)
        while listed and self.wants_more():
            self._take_from(listed.pop(self._best(listed)))

    def _blocks(self, nodes: NodeBits, required: NodeBits) -> list[Block]:
        groups = self._layout.by_weight
        if len(groups) == 1 or self._request.contiguous:
            groups = [-1]
        elif required:
            return self._blocks_around(nodes, required)
        found = []
        for weight, group in enumerate(groups):
            some = (nodes | required) & group
            for first, stop in bitmap.runs(some):
                inside = bitmap.span(first, stop)
                pivot = bitmap.lowest(inside & required) if required else -1
                if required:
                    indices: Sequence[int] = bitmap.indices(inside & nodes)
                else:
                    indices = range(first, stop)
                if self._request.contiguous:
                    weight = self._layout.weight[stop - 1]
                if indices or (pivot >= 0 and self._request.contiguous):
                    found.append(Block(first, stop, indices, self._sum(indices), weight, pivot))
        found.sort(key=lambda block: block.first)
        return found

    def _blocks_around(self, nodes: NodeBits, required: NodeBits) -> list[Block]:
        """Split nodes of several weights, of which some are required and already taken.

        A required node belongs to the block behind it, and to the one before it if it weighs as much. It is no pivot
        where it parts two blocks (recorded: cons_required_weight, cons_required_weights).
        """
        ranks = {
            index: rank
            for rank, group in enumerate(self._layout.by_weight)
            for index in bitmap.indices(group)
        }
        found = []
        for first, stop in bitmap.runs(nodes | required):
            begun, rest, weight, pivot = first, list[int](), -1, -1
            for index in range(first, stop):
                is_required, own = required >> index & 1, ranks[index]
                if rest and own != weight:
                    found.append(Block(begun, index, rest, self._sum(rest), weight, pivot))
                    begun, rest, pivot = index, [], -1
                elif is_required and pivot < 0:
                    pivot = index
                if not is_required:
                    rest, weight = [*rest, index], own
            found.append(Block(begun, stop, rest, self._sum(rest), weight, pivot))
        return [block for block in found if block.indices]

    def _sum(self, indices: Sequence[int]) -> int:
        """Return the CPUs of consecutive nodes."""
        if self._pool.like is not None:
            each = self._pool.like
            return len(indices) * (each if self._most is None else min(each, self._most))
        if self._most is None and isinstance(indices, range):
            return sum(self._cpus[indices.start : indices.stop])
        return sum(map(self.size, indices))

    def _alike(self, blocks: Sequence[Block]) -> bool:
        """Whether more CPUs always means more nodes, so that blocks can be sorted once."""
        return (
            self._pool.like is not None
            and len(blocks) > 32
            and len(self._layout.by_weight) == 1
            and not self._request.required
        )

    def _from_largest(self, blocks: list[Block]) -> None:
        """Take the largest blocks of like nodes, in descending order, while none of them suffices."""
        at = 0
        while at < len(blocks) and self.wants_more():
            block = blocks[at]
            if self.completes(block):
                break
            self._take_from(block)
            at += 1
        del blocks[:at]
        blocks.sort(key=lambda block: block.first)

    def _best(self, blocks: Sequence[Block]) -> int:
        """Return which block to take; a tighter or larger one may displace that with a required node."""
        best = 0
        best_enough = self.completes(blocks[0])
        for at in range(1, len(blocks)):
            block, chosen = blocks[at], blocks[best]
            enough = self.completes(block)
            if (
                (block.pivot >= 0 and chosen.pivot < 0)
                or block.weight < chosen.weight
                or (
                    block.weight == chosen.weight
                    and (
                        (enough and (not best_enough or block.cpus < chosen.cpus))
                        or (not enough and block.cpus > chosen.cpus)
                    )
                )
            ):
                best, best_enough = at, enough
        return best

    def _take_from(self, block: Block) -> None:
        if block.pivot < 0 and self.rem_nodes <= 1:
            single = self._tightest(block)
            if single >= 0:
                self.take(single)
                return
        indices = block.walk()
        if self._pool.like:
            indices = indices[self._take_run(indices, self._pool.like) :]
        for index in indices:
            if not self.wants_more():
                return
            if not self._is_useless(index):
                self.take(index)

    def _take_run(self, indices: Sequence[int], each: int) -> int:
        """Take the first of like nodes at once, as far as each of them gives all it has; return how many."""
        if self._most is not None and self._most < each:
            each = self._most
        count = self.rem_nodes
        if self._request.whole:
            count = max(count, -(-self.rem_cpus // each))
        elif self.rem_cpus < self.rem_nodes * each:
            return 0  # some have to leave a core for others
        if self._request.max_nodes is not None:
            count = min(count, self._request.max_nodes - len(self.taken))
        count = max(0, min(len(indices), count))
        self.taken.update(dict.fromkeys(indices[:count], each))
        self.rem_nodes -= count
        self.rem_cpus -= count * each
        return count

    def _tightest(self, block: Block) -> int:
        """Return the node of the block with the fewest CPUs that suffice; -1 if there is none."""
        wanted = self.rem_cpus
        found, fewest = -1, 0
        for index in block.indices:
            cpus = self.size(index)
            if cpus >= wanted and (found < 0 or cpus < fewest) and self._completes_alone(index):
                found, fewest = index, cpus
                if cpus == wanted:
                    break
        return found

    def _from_one_block(self, blocks: Sequence[Block], required: NodeBits) -> None:
        """Take everything from the best block, which must suffice and have all required nodes.

        No other is looked at: a light block that is too small keeps the job from a heavy one.
        """
        best = blocks[self._best(blocks)] if blocks else None
        if best is None or not self.completes(best) or required & ~bitmap.span(best.first, best.stop):
            self.rem_cpus = max(self.rem_cpus, 1)
            return
        self._take_from(best)

    # ------------------------------------------------------------------------- other methods
    def least_loaded(self, nodes: NodeBits) -> None:
        """Take the node with the largest share of free CPUs, all that is usable of it, then the next."""
        total = self._layout.cluster.nodes
        cpus = self._cpus
        order = sorted(
            bitmap.indices(nodes),
            key=lambda i: (self._layout.weight[i], -cpus[i] / total[i].cpus, i),
        )
        for index in order:
            if not self.wants_more():
                return
            if not self._is_useless(index):
                self.take(index)

    def spread(self, nodes: NodeBits) -> None:
        """Use as many nodes as are allowed or have a task, lowest weight first (``--spread-job``)."""
        request = self._request
        order = sorted(bitmap.indices(nodes), key=lambda i: (self._layout.weight[i], i))
        room = len(order) + len(self.taken)
        most = min(room, request.max_nodes or room, request.tasks or request.min_nodes)
        self.rem_nodes = max(self.rem_nodes, most - len(self.taken))
        for index in order:
            if not self.wants_more():
                return
            share = -(-self.rem_cpus // max(self.rem_nodes, 1))
            self.taken[index] = cpus = max(min(self.size(index), share), request.cpus_per_node)
            self.rem_nodes -= 1
            self.rem_cpus -= cpus


@attrs.define(eq=False)
class Block:
    """Consecutive nodes of one weight."""

    first: int
    stop: int
    """The index behind the last."""
    indices: Sequence[int]
    """Those that can still be taken, ascending."""
    cpus: int
    weight: int
    """Place of the weight among all weights; of a block of any weights, that of its last node."""
    pivot: int
    """The lowest required node in it; -1: there is none."""

    def walk(self) -> Sequence[int]:
        """Return the nodes as they are taken: ascending, or up from a required one and then down from it."""
        if self.pivot < 0:
            return self.indices
        above = [i for i in self.indices if i > self.pivot]
        return above + [i for i in reversed(self.indices) if i < self.pivot]

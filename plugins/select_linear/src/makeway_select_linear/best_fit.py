"""Choose among usable nodes: the tightest block of consecutive nodes (slurm-gang-and-select 4.2.5)."""

from __future__ import annotations

from collections.abc import Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway_select_linear.request import Request


def best_fit(nodes: NodeBits, request: Request, cpus: Sequence[int], uniform: int | None) -> NodeBits | None:
    """Return the nodes to take out of `nodes`; None if they do not suffice.

    :param cpus: CPUs of each node that count for the job, by node index.
    :param uniform: their number if all are alike, else None.
    """
    if request.counted_cpus is not None:
        uniform = request.counted_cpus
    required = request.required
    alike = request.alike if request.alike is not None else nodes_alike(request, uniform)
    if alike is not None:
        return like_nodes(nodes, alike, request.max_nodes)
    if required & ~nodes:
        return None
    if request.counted_cpus is not None:
        cpus = [request.counted_cpus] * len(cpus)  # as long as the cluster: only where nodes are walked
    walk = _Walk(request, cpus, uniform)
    if required:
        for index in bitmap.indices(required):
            walk.take_one(index)
        if not walk.wants_more():
            return walk.taken if walk.is_enough() else None
    rest = nodes & ~required
    if request.contiguous:
        return _contiguous(nodes, walk, request)
    if uniform is None and walk.needs_large_nodes(rest):
        walk.take_largest(rest)
    else:
        walk.take_blocks(rest, required)
    return walk.taken if walk.is_enough() else None


def nodes_alike(request: Request, uniform: int | None) -> int | None:
    """Return how many nodes it takes if all have `uniform` CPUs and any of them would do; None: it matters which."""
    if uniform is None or request.required or request.contiguous or request.target != request.min_nodes:
        return None
    return max(request.target, -(-request.min_cpus // uniform))


def like_nodes(nodes: NodeBits, wanted: int, most: int | None) -> NodeBits | None:
    """Step 4 for nodes that are all alike: blocks compare by their size alone."""
    if not bitmap.has(nodes, wanted) or (most is not None and wanted > most):
        return None
    return tightest(nodes, wanted)


def tightest(nodes: NodeBits, wanted: int) -> NodeBits:
    """Return the same of nodes that suffice."""
    first, stop = bitmap.tight_run(nodes, wanted)
    if stop - first >= wanted:
        return bitmap.span(first, first + wanted)
    return nodes if nodes.bit_count() == wanted else _largest_blocks(nodes, wanted)


def _largest_blocks(nodes: NodeBits, wanted: int) -> NodeBits:
    """Take the largest block while none is enough, then as much as is missing of the tightest that is.

    Sorting once is what keeps this quick where thousands of single nodes were freed.
    """
    blocks = sorted(bitmap.runs(nodes), key=lambda block: (block[0] - block[1], block[0]))
    taken: list[int] = []
    for at, (first, stop) in enumerate(blocks):
        if stop - first >= wanted:
            enough = (block for block in blocks[at:] if block[1] - block[0] >= wanted)
            first = min(enough, key=lambda block: (block[1] - block[0], block[0]))[0]
            taken += range(first, first + wanted)
            break
        taken += range(first, stop)
        wanted -= stop - first
    return bitmap.of(taken)


class _Walk:
    """What is taken, and what is still missing."""

    def __init__(self, request: Request, cpus: Sequence[int], uniform: int | None) -> None:
        self.taken: NodeBits = 0
        self.count = 0
        self._cpus = cpus
        self._uniform = uniform
        self._min_nodes = request.min_nodes
        self._max = request.max_nodes
        self._slack = request.target - request.min_nodes
        self.rem_nodes = request.target
        self.rem_cpus = request.min_cpus

    def wants_more(self) -> bool:
        if self._max is not None and self.count >= self._max:
            return False
        return self.rem_nodes > 0 or self.rem_cpus > 0

    def is_enough(self) -> bool:
        return self.rem_cpus <= 0 and self.count >= self._min_nodes

    def take_one(self, index: int) -> None:
        self.taken |= 1 << index
        self.count += 1
        self.rem_nodes -= 1
        self.rem_cpus -= self._cpus[index]

    def sufficient(self, nodes: int, cpus: int) -> bool:
        return cpus >= self.rem_cpus and nodes >= self.rem_nodes - self._slack

    # ------------------------------------------------------------------ unlike nodes (step 3)
    def needs_large_nodes(self, nodes: NodeBits) -> bool:
        sizes = [self._cpus[index] for index in bitmap.indices(nodes)]
        return bool(sizes) and min(sizes) < max(sizes) and self.rem_cpus > min(sizes) * self.rem_nodes

    def take_largest(self, nodes: NodeBits) -> None:
        """Take the nodes with most CPUs first, the highest index among equals."""
        order = sorted(bitmap.indices(nodes), key=lambda index: (-self._cpus[index], -index))
        for index in order:
            if not self.wants_more():
                return
            self.take_one(index)

    # ------------------------------------------------------------------------ blocks (step 4)
    def take_blocks(self, nodes: NodeBits, required: NodeBits) -> None:
        blocks = bitmap.runs(nodes | required)
        listed = [
            _Block(first, stop, nodes & bitmap.span(first, stop) if required else -1, required)
            for first, stop in blocks
        ]
        for block in listed:
            block.measure(self._cpus, self._uniform)
        listed = [block for block in listed if block.size]
        while listed and self.wants_more():
            best = self._best(listed)
            self._take_from(listed.pop(best))

    def _best(self, blocks: Sequence[_Block]) -> int:
        """Return which block to take; later tests of a block's worth displace earlier ones (step 4)."""
        best = 0
        best_enough = self.sufficient(blocks[0].size, blocks[0].cpus)
        for at in range(1, len(blocks)):
            block = blocks[at]
            enough = self.sufficient(block.size, block.cpus)
            chosen = blocks[best]
            if (
                (block.pivot >= 0 and chosen.pivot < 0)
                or (enough and not best_enough)
                or (enough and block.cpus < chosen.cpus)
                or (not enough and block.cpus > chosen.cpus)
            ):
                best, best_enough = at, enough
        return best

    def _take_from(self, block: _Block) -> None:
        for index in block.walk():
            if not self.wants_more():
                return
            self.take_one(index)


class _Block:
    """Consecutive nodes; `nodes` is -1 when all of them may still be taken."""

    __slots__ = ("cpus", "first", "nodes", "pivot", "size", "stop")

    def __init__(self, first: int, stop: int, nodes: NodeBits, required: NodeBits) -> None:
        self.first = first
        self.stop = stop
        self.nodes = nodes
        inside = required & bitmap.span(first, stop) if required else 0
        self.pivot = bitmap.lowest(inside) if inside else -1
        self.size = 0
        self.cpus = 0

    def measure(self, cpus: Sequence[int], uniform: int | None) -> None:
        self.size = self.stop - self.first if self.nodes == -1 else self.nodes.bit_count()
        if uniform is not None:
            self.cpus = self.size * uniform
        else:
            self.cpus = sum(cpus[index] for index in self.walk())

    def walk(self) -> list[int]:
        """Return the nodes in the order in which they are taken: up from a required one, then down from it."""
        if self.nodes == -1:
            return list(range(self.first, self.stop))
        listed = bitmap.indices(self.nodes)
        if self.pivot < 0:
            return listed
        return [i for i in listed if i > self.pivot] + [i for i in reversed(listed) if i < self.pivot]


def _contiguous(nodes: NodeBits, walk: _Walk, request: Request) -> NodeBits | None:
    """Take everything from one block, which must hold all required nodes (step 5)."""
    required = request.required
    best: tuple[int, int] | None = None
    best_cpus = 0
    for first, stop in bitmap.runs(nodes):
        if required & ~bitmap.span(first, stop):
            continue
        cpus = sum(walk._cpus[index] for index in range(first, stop))
        if stop - first < request.min_nodes or cpus < request.min_cpus:
            continue
        if best is None or cpus < best_cpus:
            best, best_cpus = (first, stop), cpus
    if best is None:
        return None
    first, stop = best
    block = _Block(first, stop, bitmap.span(first, stop) & ~required if required else -1, required)
    for index in block.walk():
        if not walk.wants_more():
            break
        walk.take_one(index)
    return walk.taken if walk.is_enough() else None

"""Nodes and CPUs are those of a plain transcription of slurm-gang-and-select 4.3.6, on many small clusters.

The transcription counts again for each question and knows nothing of bit maps, runs of like nodes or sorted blocks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import attrs
import pytest

from makeway import bitmap
from makeway.model import Cluster, Partition
from makeway_select_cons_tres.choose import Pool, choose
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.parameters import Unit
from makeway_select_cons_tres.request import ONE_ROW, NodeNeed, Request
from makeway_testing.builders import build_cluster, config, node

Taken = dict[int, int]
"""CPUs by node."""


def asked(partition: Partition, **more: object) -> Request:
    """Return a request of one node and one CPU; `more` wins."""
    base: dict[str, object] = {
        "partition": partition,
        "need": NodeNeed(unit=Unit.CORE),
        "min_nodes": 1,
        "target": 1,
        "max_nodes": None,
        "min_cpus": 1,
        "tasks": None,
        "cpus_per_node": 1,
        "tasks_per_node": None,
        "trims": True,
        "thins": False,
        "cpus_for_memory": 0,
        "whole": False,
        "shares": True,
        "mark": ONE_ROW,
        "sharing": False,
        "memory_per_cpu": None,
        "memory_per_node": None,
        "block": False,
        "least_loaded": False,
        "spread": False,
        "contiguous": False,
        "required": 0,
        "excluded": 0,
        "gres": {},
        "gres_total": {},
        "gres_per_task": {},
        "gres_per_socket": {},
        "max_cpus_per_node": None,
    }
    return Request(**(base | more))  # type: ignore[arg-type]  # fields by name


class Plain:
    """The algorithm, step by step."""

    def __init__(self, request: Request, usable: Taken, cluster: Cluster) -> None:
        self.request = request
        self.usable = usable
        self.cluster = cluster
        self.required = set(bitmap.indices(request.required))
        self.taken: Taken = {}
        self.parting: set[int] = set()
        """Required nodes at which a block of another weight begins."""

    def weight(self, index: int) -> int:
        """Return a node's weight."""
        return self.cluster.nodes[index].weight

    def cpus(self, index: int) -> int:
        """Return what the job could use of a node: no more than its tasks on one node can."""
        request = self.request
        if request.whole or request.tasks_per_node is None:
            return self.usable[index]
        most = max(request.tasks_per_node * request.need.cpus_per_task, request.cpus_per_node)
        return min(self.usable[index], most)

    @property
    def nodes_left(self) -> int:
        """Nodes that are missing to the target."""
        return self.request.target - len(self.taken)

    @property
    def cpus_left(self) -> int:
        """CPUs that are missing."""
        return self.request.min_cpus - sum(self.taken.values())

    @property
    def nodes_due(self) -> int:
        """Nodes that are missing to the fewest that will do."""
        return self.request.min_nodes - len(self.taken)

    def full(self) -> bool:
        """Whether nothing is missing, or no further node is allowed."""
        most = self.request.max_nodes
        if most is not None and len(self.taken) >= most:
            return True
        return self.nodes_left <= 0 and self.cpus_left <= 0

    def take(self, index: int) -> None:
        """Take a node: all of it, or what is left but for a core for each node that has to come."""
        cpus = self.cpus(index)
        if not self.request.whole:
            node = self.cluster.nodes[index]
            unit = node.threads_per_core
            if self.request.need.unit is Unit.SOCKET:
                unit *= node.cores_per_socket
            due = self.cpus_left - max(self.nodes_due - 1, 0) * unit
            cpus = min(cpus, max(due, self.request.cpus_per_node, 1))
        self.taken[index] = cpus

    def take_in_order(self, order: Sequence[int]) -> None:
        """Take nodes until it is enough; the last one allowed has to have what is missing."""
        for index in order:
            if self.full():
                return
            last = self.request.max_nodes is not None and len(self.taken) == self.request.max_nodes - 1
            if not (last and self.cpus(index) < self.cpus_left):
                self.take(index)

    # ------------------------------------------------------------------------------- blocks
    def blocks(self) -> list[list[int]]:
        """Split nodes into blocks of consecutive indices and one weight; contiguous ones have any weight.

        A block is of the weight of those that are not required (recorded: cons_required_weight, cons_required_weights).
        """
        found: list[list[int]] = []
        for index in sorted({*self.usable, *self.required}):
            block = found[-1] if found and found[-1][-1] == index - 1 else []
            neutral = self.request.contiguous or not self.rest(block)
            if block and (neutral or self.weight(index) == self.worth(block)):
                block.append(index)
            else:
                found.append([index])
                if block:
                    self.parting.add(index)
        return found

    def pivots(self, block: Sequence[int]) -> set[int]:
        """Return the required nodes that count as such: not one at which a block of another weight begins."""
        return (self.required & set(block)) - self.parting

    def worth(self, block: Sequence[int]) -> int:
        """Return the weight of a block."""
        return self.weight(self.rest(block)[0])

    def rest(self, block: Sequence[int]) -> list[int]:
        """Return what of a block is not a required node."""
        return [index for index in block if index not in self.required]

    def size(self, block: Sequence[int]) -> int:
        """Return the CPUs of what has not been taken."""
        return sum(self.cpus(index) for index in self.rest(block))

    def sufficient(self, block: Sequence[int]) -> bool:
        """Whether a block would complete the job."""
        return self.size(block) >= self.cpus_left and len(self.rest(block)) >= self.nodes_due

    def displaces(self, block: Sequence[int], best: Sequence[int]) -> bool:
        """Whether `block`, looked at after `best`, is the better one."""
        if self.pivots(block) and not self.pivots(best):
            return True
        if not self.request.contiguous and self.worth(block) != self.worth(best):
            return self.worth(block) < self.worth(best)
        if self.sufficient(block):
            return not self.sufficient(best) or self.size(block) < self.size(best)
        return self.size(block) > self.size(best)

    def best(self, blocks: Sequence[list[int]]) -> list[int]:
        """Return the block to take."""
        best = blocks[0]
        for block in blocks[1:]:
            if self.displaces(block, best):
                best = block
        return best

    def take_from(self, block: Sequence[int]) -> None:
        """Take of a block: from a required node upwards, the one node that does, or upwards."""
        rest = self.rest(block)
        able = [index for index in rest if self.cpus(index) >= self.cpus_left]
        pivot = min(self.pivots(block), default=-1)
        if pivot >= 0:
            below = [index for index in rest if index < pivot]
            rest = [index for index in rest if index > pivot] + below[::-1]
        elif self.nodes_left <= 1 and able:
            rest = [min(able, key=lambda index: (self.cpus(index), index))]
        self.take_in_order(rest)

    def take_blocks(self) -> None:
        """Take the best block, then the best of the others, until it is enough."""
        listed = [block for block in self.blocks() if self.rest(block)]
        while listed and not self.full():
            best = self.best(listed)
            listed.remove(best)
            self.take_from(best)

    def take_one_block(self) -> bool:
        """Take everything from the best block; say whether it suffices and has all required nodes."""
        blocks = self.blocks()
        best = self.best(blocks) if blocks else []
        if not best or not self.sufficient(best) or self.required - set(best):
            return False
        self.take_from(best)
        return True

    # ------------------------------------------------------------------------------ answers
    def once(self) -> Taken | None:
        """Return what is taken of the usable nodes, none of them given up."""
        self.taken = {}
        for index in sorted(self.required):
            self.take(index)
        rest = set(self.usable) - self.required
        if self.request.least_loaded:
            nodes = self.cluster.nodes
            share = {index: self.usable[index] / nodes[index].cpus for index in rest}
            self.take_in_order(sorted(rest, key=lambda index: (self.weight(index), -share[index], index)))
        elif not self.request.contiguous:
            self.take_blocks()
        elif not self.take_one_block():
            return None
        enough = self.cpus_left <= 0 and len(self.taken) >= self.request.min_nodes
        return self.taken if enough else None

    def answer(self, *, first_fit: bool) -> Taken | None:
        """Return what is taken; nodes with the fewest CPUs are given up while it does not suffice."""
        if self.required - set(self.usable):
            return None
        if first_fit and self.request.max_nodes == 1:
            return self.first()
        while True:
            found = self.once()
            if found is not None:
                return found
            rest = set(self.usable) - self.required
            fewest = min((self.usable[index] for index in rest), default=0)
            self.usable = {
                index: cpus for index, cpus in self.usable.items() if index in self.required or cpus > fewest
            }
            if not rest or len(self.usable) < self.request.min_nodes:
                return None

    def first(self) -> Taken | None:
        """Return the first node by weight and index that has the CPUs."""
        able = [index for index in self.usable if self.cpus(index) >= self.request.min_cpus]
        if self.required:
            able = [index for index in able if self.required == {index}]
        self.taken = {}
        if not able:
            return None
        self.take(min(able, key=lambda index: (self.weight(index), index)))
        return self.taken


def layout(chance: random.Random, *, like: bool) -> Layout:
    """Draw a cluster of up to ten nodes."""
    shapes = [(2, 2, 1), (1, 4, 2), (2, 4, 1)]
    shape = chance.choice(shapes)
    weights = chance.choice(((1,), (1, 1, 2)))
    machine = []
    for at in range(1, chance.randint(1, 10) + 1):
        sockets, cores, threads = shape if like else chance.choice(shapes)
        machine.append(
            node(
                f"n{at}",
                sockets=sockets,
                cores_per_socket=cores,
                threads_per_core=threads,
                weight=1 if like else chance.choice(weights),
            )
        )
    return Layout(build_cluster(config(tuple(machine))), extra_row=False, track_memory=False)


def drawn(seed: int, *, like: bool) -> Iterator[tuple[Layout, Request, Pool]]:
    """Yield a cluster, a request and what there is to choose from."""
    chance = random.Random(seed)
    for _ in range(150):
        place = layout(chance, like=like)
        total = place.cluster.nodes
        every = range(len(total))
        idle = [like or chance.random() < 0.5 for _ in every]
        cpus = [
            each.cpus if free else chance.randint(1, each.cpus)
            for each, free in zip(total, idle, strict=True)
        ]
        nodes = {index for index in every if chance.random() < 0.8}
        base = asked(place.cluster.partitions[0])
        for _ in range(6):
            request = wanted(chance, base, len(total))
            if len(place.by_weight) > 1:
                request = attrs.evolve(request, contiguous=False)  # the rules leave their weight open
            yield place, request, Pool(bitmap.of(sorted(nodes)), cpus, cpus[0] if like else None)


def wanted(chance: random.Random, base: Request, size: int) -> Request:
    """Draw a request for a cluster of `size` nodes."""
    named = chance.sample(range(size), min(size, chance.choice((0, 0, 0, 1, 2))))
    contiguous = chance.random() < 0.15
    if contiguous and named:
        named = list(range(min(named), max(named) + 1))
    fewest = max(chance.choice((1, 1, 2, 3, 4)), len(named))
    target = fewest + chance.choice((0, 0, 0, 1, 2))
    per_task = chance.choice((1, 1, 2))
    per_node = chance.choice((None, None, 1, 2))
    return attrs.evolve(
        base,
        need=NodeNeed(unit=chance.choice(list(Unit)), cpus_per_task=per_task),
        min_nodes=fewest,
        target=target,
        max_nodes=None if target == fewest and chance.random() < 0.5 else target,
        min_cpus=max(fewest, chance.randint(1, 6 * target)),
        tasks_per_node=per_node,
        cpus_per_node=per_task * (per_node or 1),
        whole=chance.random() < 0.3,
        least_loaded=chance.random() < 0.2,
        contiguous=contiguous,
        required=bitmap.of(named),
    )


@pytest.mark.parametrize("first_fit", [False, True], ids=["best fit", "first of one node"])
@pytest.mark.parametrize("like", [True, False], ids=["like nodes", "unlike nodes"])
@pytest.mark.parametrize("seed", range(3))
def test_takes_what_the_transcription_takes(seed: int, like: bool, first_fit: bool) -> None:
    """Whatever is free, wanted and required."""
    for place, request, pool in drawn(seed, like=like):
        usable = {index: pool.cpus[index] for index in bitmap.indices(pool.nodes)}
        expected = Plain(request, usable, place.cluster).answer(first_fit=first_fit)
        assert choose(request, pool, place, first_fit=first_fit) == expected, (request, usable)


@pytest.mark.parametrize("least", [1, 2])
def test_small_nodes_are_left_out_when_they_are_in_the_way(least: int) -> None:
    """n1 has one CPU, n2 and n3 four: two nodes from n1 on have five, eight are wanted; without n1 it fits."""
    cluster = build_cluster(config((node("n1", cpus=1), node("n[2-3]", cpus=4))))
    request = asked(cluster.partitions[0], min_nodes=least, target=2, max_nodes=2, min_cpus=8)
    pool = Pool(nodes=0b111, cpus=[1, 4, 4], like=None)
    layout = Layout(cluster, extra_row=False, track_memory=False)
    assert choose(request, pool, layout, first_fit=False) == {1: 4, 2: 4}

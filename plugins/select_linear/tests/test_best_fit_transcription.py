"""Best fit takes the nodes of a plain transcription of slurm-gang-and-select 4.2.5, on many small clusters.

The transcription counts again for each question and knows nothing of bit maps, blocks taken at once or like nodes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import attrs
import pytest

from makeway import bitmap
from makeway_select_linear.best_fit import best_fit
from makeway_select_linear.request import Request


def asked(**more: object) -> Request:
    """Return a request of one node and one CPU; `more` wins."""
    base: dict[str, object] = {
        "min_nodes": 1,
        "target": 1,
        "max_nodes": None,
        "min_cpus": 1,
        "cpus_per_node": 1,
        "limit": 1,
        "shares": False,
        "memory_per_cpu": None,
        "memory_per_node": None,
        "required": 0,
        "contiguous": False,
    }
    return Request(**(base | more))  # type: ignore[arg-type]  # fields by name


class Plain:
    """The algorithm, step by step."""

    def __init__(self, nodes: set[int], request: Request, cpus: Sequence[int]) -> None:
        self.nodes = nodes
        self.request = request
        self.cpus = cpus
        self.required = set(bitmap.indices(request.required))
        self.taken: list[int] = []

    @property
    def nodes_left(self) -> int:
        """Nodes that are missing to the target."""
        return self.request.target - len(self.taken)

    @property
    def cpus_left(self) -> int:
        """CPUs that are missing."""
        return self.request.min_cpus - sum(self.cpus[index] for index in self.taken)

    def full(self) -> bool:
        """Whether nothing is missing, or no further node is allowed."""
        most = self.request.max_nodes
        if most is not None and len(self.taken) >= most:
            return True
        return self.nodes_left <= 0 and self.cpus_left <= 0

    def take(self, order: Sequence[int]) -> None:
        """Take nodes until it is enough."""
        for index in order:
            if not self.full():
                self.taken.append(index)

    def blocks(self) -> list[list[int]]:
        """Split nodes into blocks of consecutive indices."""
        found: list[list[int]] = []
        for index in sorted(self.nodes):
            if found and found[-1][-1] == index - 1:
                found[-1].append(index)
            else:
                found.append([index])
        return found

    def sufficient(self, block: Sequence[int]) -> bool:
        """Whether a block would complete the job."""
        slack = self.request.target - self.request.min_nodes
        return self.size(block) >= self.cpus_left and len(block) >= self.nodes_left - slack

    def displaces(self, block: Sequence[int], best: Sequence[int]) -> bool:
        """Whether `block`, looked at after `best`, is the better one."""
        usable, chosen = self.usable(block), self.usable(best)
        size, other = self.size(usable), self.size(chosen)
        if self.required & set(block) and not self.required & set(best):
            return True
        if self.sufficient(usable):
            return not self.sufficient(chosen) or size < other
        return size > other

    def usable(self, block: Sequence[int]) -> list[int]:
        """Return what of a block has not been taken as a required node."""
        return [index for index in block if index not in self.required]

    def answer(self) -> set[int] | None:
        """Return the nodes taken; None if they do not suffice."""
        if self.required - self.nodes:
            return None
        self.taken = sorted(self.required)
        rest = sorted(self.nodes - self.required)
        sizes = {self.cpus[index] for index in rest}
        if self.full():
            pass
        elif self.request.contiguous:
            self.take_one_block()
        elif len(sizes) > 1 and self.cpus_left > min(sizes) * self.nodes_left:
            self.take(sorted(rest, key=lambda index: (self.cpus[index], index), reverse=True))
        else:
            self.take_blocks()
        enough = self.cpus_left <= 0 and len(self.taken) >= self.request.min_nodes
        return set(self.taken) if enough else None

    def take_one_block(self) -> None:
        """Take the smallest block that suffices and has all required nodes (step 5)."""
        able = [each for each in self.blocks() if set(each) >= self.required and self.is_enough(each)]
        able.sort(key=self.size)
        if able:
            self.take_from(able[0])
        else:
            self.taken = []

    def is_enough(self, block: Sequence[int]) -> bool:
        """Whether a whole block, with the required nodes in it, has what the job asks for."""
        return self.size(block) >= self.request.min_cpus and len(block) >= self.request.min_nodes

    def size(self, block: Sequence[int]) -> int:
        """Return the CPUs of nodes."""
        return sum(self.cpus[index] for index in block)

    def take_from(self, block: Sequence[int]) -> None:
        """Take upwards from a required node, then downwards from it; without one, upwards."""
        pivot = min(self.required & set(block), default=-1)
        above = [index for index in self.usable(block) if index > pivot]
        below = [index for index in self.usable(block) if index < pivot]
        self.take(above + below[::-1])

    def take_blocks(self) -> None:
        """Take the best block, then the best of the others, until it is enough."""
        listed = [block for block in self.blocks() if self.usable(block)]
        while listed and not self.full():
            best = listed[0]
            for block in listed[1:]:
                if self.displaces(block, best):
                    best = block
            listed.remove(best)
            self.take_from(best)


def drawn(seed: int, *, like: bool) -> Iterator[tuple[set[int], Request, list[int]]]:
    """Yield usable nodes, a request, and the CPUs of every node."""
    chance = random.Random(seed)
    for _ in range(1500):
        size = chance.randint(1, 12)
        cpus = [2] * size if like else [chance.choice((1, 2, 2, 4)) for _ in range(size)]
        nodes = {index for index in range(size) if chance.random() < 0.7}
        contiguous = like and chance.random() < 0.3
        named = chance.sample(range(size), min(size, chance.choice((0, 0, 0, 1, 2))))
        if contiguous and named:
            named = list(range(min(named), max(named) + 1))
        fewest = max(chance.randint(1, 5), len(named))
        target = fewest + chance.choice((0, 0, 1, 2))
        most = None if target == fewest and chance.random() < 0.5 else target
        wanted = chance.randint(1, 3 * target)
        yield (
            nodes,
            asked(
                min_nodes=fewest,
                target=target,
                max_nodes=most,
                min_cpus=wanted,
                required=bitmap.of(named),
                contiguous=contiguous,
            ),
            cpus,
        )


@pytest.mark.parametrize("like", [True, False], ids=["like nodes", "unlike nodes"])
@pytest.mark.parametrize("seed", range(4))
def test_takes_the_nodes_of_the_transcription(seed: int, like: bool) -> None:
    """Whatever is free, wanted and required."""
    for nodes, request, cpus in drawn(seed, like=like):
        found = best_fit(bitmap.of(sorted(nodes)), request, cpus, 2 if like else None)
        expected = Plain(nodes, request, cpus).answer()
        assert (None if found is None else set(bitmap.indices(found))) == expected, (nodes, request, cpus)


def test_counted_cpus_are_those_of_every_node() -> None:
    """Where each node counts for so many CPUs, whatever it has, the walk counts them too."""
    walked = 0
    for nodes, request, cpus in drawn(9, like=False):
        counted = attrs.evolve(request, counted_cpus=3)
        found = best_fit(bitmap.of(sorted(nodes)), counted, cpus, None)
        expected = Plain(nodes, request, [3] * len(cpus)).answer()
        assert (None if found is None else set(bitmap.indices(found))) == expected, (nodes, request)
        walked += expected is not None and request.target > request.min_nodes
    assert walked > 100


def test_thousands_of_single_nodes_are_taken_lowest_first() -> None:
    """Every other node of 200 is free: all blocks are alike, so 30 nodes are the lowest 30 of them."""
    free = bitmap.of(range(0, 200, 2))
    found = best_fit(free, asked(min_nodes=30, target=30), [2] * 200, 2)
    assert found == bitmap.of(range(0, 60, 2))


def test_tasks_per_node_make_unlike_nodes_count_alike() -> None:
    """Two nodes of 8 CPUs, a gap, three of 4: the first block has more CPUs, the second more nodes (4.2.5 no. 4)."""
    nodes, cpus = bitmap.of([0, 1, 3, 4, 5]), [8, 8, 8, 4, 4, 4]
    four = {"min_nodes": 4, "target": 4, "min_cpus": 4}
    assert best_fit(nodes, asked(**four), cpus, None) == bitmap.of([0, 1, 3, 4])
    assert best_fit(nodes, asked(**four, counted_cpus=1), cpus, None) == bitmap.of([0, 3, 4, 5])

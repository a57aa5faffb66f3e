"""Choose nodes for GPUs that are asked for in all or for each task (``--gpus``, ``--gpus-per-task``).

As Slurm 22.05.8 does it (recorded: cons_gpus_in_all, cons_gpus_per_task, cons_gpus_types). Nodes that have all the GPUs
to give, or as many as the fullest of them, are tried first, then those with fewer as well. A node counts with as many
tasks as both its CPUs and its GPUs serve. Each chosen node gets a GPU at least, and where tasks are counted has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway_select_cons_tres.choose import Block, Pool, Taken, Walk, choose
from makeway_select_cons_tres.layout import Layout
from makeway_select_cons_tres.request import Request

Free = Callable[[str, int, int], int]
"""How many of a resource (its name) a node (its index) can give; more than the third is as good."""


def counted_names(total: Mapping[str, int]) -> tuple[str, ...]:
    """Return the resources that count: those of a type in place of all of that name."""
    typed = {name.partition(":")[0] for name in total if ":" in name}
    return tuple(name for name in total if name not in typed)


@attrs.frozen(eq=False)
class Supply:
    """What nodes can give of what a job wants in all."""

    wanted: Mapping[str, int]
    """In all, by resource."""
    per_task: Mapping[str, int]
    """For each task; empty: not said."""
    free: Mapping[int, Mapping[str, int]]
    """By node: what is free, and no more than is wanted."""

    def tasks_on(self, index: int) -> int | None:
        """Return the tasks that the GPUs of a node serve; None: any number."""
        if not self.per_task:
            return None
        free = self.free[index]
        return min(free[name] // each for name, each in self.per_task.items() if name in free)

    def level(self, index: int) -> int:
        """Return up to which level a node is tried: see `choose_gang`."""
        free = self.free[index]
        short = [free[name] for name, total in self.wanted.items() if free[name] < total]
        return min(short, default=max(self.wanted.values()))


def supply_of(request: Request, nodes: NodeBits, free: Free) -> Supply:
    """Look up what `nodes` can give, those that cannot give a GPU or serve a task left out."""
    wanted = {name: request.gres_total[name] for name in counted_names(request.gres_total)}
    on_node = request.tasks_per_node or 1
    per_task = {name: count for name, count in request.gres_per_task.items() if name in wanted}
    least = {name: per_task.get(name, 1) * (on_node if name in per_task else 1) for name in wanted}
    found: dict[int, Mapping[str, int]] = {}
    for index in bitmap.indices(nodes):
        there = {name: min(total, free(name, index, total)) for name, total in wanted.items()}
        if all(there[name] >= each for name, each in least.items()):
            found[index] = there
    return Supply(wanted, per_task, found)


def served_cpus(request: Request, pool: Pool, supply: Supply) -> Pool:
    """Let a node count with no more CPUs than the tasks use that its GPUs serve, and with whole tasks."""
    size = request.need.cpus_per_task
    cpus = list(pool.cpus)
    for index in supply.free:
        most = supply.tasks_on(index)
        if most is not None:
            cpus[index] = min(cpus[index] // size, most) * size
    return Pool(pool.nodes & bitmap.of(list(supply.free)), cpus, None)


def choose_gang(
    request: Request, pool: Pool, layout: Layout, supply: Supply, *, first_fit: bool
) -> Taken | None:
    """Return what to take; None if it does not suffice.

    :param pool: of the nodes in `supply`, with the CPUs that their GPUs serve.
    :param first_fit: as for `choose`.
    """
    limits = [each for each in (request.max_nodes, request.tasks) if each is not None]
    request = attrs.evolve(request, target=request.min_nodes, max_nodes=min(limits, default=None))
    walk = partial(GangWalk, supply=supply)
    at_level: dict[int, list[int]] = {}
    for index in bitmap.indices(pool.nodes):
        at_level.setdefault(supply.level(index), []).append(index)
    nodes: NodeBits = 0
    for level in sorted(at_level, reverse=True):
        nodes |= bitmap.of(at_level[level])
        if nodes.bit_count() < request.min_nodes or not _reaches(supply, bitmap.indices(nodes)):
            continue
        part = attrs.evolve(pool, nodes=nodes)
        taken = choose(request, part, layout, first_fit=first_fit, walk=walk)
        if taken is not None:
            return taken
    return None


def _reaches(supply: Supply, indices: Sequence[int]) -> bool:
    return all(
        sum(supply.free[index][name] for index in indices) >= total for name, total in supply.wanted.items()
    )


class GangWalk(Walk):
    """A walk that takes nodes until the GPUs are there, too."""

    def __init__(self, request: Request, pool: Pool, layout: Layout, *, supply: Supply) -> None:
        super().__init__(request, pool, layout)
        self._supply = supply
        self._missing = dict(supply.wanted)

    def take(self, index: int) -> None:
        """Take what is due of a node."""
        super().take(index)
        for name, count in self._supply.free[index].items():
            self._missing[name] -= count

    def wants_more(self) -> bool:
        """Whether anything is missing, and another node is allowed."""
        most = self._request.max_nodes
        if most is not None and len(self.taken) >= most:
            return False
        return super().wants_more() or self._lacks()

    def is_enough(self) -> bool:
        """Whether CPUs, nodes and GPUs are there."""
        return super().is_enough() and not self._lacks()

    def completes(self, block: Block) -> bool:
        """Whether a block would complete the job."""
        return super().completes(block) and self._gives(block.indices)

    def _lacks(self) -> bool:
        return any(count > 0 for count in self._missing.values())

    def _gives(self, indices: Iterable[int]) -> bool:
        free, missing = self._supply.free, {n: c for n, c in self._missing.items() if c > 0}
        return all(sum(free[index][name] for index in indices) >= count for name, count in missing.items())

    def _is_useless(self, index: int) -> bool:
        most = self._request.max_nodes
        last = most is not None and len(self.taken) == most - 1
        return super()._is_useless(index) or (last and not self._gives((index,)))

    def _completes_alone(self, index: int) -> bool:
        return self._gives((index,))

    def _take_run(self, indices: Sequence[int], each: int) -> int:
        del indices, each
        return 0  # their GPUs may differ


def shared_out(
    request: Request, indices: Sequence[int], tasks: Sequence[int] | None, free: Free
) -> dict[str, tuple[int, ...]] | None:
    """Return how many each node gives of what is wanted in all; None: they are not there.

    In order of the nodes, each gives what it has but leaves one for each node that is still to come. With a count for
    each task a node gives that for its tasks, or for as many as were asked for on each node.

    :param tasks: on each node; None: not known.
    """
    given: dict[str, tuple[int, ...]] = {}
    for name in counted_names(request.gres_total):
        total, each = request.gres_total[name], request.gres_per_task.get(name)
        if each is not None and tasks is not None:
            counts = [each * (request.tasks_per_node or here) for here in tasks]
            if any(free(name, index, n) < n for index, n in zip(indices, counts, strict=True)):
                return None
        else:
            counts = []
            for at, index in enumerate(indices):
                left = total - sum(counts)
                counts.append(max(0, min(free(name, index, left), left - (len(indices) - at - 1))))
            if sum(counts) < total:
                return None
        given[name] = tuple(counts)
    for name in request.gres_total:
        parts = [counts for other, counts in given.items() if other.partition(":")[0] == name]
        if name not in given:
            given[name] = tuple(map(sum, zip(*parts, strict=True)))
    return given

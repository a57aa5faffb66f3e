"""Assign cores, memory and counted resources on chosen nodes (spec slurm-gang-and-select 4.3.8, 4.3.2 end)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import NOTHING
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.choose import Taken
from makeway_select_cons_tres.cores import charged_cpus, cut, pick_cores
from makeway_select_cons_tres.request import Request


@attrs.frozen(eq=False)
class Ground:
    """A map of free cores, and what it comes to for one request."""

    nodes: NodeBits
    """Usable nodes."""
    cpus: Sequence[int]
    """Usable CPUs, by node index."""
    like: int | None
    """Their number if all of `nodes` are alike; None: they are not, or it is not known."""
    free: Callable[[int], CoreBits]
    """Free cores of a node."""


@attrs.frozen(kw_only=True, eq=False)
class Found:
    """A place for a job."""

    nodes: NodeBits
    indices: tuple[int, ...]
    cpus: tuple[int, ...]
    """CPUs charged; parallel to `indices`, as are the next two."""
    cores: tuple[CoreBits, ...] | None
    """None: all of every node."""
    memory: tuple[int, ...] | None
    gres: Mapping[str, tuple[int, ...]]
    why: str


def assign(
    request: Request, taken: Taken, ground: Ground, books: Books, *, trims: bool, why: str
) -> Found | None:
    """Assign what the job gets; None if tasks, memory or counted resources turn out not to fit after all.

    :param trims: whether jobs with tasks per node get consecutive cores.
    """
    indices = tuple(sorted(taken))
    cpus, cores = _whole(indices, books), None
    if not request.whole:
        chosen = _cores(request, indices, taken, ground, books, trims)
        if chosen is None:
            return None
        cpus, cores = chosen
    memory = _memory(request, indices, cpus, books) if books.layout.track_memory else None
    if memory is not None and _too_much(memory, indices, books):
        return None
    gres: Mapping[str, tuple[int, ...]] = NOTHING
    if request.gres or request.gres_total:
        shared_out = _gres(request, indices, books)
        if shared_out is None:
            return None
        gres = shared_out
    if cores is not None:
        full = books.layout.full
        if all(mine == full[index] for mine, index in zip(cores, indices, strict=True)):
            cores = None
    return Found(
        nodes=bitmap.of(indices),
        indices=indices,
        cpus=cpus,
        cores=cores,
        memory=memory,
        gres=gres,
        why=why,
    )


def _whole(indices: Sequence[int], books: Books) -> tuple[int, ...]:
    nodes = books.layout.cluster.nodes
    return tuple([nodes[index].cpus for index in indices])


def _cores(
    request: Request,
    indices: Sequence[int],
    taken: Taken,
    ground: Ground,
    books: Books,
    trims: bool,
) -> tuple[tuple[int, ...], tuple[CoreBits, ...]] | None:
    """Return CPUs and cores on each node; None if there is no room for a task."""
    wanted = _dealt(request, indices, taken, ground)
    if wanted is None:
        return None
    layout, need = books.layout, request.need
    cpus: list[int] = []
    cores: list[CoreBits] = []
    for index, (count, by_tasks) in zip(indices, wanted, strict=True):
        shape, free = layout.shape(index), ground.free(index)
        if trims:
            most = request.most_on_node
            room = ground.cpus[index] if most is None else min(most, ground.cpus[index])
            free = cut(shape, free, count if count > by_tasks else room, need)
        picked = pick_cores(shape, free, count, need, block=request.block)
        if picked is None:
            return None
        cores.append(picked)
        cpus.append(charged_cpus(shape, picked, count, need))
    return tuple(cpus), tuple(cores)


def _dealt(
    request: Request, indices: Sequence[int], taken: Taken, ground: Ground
) -> list[tuple[int, int]] | None:
    """Deal one task to each node, then fill node by node (step 2).

    :returns: CPUs for each node, and how many of them its tasks ask for.
    """
    if request.tasks is None:
        return [(taken[index], taken[index]) for index in indices]
    size = request.need.cpus_per_task
    left = request.tasks
    tasks = []
    for _ in indices:
        tasks.append(min(1, left))
        left -= tasks[-1]
    for room in (taken, ground.cpus):  # the second only if rounding left tasks over
        for at, index in enumerate(indices):
            more = min(left, room[index] // size - tasks[at])
            if more > 0:
                tasks[at] += more
                left -= more
    if left > 0:
        return None
    least = max(request.cpus_per_node, 1)
    return [(max(count * size, least), count * size) for count in tasks]


def _memory(
    request: Request, indices: Sequence[int], cpus: Sequence[int], books: Books
) -> tuple[int, ...] | None:
    """Return the memory charged on each node."""
    if request.memory_per_cpu is not None:
        return tuple([request.memory_per_cpu * count for count in cpus])
    if request.memory_per_node is None:
        return None
    if request.memory_per_node:
        return (request.memory_per_node,) * len(indices)
    room = books.layout.memory
    return tuple([room[index] for index in indices])


def _too_much(memory: Sequence[int], indices: Sequence[int], books: Books) -> bool:
    """Whether memory is short after all; then the attempt fails, and no other node is tried."""
    used, room = books.memory, books.layout.memory
    return any(
        used[index] + mine > room[index] for mine, index in zip(memory, indices, strict=True)
    )


def _gres(
    request: Request, indices: Sequence[int], books: Books
) -> dict[str, tuple[int, ...]] | None:
    """Give each node its count; what is wanted in all goes to the first nodes that have it."""
    given = {name: (count,) * len(indices) for name, count in request.gres.items()}
    nodes = books.layout.cluster.nodes
    for name, total in request.gres_total.items():
        used = books.gres.get(name)
        amounts = []
        for index in indices:
            free = nodes[index].gres.get(name, 0) - (used[index] if used else 0)
            amounts.append(min(free, total))
            total -= amounts[-1]
        if total > 0:
            return None
        given[name] = tuple(amounts)
    return given

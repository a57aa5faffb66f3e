"""Assign cores, memory and counted resources on chosen nodes.

slurm-gang-and-select 4.3.8, and the end of 4.3.2: what turns out to be short now fails the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.model import NOTHING
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.choose import Taken
from makeway_select_cons_tres.cores import Picker, thinned
from makeway_select_cons_tres.counted import free_gres, given_on
from makeway_select_cons_tres.cpus import most_cpus
from makeway_select_cons_tres.gangs import supply_of
from makeway_select_cons_tres.request import Request


@attrs.define(eq=False)
class Ground:
    """A map of free cores, and what it comes to for one request."""

    nodes: NodeBits
    """Usable nodes."""
    cpus: Sequence[int]
    """Usable CPUs, by node index."""
    like: int | None
    """Their number if all of `nodes` are idle and built alike; None: they are not, or it is not known."""
    free: Callable[[int], CoreBits]
    """Free cores of a node."""


@attrs.define(eq=False)
class Found:
    """A place for a job; nothing changes it, but setting the fields of frozen objects takes long."""

    nodes: NodeBits
    indices: tuple[int, ...]
    cpus: tuple[int, ...]
    """CPUs charged; parallel to `indices`, as are the next two."""
    cores: tuple[CoreBits, ...] | None
    """None: all of every node."""
    memory: tuple[int, ...] | None
    gres: Mapping[str, tuple[int, ...]]
    why: str
    devices: Mapping[str, tuple[int, ...]] = NOTHING
    """Which GPUs, where the node gives whole ones and parts."""


def assign(
    request: Request, taken: Taken, ground: Ground, books: Books, picker: Picker, why: str
) -> Found | None:
    """Return what the job gets; None if tasks, memory or counted resources turn out not to fit after all."""
    indices = tuple(sorted(taken))
    cores: tuple[CoreBits, ...] | None = None
    tasks: Sequence[int] | None = None
    if request.whole:
        nodes, full = books.layout.cluster.nodes, books.layout.full
        cpus = tuple([nodes[index].cpus for index in indices])
        left = tuple([ground.free(index) for index in indices])
        if left != tuple([full[index] for index in indices]):  # what a higher tier left of them
            cores = left
            cpus = tuple([ground.cpus[index] for index in indices])
    else:
        dealt = _dealt(request, indices, taken, ground)
        if dealt is None:
            return None
        tasks, counts = dealt
        if request.wants_gres:
            ground = _beside_gres(request, indices, ground, books)
        chosen = _cores(indices, counts, ground, picker)
        if chosen is None:
            return None
        cpus, cores = chosen
        full = books.layout.full
        if cores == tuple([full[index] for index in indices]):
            cores = None
    memory = memory_of(request, indices, cpus, books) if books.layout.track_memory else None
    if memory is not None and request.memory_per_cpu is not None and _too_much(memory, indices, books):
        return None
    given = given_on(request, indices, tasks, cores, books)
    if given is None:
        return None
    gres, devices = given
    return Found(
        nodes=bitmap.of(indices),
        indices=indices,
        cpus=cpus,
        cores=cores,
        memory=memory,
        gres=gres,
        why=why,
        devices=devices,
    )


def beside_gres(request: Request, ground: Ground) -> Ground:
    """Let a node count with no more CPUs than its tasks can use (recorded: cons_gpus_one_task)."""
    most = request.tasks_beside_gres(None)
    if most is None or request.whole:
        return ground
    limit = max(most * request.need.cpus_per_task, request.cpus_per_node)
    like = None if ground.like is None else min(ground.like, limit)
    return attrs.evolve(ground, cpus=[min(cpus, limit) for cpus in ground.cpus], like=like)


def _beside_gres(request: Request, indices: Sequence[int], ground: Ground, books: Books) -> Ground:
    """Leave only cores for as many tasks as a node can have (recorded: cons_gpus_per_task)."""
    layout, need = books.layout, request.need
    supply = supply_of(request, bitmap.of(indices), partial(free_gres, books)) if request.gres_total else None
    left: dict[int, CoreBits] = {}
    for index in indices:
        free, shape = ground.free(index), layout.shape(index)
        most = request.tasks_beside_gres(None if supply is None else supply.tasks_on(index))
        room = most_cpus(shape, free, need) // need.cpus_per_task
        if most is not None or need.cpus_per_task > 1:
            tasks = room if most is None else min(room, most)
            free = thinned(shape, free, max(tasks * need.cpus_per_task, request.cpus_per_node), need)
        left[index] = free
    return attrs.evolve(ground, like=None, free=left.__getitem__)


def _cores(
    indices: Sequence[int], counts: Sequence[int], ground: Ground, picker: Picker
) -> tuple[tuple[int, ...], tuple[CoreBits, ...]] | None:
    """Return CPUs and cores on each node; None if there is no room for a task."""
    if ground.like is not None and counts[0] == counts[-1] and len(set(counts)) == 1:
        one = picker.pick(indices[0], ground.free(indices[0]), counts[0])
        return None if one is None else ((one[0],) * len(indices), (one[1],) * len(indices))
    cpus: list[int] = []
    cores: list[CoreBits] = []
    free = ground.free
    for index, count in zip(indices, counts, strict=True):
        picked = picker.pick(index, free(index), count)
        if picked is None:
            return None
        cpus.append(picked[0])
        cores.append(picked[1])
    return tuple(cpus), tuple(cores)


def _dealt(
    request: Request, indices: Sequence[int], taken: Taken, ground: Ground
) -> tuple[Sequence[int] | None, Sequence[int]] | None:
    """Return tasks and CPUs on each node: a task to each, then packed node by node (step 2)."""
    tasks = request.tasks
    size = request.need.cpus_per_task
    if tasks is None:
        on_each = max(request.cpus_per_node, 1)
        if size > 1 and request.min_cpus == len(indices) * on_each:
            return None, [on_each] * len(indices)  # a task on each node (recorded: cons_cpus_per_task_alone)
        return None, [taken[index] for index in indices]
    room = [taken[index] // size for index in indices]
    if request.tasks_per_node is not None and not request.trims:
        room = [min(each, request.tasks_per_node) for each in room]
    excess = sum(room) - tasks
    if excess > 0 and 0 not in room:
        room = _lowered(room, excess)
    elif excess < 0 and not request.need.whole_tasks:
        return None, _crowded(room, -excess, [taken[index] for index in indices], size)
    elif excess or 0 in room:
        packed = _packed(tasks, room, [ground.cpus[index] // size for index in indices])
        if packed is None:
            return None
        room = packed
    least = max(request.cpus_per_node, 1)
    if size == 1 and least == 1:
        return room, room
    return room, [max(count * size, least) for count in room]


def _lowered(room: Sequence[int], excess: int) -> list[int]:
    """Take tasks that are too many from the fullest node, the last of several (recorded: ``range_of_nodes``)."""
    dealt = list(room)
    for _ in range(excess):
        most = max(dealt)
        dealt[len(dealt) - 1 - dealt[::-1].index(most)] -= 1
    return dealt


def _crowded(room: Sequence[int], more: int, most: Sequence[int], size: int) -> list[int]:
    """Return the CPUs on each node when more tasks have to be dealt than there is room for, one to each node in turn.

    Before 23.02 CPUs count that are too few for another task; tasks may then have to make do with fewer CPUs
    (recorded: ``cons_cpus_per_task_nodes``).
    """
    dealt = list(room)
    for at in range(more):
        dealt[at % len(dealt)] += 1
    return [min(count * size, limit) for count, limit in zip(dealt, most, strict=True)]


def _packed(tasks: int, room: Sequence[int], more_room: Sequence[int]) -> list[int] | None:
    """Deal `tasks` over nodes with so much room; what rounding left over goes where there is more room."""
    dealt = []
    for _ in room:
        dealt.append(min(1, tasks))
        tasks -= dealt[-1]
    for limits in (room, more_room):
        for at, limit in enumerate(limits):
            more = min(tasks, limit - dealt[at])
            if more > 0:
                dealt[at] += more
                tasks -= more
    return dealt if tasks == 0 else None


def memory_of(
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
    return any(used[index] + mine > room[index] for mine, index in zip(memory, indices, strict=True))

"""Say what a node can give a job."""

from __future__ import annotations

from typing import NamedTuple

from makeway_select_gpu_pack.rooms import Room
from makeway_select_gpu_pack.wish import Wish

Amounts = tuple[int, ...]
"""Tasks, then what is wanted in all, in the order in which the job names it."""


class Offer(NamedTuple):
    """What a node can give a job. Offers are ordered by size, then by node."""

    size: tuple[int, ...]
    """See `size_of`; what is wanted in all counts first."""
    node: int
    """Its index."""
    amounts: Amounts
    """No more than the job wants."""
    left: tuple[int, int, int]
    """What would be left of the GPU of which the job gets a part, then GPUs and CPUs that are free."""


def size_of(amounts: Amounts, left: tuple[int, int, int], first: int) -> tuple[int, ...]:
    """Return by what offers are ordered: amounts, beginning with one of them, then what is left free."""
    at = first % len(amounts)
    return (*amounts[at:], *amounts[:at], *left)


def offer_of(wish: Wish, room: Room, index: int) -> Offer | None:
    """Return what a node can give; None: not what the job wants of each node."""
    if wish.whole and room.jobs:
        return None
    if room.memory_mb < wish.memory_on_node or (wish.all_memory and room.jobs):
        return None
    served = room.serve(wish.on_node)
    if served is None:
        return None
    cpus = room.cores.bit_count() * room.threads
    tasks = _tasks_on(wish, served.room, cpus)
    by_node = wish.tasks_per_node or 1
    least = max(1, by_node) if not wish.tasks % by_node else 1
    if cpus < wish.cpus_on_node or tasks < least:
        return None
    amounts = (tasks, *(served.room.free(name, count) for name, count in wish.in_all.items()))
    if wish.in_all and not any(amounts[1:]):
        return None
    clipped = tuple(map(min, amounts, wish.need))
    left = (served.part_left, room.free_gpus, cpus)
    return Offer(size_of(clipped, left, 1), index, clipped, left)


def _tasks_on(wish: Wish, room: Room, cpus: int) -> int:
    """Return how many tasks find room."""
    if wish.memory_per_cpu:
        cpus = min(cpus, room.memory_mb // wish.memory_per_cpu)
    limits = [cpus // wish.cpus_per_task]
    limits += [room.free(name, count * wish.tasks) // count for name, count in wish.per_task.items()]
    if wish.tasks_per_node is not None:
        limits.append(wish.tasks_per_node)
    return min(limits)

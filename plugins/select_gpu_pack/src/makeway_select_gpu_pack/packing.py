"""Choose as few nodes as possible, and of these the ones that leave the fewest GPUs free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import NOTHING, Allocation, Cluster
from makeway_select_gpu_pack.rooms import Room, Rooms
from makeway_select_gpu_pack.wish import Wish

Amounts = tuple[int, ...]
"""Tasks, then what is wanted in all, in the order in which the job names it."""


@attrs.frozen(eq=False)
class Offer:
    """What a node can give a job."""

    index: int
    amounts: Amounts
    """No more than the job wants."""
    free_gpus: int
    free_cpus: int


def pack(wish: Wish, nodes: NodeBits, rooms: Rooms, cluster: Cluster) -> Allocation | None:
    """Return what a job gets on some of `nodes`; None: there is no room."""
    need: Amounts = (wish.tasks, *wish.in_all.values())
    offers = [
        offer
        for index in bitmap.indices(nodes & ~wish.excluded)
        if (offer := _offer(wish, need, index, rooms)) is not None
    ]
    must = [offer for offer in offers if wish.required >> offer.index & 1]
    if len(must) < wish.required.bit_count() or len(offers) < wish.min_nodes:
        return None
    rest = [offer for offer in offers if not wish.required >> offer.index & 1]
    chosen = None
    for first in range(1, len(need) + 1):  # what is wanted in all counts before tasks
        order = sorted(rest, key=partial(_size, first=first))
        chosen = fewest(order, must, need, wish.min_nodes, wish.max_nodes)
        if chosen is not None:
            break
    return None if chosen is None else _allocation(wish, need, chosen, rooms, cluster)


def _size(offer: Offer, first: int) -> tuple[int, ...]:
    """Return by what offers are ordered: amounts, beginning with one of them, then free GPUs, CPUs and the index."""
    at = first % len(offer.amounts)
    turned = offer.amounts[at:] + offer.amounts[:at]
    return (*turned, offer.free_gpus, offer.free_cpus, offer.index)


def _offer(wish: Wish, need: Amounts, index: int, rooms: Rooms) -> Offer | None:
    """Return what a node can give; None: not what the job wants of each node."""
    room = rooms[index]
    if wish.whole and not rooms.is_idle(index):
        return None
    if any(room.gres.get(name, 0) < count for name, count in wish.on_node.items()):
        return None
    if room.memory_mb < wish.memory_on_node or (wish.all_memory and room.jobs):
        return None
    cpus = room.cores.bit_count() * rooms.threads[index]
    tasks = _tasks_on(wish, room, cpus)
    least = (
        max(1, wish.tasks_per_node or 1)
        if wish.tasks_per_node and not wish.tasks % wish.tasks_per_node
        else 1
    )
    if cpus < wish.cpus_on_node or tasks < least:
        return None
    amounts = (tasks, *(room.gres.get(name, 0) for name in wish.in_all))
    if wish.in_all and not any(amounts[1:]):
        return None
    clipped = tuple(min(has, wants) for has, wants in zip(amounts, need, strict=True))
    return Offer(index, clipped, room.gres.get("gpu", 0), cpus)


def _tasks_on(wish: Wish, room: Room, cpus: int) -> int:
    """Return how many tasks find room."""
    if wish.memory_per_cpu:
        cpus = min(cpus, room.memory_mb // wish.memory_per_cpu)
    limits = [cpus // wish.cpus_per_task]
    limits += [room.gres.get(name, 0) // count for name, count in wish.per_task.items()]
    if wish.tasks_per_node is not None:
        limits.append(wish.tasks_per_node)
    return min(limits)


def fewest(
    order: Sequence[Offer], must: Sequence[Offer], need: Amounts, least: int, most: int | None
) -> list[Offer] | None:
    """Return the smallest set of offers that suffices, with all of `must`; of several as small, one of small offers.

    :param order: the other offers, the smallest first.
    :param least: fewest nodes, and `most` the most; None: any number.
    """
    count = _how_many(order, must, need, least, most)
    if count is None:
        return None
    begun = _added(need, must, -1)
    window = list(order[:count])
    missing = _added(begun, window, -1)
    at = 0
    while any(each > 0 for each in missing):
        missing = _added(_added(missing, [window[0]], 1), [order[at + count]], -1)
        window = [*window[1:], order[at + count]]
        at += 1
    return [*must, *_tightened(window, order[:at], missing)]


def _how_many(
    order: Sequence[Offer], must: Sequence[Offer], need: Amounts, least: int, most: int | None
) -> int | None:
    """Return how many of `order` it takes beside `must`, if the largest are taken; None: all do not suffice."""
    missing = _added(need, must, -1)
    count = 0
    for offer in reversed(order):
        if count + len(must) >= least and not any(each > 0 for each in missing):
            break
        missing = _added(missing, [offer], -1)
        count += 1
    together = count + len(must)
    enough = together >= least and not any(each > 0 for each in missing)
    return count if enough and (most is None or together <= most) else None


def _tightened(window: list[Offer], smaller: Sequence[Offer], missing: Amounts) -> list[Offer]:
    """Put smaller offers in place of those of the window, the smallest first, as long as all suffice."""
    unused = list(smaller)
    for at, offer in enumerate(window):
        for place, other in enumerate(unused):
            without = _added(_added(missing, [offer], 1), [other], -1)
            if not any(each > 0 for each in without):
                window[at], missing = other, without
                del unused[place]
                break
    return window


def _added(amounts: Amounts, offers: Iterable[Offer], sign: int) -> Amounts:
    for offer in offers:
        amounts = tuple([has + sign * more for has, more in zip(amounts, offer.amounts, strict=True)])
    return amounts


# ------------------------------------------------------------------------------- what of each
def dealt(wanted: int, offers: Sequence[int]) -> list[int]:
    """Share `wanted` out: each gives what it has, but leaves one for each of those behind it where it can."""
    given = []
    for at, has in enumerate(offers):
        behind = len(offers) - at - 1
        given.append(max(0, min(has, max(wanted - behind, min(1, wanted)))))
        wanted -= given[-1]
    return given


def _allocation(
    wish: Wish, need: Amounts, chosen: Sequence[Offer], rooms: Rooms, cluster: Cluster
) -> Allocation:
    tightest = sorted(chosen, key=lambda offer: _size(offer, 1))
    shares = [dealt(wanted, [offer.amounts[at] for offer in tightest]) for at, wanted in enumerate(need)]
    parts = sorted(zip(tightest, *shares, strict=True), key=lambda part: part[0].index)
    indices = tuple(offer.index for offer, *_ in parts)
    cores, cpus = [], []
    for index, (_, tasks, *_) in zip(indices, parts, strict=True):
        free, threads = rooms[index].cores, rooms.threads[index]
        wanted = max(tasks, 1) * wish.cpus_per_task
        count = free.bit_count() if wish.whole else -(-max(wanted, wish.cpus_on_node) // threads)
        cores.append(bitmap.first_n(free, count))
        cpus.append(count * threads)
    gres = {name: [count] * len(parts) for name, count in wish.on_node.items()}
    for name, each in wish.per_task.items():
        gres[name] = [each * tasks for _, tasks, *_ in parts]
    for at, name in enumerate(wish.in_all):
        gres[name] = [part[2 + at] for part in parts]
    if wish.whole:
        names = dict.fromkeys(name for index in indices for name in cluster.nodes[index].gres)
        gres = {name: [rooms[index].gres.get(name, 0) for index in indices] for name in names}
    return Allocation(
        nodes=bitmap.of(indices),
        node_indices=indices,
        cpus=tuple(cpus),
        cores=tuple(cores),
        memory_mb=_memory(wish, indices, cpus, rooms),
        gres=_with_names(gres) if gres else NOTHING,
        shared=not wish.whole,
    )


def _with_names(gres: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Let those of a model count for their name as well."""
    found = {name: tuple(counts) for name, counts in gres.items()}
    for base in dict.fromkeys(name.partition(":")[0] for name in gres if ":" in name):
        if base not in found:
            models = [counts for name, counts in gres.items() if name.partition(":")[0] == base]
            found[base] = tuple(map(sum, zip(*models, strict=True)))
    return found


def _memory(wish: Wish, indices: Sequence[int], cpus: Sequence[int], rooms: Rooms) -> tuple[int, ...]:
    if wish.all_memory:
        return tuple(rooms[index].memory_mb for index in indices)
    if wish.memory_per_cpu:
        return tuple(
            min(wish.memory_per_cpu * count, rooms[index].memory_mb)
            for index, count in zip(indices, cpus, strict=True)
        )
    return (wish.memory_on_node,) * len(indices)

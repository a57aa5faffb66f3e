"""Choose as few nodes as possible, and of these the ones that leave the fewest GPUs free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.devices import GPU, PARTS, is_gpu
from makeway.model import NOTHING, Allocation, Cluster
from makeway_select_gpu_pack.offers import Amounts, Offer, size_of
from makeway_select_gpu_pack.rooms import Rooms
from makeway_select_gpu_pack.shelves import Shelves
from makeway_select_gpu_pack.wish import Wish


def pack(wish: Wish, nodes: NodeBits, rooms: Rooms, shelves: Shelves, cluster: Cluster) -> Allocation | None:
    """Return what a job gets on some of `nodes`; None: there is no room.

    :param shelves: what the nodes can give when no job is taken out of the books.
    """
    offers = shelves.offers(wish, rooms, nodes & ~wish.excluded)
    must = [offer for offer in offers if wish.required >> offer.node & 1] if wish.required else []
    if len(must) < wish.required.bit_count() or len(offers) < wish.min_nodes:
        return None
    rest = [offer for offer in offers if not wish.required >> offer.node & 1] if must else offers
    chosen = fewest(rest, must, wish.need, wish.min_nodes, wish.max_nodes)
    for first in range(2, len(wish.need) + 1):  # what is wanted in all counts before tasks
        if chosen is not None:
            break
        order = sorted(rest, key=lambda each: (size_of(each.amounts, each.left, first), each.node))
        chosen = fewest(order, must, wish.need, wish.min_nodes, wish.max_nodes)
    return None if chosen is None else _allocation(wish, chosen, rooms, cluster)


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


def _allocation(wish: Wish, chosen: Sequence[Offer], rooms: Rooms, cluster: Cluster) -> Allocation:
    tightest = sorted(chosen)
    shares = [dealt(wanted, [offer.amounts[at] for offer in tightest]) for at, wanted in enumerate(wish.need)]
    parts = sorted(zip(tightest, *shares, strict=True), key=lambda part: part[0].node)
    indices = tuple(offer.node for offer, *_ in parts)
    cores, cpus = [], []
    for index, (_, tasks, *_) in zip(indices, parts, strict=True):
        free, threads = rooms[index].cores, rooms[index].threads
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
        gres = _of_whole_nodes(wish, indices, cluster)
    given = _with_names(gres) if gres else NOTHING
    return Allocation(
        nodes=bitmap.of(indices),
        node_indices=indices,
        cpus=tuple(cpus),
        cores=tuple(cores),
        memory_mb=_memory(wish, indices, cpus, rooms),
        gres=given,
        devices=_devices(given, indices, rooms),
        shared=not wish.whole,
    )


def _of_whole_nodes(wish: Wish, indices: Sequence[int], cluster: Cluster) -> dict[str, list[int]]:
    """Return all that the nodes have; their GPUs as a whole, but where the job asks for parts."""
    machines = [cluster.nodes[index] for index in indices]
    asked = {name: count for name, count in wish.on_node.items() if name in PARTS}
    found = {name: [count] * len(machines) for name, count in asked.items()}
    names = dict.fromkeys(name for machine in machines for name in machine.gres)
    for name in names:
        if not (is_gpu(name) and asked) and not (name in PARTS and GPU in names):
            found[name] = [machine.gres.get(name, 0) for machine in machines]
    return found


def _devices(
    gres: Mapping[str, Sequence[int]], indices: Sequence[int], rooms: Rooms
) -> Mapping[str, tuple[int, ...]]:
    """Return which GPUs the job gets on nodes that tell them apart."""
    found: dict[str, list[int]] = {}
    for at, index in enumerate(indices):
        room = rooms[index]
        if room.board is None:
            continue
        wanted = {name: counts[at] for name, counts in gres.items()}
        for name, bits in (room.board.pick(room.slots, wanted) or {}).items():
            found.setdefault(name, [0] * len(indices))[at] = bits
    return {name: tuple(bits) for name, bits in found.items()} or NOTHING


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

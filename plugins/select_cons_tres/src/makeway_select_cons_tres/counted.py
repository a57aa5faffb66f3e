"""Give counted resources on chosen nodes: so many on each, so many in all, all of a whole node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from makeway.bitmap import CoreBits
from makeway.devices import GPU, PARTS, is_gpu
from makeway.model import NOTHING
from makeway_select_cons_tres.books import Books
from makeway_select_cons_tres.gangs import shared_out
from makeway_select_cons_tres.request import Request

Amounts = Mapping[str, tuple[int, ...]]
"""By resource, one amount for each node."""


def given_on(
    request: Request,
    indices: Sequence[int],
    tasks: Sequence[int] | None,
    cores: Sequence[CoreBits] | None,
    books: Books,
) -> tuple[Amounts, Amounts] | None:
    """Return how many a job gets on each node, and which GPUs where they are told apart; None: they are not there.

    :param tasks: on each node; None: not known.
    :param cores: on each node; None: all of them.
    """
    if request.whole:
        given = _of_whole_nodes(request, indices, books)
        return _chosen(given, indices, books) if given else (NOTHING, NOTHING)
    if not request.wants_gres:
        return NOTHING, NOTHING
    given = {name: (count,) * len(indices) for name, count in request.gres.items()}
    for name, each in request.gres_per_socket.items():
        sockets = [_sockets_used(request, at, index, cores, books) for at, index in enumerate(indices)]
        given[name] = tuple(each * count for count in sockets)
        if any(free_gres(books, name, i, n) < n for i, n in zip(indices, given[name], strict=True)):
            return None
    if request.gres_total:
        in_all = shared_out(request, indices, tasks, partial(free_gres, books))
        if in_all is None:
            return None
        given |= in_all
    return _chosen(given, indices, books)


def _sockets_used(
    request: Request, at: int, index: int, cores: Sequence[CoreBits] | None, books: Books
) -> int:
    """Return of how many sockets of a node a job has cores, or how many it asked for if these are more."""
    layout = books.layout
    mine = layout.full[index] if cores is None else cores[at]
    return max(request.need.sockets, sum(map(bool, layout.shape(index).by_socket(mine))))


def _of_whole_nodes(request: Request, indices: Sequence[int], books: Books) -> Amounts:
    """Return all that the nodes have, asked for or not (recorded: cons_gpus_in_all).

    Of GPUs that a node gives as a whole or in parts the job has whole ones, but for the parts that it asks for.
    """
    machines = books.layout.cluster.nodes
    names = dict.fromkeys(name for index in indices for name in machines[index].gres)
    asked = {name: count for name, count in request.gres.items() if name in PARTS}
    found: dict[str, tuple[int, ...]] = {name: (count,) * len(indices) for name, count in asked.items()}
    for name in names:
        if not (is_gpu(name) and asked) and not (name in PARTS and GPU in names):
            found[name] = tuple([machines[index].gres.get(name, 0) for index in indices])
    return found


def free_gres(books: Books, name: str, index: int, wanted: int) -> int:
    """Return how many of `wanted` a node can give; more than `wanted` is as good."""
    used, board = books.gres.get(name), books.layout.boards.get(index)
    free = books.layout.cluster.nodes[index].gres.get(name, 0) - (used[index] if used else 0)
    if board is not None and board.knows(name):
        free = min(free, board.most(books.slots[index], name, wanted))
    return free


def _chosen(given: Amounts, indices: Sequence[int], books: Books) -> tuple[Amounts, Amounts] | None:
    """Add which GPUs the job gets on nodes that tell them apart; None: they are not there."""
    if not books.slots:
        return given, NOTHING
    found: dict[str, list[int]] = {}
    for at, index in enumerate(indices):
        board = books.layout.boards.get(index)
        if board is None:
            continue
        picked = board.pick(books.slots[index], {name: counts[at] for name, counts in given.items()})
        if picked is None:
            return None
        for name, bits in picked.items():
            found.setdefault(name, [0] * len(indices))[at] = bits
    return given, {name: tuple(bits) for name, bits in found.items()} or NOTHING

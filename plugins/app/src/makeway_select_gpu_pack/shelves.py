"""Keep what each node can give, request by request: a try looks only at nodes that have changed since the last one."""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway_select_gpu_pack.offers import Offer, offer_of
from makeway_select_gpu_pack.rooms import Room, Rooms
from makeway_select_gpu_pack.wish import Wish

_MOST_OFFERS = 300_000
"""How many offers are kept; requests that were not made for long are forgotten."""


class Shelf:
    """The offers of all nodes for one request, the smallest first."""

    def __init__(self, wish: Wish, rooms: Rooms) -> None:
        """Look at all nodes; rooms that are the same object are looked at once."""
        self._wish = wish
        self.seen = rooms.changes
        answers: dict[int, Offer | None] = {}
        self._offers: list[Offer | None] = []
        for index, room in enumerate(rooms.all):
            key = id(room)
            if key not in answers:
                answers[key] = offer_of(wish, room, index)
            found = answers[key]
            self._offers.append(None if found is None else found._replace(node=index))
        self.order = sorted(offer for offer in self._offers if offer is not None)
        self.nodes: NodeBits = bitmap.of([offer.node for offer in self.order])
        """Those that have an offer."""

    def put(self, index: int, room: Room) -> None:
        """Look at a node again."""
        before, now = self._offers[index], offer_of(self._wish, room, index)
        if before == now:
            return
        if before is not None:
            del self.order[bisect.bisect_left(self.order, before)]
            self.nodes &= ~(1 << index)
        if now is not None:
            bisect.insort(self.order, now)
            self.nodes |= 1 << index
        self._offers[index] = now


class Shelves:
    """The offers of all nodes, by request."""

    def __init__(self, rooms: Rooms) -> None:
        """Begin with none."""
        self._rooms = rooms
        self._kept: dict[Hashable, Shelf] = {}
        self._most = max(1, _MOST_OFFERS // max(1, len(rooms.all)))

    def offers(self, wish: Wish, rooms: Rooms, nodes: NodeBits) -> Sequence[Offer]:
        """Return the offers of `nodes`, the smallest first.

        :param rooms: the books, or a copy of them from which jobs were taken.
        """
        shelf = self._shelf(wish)
        order: Sequence[Offer] = shelf.order
        changed = rooms.touched
        if shelf.nodes & ~nodes:
            order = [offer for offer in order if nodes >> offer.node & 1]
        if not changed:
            return order
        again = (offer_of(wish, rooms[index], index) for index in changed if nodes >> index & 1)
        found = [offer for offer in order if offer.node not in changed]
        found += [offer for offer in again if offer is not None]
        return sorted(found)

    def _shelf(self, wish: Wish) -> Shelf:
        key, rooms = wish.key, self._rooms
        shelf = self._kept.pop(key, None)
        news = None if shelf is None else rooms.since(shelf.seen)
        if shelf is None or news is None:
            shelf = Shelf(wish, rooms)
        else:
            for index in dict.fromkeys(news):
                shelf.put(index, rooms[index])
            shelf.seen = rooms.changes
        self._kept[key] = shelf
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return shelf

"""Keep the workloads of one queue that hold quota, in the order in which they are lost (kueue 4)."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Sequence

from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.site import Pair

Place = tuple[bool, tuple[int, float, str]]
"""Order within a queue: not leaving yet, then priority, admission and UID."""


class Stock(Collection[Workload]):
    """The workloads of one queue.

    Those that hold some of one pair are kept in order, too, where a queue's tree has no other pair.
    """

    __slots__ = ("_by_name", "_pair", "_places", "in_order", "sizes")

    def __init__(self, pair: Pair | None = None) -> None:
        """Begin with nobody.

        :param pair: the one pair of the tree; None: there are several, and no order is kept.
        """
        self._by_name: dict[str, Workload] = {}
        self._pair = pair
        self._places: list[Place] = []
        self.in_order: list[Workload] = []
        """Who holds some of the pair, first to lose first."""
        self.sizes: list[int] = []
        """How much of it each of these holds."""

    def __iter__(self) -> Iterator[Workload]:
        """Go through them as they came."""
        return iter(self._by_name.values())

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self._by_name)

    def __contains__(self, workload: object) -> bool:
        """Whether a workload is among them."""
        return isinstance(workload, Workload) and self._by_name.get(workload.name) is workload

    def get(self, name: str) -> Workload | None:
        """Return a workload by name, or None."""
        return self._by_name.get(name)

    def put(self, workload: Workload) -> None:
        """Add a workload, or let it stand in the place of the one of its name."""
        before = self._by_name.get(workload.name)
        if before is not None:
            self._sort_out(before)
        self._by_name[workload.name] = workload
        size = workload.uses.get(self._pair, 0) if self._pair is not None else 0
        if size > 0:
            place = place_of(workload)
            at = bisect.bisect_left(self._places, place)
            self._places.insert(at, place)
            self.in_order.insert(at, workload)
            self.sizes.insert(at, size)

    def remove(self, name: str) -> Workload | None:
        """Take a workload away, and return it; None: there is none of this name."""
        workload = self._by_name.pop(name, None)
        if workload is not None:
            self._sort_out(workload)
        return workload

    def _sort_out(self, workload: Workload) -> None:
        if self._pair is not None and workload.uses.get(self._pair, 0) > 0:
            at = bisect.bisect_left(self._places, place_of(workload))
            del self._places[at], self.in_order[at], self.sizes[at]


def place_of(workload: Workload) -> Place:
    """Return the place of a workload within its queue."""
    return not workload.evicted, workload.rank


def ordered(workloads: Collection[Workload], pair: Pair) -> tuple[Sequence[Workload], Sequence[int]]:
    """Return the workloads of a queue that hold some of a pair, in order, and how much each holds."""
    if isinstance(workloads, Stock):
        return workloads.in_order, workloads.sizes
    holding = sorted((each for each in workloads if each.uses.get(pair, 0) > 0), key=place_of)
    return holding, [each.uses[pair] for each in holding]

"""Choose victims by probing alone, for problems that are about more than the number of nodes.

All that is assumed of `makeway.model.Attempt.probe` is that removing one more candidate never
hurts.

1. All candidates are removed. If the job does not fit then, nothing helps.
2. *A good choice*: take until it fits; keep those on the nodes chosen if that still fits; give
   back in reverse while it still fits. In three orders (cheapest first, most nodes first, as the
   policy listed them); the fewest victims win, then the least price.
3. *The best choice*: for 1, 2, ... victims up to the size of the good one, all choices in order of
   price, depth first. A branch ends when its price with the cheapest that may still follow reaches
   that of the best choice known. It also ends when it does not fit even with all removed that
   may still follow. The first size at which anything fits is the least, and the cheapest choice of
   that size the answer.

Step 3 takes a limited number of steps (one simulated removal, or one probe); when they are used
up, the best choice known is returned, with what is proved about it. Steps 1 and 2 are not limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import attrs

from makeway.model import Attempt, Candidates, Placement
from makeway_search_least_disruption.effort import Effort, OutOfEffortError


@attrs.frozen
class Found:
    """A choice that makes room."""

    victims: tuple[int, ...]
    price: int
    complete: bool = False
    """Whether nothing cheaper of this size is left to try."""

    @property
    def rank(self) -> tuple[int, int]:
        """Fewest victims first, then the least price."""
        return len(self.victims), self.price


class Prober:
    """Asks the selector whether the job fits without some candidates."""

    def __init__(self, attempt: Attempt, candidates: Candidates) -> None:
        self._attempt = attempt
        self._candidates = candidates

    def place(self, gone: Iterable[int]) -> Placement | None:
        """Return where the job fits without `gone`; None if it does not."""
        trial = self._attempt.fresh()
        for at in gone:
            trial.remove(self._candidates.jobs[at], self._candidates.modes[at])
        found = trial.probe()
        return found if isinstance(found, Placement) else None

    def take(self, order: Sequence[int], known: Placement) -> tuple[list[int], Placement]:
        """Remove in `order` until the job fits; without all of them it does, at `known`."""
        trial = self._attempt.fresh()
        for at, candidate in enumerate(order):
            trial.remove(self._candidates.jobs[candidate], self._candidates.modes[candidate])
            found = trial.probe()
            if isinstance(found, Placement):
                return list(order[: at + 1]), found
        return list(order), known

    def on(self, at: int, placement: Placement) -> bool:
        """Whether candidate `at` holds a node of `placement`."""
        return bool(self._candidates.jobs[at].nodes & placement.allocation.nodes)

    def size(self, at: int) -> int:
        """Return how many nodes candidate `at` holds."""
        return self._candidates.jobs[at].nodes.bit_count()


def by_probing(prober: Prober, open_to: Sequence[int], price: Sequence[int], effort: Effort) -> Found | None:
    """Return which to take out of `open_to`; None if removing all of them does not help."""
    if prober.place(()) is not None:
        return Found((), 0, complete=True)
    known = prober.place(open_to)
    if known is None:
        return None
    cheapest = sorted(open_to, key=lambda at: (price[at], at))
    largest = sorted(cheapest, key=lambda at: -prober.size(at))
    orders = (cheapest, largest, open_to)
    good = min((_good(prober, order, price, known) for order in orders), key=lambda f: f.rank)
    return _Deepening(prober, cheapest, price, effort).improve(good)


def _good(prober: Prober, order: Sequence[int], price: Sequence[int], known: Placement) -> Found:
    taken, placement = prober.take(order, known)
    on_nodes = [at for at in taken if prober.on(at, placement)]
    if len(on_nodes) < len(taken) and prober.place(on_nodes) is not None:
        taken = on_nodes
    for at in reversed(tuple(taken)):
        rest = [other for other in taken if other != at]
        if prober.place(rest) is not None:
            taken = rest
    return Found(tuple(taken), sum(price[at] for at in taken))


class _Deepening:
    """All choices of 1, 2, ... victims, in order of price."""

    def __init__(self, prober: Prober, cheapest: Sequence[int], price: Sequence[int], effort: Effort) -> None:
        self._prober = prober
        self._order = cheapest
        self._price = [price[at] for at in cheapest]
        self._sums = [0, *accumulate(self._price)]
        self._effort = effort
        self._best: Found | None = None

    def improve(self, good: Found) -> Found:
        """Return the best choice, or the best one known once the effort is used up."""
        try:
            for size in range(1, len(good.victims) + 1):
                self._effort.at_least = size
                self._best = good if size == len(good.victims) else None
                self._try(0, (), 0, size)
                if self._best is not None:
                    return attrs.evolve(self._best, complete=True)
        except OutOfEffortError:
            return self._best or good
        return good

    def _fits(self, gone: Sequence[int]) -> bool:
        self._effort.spend(len(gone) + 1)
        return self._prober.place(self._order[i] for i in gone) is not None

    def _try(self, start: int, chosen: tuple[int, ...], price: int, missing: int) -> None:
        """Try all ways to add `missing` candidates from `start` on."""
        size = len(self._order)
        for at in range(start, size - missing + 1):
            least = price + self._sums[at + missing] - self._sums[at]
            if self._best is not None and least >= self._best.price:
                return
            if missing == 1:
                if self._fits((*chosen, at)):
                    self._keep((*chosen, at), least)
                    return
            elif not self._fits((*chosen, *range(at, size))):
                return
            else:
                self._try(at + 1, (*chosen, at), price + self._price[at], missing - 1)

    def _keep(self, chosen: tuple[int, ...], price: int) -> None:
        self._best = Found(tuple(self._order[at] for at in chosen), price)

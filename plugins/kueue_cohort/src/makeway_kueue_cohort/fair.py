"""Choose victims by shares (kueue 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from makeway_kueue_cohort.books import Books, Node, Share, fits, root_of
from makeway_kueue_cohort.classic import ByQueue, almost_ancestors, give_back
from makeway_kueue_cohort.order import Workload, foreign, ordering, own
from makeway_kueue_cohort.reasons import Reason, Victim
from makeway_kueue_cohort.site import Pair, Rule, Within


class Ordering:
    """Asks the queues of a tree one after the other, the one with the highest share first (6.5)."""

    def __init__(
        self,
        queue: Node,
        candidates: Mapping[str, Sequence[Workload]],
        rank: Callable[[Workload], Any],
    ) -> None:
        """Begin.

        :param queue: the preemptor's.
        :param candidates: queue -> its candidates; they are sorted when the first of them is wanted.
        :param rank: the key by which to sort them.
        """
        self.queue = queue
        self.left = {name: list(each) for name, each in candidates.items() if each}
        self._at = dict.fromkeys(self.left, 0)
        self._rank = rank
        self._unsorted = set(self.left)
        self._out: set[int] = set()
        self._path = {id(queue), *map(id, queue.above())}

    def __iter__(self) -> Iterator[Node]:
        """Yield the next queue; the caller pops a candidate or drops the queue."""
        if self.queue.parent is None:
            while self.has(self.queue) and id(self.queue) not in self._out:
                yield self.queue
            return
        root = root_of(self.queue)
        while id(root) not in self._out:
            found = self._next(root)
            if found is not None:
                yield found

    def has(self, queue: Node) -> bool:
        """Whether a queue has candidates left."""
        return self._at.get(queue.name, 0) < len(self.left.get(queue.name, ()))

    def first(self, queue: Node) -> Workload:
        """Return the first candidate that is left."""
        self._in_order(queue)
        return self.left[queue.name][self._at[queue.name]]

    def pop(self, queue: Node) -> Workload:
        """Take the first candidate away."""
        found = self.first(queue)
        self._at[queue.name] += 1
        return found

    def rest(self, queue: Node) -> Iterator[Workload]:
        """Take the candidates away, one by one."""
        self._in_order(queue)
        for candidate in self.left[queue.name][self._at[queue.name] :]:
            self._at[queue.name] += 1
            yield candidate

    def _in_order(self, queue: Node) -> None:
        if queue.name in self._unsorted:
            self._unsorted.discard(queue.name)
            self.left[queue.name].sort(key=self._rank)

    def drop(self, queue: Node) -> None:
        """Ask a queue no more."""
        self._out.add(id(queue))

    def _next(self, cohort: Node) -> Node | None:
        best, highest = None, None
        for queue in cohort.queues:
            if id(queue) in self._out:
                continue
            if not self.has(queue) or (queue is not self.queue and not _borrows(queue)):
                self._out.add(id(queue))
                continue
            share = queue.share()
            if (
                highest is None
                or best is None
                or share > highest
                or (share == highest and self._sooner(queue, best))
            ):
                best, highest = queue, share
        chosen, most = None, None
        for child in cohort.cohorts:
            if id(child) in self._out:
                continue
            if id(child) not in self._path and not _borrows(child):
                self._out.add(id(child))
                continue
            share = child.share()
            if most is None or share > most:
                chosen, most = child, share
        if chosen is not None and most is not None and (highest is None or most >= highest):
            return self._next(chosen)
        if best is None:
            self._out.add(id(cohort))
        return best

    def _sooner(self, one: Node, other: Node) -> bool:
        return bool(self._rank(self.first(one)) < self._rank(self.first(other)))


def _borrows(node: Node) -> bool:
    subtree = node.subtree
    return any(used > subtree.get(pair, 0) for pair, used in node.usage.items())


def choose(preemptor: Workload, short: Sequence[Pair], admitted: ByQueue, books: Books) -> tuple[Victim, ...]:
    """Return the victims, first taken first; empty: none can make room."""
    return _Search(preemptor, short, books).victims(admitted)


class _Search:
    def __init__(self, preemptor: Workload, short: Sequence[Pair], books: Books) -> None:
        self.preemptor = preemptor
        self.queue = preemptor.queue
        self.short = short
        self.books = books
        self.rank = ordering(self.queue, by_local_queue=books.site.by_local_queue)
        self.taken: list[Victim] = []
        self.kept_for_second: dict[str, list[Workload]] = {}

    def victims(self, admitted: ByQueue) -> tuple[Victim, ...]:
        """Search with the request counted as used (6.4); the books end as they were."""
        mine = own(self.preemptor, admitted.get(self.queue.name, ()), self.short)
        self.books.add(self.queue, self.preemptor.uses)
        candidates = self._candidates(mine, admitted)
        if not candidates:
            self.books.take(self.queue, self.preemptor.uses)
            return ()
        rules = self.books.site.rules
        fit = self._first(candidates, rules[0])
        if not fit and len(rules) > 1:
            fit = self._second(rules[1])
        self.books.take(self.queue, self.preemptor.uses)
        workloads = [each.workload for each in self.taken]
        kept = set(map(id, self._given_back(workloads) if fit else ()))
        for each in workloads:
            if not fit or id(each) in kept:
                self.books.add(each.queue, each.uses)
        return tuple(each for each in self.taken if id(each.workload) in kept)

    def _given_back(self, workloads: Sequence[Workload]) -> list[Workload]:
        return give_back(workloads, self.queue, self.preemptor.uses, self.books, borrowing=True)

    def _candidates(self, mine: list[Workload], admitted: ByQueue) -> dict[str, list[Workload]]:
        queue = self.queue.queue
        assert queue is not None
        others = []
        if self.queue.parent is not None and queue.preemption.reclaim is not Within.NEVER:
            others = [
                each
                for each in _queues_of(root_of(self.queue))
                if each is not self.queue and not each.within_nominal(self.short)
            ]
        if not mine and not self._entitled() and not any(map(self._may_lose, others)):
            return {}  # the first would have to be taken by its share, and none can be
        found = {self.queue.name: mine}
        for other in others:
            found[other.name] = foreign(self.preemptor, admitted.get(other.name, ()), self.short)
        return {name: each for name, each in found.items() if each}

    def _entitled(self) -> bool:
        """Whether candidates of other queues are taken whatever the shares (6.6)."""
        return self.books.site.entitlement and self.queue.within_nominal(self.short)

    def _may_lose(self, other: Node) -> bool:
        """Whether the share of another queue is high enough for some rule."""
        mine, theirs = almost_ancestors(self.queue, other)
        return mine.share() <= theirs.share()

    # ----------------------------------------------------------------------------- strategies
    def _first(self, candidates: Mapping[str, Sequence[Workload]], rule: Rule) -> bool:
        order = Ordering(self.queue, candidates, self.rank)
        for queue in order:
            if queue is self.queue:
                fit = self._take(order.pop(queue), Reason.IN_QUEUE)
            elif self._entitled():
                fit = self._take(order.pop(queue), Reason.RECLAMATION)
            else:
                fit = self._by_share(order, queue, rule)
            if fit:
                return True
        return False

    def _by_share(self, order: Ordering, queue: Node, rule: Rule) -> bool:
        mine, theirs = almost_ancestors(self.queue, queue)
        asked, before = mine.share(), theirs.share()
        kept = self.kept_for_second.setdefault(queue.name, [])
        vain = set[tuple[tuple[Pair, int], ...]]()
        for candidate in order.rest(queue):
            # The shares are the same for all that use as much, until one is taken.
            if candidate.amounts not in vain:
                if self._passes(rule, asked, before, theirs, candidate):
                    return self._take(candidate, Reason.FAIR)
                vain.add(candidate.amounts)
            kept.append(candidate)
        return False

    def _passes(self, rule: Rule, asked: Share, before: Share, theirs: Node, candidate: Workload) -> bool:
        if rule is Rule.INITIAL:
            return asked < before
        self.books.take(candidate.queue, candidate.uses)
        after = theirs.share()
        self.books.add(candidate.queue, candidate.uses)
        return asked <= after

    def _second(self, rule: Rule) -> bool:
        """Try the first of the candidates that each queue has left; there is no third chance (6.9)."""
        order = Ordering(self.queue, self.kept_for_second, self.rank)
        for queue in order:
            mine, theirs = almost_ancestors(self.queue, queue)
            candidate = order.pop(queue)
            if self._passes(rule, mine.share(), theirs.share(), theirs, candidate) and self._take(
                candidate, Reason.FAIR
            ):
                return True
            order.drop(queue)
        return False

    def _take(self, candidate: Workload, reason: Reason) -> bool:
        """Take a candidate; return whether the preemptor fits now, its own request not counted (6.4)."""
        self.books.take(candidate.queue, candidate.uses)
        self.taken.append(Victim(candidate, reason))
        self.books.take(self.queue, self.preemptor.uses)
        fit = fits(self.queue, self.preemptor.uses)
        self.books.add(self.queue, self.preemptor.uses)
        return fit


def _queues_of(cohort: Node) -> Iterator[Node]:
    for child in cohort.cohorts:
        yield from _queues_of(child)
    yield from cohort.queues

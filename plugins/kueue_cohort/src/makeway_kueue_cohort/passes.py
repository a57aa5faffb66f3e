"""Play one scheduling pass over the heads of all queues (kueue 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from makeway_kueue_cohort import decide
from makeway_kueue_cohort.books import Books, Node, Share, fits, root_of
from makeway_kueue_cohort.classic import ByQueue
from makeway_kueue_cohort.flavors import Assignment, Mode, PodSet, assign
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.reasons import Victim
from makeway_kueue_cohort.site import Amounts, Pair, Sharing, Within

Standing = tuple[bool, Share]
"""Whether a node borrows of what is asked, and its share."""


@attrs.frozen(eq=False)
class Head:
    """The first workload of a queue (7.1)."""

    workload: Workload
    pod_sets: Sequence[PodSet]


@attrs.frozen(kw_only=True)
class Outcome:
    """What a pass came to."""

    victims: tuple[Victim, ...]
    admitted: dict[str, Amounts]
    """Name -> what it uses."""


@attrs.frozen(eq=False)
class Entry:
    """A head with the flavors chosen for it, and what it would preempt."""

    head: Head
    assignment: Assignment
    victims: tuple[Victim, ...]

    @property
    def queue(self) -> Node:
        """Its queue."""
        return self.head.workload.queue

    @property
    def helps(self) -> bool:
        """Whether it can be admitted, now or once its victims have gone."""
        return self.assignment.grade.mode is Mode.FIT or bool(self.victims)


def nominate(head: Head, admitted: ByQueue, books: Books, keep: Assignment | None = None) -> Entry:
    """Choose flavors for a head, and what it would preempt.

    :param keep: flavors chosen before, which are not changed.
    """
    full = _nominated(head, head.pod_sets, admitted, books, keep)
    if keep is not None or full.helps:
        return full
    return _with_fewer_pods(head, admitted, books) or full


def _nominated(
    head: Head, pod_sets: Sequence[PodSet], admitted: ByQueue, books: Books, keep: Assignment | None = None
) -> Entry:
    found = assign(head.workload, pod_sets, admitted, books, keep)
    if found.grade.mode in (Mode.NO_FIT, Mode.FIT):
        return Entry(head, found, ())
    if found.victims is not None:
        return Entry(head, found, found.victims)
    asking = attrs.evolve(head.workload, uses=found.uses)
    return Entry(head, found, decide.victims(asking, found.short, admitted, books))


def _with_fewer_pods(head: Head, admitted: ByQueue, books: Books) -> Entry | None:
    """Return the entry with the most pods that helps, pod sets cut in proportion; None: none does (9.2)."""
    spare = [each.count - (each.count if each.minimum is None else each.minimum) for each in head.pod_sets]
    total = sum(spare)

    def cut(steps: int) -> Entry:
        fewer = [
            attrs.evolve(each, count=each.count - left * steps // total)
            for each, left in zip(head.pod_sets, spare, strict=True)
        ]
        return _nominated(head, fewer, admitted, books)

    least, most = 1, total + 1
    while least < most:
        middle = (least + most) // 2
        if cut(middle).helps:
            most = middle
        else:
            least = middle + 1
    return cut(least) if least <= total else None


def heads(waiting: Sequence[Head]) -> list[Head]:
    """Return the first of each queue: by priority, queue time, UID (7.1)."""
    first: dict[str, Head] = {}
    for head in sorted(waiting, key=lambda h: (-h.workload.priority, h.workload.created, h.workload.uid)):
        first.setdefault(head.workload.queue.name, head)
    return list(first.values())


def play(waiting: Sequence[Head], admitted: ByQueue, books: Books) -> Outcome:
    """Play a pass; `books` take on what was admitted, and what is held for who waits."""
    return _Pass(admitted, books).over(heads(waiting))


class _Pass:
    def __init__(self, admitted: ByQueue, books: Books) -> None:
        self.known = admitted
        self.books = books
        self.victims: dict[int, Victim] = {}
        self.admitted: dict[str, Amounts] = {}

    def over(self, waiting: Sequence[Head]) -> Outcome:
        entries = [
            entry for entry in map(self._nominated, waiting) if entry.assignment.grade.mode is not Mode.NO_FIT
        ]
        for entry in in_order(entries, self.books):
            self._try(entry)
        return Outcome(victims=tuple(self.victims.values()), admitted=self.admitted)

    def _nominated(self, head: Head, keep: Assignment | None = None) -> Entry:
        left = {
            queue: [each for each in workloads if id(each) not in self.victims]
            for queue, workloads in self.known.items()
        }
        return nominate(head, left, self.books, keep)

    def _try(self, entry: Entry) -> None:
        preempted = bool(entry.victims)
        if any(id(each.workload) in self.victims for each in entry.victims):
            if not self.books.site.recompute_overlap:
                return
            entry = self._again(entry)
        if entry.assignment.grade.mode is Mode.NO_FIT:
            return
        # Who needed others to leave is admitted in a later pass, even if those of other heads are enough (7.4).
        preempts = preempted or entry.assignment.grade.mode is not Mode.FIT
        if entry.assignment.grade.mode is not Mode.FIT and not entry.victims:
            self._hold(entry)
            return
        if not self._still_fits(entry):
            return
        for each in entry.victims:
            self.victims[id(each.workload)] = each
        self.books.add(entry.queue, entry.assignment.uses)
        if not preempts:
            self.admitted[entry.head.workload.name] = entry.assignment.uses

    def _again(self, entry: Entry) -> Entry:
        """Seek victims anew in the flavors chosen, as if those of this pass were gone (7.5)."""
        gone = list(self.victims.values())
        for each in gone:
            self.books.take(each.workload.queue, each.workload.uses)
        found = self._nominated(entry.head, keep=entry.assignment)
        for each in gone:
            self.books.add(each.workload.queue, each.workload.uses)
        return found

    def _still_fits(self, entry: Entry) -> bool:
        gone = {**self.victims, **{id(each.workload): each for each in entry.victims}}
        for each in gone.values():
            self.books.take(each.workload.queue, each.workload.uses)
        found = fits(entry.queue, entry.assignment.uses)
        for each in gone.values():
            self.books.add(each.workload.queue, each.workload.uses)
        return found

    def _hold(self, entry: Entry) -> None:
        """Keep quota for who found no candidates (7.6)."""
        assert entry.queue.queue is not None
        if entry.queue.queue.preemption.reclaim is not Within.ANY:
            self.books.add(entry.queue, held(entry.queue, entry.assignment))


def held(queue: Node, assignment: Assignment) -> dict[Pair, int]:
    """Return what is kept in a pass for a workload that waits without candidates (7.6)."""
    found = {}
    for pair, amount in assignment.uses.items():
        quota = queue.quotas[pair]
        if not assignment.grade.height:
            found[pair] = max(0, min(amount, quota.nominal - queue.used(pair)))
        elif quota.borrowing_limit is None:
            found[pair] = amount
        else:
            found[pair] = max(0, min(amount, quota.nominal + quota.borrowing_limit - queue.used(pair)))
    return found


# ------------------------------------------------------------------------------------- order of heads
def in_order(entries: Sequence[Entry], books: Books) -> Iterator[Entry]:
    """Yield the entries in the order in which they are tried (7.2); books may change in between."""
    if books.site.sharing is Sharing.FAIR:
        yield from _tournaments(list(entries))
        return
    by_priority = books.site.priority_within_cohort
    yield from sorted(entries, key=lambda e: (e.assignment.grade.height, *_urgency(e, by_priority)))


def _urgency(entry: Entry, by_priority: bool = True) -> tuple[float, float, str]:
    workload = entry.head.workload
    return (-workload.priority if by_priority else 0, workload.created, workload.uid)


def _tournaments(left: list[Entry]) -> Iterator[Entry]:
    """Hold a tournament for every place: the first of each tree in turn, with shares as they are then."""
    while left:
        root = root_of(left[0].queue)
        rivals = [entry for entry in left if root_of(entry.queue) is root]
        won = _winner(root, rivals)
        left.remove(won)
        yield won


def _winner(root: Node, rivals: Sequence[Entry]) -> Entry:
    """Return who comes out on top: in each cohort the best of its children goes on."""
    shares = {id(entry): _standing(entry) for entry in rivals}
    won = _best(root, {id(entry.queue): entry for entry in rivals}, shares)
    assert won is not None
    return won


def _best(
    node: Node, of_queue: Mapping[int, Entry], shares: Mapping[int, Mapping[int, Standing]]
) -> Entry | None:
    """Return the winner below a node; None: nothing there takes part."""
    if node.queue is not None:
        return of_queue.get(id(node))
    found = [
        (child, winner) for child in node.children() if (winner := _best(child, of_queue, shares)) is not None
    ]
    if not found:
        return None
    return min(found, key=lambda each: _rank(each[1], shares[id(each[1])][id(each[0])]))[1]


def _rank(entry: Entry, standing: Standing) -> tuple[bool, Share, tuple[float, float, str]]:
    return *standing, _urgency(entry)


def _standing(entry: Entry) -> dict[int, Standing]:
    """Return node -> its standing with the request, from the queue up to the root."""
    uses = entry.assignment.uses
    for pair, amount in uses.items():
        entry.queue.change(pair, amount)
    found = {
        id(node): (any(map(node.borrows, uses)), node.share()) for node in [entry.queue, *entry.queue.above()]
    }
    for pair, amount in uses.items():
        entry.queue.change(pair, -amount)
    return found

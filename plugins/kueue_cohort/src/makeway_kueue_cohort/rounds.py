"""Name the heads of all queues, pass of Kueue after pass of Kueue (kueue 7.1).

Each pass takes the head of every queue. Most heads were told long ago that they lack quota, lack it still, and are put
aside without any effect. They are *silent*.

- In a *steady* tree nothing but quota given back can make a silent head speak: shares are classic, and no queue keeps
  quota for who waits. There all silent heads of a queue are passed over at once, and the queue then *rests*: it sits
  out as many passes as they would have taken. So everybody else is tried in the same pass as if the silent had been
  tried one by one.
- In a *calm* tree shares are fair, all queues hang below one cohort, have quota of one pair, and keep nothing for who
  waits. There a silent head stays silent as long as books do not change, and nobody's place depends on it. The silent
  are passed over as in a steady tree, but put aside one by one, in the pass that is theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import attrs

from makeway_kueue_cohort.site import Sharing, Within
from makeway_kueue_cohort.waiting import Asking, Waiting
from makeway_kueue_cohort.yard import REASON, Yard


@attrs.define(eq=False)
class _Place:
    """A queue, as far as it has been looked through."""

    waiting: Waiting
    steady: bool
    calm: bool
    since: int = 0
    """The pass in which it was looked through."""
    silent: Sequence[Asking] = ()
    """Those it passes over, one in each pass from then on."""
    done: int = 0
    """How many of these have had their pass; of a calm tree alone."""
    whole: bool = False
    """Whether they are all who wait and are worth a look; of a calm tree alone."""
    head: Asking | None = None
    """Who is worth trying after them."""
    freed: int = -1
    """How much had been given back in its tree by then."""
    stamp: int = -1
    """State of the books by then."""
    known: bool = False
    """Whether all this still holds, unless something is given back or somebody comes."""

    @property
    def due(self) -> int:
        """The pass in which its head is tried."""
        return self.since + len(self.silent)


class Rounds:
    """The passes of Kueue within one pass of makeway."""

    def __init__(self, yard: Yard) -> None:
        """Begin before the first."""
        steady, calm = _steady_trees(yard), _calm_trees(yard)
        self._yard = yard
        self._places = [
            _Place(queue, queue.root in steady, queue.root in calm) for queue in yard.waiting.values()
        ]
        open_trees = _open_trees(yard)
        self._keeping = [
            place for place in self._places if place.waiting.strict and place.waiting.root not in open_trees
        ]
        self._now = -1
        self.tried: set[str] = set()
        """Who has been a head; nobody is twice."""
        self.first: dict[str, Asking] = {}
        """Queue -> who stays its head, since victims have left for it (7.1)."""
        self.all_steady = all(place.steady for place in self._places)
        self.any_calm = any(place.calm for place in self._places)

    def begin(self) -> None:
        """Begin a pass of makeway."""
        self._now = -1
        self.tried.clear()
        for place in self._places:
            place.known, place.silent, place.head = False, (), None
            place.waiting.begin()

    def heads(self, busy: Collection[str]) -> list[Asking]:
        """Begin a pass of Kueue with some that are worth trying, and return them; empty: none is left.

        :param busy: names of queues whose heads are not tried: their victims are leaving.
        """
        now, stamp = self._now + 1, self._yard.stamp
        due = None
        for place in self._places:
            queue = place.waiting
            if not queue.kinds:
                continue
            if busy and queue.node.name in busy:
                self._forget(place, now)
                continue
            if (
                not place.known
                or queue.order is None
                or place.freed != self._yard.freed_for(queue)
                or (place.calm and place.stamp != stamp)
            ):
                self._forget(place, now)
                self._look_through(place, now)
            if place.head is not None and (due is None or place.due < due):
                due = place.due
        if self.any_calm:
            self._put_aside_until(due)
        if due is None:
            return []
        self._now = due
        found = []
        for place in self._places:
            if place.head is not None and place.due == due:
                found.append(place.head)
                place.known = False
        return found

    def strict(self, busy: Collection[str]) -> Iterator[Asking]:
        """Yield the heads of strict queues that were tried in vain; each pass of Kueue tries them again (7.1).

        In a tree that keeps no quota for who waits, that changes nothing for others.
        """
        for place in self._keeping:
            queue = place.waiting
            if queue.node.name in busy or not queue.kinds or place.head is not None:
                continue
            head = next((asking for asking in self._yard.order(queue) if self._yard.waits(asking)), None)
            if head is not None:
                yield head

    def silent(self) -> Iterator[Asking]:
        """Yield the silent heads of the present pass."""
        for place in self._places:
            if place.waiting.kinds and place.since <= self._now < place.due:
                yield place.silent[self._now - place.since]

    def in_place(self, heads: Collection[Asking]) -> Iterator[tuple[Asking, bool]]:
        """Yield the heads of the present pass and the silent of calm trees, and whether they are silent."""
        wanted = set(map(id, heads))
        for place in self._places:
            head = place.head
            if head is not None and place.due == self._now and id(head) in wanted:
                yield head, False
            elif place.calm and place.known and place.silent and place.since <= self._now < place.due:
                place.done = self._now - place.since + 1
                yield place.silent[place.done - 1], True

    def put_aside(self, asking: Asking) -> None:
        """Take note that a silent head has had its pass."""
        self.tried.add(asking.job.id)
        self._yard.put_aside(asking)

    def _put_aside_until(self, due: int | None) -> None:
        """Put the silent of calm trees aside whose pass is before the one that is due; None: all of them."""
        for place in self._places:
            if not (place.calm and place.known and place.silent):
                continue
            queue, count = place.waiting, len(place.silent)
            end = count if due is None else min(count, due - place.since)
            if due is None and not place.done and queue.least is not None:
                queue.seen = place.freed  # what was given back helps nobody here
                place.done = count
                continue
            for asking in place.silent[place.done : end]:
                self.put_aside(asking)
            place.done = max(place.done, end)
            if place.whole and place.done == count and queue.order is not None:
                place.whole = False
                queue.passed = len(queue.order)
                self._yard.sum_up(queue)

    def _forget(self, place: _Place, now: int) -> None:
        """Take note of the silent who have had their pass."""
        if place.silent and not place.calm:
            self.tried.update([asking.job.id for asking in place.silent[: now - place.since]])
        place.known, place.silent, place.head, place.done, place.whole = False, (), None, 0, False

    def _look_through(self, place: _Place, now: int) -> None:
        queue, yard = place.waiting, self._yard
        freed = yard.freed_for(queue)
        place.since, place.freed, place.stamp, place.known = now, freed, yard.stamp, True
        first = self.first.get(queue.node.name)
        if first is not None and first.job.id not in self.tried and yard.waits(first):
            place.head = first
            return
        if queue.least is not None:
            if queue.seen == freed:
                return
            order = yard.order(queue)
            if place.steady and yard.all_lack(queue) and not self._any_tried(order):
                queue.seen = freed
                place.silent = order
                return
            if place.calm and self._all_silent(queue, order):
                place.silent, place.whole = order, True
                return
        queue.look(freed)
        order = yard.order(queue)
        at, silent, passed = queue.passed, list[Asking](), -1
        while at < len(order):
            asking = order[at]
            if not yard.waits(asking):
                order, at = queue.sorted(yard.back), 0
                if place.calm:
                    silent, passed = [], -1
                continue
            if not queue.waits_in_vain(asking):
                if asking.job.id in self.tried:
                    break
                quiet = place.steady or place.calm
                if not (quiet and asking.job.reason == REASON and yard.lacks(asking)):
                    place.head = asking
                    break
                if place.steady:
                    queue.put_aside(asking)
                elif not silent:
                    passed = at
                silent.append(asking)
            if queue.strict:
                break
            at += 1
        else:
            if place.calm and silent:
                place.whole = True
            else:
                yard.sum_up(queue)
        queue.passed = passed if passed >= 0 else min(at, len(order))
        place.silent = silent

    def _all_silent(self, queue: Waiting, order: Sequence[Asking]) -> bool:
        """Whether all who wait lack quota as they did before, and each of them is the first put aside of its kind."""
        return (
            queue.exact
            and self._yard.all_lack(queue)
            and not self._any_tried(order)
            and all(asking.job.eligible_since is not None for asking in order)
        )

    def _any_tried(self, askings: Sequence[Asking]) -> bool:
        tried = self.tried
        return bool(tried) and any(asking.job.id in tried for asking in askings)


def _steady_trees(yard: Yard) -> set[str]:
    """Return the roots of the trees in which a silent head stays silent until something is given back."""
    return set() if yard.books.site.sharing is Sharing.FAIR else _open_trees(yard)


def _calm_trees(yard: Yard) -> set[str]:
    """Return the roots of the trees in which a silent head stays silent until books change, and matters to nobody."""
    if yard.books.site.sharing is not Sharing.FAIR:
        return set()
    flats = {flat.root.name for flat in yard.books.flats.values()}
    alone = {name for name, node in yard.books.queues.items() if node.parent is None}
    return (_open_trees(yard) & flats) - alone


def _open_trees(yard: Yard) -> set[str]:
    """Return the roots of the trees in which no queue keeps quota for who waits (7.6)."""
    unsteady = set()
    for queue in yard.waiting.values():
        state = queue.node.queue
        assert state is not None
        if state.preemption.reclaim is not Within.ANY:
            unsteady.add(queue.root)
    return set(yard.roots.values()) - unsteady

"""Name the heads of all queues, pass of Kueue after pass of Kueue (spec kueue 7.1).

Each pass takes the head of every queue. Most heads were told long ago that they lack quota, lack it still, and are put
aside without any effect. They are *silent*. In a *steady* tree nothing but quota given back can make a silent head
speak: shares are classic, and no queue keeps quota for who waits. There all silent heads of a queue are passed over at
once, and the queue then *rests*: it sits out as many passes as they would have taken. So everybody else is tried in the
same pass as if the silent had been tried one by one.
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
    since: int = 0
    """The pass in which it was looked through."""
    silent: Sequence[Asking] = ()
    """Those it passes over, one in each pass from then on."""
    head: Asking | None = None
    """Who is worth trying after them."""
    freed: int = -1
    """How much had been given back in its tree by then."""
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
        steady = _steady_trees(yard)
        self._yard = yard
        self._places = [_Place(queue, queue.root in steady) for queue in yard.waiting.values()]
        self._now = -1
        self.tried: set[str] = set()
        """Who has been a head; nobody is twice."""
        self.all_steady = all(place.steady for place in self._places)

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
        now = self._now + 1
        due = None
        for place in self._places:
            queue = place.waiting
            if not queue.kinds:
                continue
            if busy and queue.node.name in busy:
                self._forget(place, now)
                continue
            if not place.known or queue.order is None or place.freed != self._yard.freed_for(queue):
                self._forget(place, now)
                self._look_through(place, now)
            if place.head is not None and (due is None or place.due < due):
                due = place.due
        if due is None:
            return []
        self._now = due
        found = []
        for place in self._places:
            if place.head is not None and place.due == due:
                found.append(place.head)
                place.known = False
        return found

    def silent(self) -> Iterator[Asking]:
        """Yield the silent heads of the present pass."""
        for place in self._places:
            if place.waiting.kinds and place.since <= self._now < place.due:
                yield place.silent[self._now - place.since]

    def _forget(self, place: _Place, now: int) -> None:
        """Take note of the silent who have had their pass."""
        if place.silent:
            self.tried.update([asking.job.id for asking in place.silent[: now - place.since]])
        place.known, place.silent, place.head = False, (), None

    def _look_through(self, place: _Place, now: int) -> None:
        queue, yard = place.waiting, self._yard
        freed = yard.freed_for(queue)
        place.since, place.freed, place.known = now, freed, True
        if queue.least is not None:
            if queue.seen == freed:
                return
            order = yard.order(queue)
            if place.steady and yard.all_lack(queue) and not self._any_tried(order):
                queue.seen = freed
                place.silent = order
                return
        queue.look(freed)
        order = yard.order(queue)
        at, silent = queue.passed, list[Asking]()
        while at < len(order):
            asking = order[at]
            if not yard.waits(asking):
                order, at = queue.sorted(yard.back), 0
                continue
            if not queue.waits_in_vain(asking):
                if asking.job.id in self.tried:
                    break
                if not (place.steady and asking.job.reason == REASON and yard.lacks(asking)):
                    place.head = asking
                    break
                silent.append(asking)
                queue.put_aside(asking)
            if queue.strict:
                break
            at += 1
        else:
            yard.sum_up(queue)
        queue.passed = min(at, len(order))
        place.silent = silent

    def _any_tried(self, askings: Sequence[Asking]) -> bool:
        tried = self.tried
        return bool(tried) and any(asking.job.id in tried for asking in askings)


def _steady_trees(yard: Yard) -> set[str]:
    """Return the roots of the trees in which a silent head stays silent until something is given back."""
    if yard.books.site.sharing is Sharing.FAIR:
        return set()
    unsteady = set()
    for queue in yard.waiting.values():
        state = queue.node.queue
        assert state is not None
        if state.preemption.reclaim is not Within.ANY:
            unsteady.add(queue.root)
    return set(yard.roots.values()) - unsteady

"""Name the heads of all queues, pass of Kueue after pass of Kueue (kueue 7.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from makeway_kueue_cohort.site import Within
from makeway_kueue_cohort.waiting import Asking, Waiting
from makeway_kueue_cohort.yard import Yard


class Rounds:
    """The passes of Kueue within one pass of makeway."""

    def __init__(self, yard: Yard) -> None:
        """Begin before the first."""
        open_trees = _open_trees(yard)
        self._yard = yard
        self._keeping = [
            queue for queue in yard.waiting.values() if queue.strict and queue.root not in open_trees
        ]
        self._headed: set[str] = set()
        """Queues with a head in the present pass."""
        self.tried: set[str] = set()
        """Jobs that have been heads; none is twice."""
        self.first: dict[str, Asking] = {}
        """Queue -> the job that stays its head, since victims have left for it (7.1)."""

    def begin(self) -> None:
        """Begin a pass of makeway."""
        self.tried.clear()
        for queue in self._yard.waiting.values():
            queue.begin()

    def heads(self, busy: Collection[str]) -> list[Asking]:
        """Begin a pass of Kueue, and return its heads that are worth trying; empty: none is left.

        :param busy: names of queues whose heads are not tried: their victims are leaving.
        """
        found = {}
        for queue in self._yard.waiting.values():
            if queue.kinds and queue.node.name not in busy and (head := self._head(queue)) is not None:
                found[queue.node.name] = head
        self._headed = set(found)
        return list(found.values())

    def strict(self, busy: Collection[str]) -> Iterator[Asking]:
        """Yield the heads of strict queues that were tried in vain; each pass of Kueue tries them again (7.1).

        In a tree that keeps no quota for jobs that wait, that changes nothing for others.
        """
        for queue in self._keeping:
            if queue.node.name in busy or not queue.kinds or queue.node.name in self._headed:
                continue
            head = next((asking for asking in self._yard.order(queue) if self._yard.waits(asking)), None)
            if head is not None:
                yield head

    def had_turn(self, asking: Asking) -> None:
        """Let a job stay the head of its queue no longer."""
        if self.first.get(asking.workload.queue.name) is asking:
            del self.first[asking.workload.queue.name]

    def _head(self, queue: Waiting) -> Asking | None:
        """Return the first job of a queue that is worth trying; None: there is none."""
        yard = self._yard
        first = self.first.get(queue.node.name)
        if first is not None and first.job.id not in self.tried and yard.waits(first):
            return first
        queue.look(yard.freed_for(queue))
        order, head = yard.order(queue), None
        while queue.passed < len(order):
            asking = order[queue.passed]
            if not yard.waits(asking):
                order = queue.sorted(yard.back)
                continue
            if not queue.waits_in_vain(asking):
                head = asking if asking.job.id not in self.tried else None
                break
            if queue.strict:
                break
            queue.passed += 1
        return head


def _open_trees(yard: Yard) -> set[str]:
    """Return the roots of the trees in which no queue keeps quota for jobs that wait (7.6)."""
    keeping = set()
    for queue in yard.waiting.values():
        state = queue.node.queue
        assert state is not None
        if state.preemption.reclaim is not Within.ANY:
            keeping.add(queue.root)
    return set(yard.roots.values()) - keeping

"""Keep the jobs that wait in one queue, and which of them have been tried in vain.

Jobs of one queue that ask for the same are of one *kind*: if the first of them cannot be admitted, no other can.
"""

from __future__ import annotations

import heapq
import operator

import attrs

from makeway.model import Job, JobState, Seconds
from makeway_kueue_cohort.flavors import PodSet
from makeway_kueue_cohort.order import Workload
from makeway_kueue_cohort.site import Strategy
from makeway_kueue_cohort.tree import Node

_PENDING = JobState.PENDING
Rank = tuple[int, Seconds, int]
"""Place in a queue: priority, queue time, number (7.1)."""
Kind = tuple[tuple[tuple[str, int], ...], int, tuple[str, ...]]
"""What is asked for, the number of pods, and the flavors that taints close to them."""


@attrs.frozen(eq=False)
class Asking:
    """A job as it waits: its queue and request do not change."""

    job: Job
    workload: Workload
    pod_sets: tuple[PodSet, ...]
    kind: Kind
    rank: Rank


class Waiting:
    """The jobs that wait in one queue."""

    def __init__(self, node: Node, root: str) -> None:
        """Begin with no job."""
        assert node.queue is not None
        self.node = node
        self.root = root
        self.strict = node.queue.strategy is Strategy.STRICT
        self.kinds: dict[Kind, list[tuple[Rank, Asking]]] = {}
        """Heaps."""
        self.listed: set[str] = set()
        """Who is in a heap."""
        self.aside: dict[Kind, tuple[int, Rank]] = {}
        """Kinds that could not be admitted -> how much had been given back in the tree when the first job was
        nominated, and its place."""
        self.roomless: set[Kind] = set()
        """Kinds whose quota was there in this pass, and room on nodes was not."""
        self.order: list[Asking] | None = None
        """The first of each kind, in order; None: to be sorted anew."""
        self.passed = 0
        """How many of these wait in vain, as far as is known."""
        self.seen = 0
        """How much had been given back in the tree at the last look."""

    def push(self, asking: Asking) -> None:
        """Add a job."""
        self.listed.add(asking.job.id)
        heapq.heappush(self.kinds.setdefault(asking.kind, []), (asking.rank, asking))
        self.sort_anew()

    def waits_in_vain(self, asking: Asking) -> bool:
        """Whether one that comes no later in the queue could not be admitted, and nothing was given back since."""
        if asking.kind in self.roomless:
            return True
        before = self.aside.get(asking.kind)
        return before is not None and before[0] == self.seen and asking.rank >= before[1]

    def look(self, freed: int) -> None:
        """Let all kinds be tried again if anything was given back."""
        if freed != self.seen:
            self.seen = freed
            self.passed = 0

    def sort_anew(self) -> None:
        """Take note that a job came, started or went."""
        self.order = None

    def begin(self) -> None:
        """Let those who lacked room on nodes be tried again, as a pass begins."""
        if self.roomless:
            self.roomless.clear()
            self.passed = 0

    def sorted(self, back: list[Job]) -> list[Asking]:
        """Sort the first of each kind; who waits no longer is left out.

        :param back: takes those who wait, but for something of their own first.
        """
        order = []
        for kind, heap in list(self.kinds.items()):
            while heap and not waits(heap[0][1].job, back):
                self.listed.discard(heapq.heappop(heap)[1].job.id)
            if heap:
                order.append(heap[0][1])
            else:
                del self.kinds[kind]
        order.sort(key=_BY_RANK)
        self.order, self.passed = order, 0
        return order


_BY_RANK = operator.attrgetter("rank")


def waits(job: Job, back: list[Job]) -> bool:
    """Whether a job can be tried now; if something of its own keeps it back, it is added to `back`."""
    if job.state is not _PENDING:
        return False
    if job.eligible_since is None:
        back.append(job)
        return False
    return True

"""Follow nodes while jobs leave them, for jobs that want idle cores and nothing else.

What is asked is the test of one node (slurm-gang-and-select 4.3.2 to 4.3.6), against what one removal changed,
instead of against the cluster.
"""

from __future__ import annotations

from makeway import bitmap
from makeway.bitmap import CoreBits
from makeway.features import Alternatives
from makeway.model import Allocation, Job
from makeway_select_cons_tres.attempt import ConsAttempt
from makeway_select_cons_tres.request import ONE_ROW, RESERVED

_MOST_NODES = 4096
"""On larger clusters adding up what all nodes have costs more than it saves."""


def watch_for(attempt: ConsAttempt, choice: Alternatives) -> Watch | None:
    """Return a watch for the job of `attempt`; None where a node's cores are not all that counts.

    Its job has to want idle cores, each of which has one holder at most.
    """
    request, known = attempt.kind.request, attempt.known
    if (
        request.mark != ONE_ROW
        or known.mode.gang
        or known.layout.several_rows
        or attempt.books.any_overlaid
        or request.required
        or request.gres
        or request.gres_total
        or attempt.kind.key.partition is not None
        or choice.counts
        or (request.max_nodes != 1 and known.layout.size > _MOST_NODES)
    ):
        return None
    return Watch(attempt, choice)


class Watch:
    """The nodes of one feature alternative, as jobs leave them."""

    def __init__(self, attempt: ConsAttempt, choice: Alternatives) -> None:
        """Begin with the books of `attempt` as they are; they must not change afterwards."""
        nodes = attempt.nodes & attempt.kind.able & choice.nodes
        request = attempt.kind.request
        self.about_one_node = request.max_nodes == 1
        self._attempt = attempt
        self._least = attempt.kind.wanted
        self._min_cpus = request.min_cpus
        self._min_nodes = request.min_nodes
        self.nodes = nodes
        """Those that could serve the job at all."""
        self._flags = nodes.to_bytes((attempt.known.layout.size >> 3) + 1, "little")
        self._nodes: dict[int, _Node] = {}
        self._cpus = self._count = 0
        """CPUs that there are for the job, and on how many nodes."""
        if not self.about_one_node:
            able = nodes & attempt.books.table(attempt.kind.key).at_least(self._least)
            offers = [cpus for index in bitmap.indices(able) if (cpus := _Node(attempt, index).cpus())]
            self._cpus, self._count = sum(offers), len(offers)

    def release(self, job: Job) -> list[int]:
        """Let `job` leave.

        :returns: those of its nodes that decide that there may be room from now on: each of them alone where the
            attempt's job wants one node, else all of them. Empty: there is no room yet.
        """
        allocation = job.allocation
        if allocation is None:
            return []
        touched = []
        flags, nodes, alone = self._flags, self._nodes, self.about_one_node
        for place, index in enumerate(allocation.node_indices):
            if flags[index >> 3] >> (index & 7) & 1:
                node = nodes.get(index)
                if node is None:
                    node = nodes[index] = _Node(self._attempt, index)
                    if not alone:
                        node.offer = node.cpus()
                if alone:
                    if node.release(allocation, place) and node.cpus() >= self._least:
                        touched.append(index)
                    continue
                before = node.offer
                now = node.offer = node.cpus() if node.release(allocation, place) else 0
                if now != before:
                    self._cpus += now - before
                    self._count += (now > 0) - (before > 0)
                touched.append(index)
        enough = alone or (self._count >= self._min_nodes and self._cpus >= self._min_cpus)
        return touched if enough else []


class _Node:
    """What one node has left as its jobs end."""

    __slots__ = ("_attempt", "_index", "_marks", "_memory", "_threads", "free", "offer")

    def __init__(self, attempt: ConsAttempt, index: int) -> None:
        books = attempt.books
        layout = books.layout
        self._attempt = attempt
        self._index = index
        self.offer = 0
        """CPUs that the job could have here when that was last looked at; kept where it may want several nodes."""
        self.free: CoreBits = layout.full[index] & ~books.busy[index]
        self._memory = layout.memory[index] - books.memory[index]
        self._marks = books.marks[index]
        self._threads = layout.shapes[layout.shape_at[index]].threads

    def release(self, allocation: Allocation, place: int) -> bool:
        """Let a job end that has the node at this place of its allocation; say whether it could have CPUs enough."""
        if allocation.cores is None:
            self.free = self._attempt.known.layout.full[self._index]
        else:
            self.free |= allocation.cores[place]
        if allocation.memory_mb is not None:
            self._memory += allocation.memory_mb[place]
        if not allocation.shared:
            self._marks = self._marks % RESERVED
        return self.free.bit_count() * self._threads >= self._attempt.kind.wanted

    def cpus(self) -> int:
        """Return the CPUs that the job could have here, as things are; 0: it cannot use the node."""
        attempt, index = self._attempt, self._index
        kind, books = attempt.kind, attempt.books
        request = kind.request
        if self._marks >= RESERVED:
            return 0
        if request.whole and self.free != books.layout.full[index]:
            return 0
        each = request.memory_per_cpu
        if each is None:
            enough = books.layout.memory[index] if request.memory_per_node == 0 else kind.least_memory
            if self._memory < enough:
                return 0
        if self.free.bit_count() * self._threads < kind.wanted:
            return 0
        cpus = kind.idle.cpus_of(index, self.free, books)
        if cpus < kind.wanted:
            return 0
        if each is None:
            return cpus
        if request.whole:
            return cpus if self._memory >= each * books.layout.cluster.nodes[index].cpus else 0
        cpus = min(cpus, self._memory // each) if each else cpus
        return cpus if cpus >= kind.wanted and self._memory >= kind.least_memory else 0

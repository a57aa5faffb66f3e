"""Simulate removals where only the number of jobs per node decides which nodes are usable.

Looking at the whole cluster after every removal would cost as much as removals times nodes; here a removal
touches the nodes of the removed job alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Job
from makeway_select_linear.books import Books


class Counting:
    """The jobs left on each node, and the nodes that have become usable."""

    def __init__(self, books: Books, static: NodeBits, most: int, size: int) -> None:
        """Begin with the books as they are.

        :param static: nodes that could serve the job if no other were there.
        :param most: how many jobs may run on a node beside the job, if all of them share.
        :param size: number of nodes of the cluster.
        """
        self._most = most
        self._books = books
        self._start = static & ~books.exclusive.over[0] & ~books.running.above(self._most)
        self._fixed = bin(static | 1 << size)[:1:-1]
        self._gained: list[int] = []
        self.usable = self._start.bit_count()
        """How many nodes are usable."""
        anyone_shares = books.running.over[0] & ~books.exclusive.over[0]
        alone = not books.running.above(1) and not (most and anyone_shares) and not books.stopped.over[0]
        self._running: list[int] | None = None
        self._exclusive: list[int] | None = None
        if not alone:
            self._running, self._exclusive = books.counts()

    def remove_below(self, jobs: Sequence[Job], order: Sequence[int], gains: list[int], wanted: int) -> int:
        """Take away jobs as long as fewer than `wanted` nodes are usable then, as `remove` does one by one.

        Where each stands alone on its nodes, that is one loop without calls; else no job is taken away here.

        :param gains: how many nodes of each job are usable then; changed.
        :returns: how many of `order` were taken away.
        """
        if self._running is not None or self._books.forgotten:
            return 0
        fixed, usable, gained = self._fixed, self.usable, self._gained
        done = 0
        for at in order:
            allocation = jobs[at].allocation
            if allocation is not None:
                nodes = allocation.node_indices
                if len(nodes) > 1:
                    nodes = tuple([index for index in nodes if fixed[index] == "1"])
                elif nodes and fixed[nodes[0]] != "1":
                    nodes = ()
                if usable + len(nodes) >= wanted:
                    break
                gained += nodes
                gains[at] = len(nodes)
                usable += len(nodes)
            done += 1
        self.usable = usable
        return done

    def remove(self, job: Job) -> tuple[int, int]:
        """Take `job` away.

        :returns: how many of its nodes are usable now, and how many of them were not before. One that a person
            suspended cannot be taken away (slurm-preemption 10.1 no. 13), nor one that the books forgot.
        """
        allocation = job.allocation
        if allocation is None or not self._books.counts_job(job):
            return 0, 0
        fixed = self._fixed
        if self._running is None or self._exclusive is None:
            new = [index for index in allocation.node_indices if fixed[index] == "1"]
            gain = len(new)
        else:
            new, gain = self._count_down(allocation.node_indices, allocation.shared)
        self._gained += new
        self.usable += len(new)
        return gain, len(new)

    def _count_down(self, nodes: tuple[int, ...], shared: bool) -> tuple[list[int], int]:
        running, exclusive, most, fixed = self._running, self._exclusive, self._most, self._fixed
        assert running is not None
        assert exclusive is not None
        new: list[int] = []
        gain = 0
        for index in nodes:
            before = running[index] <= most and not exclusive[index]
            running[index] -= 1
            exclusive[index] -= not shared
            if fixed[index] == "1" and running[index] <= most and not exclusive[index]:
                gain += 1
                if not before:
                    new.append(index)
        return new, gain

    def nodes(self) -> NodeBits:
        """Return the usable nodes."""
        return self._start | bitmap.of(self._gained)

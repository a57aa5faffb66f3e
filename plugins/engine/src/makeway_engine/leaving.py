"""Know who has ended and is still leaving his nodes, and which."""

from __future__ import annotations

from makeway.bitmap import NodeBits
from makeway.model import Allocation, Job
from makeway.tally import Tally


class Leaving:
    """Jobs whose nodes are being cleaned up."""

    def __init__(self) -> None:
        self._tally = Tally()
        self.nodes: NodeBits = 0
        """Nodes that a job is still leaving."""
        self._allocations: dict[str, Allocation] = {}
        self._early: dict[str, NodeBits] = {}
        """Job id -> nodes which it has left before the others."""

    def add(self, job: Job, allocation: Allocation, left: NodeBits = 0) -> None:
        """Take in a job that leaves its nodes, and has left some of them already."""
        self._tally.add(allocation.nodes & ~left)
        self.nodes = self._tally.any
        self._allocations[job.id] = allocation
        if left:
            self._early[job.id] = left

    def cleaned_partly(self, job: Job, nodes: NodeBits) -> None:
        """Take note that a job has left some of its nodes before the others."""
        before = self.left_early(job)
        left = nodes & self._allocations[job.id].nodes & ~before
        self._early[job.id] = before | left
        self._tally.remove(left)
        self.nodes = self._tally.any

    def cleaned(self, job: Job) -> None:
        """Strike off a job that has left all of its nodes."""
        allocation = self._allocations.pop(job.id)
        self._tally.remove(allocation.nodes & ~self._early.pop(job.id, 0))
        self.nodes = self._tally.any

    def left_early(self, job: Job) -> NodeBits:
        """Return the nodes that a job has left before the others."""
        return self._early.get(job.id, 0)

    def on(self, nodes: NodeBits) -> list[str]:
        """Return the ids of those who are still leaving some of `nodes`."""
        early = self._early
        return [job for job, held in self._allocations.items() if held.nodes & nodes & ~early.get(job, 0)]


__all__ = ["Leaving"]

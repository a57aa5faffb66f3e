"""Know which jobs have ended and are still leaving nodes, and which nodes."""

from __future__ import annotations

from collections.abc import Mapping

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
        self._stuck: dict[str, NodeBits] = {}
        """Id of a job that has ended -> nodes which count as if it was leaving them for good."""

    def add(self, job: Job, allocation: Allocation, left: NodeBits = 0) -> None:
        """Take in a job that leaves its nodes, and has left some of them already."""
        self._tally.add(allocation.nodes & ~left)
        self._count()
        self._allocations[job.id] = allocation
        if left:
            self._early[job.id] = left

    def cleaned_partly(self, job: Job, nodes: NodeBits) -> None:
        """Take note that a job has left some of its nodes before the others."""
        before = self.left_early(job)
        left = nodes & self._allocations[job.id].nodes & ~before
        self._early[job.id] = before | left
        self._tally.remove(left)
        self._count()

    def cleaned(self, job: Job) -> None:
        """Strike off a job that has left all of its nodes."""
        allocation = self._allocations.pop(job.id)
        self._tally.remove(allocation.nodes & ~self._early.pop(job.id, 0))
        self._count()

    def stuck(self, job_id: str, nodes: NodeBits) -> None:
        """Let nodes count as if the job was leaving them, whatever becomes of it, until they are back in service."""
        self._stuck[job_id] = nodes
        self._count()

    def back_in_service(self, nodes: NodeBits) -> None:
        """Take note that nodes were restarted: no job is stuck there any more."""
        self._stuck = {job_id: left for job_id, held in self._stuck.items() if (left := held & ~nodes)}
        self._count()

    def _count(self) -> None:
        self.nodes = self._tally.any
        for held in self._stuck.values():
            self.nodes |= held

    def left_early(self, job: Job) -> NodeBits:
        """Return the nodes that a job has left before the others."""
        return self._early.get(job.id, 0)

    def on(self, nodes: NodeBits) -> list[str]:
        """Return the ids of those that are still leaving some of `nodes`."""
        early = self._early
        found = [job for job, held in self._allocations.items() if held.nodes & nodes & ~early.get(job, 0)]
        return found + [job for job, held in self._stuck.items() if held & nodes and job not in found]

    # --------------------------------------------------------------------------- adoption
    def save(self) -> dict[str, str]:
        """Return which job left which nodes stuck, in hexadecimal."""
        return {job_id: hex(nodes) for job_id, nodes in self._stuck.items()}

    def restore(self, memory: Mapping[str, str]) -> None:
        """Know of the nodes that were handed over."""
        self._stuck = {job_id: int(nodes, 16) for job_id, nodes in memory.items()}
        self._count()

"""Close the nodes that a person uses to partitions that vacate them.

A use is known per partition, since each says what counts as use and how long it must be quiet. Its nodes are kept from
jobs of the partition as those of a reservation without an end are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Cluster, ClusterView, Job, Limits, Stay, Window
from makeway.state import nodes_from_text, nodes_to_text

REASON = "NodesInUse"
"""Why a job waits whose nodes are all in use."""


class InUse(Limits):
    """Which nodes are in use, by partition."""

    def __init__(self, cluster: Cluster) -> None:
        """Begin with none in use."""
        self._cluster = cluster
        self.vacates: Mapping[str, NodeBits] = {
            each.name: each.nodes for each in cluster.partitions if each.vacate_on_use
        }
        """The nodes of each partition that makes way for people."""
        self._why: dict[str, dict[int, str]] = {name: {} for name in self.vacates}
        self._windows: dict[str, tuple[Window, ...]] = {}
        self.stopped: set[str] = set()
        """Jobs that were stopped since a node of theirs is in use."""
        self.by_request = _by_request

    def nodes(self, partition: str) -> NodeBits:
        """Return the nodes in use that are closed to a partition."""
        return bitmap.of(self._why.get(partition, ()))

    def begin(self, partition: str, nodes: NodeBits, why: str) -> None:
        """Close nodes to a partition."""
        self._why[partition].update(dict.fromkeys(bitmap.indices(nodes), why))
        self._renew(partition)

    def end(self, partition: str, nodes: NodeBits) -> None:
        """Open nodes to a partition again."""
        for node in bitmap.indices(nodes):
            self._why[partition].pop(node, None)
        self._renew(partition)

    def _renew(self, partition: str) -> None:
        nodes = self.nodes(partition)
        self._windows[partition] = (Window(nodes=nodes, reason=REASON),) if nodes else ()

    def reservations(self, job: Job, view: ClusterView) -> Sequence[Window]:
        """Keep the nodes in use from jobs of their partition."""
        return self._windows.get(job.partition.name, ())

    def said(self, job: Job) -> list[str]:
        """Return which nodes of a job, or of its partitions while it waits, are in use, and why that is known."""
        names = [job.partition.name] if job.allocation is not None else [each.name for each in job.partitions]
        found: dict[str, None] = {}
        for name in names:
            for node, why in sorted(self._why.get(name, {}).items()):
                if job.allocation is None or job.nodes >> node & 1:
                    found[self._said(node, why)] = None
        return list(found)

    def shown(self) -> dict[str, list[str]]:
        """Return which nodes are in use, by the partition that makes way for it."""
        return {
            name: list(dict.fromkeys(self._said(node, why) for node, why in sorted(nodes.items())))
            for name, nodes in self._why.items()
            if nodes
        }

    def _said(self, node: int, why: str) -> str:
        return f"{self._cluster.nodes[node].name} is in use{f' {why}' if why else ''}"

    def stays(self, job: Job) -> list[Stay]:
        """Return why a job stays stopped that was stopped for this; empty: it was not."""
        if job.id not in self.stopped:
            return []
        setting = f"partition.{job.partition.name}.quiet"
        return [Stay(why=text, setting=setting) for text in self.said(job)]

    def plain(self) -> dict[str, Any]:
        """Return what is known, in values that JSON has; empty: nothing is in use."""
        used = {
            name: [[nodes_to_text(self._cluster, 1 << node), why] for node, why in sorted(nodes.items())]
            for name, nodes in self._why.items()
            if nodes
        }
        stopped = sorted(self.stopped)
        return {**({"used": used} if used else {}), **({"stopped": stopped} if stopped else {})}

    def recall(self, memory: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """Go on with what `plain` handed over; partitions that vacate no more, and jobs that are gone, are left out."""
        for name, nodes in memory.get("used", {}).items():
            if name in self.vacates:
                for text, why in nodes:
                    self.begin(name, nodes_from_text(self._cluster, text) & self.vacates[name], why)
        self.stopped |= {job_id for job_id in memory.get("stopped", ()) if job_id in jobs}


def _by_request(job: Job) -> bool:
    """Nodes are closed to a partition, whichever of its jobs asks."""
    return True

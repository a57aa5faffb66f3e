"""Say how many CPUs jobs take up that take whole nodes, while none are chosen (slurm-priority-and-limits 1.3)."""

from __future__ import annotations

import itertools

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Exclusive, Job, Partition, Sharing

_WHOLE_NODES, _EXCLUSIVE = Exclusive.NODE, Sharing.EXCLUSIVE
_MANY = 1_000


class WholeNodes:
    """The CPUs of the nodes of one cluster."""

    def __init__(self, view: ClusterView) -> None:
        self._nodes = view.cluster.nodes
        self.always = view.gives_whole_nodes
        """Whether every job takes whole nodes, whatever it asks for (select/linear)."""
        self._fewest: dict[NodeBits, list[int]] = {}
        """By a set of nodes: how many CPUs the smallest ones have together, by their number."""

    def taken_by(self, job: Job, partition: Partition) -> bool:
        """Whether a job takes whole nodes in a partition."""
        return (
            self.always or job.spec.exclusive is _WHOLE_NODES or partition.oversubscribe.sharing is _EXCLUSIVE
        )

    def cpus(self, job: Job, partition: Partition) -> int:
        """Return how many CPUs such a job takes up: those of the nodes it requires, and of the smallest others.

        Slurm counts those of the nodes that it would choose, which may be larger ones where nodes differ.
        """
        required = job.required
        taken = sum(self._nodes[at].cpus for at in bitmap.indices(required)) if required else 0
        fewest = self._fewest_of(partition.nodes & ~required)
        rest = max(0, job.size - required.bit_count())
        return max(job.spec.cpus, taken + fewest[min(rest, len(fewest) - 1)])

    def _fewest_of(self, nodes: NodeBits) -> list[int]:
        found = self._fewest.get(nodes)
        if found is None:
            if len(self._fewest) > _MANY:
                self._fewest.clear()
            cpus = sorted(self._nodes[at].cpus for at in bitmap.indices(nodes))
            found = self._fewest[nodes] = [0, *itertools.accumulate(cpus)]
        return found

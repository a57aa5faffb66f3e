"""Say below which switches a job is sought a place, the best one first (slurm-priority-and-limits 10)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import ClusterView, Exclusive, Job, NodeSets, Seconds
from makeway_slurm.topology.switches import Switch, trees_of

SWITCHES = "switches"
"""Attribute of a job: how many leaf switches it wants at most."""
OF_PARTITION = "topology"
"""Attribute of a partition: the name of its tree; not there: that of the cluster."""
WAIT = "switches_wait"
"""Attribute of a job: for how many seconds it waits for that; not there: for the longest time allowed."""


class TopologyBook:
    """The switches of one run. See `makeway.model.Book`."""

    def __init__(self, view: ClusterView) -> None:
        self._trees = {name: _Tree(switches) for name, switches in trees_of(view.cluster).items()}

    def started(self, job: Job, view: ClusterView) -> None:
        """The view knows."""

    def left(self, job: Job, view: ClusterView) -> None:
        """The view knows."""

    def sets(
        self, job: Job, nodes: NodeBits, view: ClusterView, *, most_wait: Seconds, optional: bool
    ) -> NodeSets | None:
        """Return the sets of nodes to try; None: switches do not matter."""
        tree = self._trees.get(job.partition.attributes.get(OF_PARTITION, ""))
        wanted = int(job.spec.attributes.get(SWITCHES, 0))
        if tree is None or (optional and not wanted):
            return None
        until = _until(job, most_wait) if wanted else None
        waiting = until is not None and view.now < until
        room = _with_room(job, nodes, view)
        found = [each.nodes & nodes for each in tree.by_fit(job, room, wanted if waiting else 0)]
        found += tree.across(job, room, nodes, wanted if waiting else 0)
        if not waiting:
            found.append(nodes)
        else:  # where it will be later
            found += tree.some_day(job, nodes, wanted)
        return NodeSets(sets=tuple(dict.fromkeys(found)), ask_again_at=until if waiting else None)


@attrs.frozen
class _Tree:
    """The switches of one tree."""

    switches: tuple[Switch, ...]

    _leaves: tuple[Switch, ...] = attrs.field(
        init=False, default=attrs.Factory(lambda tree: tuple(s for s in tree.switches if not s.level), True)
    )

    def by_fit(self, job: Job, room: NodeBits, most: int) -> Iterator[Switch]:
        """Yield the switches with enough nodes, the lowest first, of one level the tightest.

        :param most: how many leaf switches there may be below it; 0: any number.
        """
        enough = [
            (each.level, (each.nodes & room).bit_count(), at, each)
            for at, each in enumerate(self.switches)
            if (each.nodes & room).bit_count() >= job.size and not job.required & ~each.nodes
        ]
        for _, _, _, each in sorted(enough, key=lambda entry: entry[:3]):
            if not most or self._leaves_below(each) <= most:
                yield each

    def _leaves_below(self, switch: Switch) -> int:
        return sum(1 for leaf in self._leaves if not leaf.nodes & ~switch.nodes)

    def across(self, job: Job, room: NodeBits, nodes: NodeBits, most: int) -> list[NodeBits]:
        """Return the nodes of the fewest leaf switches that have enough together; none: there are not enough."""
        fullest = sorted(
            self._leaves,
            key=lambda leaf: (not leaf.nodes & job.required, -(leaf.nodes & room).bit_count()),
        )
        together: NodeBits = 0
        for count, leaf in enumerate(fullest, 1):
            if most and count > most:
                return []
            together |= leaf.nodes & nodes
            if (together & room).bit_count() >= job.size and not job.required & ~together:
                return [together]
        return []

    def some_day(self, job: Job, nodes: NodeBits, most: int) -> list[NodeBits]:
        """Return where there might be room below so many leaf switches once others have ended."""
        return [
            each.nodes & nodes
            for each in self.switches
            if self._leaves_below(each) <= most and (each.nodes & nodes).bit_count() >= job.size
        ]


def _until(job: Job, most: Seconds) -> Seconds:
    own = job.spec.attributes.get(WAIT)
    since = job.eligible_since if job.eligible_since is not None else job.eligible_at
    return since + (most if own is None else min(float(own), most))


def _with_room(job: Job, nodes: NodeBits, view: ClusterView) -> NodeBits:
    """Return the nodes that have the CPUs which the job wants of each, by what active jobs hold there."""
    idle = nodes & view.idle
    if job.spec.exclusive is Exclusive.NODE:
        return idle
    found = idle
    for at in bitmap.indices(nodes & ~view.idle):
        node = view.cluster.nodes[at]
        free = node.cpus - sum(_held(other, at, node.cpus) for other in view.jobs_on(at))
        if free >= max(1, job.spec.cpus_per_node):
            found |= 1 << at
    return found


def _held(job: Job, at: int, cpus: int) -> int:
    allocation = job.allocation
    if allocation is None:
        return 0
    if allocation.cpus is None:
        return cpus
    return allocation.cpus[allocation.node_indices.index(at)]

"""Boot nodes of a simulated world that are switched off, and switch off those that no job uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.config import Config
from makeway.hostlist import expand_hostlist
from makeway.model import Cluster, Job, Seconds
from makeway.worlds.events import Cleaned, Event, Finished, NodesDown, NodesDrained, NodesUp


@attrs.define(eq=False)
class _Node:
    boot_time: Seconds
    off_after: Seconds | None
    """How long it stays on with no job; None: for good."""
    ready_at: Seconds | None
    """Since when it is on, or will be; None: it is off."""
    jobs: set[str] = attrs.field(factory=set)
    idle_since: Seconds = 0.0
    kept: bool = False
    """Whether it is one of a few that stay on."""
    in_service: bool = True

    def on_at(self, now: Seconds) -> Seconds | None:
        """Return since when it is on, or will be; None: it is off."""
        if self.ready_at is None or self.jobs or self.kept or self.off_after is None:
            return self.ready_at
        return self.ready_at if now < max(self.idle_since, self.ready_at) + self.off_after else None


class Power:
    """Which nodes are on; a job on one that is off begins once it has booted."""

    def __init__(self, nodes: Mapping[int, _Node], few: Sequence[tuple[Sequence[_Node], int]]) -> None:
        """Begin with no job on any node.

        :param nodes: those that take time to boot, by index.
        :param few: of which of them how many stay on.
        """
        self._nodes = nodes
        self._few = few
        self._keep(0.0)
        self._where: dict[str, list[_Node]] = {}

    def starts(self, job: Job, now: Seconds) -> Seconds:
        """Take note that a job starts; return when its nodes have booted."""
        ready = now
        if job.allocation is None:
            return ready
        used = [self._nodes[each] for each in job.allocation.node_indices if each in self._nodes]
        for node in used:
            on = node.on_at(now)
            if on is None:
                on = node.ready_at = now + node.boot_time
            node.jobs.add(job.id)
            ready = max(ready, on)
        self._where[job.id] = used
        self._keep(now)
        return ready

    def found(self, job: Job, now: Seconds) -> None:
        """Take note that a job is there already: its nodes are on."""
        for index in job.allocation.node_indices if job.allocation is not None else ():
            if (node := self._nodes.get(index)) is not None and node.ready_at is None:
                node.ready_at = now
        self.starts(job, now)

    def heard(self, events: Iterable[Event], now: Seconds) -> None:
        """Take note of which jobs have left their nodes, and which nodes are in service."""
        for event in events:
            if isinstance(event, NodesDown | NodesDrained | NodesUp):
                for index in bitmap.indices(event.nodes):
                    if index in self._nodes:
                        self._nodes[index].in_service = isinstance(event, NodesUp)
            if (isinstance(event, Cleaned) and event.nodes is None) or (
                isinstance(event, Finished) and event.cleaned
            ):
                for node in self._where.pop(event.job_id, ()):
                    node.jobs.discard(event.job_id)
                    node.idle_since = now
        self._keep(now)

    def _keep(self, now: Seconds) -> None:
        """Switch off what is off by now, and choose which of the others stay on."""
        for node in [each for nodes, _ in self._few for each in nodes]:
            node.ready_at = node.on_at(now)
            node.kept = False
        for nodes, count in self._few:
            idle = [node for node in nodes if node.ready_at is not None and node.in_service and not node.jobs]
            for node in idle[:count]:
                node.kept = True


def power_of(config: Config, cluster: Cluster) -> Power | None:
    """Return what boots the nodes of a configuration; None: all of them are always on."""
    index = {node.name: node.index for node in cluster.nodes}
    nodes = {
        index[name]: _Node(table.boot_time, table.off_after, None if table.off else 0.0)
        for table in config.node
        if table.boot_time and (table.off or table.off_after is not None)
        for name in expand_hostlist(table.name)
    }
    if not nodes:
        return None
    few = []
    for table in config.stay_on:
        names = index if table.nodes.upper() == "ALL" else expand_hostlist(table.nodes)
        few.append(([nodes[index[name]] for name in names if index[name] in nodes], table.count))
    return Power(nodes, few)

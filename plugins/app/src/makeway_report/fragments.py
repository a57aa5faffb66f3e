"""Say how many free GPUs jobs could not use where they lay (Weng and others, "Beware of Fragmentation", ATC 2023).

Which jobs a GPU is of use to is known when the run is over and all jobs have been seen. Until then the time is
added up that nodes of a kind spent with so many GPUs and CPUs free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from makeway import bitmap
from makeway.features import alternatives, unreadable
from makeway.model import Allocation, Cluster, JobSpec, Node, Seconds
from makeway_report import gpus

_Kind = tuple[float, int, frozenset[str], frozenset[str]]
"""GPUs, CPUs, models and features."""
_State = tuple[int, float, int]
"""Kind by number, free GPUs, free CPUs."""


class Fragments:
    """Adds up how long nodes had how much free."""

    def __init__(self, cluster: Cluster, parts: Mapping[str, float]) -> None:
        """Begin with an empty cluster.

        :param parts: see `makeway_report.gpus.parts_in_one`.
        """
        self._cluster, self._parts = cluster, parts
        nodes = cluster.nodes
        kinds: dict[_Kind, int] = {}
        self._kind = [kinds.setdefault(_kind_of(node), len(kinds)) for node in nodes]
        self._example = [nodes[self._kind.index(at)] for at in range(len(kinds))]
        self._gpus = [gpus.of_node(node) for node in nodes]
        self._cpus = [node.cpus for node in nodes]
        self._counts = [each > 0 for each in self._gpus]
        self._since: list[Seconds | None] = [None] * len(nodes)
        self._began: Seconds | None = None
        self._spent: dict[_State, Seconds] = {}
        self._mix: Counter[gpus.Need] = Counter()
        self._largest = max(self._gpus, default=0.0)
        self.placed = True
        """Whether GPUs were given out node by node; with quota alone a node may hold more than it has."""

    def came(self, spec: JobSpec, now: Seconds) -> None:
        """Count a job among the mix."""
        if self._began is None:
            self._began = now
        need = gpus.need(spec, self._parts, self._largest)
        if need is not None:
            self._mix[need] += 1

    def change(self, allocation: Allocation, gpus_of_each: Sequence[float], sign: int, now: Seconds) -> None:
        """Take note of a job that holds GPUs on each of its nodes from now on (`sign` -1), or no longer (1)."""
        for at, index in enumerate(allocation.node_indices):
            if not self._counts[index]:
                continue
            self._spend(index, now)
            self._gpus[index] = round(self._gpus[index] + sign * gpus_of_each[at], 6)
            every = self._cluster.nodes[index].cpus
            self._cpus[index] += sign * (allocation.cpus[at] if allocation.cpus is not None else every)
            if self._gpus[index] < 0:
                self.placed = False

    def _spend(self, index: int, now: Seconds) -> None:
        """Add the time since the last change of a node to what it had free."""
        since = self._since[index]
        if since is None:
            since = self._began if self._began is not None else now
        if now < since:
            return
        if now > since:
            state = (self._kind[index], max(0.0, self._gpus[index]), max(0, self._cpus[index]))
            self._spent[state] = self._spent.get(state, 0.0) + now - since
        self._since[index] = now

    # ------------------------------------------------------------------------------ results
    def figures(self, end: Seconds) -> tuple[float, float, float]:
        """Return GPU-seconds free, those of use to no job of the mix, and those that a job of it cannot use on average.

        :param end: of the run.
        """
        for index, counts in enumerate(self._counts):
            if counts:
                self._spend(index, end)
        users = [self._users(node) for node in self._example]
        total = self._mix.total()
        free = stranded = unusable = 0.0
        for (kind, gpu, cpus), seconds in sorted(self._spent.items()):
            if not gpu:
                continue
            able = sum(count for need, count in users[kind] if need.gpus <= gpu and need.cpus <= cpus)
            idle = gpu * seconds
            free += idle
            if total:
                stranded += idle if not able else 0.0
                unusable += idle * (total - able) / total
        return free, stranded, unusable

    def _users(self, node: Node) -> Sequence[tuple[gpus.Need, int]]:
        """Return the needs of the mix that an empty node like this could serve, with the number of jobs."""
        models = gpus.models(node.gres)
        return [
            (need, count)
            for need, count in self._mix.items()
            if need.models <= models and self._has(node, need.features)
        ]

    def _has(self, node: Node, features: str) -> bool:
        if unreadable(features):
            return False
        own = bitmap.single(node.index)
        return any(choice.among(own) for choice in alternatives(features, self._cluster))


def _kind_of(node: Node) -> _Kind:
    return gpus.of_node(node), node.cpus, gpus.models(node.gres), node.features

"""Compare what jobs hold: the active row at the granularity of nodes, cores, sockets or CPUs.

slurm-gang-and-select 1.2 and 1.3.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from makeway.bitmap import CoreBits, NodeBits
from makeway.model import Allocation, Cluster, ClusterView, Exclusive, Job, Node, Sharing


class Kind(enum.Enum):
    """What is compared."""

    CORE = "core"
    """Exact cores; whole-node jobs compare nodes, so this covers whole-node selection too."""
    SOCKET = "socket"
    """Exact cores against whole sockets of active jobs."""
    CPU = "cpu"
    """Sums of CPUs per node."""

    def conflict(self, one: Job, other: Job, cluster: Cluster) -> bool:
        """Whether two jobs cannot be active together, no other considered."""
        if not one.nodes & other.nodes:
            return False
        row = Row(self, cluster)
        row.add(one, first=True)
        return not row.fits(other)


def kind_of(view: ClusterView) -> Kind:
    """Return the kind that the selection parameters ask for (section 1.2)."""
    words = {word.upper() for word in view.select_parameters}
    if words & {"CR_SOCKET", "CR_SOCKET_MEMORY"}:
        return Kind.SOCKET
    if words & {"CR_CPU", "CR_CPU_MEMORY"} and view.rule("gang_counts_cpus"):
        plugin = view.cluster.attributes.get("task_plugin", "task/none")
        if plugin == "task/none":
            return Kind.CPU
    return Kind.CORE


class Row:
    """The resources of an active row."""

    def __init__(self, kind: Kind, cluster: Cluster) -> None:
        self._kind = kind
        self._nodes = cluster.nodes
        self._touched: NodeBits = 0
        """Nodes on which anything is in the row."""
        self._whole: NodeBits = 0
        self._cores: dict[int, CoreBits] = {}
        self._cpus: dict[int, int] = {}
        self.exact = True
        """Whether nothing in the row overlaps, so that whatever is in it can be taken out again."""

    def clear(self) -> None:
        """Empty the row."""
        self._touched = self._whole = 0
        self._cores.clear()
        self._cpus.clear()
        self.exact = True

    def fits(self, job: Job) -> bool:
        """Whether `job` has everything it holds to itself beside the row."""
        allocation = job.allocation
        if allocation is None or not allocation.nodes & self._touched:
            return True
        if self._kind is Kind.CPU:
            return self._cpus_fit(allocation)
        if allocation.cores is None or allocation.nodes & self._whole:
            return False
        mine = _cores_of(job, allocation)
        if mine is None:
            return False
        cores = self._cores
        return all(
            not held & cores.get(index, 0) for index, held in zip(allocation.node_indices, mine, strict=True)
        )

    def _cpus_fit(self, allocation: Allocation) -> bool:
        for at, index in enumerate(allocation.node_indices):
            node = self._nodes[index]
            if self._cpus.get(index, 0) + _cpus_on(allocation, at, node) > node.cpus:
                return False
        return True

    @property
    def pairwise(self) -> bool:
        """Whether each job conflicts with certain others, whatever else is in the row; sums and sockets are not so."""
        return self._kind is Kind.CORE

    def add(self, job: Job, *, first: bool, fits: bool = False) -> None:
        """Add what `job` holds.

        :param first: whether the row is emptied before.
        :param fits: whether it is known to fit.
        """
        if first:
            self.clear()
        allocation = job.allocation
        if allocation is None:
            return
        if not fits and self.exact and allocation.nodes & self._touched and not self.fits(job):
            self.exact = False  # shadows are let in whether they fit or not
        self._touched |= allocation.nodes
        if self._kind is Kind.CPU:
            for at, index in enumerate(allocation.node_indices):
                node = self._nodes[index]
                total = self._cpus.get(index, 0) + _cpus_on(allocation, at, node)
                self._cpus[index] = min(total, node.cpus)
        elif (mine := _cores_of(job, allocation)) is None:
            self._whole |= allocation.nodes
        else:
            for index, held in zip(allocation.node_indices, mine, strict=True):
                if self._kind is Kind.SOCKET:
                    held = _whole_sockets(held, self._nodes[index])
                self._cores[index] = self._cores.get(index, 0) | held

    def remove(self, job: Job, allocation: Allocation) -> None:
        """Take out what a job in the row holds, or held; only while the row is `exact`."""
        if self._kind is not Kind.CPU and _cores_of(job, allocation) is None:
            self._whole &= ~allocation.nodes
            self._touched &= ~allocation.nodes
            return
        for at, index in enumerate(allocation.node_indices):
            node = self._nodes[index]
            if self._kind is Kind.CPU:
                left = self._cpus[index] = self._cpus[index] - _cpus_on(allocation, at, node)
            else:
                held = allocation.cores[at] if allocation.cores is not None else 0
                if self._kind is Kind.SOCKET:
                    held = _whole_sockets(held, node)
                left = self._cores[index] = self._cores[index] & ~held
            if not left:
                self._touched &= ~(1 << index)

    # ----------------------------------------------------------------------------- adoption
    def to_plain(self) -> dict[str, Any]:
        """Return the row in values that JSON has; sets in hexadecimal."""
        return {
            "touched": hex(self._touched),
            "whole": hex(self._whole),
            "cores": {str(index): hex(cores) for index, cores in self._cores.items()},
            "cpus": {str(index): count for index, count in self._cpus.items()},
            "exact": self.exact,
        }

    def recall(self, plain: Mapping[str, Any]) -> None:
        """Be as another row was."""
        self._touched, self._whole = int(plain["touched"], 16), int(plain["whole"], 16)
        self._cores = {int(index): int(cores, 16) for index, cores in plain["cores"].items()}
        self._cpus = {int(index): count for index, count in plain["cpus"].items()}
        self.exact = plain["exact"]


def _cores_of(job: Job, allocation: Allocation) -> tuple[CoreBits, ...] | None:
    """Return the cores that a job holds; None: all of its nodes. One that asked for whole nodes counts so, too, if it
    got what others left of them (recorded: cons_whole_node_leftover).
    """
    if job.spec.exclusive is Exclusive.NODE or job.partition.oversubscribe.sharing is Sharing.EXCLUSIVE:
        return None
    return allocation.cores


def _cpus_on(allocation: Allocation, at: int, node: Node) -> int:
    return node.cpus if allocation.cpus is None else allocation.cpus[at]


def _whole_sockets(cores: CoreBits, node: Node) -> CoreBits:
    size = node.cores_per_socket
    mask = (1 << size) - 1
    filled = 0
    for socket in range(node.sockets):
        if cores >> (socket * size) & mask:
            filled |= mask << (socket * size)
    return filled

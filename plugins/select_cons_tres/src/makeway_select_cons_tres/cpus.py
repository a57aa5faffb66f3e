"""Say how many CPUs of a node a job can use, given its free cores.

slurm-gang-and-select 4.3.6, first paragraph, and 4.3.8 for threads.
"""

from __future__ import annotations

import attrs

from makeway.bitmap import CoreBits
from makeway.model import Node
from makeway_select_cons_tres.parameters import Unit
from makeway_select_cons_tres.request import NodeNeed


@attrs.frozen
class Shape:
    """How a node is built; nodes of one shape are alike to the choice of cores."""

    sockets: int
    cores_per_socket: int
    threads: int

    @property
    def full(self) -> CoreBits:
        """All cores."""
        return (1 << (self.sockets * self.cores_per_socket)) - 1

    def by_socket(self, cores: CoreBits) -> list[CoreBits]:
        """Return the cores of each socket, at their place in the node."""
        size = self.cores_per_socket
        mask = (1 << size) - 1
        return [cores & (mask << (size * at)) for at in range(self.sockets)]


def shape_of(node: Node) -> Shape:
    """Return the shape of `node`; CPUs that sockets, cores and threads do not explain count as cores."""
    cores = node.sockets * node.cores_per_socket
    if cores * node.threads_per_core == node.cpus or node.cpus == cores:
        threads = node.cpus // cores
        return Shape(node.sockets, node.cores_per_socket, threads)
    return Shape(1, node.cpus, 1)


def threads_for(shape: Shape, need: NodeNeed) -> int:
    """Return the threads of a core that the job can use (section 4.3.8, threads)."""
    threads = shape.threads
    if need.threads_per_core is not None:
        threads = min(threads, need.threads_per_core)
    if need.tasks_per_core is not None:
        threads = min(threads, need.tasks_per_core * need.cpus_per_task)
    return threads


def looks_at_sockets(need: NodeNeed) -> bool:
    """Whether it matters of which socket a core is."""
    return (
        need.tasks_per_socket is not None
        or need.sockets > 1
        or need.cores_per_socket > 1
        or need.unit is Unit.SOCKET
    )


def free_by_socket(shape: Shape, free: CoreBits, need: NodeNeed) -> list[CoreBits]:
    """Return the cores that count, by socket: with CR_Socket only those of sockets that no job uses."""
    sockets = shape.by_socket(free)
    if need.unit is Unit.SOCKET:
        size = shape.cores_per_socket
        sockets = [cores if cores.bit_count() == size else 0 for cores in sockets]
    if need.cores_per_socket > 1:
        sockets = [cores if cores.bit_count() >= need.cores_per_socket else 0 for cores in sockets]
    return sockets


def usable_cpus(shape: Shape, free: CoreBits, need: NodeNeed) -> int:
    """Return how many CPUs the job can use of `free`; 0 if the node does not serve."""
    total = most_cpus(shape, free, need)
    if not need.whole_tasks and total >= need.cpus_per_task:
        return total
    return total - total % need.cpus_per_task


def most_cpus(shape: Shape, free: CoreBits, need: NodeNeed) -> int:
    """Return the same, tasks counted in part."""
    if not looks_at_sockets(need):
        return free.bit_count() * threads_for(shape, need)
    sockets = free_by_socket(shape, free, need)
    if need.sockets > 1 and sum(map(bool, sockets)) < need.sockets:
        return 0
    threads = threads_for(shape, need)
    if need.tasks_per_socket is None:
        return sum(cores.bit_count() for cores in sockets) * threads
    most = need.tasks_per_socket * need.cpus_per_task
    return sum(min(cores.bit_count() * threads, most) for cores in sockets)

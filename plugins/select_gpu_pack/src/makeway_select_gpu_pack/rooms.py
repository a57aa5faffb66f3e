"""Keep books of what is free on each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits
from makeway.model import Allocation, Cluster, Node


@attrs.frozen(eq=False)
class Room:
    """What is free on a node."""

    cores: CoreBits
    memory_mb: int
    gres: Mapping[str, int]
    jobs: int = 0
    """Who is there, running or suspended."""


def threads_of(node: Node) -> int:
    """Return the CPUs of a core; 1 where sockets, cores and threads do not explain the CPUs of a node."""
    cores = node.sockets * node.cores_per_socket
    return node.threads_per_core if cores * node.threads_per_core == node.cpus else 1


def empty_room(node: Node) -> Room:
    """Return the room of a node where nobody is."""
    return Room(bitmap.full(node.cpus // threads_of(node)), node.usable_memory_mb, dict(node.gres))


class Rooms:
    """The rooms of all nodes, by index."""

    def __init__(self, cluster: Cluster) -> None:
        self._empty = [empty_room(node) for node in cluster.nodes]
        self.threads = [threads_of(node) for node in cluster.nodes]
        self._rooms = list(self._empty)
        self.free_cpus = sum(node.cpus for node in cluster.nodes)
        """Of all nodes."""
        self.free_gres: Counter[str] = Counter()
        """Of all nodes."""
        for node in cluster.nodes:
            self.free_gres.update(node.gres)

    def copy(self) -> Rooms:
        """Return books to take jobs out of."""
        twin = Rooms.__new__(Rooms)
        twin.__dict__.update(self.__dict__)
        twin._rooms = list(self._rooms)
        twin.free_gres = self.free_gres.copy()
        return twin

    def emptied(self) -> Rooms:
        """Return the books of the cluster without any job."""
        twin = self.copy()
        twin._rooms = list(self._empty)
        return twin

    def __getitem__(self, index: int) -> Room:
        return self._rooms[index]

    def is_idle(self, index: int) -> bool:
        """Whether nobody is there."""
        return not self._rooms[index].jobs

    def add(self, allocation: Allocation) -> None:
        """Charge what a job holds."""
        self._change(allocation, 1)

    def remove(self, allocation: Allocation) -> None:
        """Give back what a job holds."""
        self._change(allocation, -1)

    def _change(self, allocation: Allocation, sign: int) -> None:
        for at, index in enumerate(allocation.node_indices):
            room, held = self._rooms[index], allocation.cores
            mine = self._empty[index].cores if held is None else held[at]
            self.free_cpus -= sign * mine.bit_count() * self.threads[index]
            memory = 0 if allocation.memory_mb is None else allocation.memory_mb[at]
            self._rooms[index] = Room(
                cores=room.cores & ~mine if sign > 0 else room.cores | mine,
                memory_mb=room.memory_mb - sign * memory,
                gres=_less(room.gres, allocation.gres, at, sign),
                jobs=room.jobs + sign,
            )
        for name, counts in allocation.gres.items():
            self.free_gres[name] -= sign * sum(counts)


def _less(
    free: Mapping[str, int], held: Mapping[str, Iterable[int]], at: int, sign: int
) -> Mapping[str, int]:
    if not held:
        return free
    left = dict(free)
    for name, counts in held.items():
        left[name] = left.get(name, 0) - sign * tuple(counts)[at]
    return left

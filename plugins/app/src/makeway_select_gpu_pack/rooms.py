"""Keep books of what is free on each node, and of its GPUs one by one where it gives parts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import CoreBits
from makeway.devices import GPU, PARTS, Bits, Board, Slots, board_of
from makeway.model import Allocation, Cluster, Node

_LONGEST_LOG = 100_000
"""How many changes are kept for those who look at nodes that changed."""


@attrs.frozen(eq=False)
class Room:
    """What is free on a node."""

    cores: CoreBits
    memory_mb: int
    gres: Mapping[str, int]
    threads: int = 1
    """CPUs of a core."""
    jobs: int = 0
    """How many are there, running or suspended."""
    board: Board | None = None
    """Its GPUs, if it gives parts of them."""
    slots: Slots = ()
    """What is given of these."""

    def free(self, name: str, wanted: int) -> int:
        """Return how many of a counted resource one job can get; more than `wanted` is as good."""
        free = self.gres.get(name, 0)
        if self.board is None or not self.board.knows(name):
            return free
        return min(free, self.board.most(self.slots, name, wanted))

    def serve(self, wanted: Mapping[str, int]) -> Served | None:
        """Return what is left once a job has got `wanted` of each counted resource; None: it is not there."""
        if not wanted:
            return Served(self)
        if any(self.free(name, count) < count for name, count in wanted.items()):
            return None
        gres = {name: free - wanted.get(name, 0) for name, free in self.gres.items()}
        if self.board is None:
            return Served(attrs.evolve(self, gres=gres))
        bits = self.board.pick(self.slots, wanted)
        if bits is None:
            return None
        slots = self.board.change(self.slots, bits, wanted, 1)
        of_parts = [(name, mine.bit_length() - 1) for name, mine in bits.items() if name in self.board.parts]
        left = sum(self.board.parts[name][at] - slots[at][2] for name, at in of_parts)
        return Served(attrs.evolve(self, gres=gres, slots=slots), left)

    @property
    def free_gpus(self) -> int:
        """How many GPUs are free as a whole."""
        return self.free(GPU, self.gres.get(GPU, 0))


@attrs.frozen(eq=False)
class Served:
    """What a node can do for a job."""

    room: Room
    """What is left."""
    part_left: int = 0
    """What is left of the GPU of which the job gets a part, in its parts."""


def threads_of(node: Node) -> int:
    """Return the CPUs of a core; 1 where sockets, cores and threads do not explain the CPUs of a node."""
    cores = node.sockets * node.cores_per_socket
    return node.threads_per_core if cores * node.threads_per_core == node.cpus else 1


def empty_room(node: Node) -> Room:
    """Return the room of a node where no job is."""
    board = board_of(node, tightest=True) if any(node.gres.get(name) for name in PARTS) else None
    threads = threads_of(node)
    return Room(
        cores=bitmap.full(node.cpus // threads),
        memory_mb=node.usable_memory_mb,
        gres=dict(node.gres),
        threads=threads,
        board=board,
        slots=() if board is None else board.free,
    )


def _kind(node: Node) -> Hashable:
    """Return all that decides what `empty_room` returns."""
    shape = (node.cpus, node.sockets, node.cores_per_socket, node.threads_per_core, node.usable_memory_mb)
    return shape, tuple(node.gres.items())


class Rooms:
    """The rooms of all nodes, by index. Nodes that are alike begin with the same `Room`."""

    def __init__(self, cluster: Cluster) -> None:
        """Begin with an empty cluster."""
        alike: dict[Hashable, Room] = {}
        self._empty = [alike.setdefault(_kind(node), empty_room(node)) for node in cluster.nodes]
        self.all = list(self._empty)
        self.free_cpus = sum(node.cpus for node in cluster.nodes)
        """Of all nodes."""
        self.free_gres: Counter[str] = Counter()
        """Of all nodes."""
        for node in cluster.nodes:
            self.free_gres.update(node.gres)
        self.is_copy = False
        self.touched: set[int] = set()
        """Of a copy: the nodes where it differs."""
        self._seated: dict[tuple[Allocation, int], Mapping[str, Bits]] = {}
        """GPUs picked for jobs that came without saying which they have, by node."""
        self._log: list[int] = []
        """The nodes that changed, the last ones last."""
        self._dropped = 0
        """How many changes are not in the log any more."""

    def copy(self) -> Rooms:
        """Return books to take jobs out of."""
        twin = Rooms.__new__(Rooms)
        twin.__dict__.update(self.__dict__)
        twin.all = list(self.all)
        twin.free_gres = self.free_gres.copy()
        twin.is_copy, twin.touched = True, set(self.touched)
        twin._seated = dict(self._seated)
        return twin

    @property
    def changes(self) -> int:
        """How often something has changed."""
        return self._dropped + len(self._log)

    def since(self, changes: int) -> Sequence[int] | None:
        """Return the nodes that changed since there were so many changes; None: it is too long ago."""
        return self._log[changes - self._dropped :] if changes >= self._dropped else None

    def __getitem__(self, index: int) -> Room:
        return self.all[index]

    def add(self, allocation: Allocation) -> None:
        """Charge what a job holds."""
        self._change(allocation, 1)

    def remove(self, allocation: Allocation) -> None:
        """Give back what a job holds."""
        self._change(allocation, -1)

    def _change(self, allocation: Allocation, sign: int) -> None:
        for at, index in enumerate(allocation.node_indices):
            room, held = self.all[index], allocation.cores
            mine = self._empty[index].cores if held is None else held[at]
            self._note(index)
            self.free_cpus -= sign * mine.bit_count() * room.threads
            memory = 0 if allocation.memory_mb is None else allocation.memory_mb[at]
            self.all[index] = Room(
                cores=room.cores & ~mine if sign > 0 else room.cores | mine,
                memory_mb=room.memory_mb - sign * memory,
                gres=_less(room.gres, allocation.gres, at, sign),
                threads=room.threads,
                jobs=room.jobs + sign,
                board=room.board,
                slots=self._slots(room, allocation, at, sign),
            )
        for name, counts in allocation.gres.items():
            self.free_gres[name] -= sign * sum(counts)

    def _note(self, index: int) -> None:
        if self.is_copy:
            self.touched.add(index)
            return
        if len(self._log) >= _LONGEST_LOG:
            self._dropped += len(self._log)
            self._log = []
        self._log.append(index)

    def _slots(self, room: Room, allocation: Allocation, at: int, sign: int) -> Slots:
        """Return what is given of the GPUs of a node once a job has come or gone."""
        if room.board is None or not allocation.gres:
            return room.slots
        counts = {name: amounts[at] for name, amounts in allocation.gres.items() if amounts[at]}
        key = (allocation, allocation.node_indices[at])
        bits: Mapping[str, Bits]
        if allocation.devices:
            bits = {name: held[at] for name, held in allocation.devices.items()}
        elif sign > 0:
            bits = self._seated[key] = room.board.pick(room.slots, counts) or {}
        else:
            bits = self._seated.pop(key, {})
        return room.board.change(room.slots, bits, counts, sign)


def _less(
    free: Mapping[str, int], held: Mapping[str, Iterable[int]], at: int, sign: int
) -> Mapping[str, int]:
    if not held:
        return free
    left = dict(free)
    for name, counts in held.items():
        left[name] = left.get(name, 0) - sign * tuple(counts)[at]
    return left

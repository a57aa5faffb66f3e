"""Say what does not change of the nodes."""

from __future__ import annotations

from makeway import bitmap
from makeway.bitmap import CoreBits, NodeBits
from makeway.devices import Board, board_of
from makeway.model import Cluster, Node, Partition
from makeway_select_cons_tres.cores import Picker, Taste
from makeway_select_cons_tres.cpus import Shape, shape_of
from makeway_select_cons_tres.request import rows_of


class Layout:
    """What does not change: shapes, memory and weights of the nodes."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        extra_row: bool,
        track_memory: bool,
        marks_stay: bool = False,
        beside_parts: bool = False,
    ) -> None:
        nodes = cluster.nodes
        self.cluster = cluster
        self.size = len(nodes)
        self.extra_row = extra_row
        """Whether every partition has one more row, for preemptors of preempt/qos."""
        self.track_memory = track_memory
        self.marks_stay = marks_stay
        """Whether the mark of a job that found no row when a person resumed it outlives the job (a defect)."""
        shapes = [shape_of(node) for node in nodes]
        self.shapes: list[Shape] = list(dict.fromkeys(shapes))
        places = {shape: at for at, shape in enumerate(self.shapes)}
        self.shape_at = [places[shape] for shape in shapes]
        """Per node, the place of its shape in `shapes`."""
        self.full: list[CoreBits] = [shape.full for shape in shapes]
        self.core_count = [cores.bit_count() for cores in self.full]
        self.most_cpus = max((node.cpus for node in nodes), default=1)
        """CPUs of the largest node."""
        self._pickers: dict[Taste, Picker] = {}
        self.memory = [node.usable_memory_mb for node in nodes]
        self.alike = len(self.shapes) == 1 and len({node.cpus for node in nodes}) == 1
        """Whether all nodes are built alike."""
        self.several_rows = any(rows_of(part.oversubscribe) > 1 for part in cluster.partitions)
        """Whether any partition has more than one row."""
        weights = sorted({node.weight for node in nodes})
        self.weight = [node.weight for node in nodes]
        self.by_weight: list[NodeBits] = [
            bitmap.of([node.index for node in nodes if node.weight == weight]) for weight in weights
        ]
        """The nodes of each weight, lowest weight first."""
        self.boards: dict[int, Board] = {
            node.index: board
            for node in nodes
            if node.gres and (board := board_of(node, beside_parts=beside_parts)) is not None
        }
        """The GPUs of nodes that give whole ones and parts, by node."""
        equals: dict[object, list[int]] = {}
        for node in nodes:
            kind = (node.cpus, node.sockets, node.usable_memory_mb, tuple(sorted(node.gres.items())))
            equals.setdefault(kind, []).append(node.index)
        self.equipment = [(nodes[indices[0]], bitmap.of(indices)) for indices in equals.values()]
        """A node of each number of CPUs, amount of memory and set of generic resources, and all nodes like it."""

    def serves(self, node: Node, name: str, count: int) -> bool:
        """Whether an empty node can give a job so many of a counted resource."""
        board = self.boards.get(node.index)
        if board is not None and board.knows(name) and board.most(board.free, name, count) < count:
            return False
        return node.gres.get(name, 0) >= count

    def shape(self, node: int) -> Shape:
        """Return how a node is built."""
        return self.shapes[self.shape_at[node]]

    def picker(self, taste: Taste) -> Picker:
        """Return what chooses cores for a taste."""
        found = self._pickers.get(taste)
        if found is None:
            found = self._pickers[taste] = Picker(taste, self.shapes, self.shape_at)
        return found

    def rows_in(self, partition: Partition) -> int:
        """Return how many rows `partition` has, the extra one included."""
        return rows_of(partition.oversubscribe) + self.extra_row
